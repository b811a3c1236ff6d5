"""The six tools as data: names, descriptions, schemas of what goes in and comes out, hints.

Written by hand because clients build forms from them: every property of every schema has a plain
`type`, no reference has to be followed, and what may be left out is simply not required.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from fencekit.core.clock import MAX_COUNT
from fencekit.core.request import MAX_NAME

Schema = dict[str, Any]

VERBATIM: Final = "result"
"""The one property that may hold any JSON, though the schema asks for an object: a list of types is
what many clients cannot read."""


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """One tool; the hints are those of MCP's tool annotations."""

    name: str
    title: str
    description: str
    input: Schema
    output: Schema
    read_only: bool = False
    idempotent: bool = False


def _object(properties: Schema, required: list[str] | None = None) -> Schema:
    schema: Schema = {"type": "object", "properties": properties, "additionalProperties": False}
    if required:
        schema["required"] = required
    return schema


def _text(description: str, *, may_be_empty: bool = False) -> Schema:
    schema: Schema = {"type": "string", "maxLength": MAX_NAME, "description": description}
    return schema if may_be_empty else {**schema, "minLength": 1}


def _count(description: str) -> Schema:
    return {"type": "integer", "minimum": 0, "description": description}


def _clock(description: str) -> Schema:
    return {
        "type": "object",
        "additionalProperties": {"type": "integer", "minimum": 0, "maximum": MAX_COUNT},
        "description": description,
    }


def _status(*values: str) -> Schema:
    return {"type": "string", "enum": list(values), "description": "What happened."}


_READ_SET: Final[Schema] = {
    "type": "array",
    "description": "What the decision was based on: each domain as fence_observe showed it.",
    "items": _object(
        {
            "domain": _text("The domain that was read."),
            "seq": _count("Its sequence number when it was read."),
        },
        ["domain", "seq"],
    ),
}

_PREPARED: Final[Schema] = {
    "type": "object",
    "description": "The ticket, exactly as fence_prepare returned it; an altered one is refused.",
}

_CERT: Final[Schema] = {
    "type": "object",
    "description": "The certificate of the effect: its fields with the `result`, and their hash.",
    # Only what is never null: a nullable property needs a list of types.
    "properties": {
        "intent": {"type": "string"},
        "tool": {"type": "string"},
        "args": {"type": "object"},
        "vector_clock": {"type": "object"},
        "read_set": {"type": "array", "items": {"type": "object"}},
        "agent": {"type": "string"},
        "hash": {"type": "string"},
    },
}

_LEASE: Final[Schema] = {
    "type": "number",
    "description": "Seconds for which the attempt is believed; send fence_heartbeat before then.",
}

PREPARE: Final = ToolSpec(
    "fence_prepare",
    "Ask before an effect",
    "Call this BEFORE anything that charges, sends, creates or changes something outside. "
    "status=fresh: run it once, then call fence_commit with `prepared`. status=already_done: do "
    "NOT run it; cert.result is its result. An error: do NOT run it; the text says what to do.",
    _object(
        {
            "intent": _text(
                "The stable name of this one logical action, such as charge:order-123. The same "
                "action always gets the same name, by every agent and on every retry."
            ),
            "domain": _text(
                "What the action contends for, such as order:123; empty for nothing.",
                may_be_empty=True,
            ),
            "tool": _text("The tool or function that will run.", may_be_empty=True),
            "args": {
                "type": "object",
                "description": "The arguments it will run with; other arguments, other intent.",
            },
            "agent": _text("Who asks: one name for each agent.", may_be_empty=True),
            "read_set": _READ_SET,
            "parent": _text("The hash of the certificate that this effect follows from."),
            "known_clock": _clock("The vector clock of what the agent has seen."),
            "causal": {
                "type": "boolean",
                "description": "Refuse if known_clock is behind or beside the domain's clock.",
            },
            "attempt": _text(
                "A random id of this attempt. Send the same one again only when you did not see "
                "the answer; never share it between agents."
            ),
        },
        ["intent", "domain", "tool", "args", "agent"],
    ),
    _object(
        {
            "status": _status("fresh", "already_done"),
            "prepared": _PREPARED,
            "lease_secs": _LEASE,
            "cert": _CERT,
        },
        ["status"],
    ),
)

COMMIT: Final = ToolSpec(
    "fence_commit",
    "Record that the effect ran",
    "Call this right after the effect ran, with its result. Later duplicates get this result "
    "instead of running again. Sending it again with the same result is harmless.",
    _object(
        {
            "prepared": _PREPARED,
            VERBATIM: {
                "type": "object",
                "description": "What the effect returned. Any other JSON is kept as well.",
            },
        },
        ["prepared", VERBATIM],
    ),
    _object({"status": _status("committed"), "cert": _CERT}, ["status", "cert"]),
    idempotent=True,
)

ABORT: Final = ToolSpec(
    "fence_abort",
    "Record that the outcome is unknown",
    "Call this when the attempt ended and you do not know whether the effect happened (an error, "
    "a timeout, a lost answer). The intent stays fenced until an operator has looked.",
    _object(
        {
            "prepared": _PREPARED,
            "reason": {"type": "string", "maxLength": 4096, "description": "What went wrong."},
        },
        ["prepared", "reason"],
    ),
    _object({"status": _status("aborted")}, ["status"]),
    idempotent=True,
)

HEARTBEAT: Final = ToolSpec(
    "fence_heartbeat",
    "Keep an attempt alive",
    "Call this while a long effect runs, at least every third of the lease, so that the attempt "
    "is still believed.",
    _object({"prepared": _PREPARED}, ["prepared"]),
    _object({"status": _status("held"), "lease_secs": _LEASE}, ["status", "lease_secs"]),
    idempotent=True,
)

OBSERVE: Final = ToolSpec(
    "fence_observe",
    "Read a domain",
    "What a decision may cite of a domain: its sequence number and clock for read_set and "
    "known_clock, and the intents that are changing it right now.",
    _object({"domain": _text("The domain to read.")}, ["domain"]),
    _object(
        {
            "domain": {"type": "string"},
            "seq": _count("Cite this number in read_set."),
            "clock": _clock("Send this as known_clock with causal."),
            "open": {
                "type": "array",
                "items": {"type": "string"},
                "description": "Intents in flight or unknown: what they change cannot be cited.",
            },
        },
        ["domain", "seq", "clock", "open"],
    ),
    read_only=True,
)

STATS: Final = ToolSpec(
    "fence_stats",
    "Count what was prevented",
    "How many attempts this server admitted, replayed and refused since it started.",
    _object({}),
    _object(
        {
            "admitted": _count("Attempts that were told to run."),
            "replayed": _count("Attempts that got a recorded result."),
            "refused": {
                "type": "object",
                "additionalProperties": {"type": "integer", "minimum": 0},
                "description": "Refused attempts, by cause.",
            },
            "total_attempts": _count("All attempts."),
            "prevented": _count("Attempts that did not run: total_attempts - admitted."),
            "already_ended": _count("Asked with a ticket that had ended."),
            "expired": _count("Asked too late to be answered."),
            "resent": _count("Admissions sent again."),
            "rejected_commits": _count("Commits that were refused."),
            "log_line": {"type": "string", "description": "The same as one line."},
        },
        ["admitted", "replayed", "refused", "total_attempts", "prevented", "log_line"],
    ),
    read_only=True,
)

TOOLS: Final = (PREPARE, COMMIT, ABORT, HEARTBEAT, OBSERVE, STATS)

INSTRUCTIONS: Final = (
    "Before any action with an effect outside (a charge, a mail, a deployment): fence_prepare. "
    "Only if it answers status=fresh, run the action once and then fence_commit its result; if you "
    "cannot tell whether it happened, fence_abort. On status=already_done use the recorded result. "
    "On an error do not run the action: the text says what to do."
)
