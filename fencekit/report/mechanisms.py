"""The mechanisms by which one action runs twice: the scanner's kinds and the shapes of client code.

One entry per kind, used by every report and by the Index, so that a word means the same everywhere.
`explains` says what happens; `look_for` says what would settle the question in one reading.
"""

from __future__ import annotations

from typing import NamedTuple


class Mechanism(NamedTuple):
    """One mechanism: its kind (the word in documents), a title, what happens, what settles it."""

    kind: str
    title: str
    explains: str
    look_for: str


_SCANNER = (
    Mechanism(
        "fresh-key",
        "Key minted per call",
        "The key that should make a repeat recognisable is new on every call, so the far side sees"
        " two different requests.",
        "Does the key come from the caller's arguments on any path?",
    ),
    Mechanism(
        "clock-seeded-key",
        "Key seeded by the clock",
        "The key holds the time of the call; a repeat a moment later carries another key.",
        "Is the time the caller's own, or read when the call runs?",
    ),
    Mechanism(
        "description-says-unique",
        "Description asks for a new key",
        "The text the model reads tells it to make the key unique per request, so a repeat of the"
        " same action is given a new one.",
        "Does the description tie the key to the action rather than to the request?",
    ),
    Mechanism(
        "key-never-sent",
        "Key accepted, not sent",
        "The tool takes a key and the write goes out without it.",
        "Is the parameter read anywhere between the handler and the write?",
    ),
    Mechanism(
        "control-unreachable",
        "Control that nothing sets",
        "The code has an option that would carry a key, and no path from a tool sets it.",
        "Is the option set by configuration outside this repository?",
    ),
    Mechanism(
        "method-blind-retry",
        "Retry that ignores the method",
        "A retry wraps the write and repeats it as it would repeat a read.",
        "Does the retry look at the method, or at a key, before it sends again?",
    ),
    Mechanism(
        "check-then-act",
        "Looked up first, stored after",
        "The guard reads before the effect and writes after it; two calls in between both pass.",
        "Is there one atomic step that only one of two calls can win?",
    ),
    Mechanism(
        "guard-released-on-error",
        "Guard released on an error",
        "An error frees the guard although the effect may already have happened.",
        "Can the caught error be raised after the request has left?",
    ),
    Mechanism(
        "hint-contradiction",
        "Hint and code disagree",
        "The tool is declared read-only or idempotent and a creating write is reachable from it.",
        "Is the write on a path that this tool's arguments can reach?",
    ),
    Mechanism(
        "sibling-without-key",
        "Siblings pass a key, this one does not",
        "Other tools hand a key to the same helper; this call leaves it out.",
        "Does the helper add one when none is given?",
    ),
)

_SHAPES = (
    Mechanism(
        "one-catch-for-sign-and-send",
        "One handler for signing and sending",
        "A late failure of the send is treated as a failure to sign, and the payment is made"
        " again.",
        "Does the handler know whether the request had left?",
    ),
    Mechanism(
        "receipt-read-as-failed-send",
        "Lost receipt answered as a failed send",
        "The broadcast worked, reading its receipt failed, and the caller is told that the"
        " broadcast failed.",
        "Does the answer keep the transaction's own id?",
    ),
    Mechanism(
        "evidence-dropped",
        "The failure has no room for the evidence",
        "The error type has no field for the transaction, so nobody can reconcile it later.",
        "Is the id logged or stored anywhere before the error is raised?",
    ),
    Mechanism(
        "ambiguity-flattened",
        "Unknown flattened to failed",
        "A lower layer says that it does not know; the upper one reads success as true or false and"
        " acts again.",
        "Is there a third value, and does every caller handle it?",
    ),
    Mechanism(
        "return-before-record",
        "Returned before it was recorded",
        "On a time-out the function returns before its record is written, so the reconciler never"
        " sees the call.",
        "Is the record written before the request leaves?",
    ),
    Mechanism(
        "split-spend-cap",
        "Cap checked and recorded apart",
        "A spending limit is checked before an ambiguous step and recorded after it: each payment"
        " passes and the sum does not.",
        "Is the amount reserved before the step?",
    ),
    Mechanism(
        "client-wide-key",
        "One key for the whole client",
        "The key is set once per client, with no way to give one per call.",
        "Can the caller pass a key through the tool?",
    ),
    Mechanism(
        "resend-without-key",
        "Sent again without a key",
        "The client sends the request again on its own (after a 401, say) and no key ties the two"
        " together.",
        "Is the first request certain not to have run?",
    ),
)

MECHANISMS: dict[str, Mechanism] = {m.kind: m for m in (*_SCANNER, *_SHAPES)}
SCANNER_KINDS: tuple[str, ...] = tuple(m.kind for m in _SCANNER)


def mechanism(kind: str) -> Mechanism:
    """Return the entry of a kind; a kind nobody knows yet is shown by its own name."""
    return MECHANISMS.get(kind) or Mechanism(kind, kind, "", "")
