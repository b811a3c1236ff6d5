"""Moving what a ledger remembers to another one, so that at most one of them is ever open.

The steps, each durable before the next begins, each harmless when it is taken again:

1. the new ledger is marked closed, and must be empty;
2. the old one drains: nothing new starts, what runs may end;
3. what has not ended when the time is up becomes unknown (its holder may still commit, over there);
4. the old ledger is sealed, and never changes again;
5. every record is copied, and both sides are read and compared by digest;
6. the old one is marked handed: from then on the new one may be open;
7. the new ledger is opened.

Killed anywhere, the same call goes on where the markers say that it was. The audit and the counters
stay with the old ledger.
"""

from __future__ import annotations

import hashlib
import os
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from fencekit.core.errors import FenceError, LedgerDamaged, MoveRefused
from fencekit.core.messages import Abort, Command, Fill, Look, Mark, Seen
from fencekit.core.moving import told
from fencekit.core.state import (
    InFlight,
    IntentKey,
    IntentRecord,
    Marker,
    PreparedEffect,
)
from fencekit.ledger import codec, crash
from fencekit.ledger.base import Ledger

LEFT = ("sealed", "handed")
"""The phases of a ledger that is left and whose records do not change any more."""

FILL_RECORDS = 200
FILL_BYTES = 1_000_000
"""How much one write into the new ledger carries, at the most (one record may be larger)."""

POLL_SECONDS = 0.1

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Copied:
    """What a move did: records and domains copied, attempts that were made unknown."""

    records: int
    domains: int
    made_unknown: int
    digest: str


def copy(source: Ledger, target: Ledger, drain: float, say: Say) -> Copied:
    """Move everything from `source` to `target`; `drain` is how long to wait for what runs, s.

    Raises `MoveRefused` where the two are not the ends of one move, `LedgerError` where one of them
    cannot be used; running it again continues.
    """
    return _Move(source, target, say).run(drain)


def give_up(source: Ledger, target: Ledger) -> None:
    """Open `source` again; only while it drains. Raises `MoveRefused` once it is sealed."""
    have, there = source.marker(), target.marker()
    ours = have.phase == "draining" and have.move == there.move
    if have.phase != "open" and not ours:
        raise MoveRefused(f"{source.url}: {told(have)}; run the copy again to finish it")
    if have.phase == "draining":
        _mark(source, have, Marker("open", "", have.move))
        crash.point("given up")
    if there.phase != "closed":
        return
    if there.other != source.url or (have.move == there.move and _holds_anything(target)):
        raise MoveRefused(f"{target.url}: {told(there)}")
    _mark(target, there, Marker("open", "", there.move))


def _holds_anything(ledger: Ledger) -> bool:
    return any(True for _ in ledger.records()) or any(True for _ in ledger.domains())


class _Move:
    """One move from one ledger to another."""

    def __init__(self, source: Ledger, target: Ledger, say: Say) -> None:
        self._source, self._target, self._say = source, target, say
        self._move = ""

    def run(self, drain: float) -> Copied:
        """Take the steps that are left."""
        if self._is_over():
            self._say(f"{self._target.url} was opened by an earlier copy")
            return Copied(0, 0, 0, "")
        self._close_target()
        made_unknown = 0
        if self._source.marker().phase not in LEFT:
            made_unknown = self._empty_source(drain)
        self._fill()
        records, domains, digest = self._compare()
        # Whoever opens the old one again meanwhile makes this step fail.
        sealed = Marker("sealed", self._target.url, self._move)
        _mark(self._source, sealed, replace(sealed, phase="handed"))
        crash.point("handed")
        closed = Marker("closed", self._source.url, self._move)
        _mark(self._target, closed, replace(closed, phase="open"))
        crash.point("opened")
        return Copied(records, domains, made_unknown, digest)

    def _is_over(self) -> bool:
        have, there = self._source.marker(), self._target.marker()
        return have.phase in LEFT and there.phase == "open" and have.move == there.move

    # --- the new ledger is closed ------------------------------------------------------------

    def _close_target(self) -> None:
        have, there = self._source.marker(), self._target.marker()
        if have.phase == "reopening":
            raise MoveRefused(f"{self._source.url}: {told(have)}")
        if there.phase == "closed":
            if have.phase != "open" and have.move != there.move:
                raise MoveRefused(f"{self._source.url}: {told(have)}")
            if there.other != self._source.url:
                raise MoveRefused(f"{self._target.url}: {told(there)}")
            self._move = there.move
        elif there.phase == "open" and have.phase == "open":
            self._move = new_id()
            _mark(self._target, there, Marker("closed", self._source.url, self._move))
            crash.point("closed")
            if self._source.marker().move == self._move:
                self._reopen_target()
                raise MoveRefused(f"{self._source.url} and {self._target.url} are one ledger")
        elif have.phase == "open":
            raise MoveRefused(f"{self._target.url}: {told(there)}")
        else:
            raise MoveRefused(f"{self._source.url}: {told(have)}, which {self._target.url} is not")
        if self._source.marker().phase == "open":
            self._refuse_what_is_not_empty()

    def _refuse_what_is_not_empty(self) -> None:
        """Nothing was copied yet, so whatever is there is somebody else's."""
        target = self._target
        if _holds_anything(target):
            # Filled by this very move, it is half of a ledger that was opened again: it stays shut.
            if self._source.marker().move != self._move:
                self._reopen_target()
            raise MoveRefused(f"{target.url}: it is not empty; copy into a new one")

    def _reopen_target(self) -> None:
        """Undo the first step: no move began."""
        closed = Marker("closed", self._source.url, self._move)
        _mark(self._target, closed, Marker("open", "", self._move))

    # --- the old ledger is emptied of what runs ----------------------------------------------

    def _empty_source(self, drain: float) -> int:
        source, other = self._source, self._target.url
        have = source.marker()
        if have.phase == "open":
            _mark(source, have, Marker("draining", other, self._move))
        crash.point("draining")
        running = {
            key: record.state.ticket
            for key, record in source.records()
            if isinstance(record.state, InFlight)
        }
        self._say(f"{source.url} drains: {len(running)} in flight, at most {drain:g} s")
        self._wait(running, drain)
        crash.point("drained")
        reason = f"the ledger was moved to {other} before this attempt ended"
        for ticket in running.values():
            # Whoever ended by himself meanwhile has ended; an abort does not change that.
            source.call(Abort(new_id(), source.now().wall_ms, ticket, reason))
        crash.point("ended")
        _mark(source, Marker("draining", other, self._move), Marker("sealed", other, self._move))
        crash.point("sealed")
        self._say(f"{source.url} is sealed: {len(running)} attempts became unknown")
        return len(running)

    def _wait(self, running: dict[IntentKey, PreparedEffect], drain: float) -> None:
        """Wait until nothing is in flight or the time is up; what ended leaves `running`."""
        until, pause = time.monotonic() + drain, threading.Event()
        while True:
            for key in list(running):
                seen = self._source.call(Look(new_id(), self._source.now().wall_ms, key))
                if not isinstance(seen, Seen) or not isinstance(seen.record.state, InFlight):
                    del running[key]
            if not running or time.monotonic() >= until:
                return
            pause.wait(POLL_SECONDS)

    # --- copying -----------------------------------------------------------------------------

    def _fill(self) -> None:
        target, count = self._target, 0
        blank = Fill(new_id(), 0, self._move)
        heads = list(self._source.domains())
        parts = [replace(blank, floor=self._source.floor())]
        parts += [
            replace(blank, domains=tuple(heads[at : at + FILL_RECORDS]))
            for at in range(0, len(heads), FILL_RECORDS)
        ]
        for part in parts:
            ask(target, replace(part, id=new_id(), drawn_ms=target.now().wall_ms))
        for records in _batches(self._source.records()):
            filling = replace(blank, intents=records, id=new_id(), drawn_ms=target.now().wall_ms)
            ask(target, filling)
            crash.point("filled")
            count += len(records)
            if count % (FILL_RECORDS * 50) < len(records):
                self._say(f"{count} records copied")

    def _compare(self) -> tuple[int, int, str]:
        """Read both sides; raises `LedgerDamaged` where they are not the same to the letter."""
        ours, theirs = _digest(self._source), _digest(self._target)
        if ours != theirs:
            raise LedgerDamaged(
                f"{self._target.url} does not hold what {self._source.url} holds "
                f"({theirs[0]} of {ours[0]} records, {theirs[1]} of {ours[1]} domains): it stays "
                "closed and nothing is lost; run the copy again, and if it says so again look for "
                "what else writes there"
            )
        crash.point("compared")
        self._say(f"{ours[0]} records and {ours[1]} domains compared: {ours[2][:16]}…")
        return ours


def _batches(
    records: Iterator[tuple[IntentKey, IntentRecord]],
) -> Iterator[tuple[tuple[IntentKey, IntentRecord], ...]]:
    batch: list[tuple[IntentKey, IntentRecord]] = []
    size = 0
    for key, record in records:
        batch.append((key, record))
        size += len(codec.encode_intent(record))
        if len(batch) == FILL_RECORDS or size >= FILL_BYTES:
            yield tuple(batch)
            batch, size = [], 0
    if batch:
        yield tuple(batch)


def _digest(ledger: Ledger) -> tuple[int, int, str]:
    """Count and add up SHA-256 of everything; a sum, because ledgers keep their own order."""
    total, records, domains = 0, 0, 0
    for key, record in ledger.records():
        total += _hash(b"i", f"{key.principal}\0{key.intent}", codec.encode_intent(record))
        records += 1
    for name, head in ledger.domains():
        total += _hash(b"d", name, codec.encode_domain(head))
        domains += 1
    total += _hash(b"f", "", codec.encode_floor(ledger.floor()))
    return records, domains, f"{total % 2**256:064x}"


def _hash(kind: bytes, name: str, value: bytes) -> int:
    text = name.encode()
    whole = b"%b%d:%b%b" % (kind, len(text), text, value)
    return int.from_bytes(hashlib.sha256(whole).digest(), "big")


def _mark(ledger: Ledger, expected: Marker, marker: Marker) -> None:
    ask(ledger, Mark(new_id(), ledger.now().wall_ms, expected, marker))


def ask(ledger: Ledger, command: Command) -> None:
    """Carry out one step. Raises the refusal, naming the ledger."""
    answer = ledger.call(command)
    if isinstance(answer, MoveRefused):
        raise MoveRefused(f"{ledger.url}: {answer.told}")
    if isinstance(answer, FenceError):
        raise answer


def new_id() -> str:
    """Draw the id of a command."""
    return os.urandom(16).hex()
