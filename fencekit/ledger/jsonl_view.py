"""Looking at a journal: what a batch sees, who is alive, what a recovery makes of a record."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TypeVar

from fencekit.core.draft import View, Writes
from fencekit.core.state import (
    Absent,
    Holder,
    InFlight,
    IntentKey,
    IntentRecord,
    Liveness,
    Now,
    Unknown,
)
from fencekit.ledger import journal

COMPACT_RECORDS = 500
"""How many records one line of a compacted file carries."""

K = TypeVar("K")
V = TypeVar("V")


class JournalView(View):
    """What is in memory, with what this batch decided on top; nothing below changes before sync."""

    def __init__(self, held: journal.Journal, process: str) -> None:
        intents = _Over(held.intents)
        holders = _Holders(intents, process)
        super().__init__(intents, _Over(held.domains), held.floor, holders, held.marker)


class _Over(dict[K, V | None]):
    """A dictionary over another one; what is missing in both is absent."""

    def __init__(self, below: dict[K, V]) -> None:
        self._below = below

    def __missing__(self, key: K) -> V | None:
        return self._below.get(key)


class _Holders(Mapping[IntentKey, Liveness]):
    """One process at a time holds the file, so every other holder is dead."""

    def __init__(self, intents: _Over[IntentKey, IntentRecord], process: str) -> None:
        self._intents = intents
        self._process = process

    def __getitem__(self, key: IntentKey) -> Liveness:
        return liveness_of(self._intents[key], self._process)

    def __iter__(self) -> Iterator[IntentKey]:
        return iter(())

    def __len__(self) -> int:
        return 0


def liveness_of(record: IntentRecord | None, process: str) -> Liveness:
    """Tell whether a holder is alive: only this process can be."""
    state = None if record is None else record.state
    if not isinstance(state, InFlight | Unknown) or state.holder.kind != "process":
        return Liveness.CANNOT_TELL
    return Liveness.ALIVE if state.holder.process == process else Liveness.DEAD


def doubt_what_was_touched(held: journal.Journal, now: Now) -> None:
    """Make unknown whatever was written since the last sync that is known to have held."""
    for key, before in held.touched.items():
        unknown = _unknown_of(held.intents.get(key), before, now)
        if unknown is not None:
            held.intents[key] = unknown


def _unknown_of(
    record: IntentRecord | None, before: IntentRecord | None, now: Now
) -> IntentRecord | None:
    """Return a record as unknown, by the last attempt that it names; None where it names none."""
    for source in (record, before):
        if source is None or isinstance(source.state, Absent):
            continue
        state = source.state
        unknown = Unknown(
            ticket=state.ticket,
            holder=state.holder if isinstance(state, InFlight | Unknown) else Holder("ticket"),
            boot=now.boot,
            cause="died",
            reason="the disk failed before its outcome was known to be kept",
            since_ms=now.wall_ms,
            late_commit=True,
        )
        return replace(record or source, state=unknown, revision=source.revision + 1)
    return None


def take_over(held: journal.Journal, view: JournalView) -> None:
    """Take over in memory what a batch decided and is on disk now."""
    for key in view.intents:
        record = view.intents[key]
        if record is None:
            held.intents.pop(key, None)
        else:
            held.intents[key] = record
    for name in view.domains:
        head = view.domains[name]
        if head is None:
            held.domains.pop(name, None)
        else:
            held.domains[name] = head
    if view.floor is not None:
        held.floor = view.floor
    held.marker = view.marker


def chunks(held: journal.Journal) -> Iterator[Writes]:
    """Everything that is live, in lines of a bounded size; at least one."""
    yield Writes(domains=dict(held.domains), floor=held.floor, marker=held.marker)
    items = list(held.intents.items())
    for start in range(0, len(items), COMPACT_RECORDS):
        yield Writes(intents=dict(items[start : start + COMPACT_RECORDS]))
