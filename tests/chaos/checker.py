"""What must hold of a whole history, whatever was killed, stopped or cut while it was made. Pure.

A history is what every client heard, in the order in which each heard it, the effects counted
outside the fence, and what the ledger holds in the end.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Heard:
    """One answer that a client heard."""

    client: str
    verb: str
    intent: str
    answer: str  # fresh, replay, done, refused
    generation: int = 0
    seq: int = 0
    hash: str = ""


@dataclass(slots=True)
class History:
    """Everything that is known of one run."""

    heard: list[Heard] = field(default_factory=list)
    # Counted outside the fence: (intent, generation), once for each time the effect ran.
    effects: list[tuple[str, int]] = field(default_factory=list)
    # What the ledger holds in the end: the state of each intent, and the hash where it is done.
    states: Mapping[str, str] = field(default_factory=dict)
    hashes: Mapping[str, str] = field(default_factory=dict)
    verifies: bool = True
    # How often an operator allowed a finished intent again.
    forgotten: Mapping[str, int] = field(default_factory=dict)


def check(history: History) -> list[str]:
    """Return every promise that the history breaks, in words."""
    return [
        *_runs_once(history),
        *_acknowledged_is_kept(history),
        *_replays_are_true(history),
        *_numbers_come_once(history.heard),
        *_admissions_come_once(history.heard),
        *([] if history.verifies else ["8: a certificate does not verify"]),
    ]


def _runs_once(history: History) -> Iterable[str]:
    for intent, times in sorted(Counter(intent for intent, _ in history.effects).items()):
        allowed = 1 + history.forgotten.get(intent, 0)
        if times > allowed:
            yield f"1: the effect of {intent} ran {times} times"


def _acknowledged_is_kept(history: History) -> Iterable[str]:
    for one in history.heard:
        lost = history.hashes.get(one.intent) != one.hash
        if one.answer == "done" and lost and not history.forgotten.get(one.intent):
            yield f"2: {one.client} heard that {one.intent} is done, and the ledger lost it"
    admitted = {one.intent for one in history.heard if one.answer == "fresh"}
    for intent in sorted(admitted):
        if history.states.get(intent, "absent") == "absent" and not history.forgotten.get(intent):
            yield f"4: {intent} was admitted, has no outcome, and reads as free"


def _replays_are_true(history: History) -> Iterable[str]:
    recorded: dict[str, set[str]] = defaultdict(set)
    for one in history.heard:
        if one.answer == "done":
            recorded[one.intent].add(one.hash)
    for intent, made in history.hashes.items():
        recorded[intent].add(made)
    for one in history.heard:
        if one.answer == "replay" and one.hash not in recorded[one.intent]:
            yield f"3: {one.client} got a result of {one.intent} that nobody recorded"


def _numbers_come_once(heard: list[Heard]) -> Iterable[str]:
    numbers = Counter(one.seq for one in heard if one.answer == "fresh")
    for number, times in sorted(numbers.items()):
        if times > 1:
            yield f"the sequence number {number} was given {times} times"


def _admissions_come_once(heard: list[Heard]) -> Iterable[str]:
    given = Counter((one.intent, one.generation) for one in heard if one.answer == "fresh")
    for (intent, generation), times in sorted(given.items()):
        if times > 1:
            yield f"1: generation {generation} of {intent} was admitted {times} times"
