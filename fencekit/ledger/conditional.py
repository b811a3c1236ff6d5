"""Ledgers over a shared store: read, decide here, write only if nothing read has changed.

The store knows no rules. It keeps opaque values under opaque keys, each with a version that is
never given twice (absent is 0), and offers two things: read some keys together with its own clock,
and `compare_and_write`, which writes a group of values and audit lines only if every key that the
group's decisions read still has the version that was read. A whole batch of waiting commands is
read and written in one round trip each; a conflict decides anew only the group that met it.
"""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from typing import Protocol

import orjson

from fencekit.core.decide import decide
from fencekit.core.draft import Decision, Event, NotLoaded
from fencekit.core.errors import LedgerError, LedgerUnavailable
from fencekit.core.messages import Answer, Command
from fencekit.core.situation import as_of
from fencekit.core.state import (
    OPEN,
    Absent,
    DomainHead,
    Floor,
    Holder,
    IntentKey,
    IntentRecord,
    Liveness,
    Marker,
    Now,
)
from fencekit.ledger import codec, conditional_sweep
from fencekit.ledger.base import Callback, Description, Outcome, Problem, Shown, add_counters
from fencekit.ledger.batch import GroupCommit
from fencekit.ledger.groups import (
    FLOOR_KEY,
    MARKER_KEY,
    Group,
    Groups,
    Stored,
    Written,
    intent_key,
    key_of,
    key_of_intent,
)
from fencekit.ledger.recall import Reading, Recall, keys_of
from fencekit.ledger.sealing import check_record

DEADLINE = 10.0
"""For how long, in seconds, a batch is tried again before its callers are told."""
UNFINISHED_ROWS = 5000  # intents that one look for those without an outcome passes by


class Store(Protocol):
    """The two things that a shared store must do, and what operators need to look."""

    def read(self, keys: Sequence[bytes]) -> tuple[dict[bytes, Stored], int]:
        """Return what stands under each key, and the store's clock in milliseconds."""
        ...

    def compare_and_write(self, groups: Sequence[Group], now_ms: int = 0) -> Written:
        """Write every group whose expectations hold, and say which do not.

        `now_ms` is the clock by which was decided if `read` did not tell it: where the store's is
        more than half a second off, all groups fail.
        """
        ...

    def scan(self, prefix: bytes, after: bytes, limit: int) -> list[tuple[bytes, Stored]]:
        """Return values in the order of their keys."""
        ...

    def due(self, since_ms: int, until_ms: int, limit: int) -> list[tuple[bytes, Stored]]:
        """Return values that sweep may look at, in the order of when it may."""
        ...

    def unfinished(self, after: bytes, limit: int) -> tuple[list[tuple[bytes, Stored]], bytes]:
        """Of the next `limit` intents, return those without an outcome, and where to go on.

        Where there are no more, it goes on nowhere: an empty key.
        """
        ...

    def audit(self, after: int, limit: int) -> list[tuple[int, bytes]]:
        """Return audit lines with their numbers."""
        ...

    def sweep_audit(self, before_ms: int, after: int) -> tuple[int, int]:
        """Delete what is older than a time among the `AUDIT_ROWS` lines after number `after`.

        Never one of the newest `AUDIT_KEPT`. Returns how many went, and the number of the last.
        """
        ...

    def counters(self) -> list[bytes]:
        """Return the counters that processes saved."""
        ...

    def save_counters(self, process: str, counts: bytes) -> None:
        """Replace the counters of one process."""
        ...

    def describe(self) -> Description:
        """Say what this store is and what its answers rest on."""
        ...

    def sibling(self) -> Store:
        """Return another connection to the same place; it is opened when it is used."""
        ...

    def close(self) -> None:
        """Let go of every connection."""
        ...


class ConditionalLedger:
    """A ledger over a `Store`. A holder is believed for its lease: nothing else can be seen."""

    def __init__(self, url: str, store: Store, process: str, deadline: float = DEADLINE) -> None:
        self.url = url
        self._store = store
        self._deadline = deadline
        self._start(process)
        _, server_ms = store.read(())
        self._offset_ms = server_ms - _local_ms()

    def _start(self, process: str) -> None:
        """Begin as a holder of its own: at first, and again in a forked child."""
        self._pid = os.getpid()
        self._process = process
        self._side: Store | None = None
        self._recall = Recall()
        self._group = GroupCommit(self._run)

    def _after_fork(self) -> None:
        if os.getpid() != self._pid:
            # The parent's connections are not ours to use or to close; they are left alone.
            _LEFT_ALONE.extend((self._store, self._side, self._group))
            self._store = self._store.sibling()
            self._start(secrets.token_hex(16))

    @property
    def holder(self) -> Holder:
        """The identity of this process; a forked child is another."""
        self._after_fork()
        return Holder("process", self._process)

    # --- asking ------------------------------------------------------------------------------

    def now(self) -> Now:
        """Return the store's clock, as well as it can be known without asking."""
        ms = _local_ms() + self._offset_ms
        return Now(ms, ms)

    def call(self, command: Command) -> Answer:
        """Decide one command; this thread asks the store if no other does."""
        self._after_fork()
        return self._group.call(command)

    def submit(self, command: Command) -> Future[Answer]:
        """Decide one command in the ledger's thread."""
        self._after_fork()
        return self._group.submit(command)

    def enqueue(self, command: Command, done: Callback) -> None:
        """Decide one command in the ledger's thread and call back there."""
        self._after_fork()
        self._group.enqueue(command, done)

    def _run(self, commands: Sequence[Command]) -> list[Outcome]:
        answers: list[Outcome | None] = [None] * len(commands)
        left = list(range(len(commands)))
        until = time.monotonic() + self._deadline
        failure: LedgerError | None = None
        reading = self._recall.guess(commands, self.now())
        while left:
            try:
                left = self._round(commands, left, answers, reading)
                failure = None
            except LedgerUnavailable as problem:
                # Whether the write arrived is not known: the same commands are asked again, and a
                # command that was carried out answers the same.
                failure = problem
            reading = None
            if left and time.monotonic() > until:
                raise failure or LedgerUnavailable(
                    "other writers changed the same intents faster than this process could decide: "
                    "nothing was admitted; try again"
                )
        return [answer for answer in answers if answer is not None]

    def _round(
        self,
        commands: Sequence[Command],
        left: list[int],
        answers: list[Outcome | None],
        guessed: Reading | None,
    ) -> list[int]:
        """Read (or guess), decide and write once; returns the commands that have no answer yet."""
        reading = guessed or self._read(keys_of(commands[i] for i in left))
        groups = Groups()
        for i in left:
            try:
                decision, keys = self._decide(reading, commands[i], guessed is not None)
            except LedgerError as damaged:
                if isinstance(damaged, LedgerUnavailable):
                    raise
                answers[i] = damaged
                continue
            except NotLoaded:
                return left
            answers[i] = decision.answer
            reading.view.apply(decision.writes)
            groups.add(i, keys, decision, reading.versions)
        writing = [group for group in groups.all() if group.values]
        # What writes nothing is compared with nothing: by a guess alone it is not answered.
        silent = [i for group in groups.all() if not group.values for i in group.members]
        unsure = [] if guessed is None else silent
        if writing:
            written = self._store.compare_and_write(writing, guessed.now.wall_ms if guessed else 0)
            self._offset_ms = written.ms - _local_ms()
            failed = [i for index in written.failed for i in writing[index].members]
        else:
            written, failed = Written(set(), {}, 0), []
        self._recall.learn(reading, writing, written)
        if guessed is not None and writing:
            self._recall.judged(len(left) - len(unsure) - len(failed), len(failed))
        return sorted(unsure + failed)

    def _read(self, keys: Sequence[bytes], reading: Reading | None = None) -> Reading:
        stored, ms = self._store.read(keys)
        self._offset_ms = ms - _local_ms()
        if reading is None:
            reading = Reading(Now(ms, ms))
        for key in keys:
            reading.add(key, stored.get(key, Stored(0, None)))
        return reading

    def _decide(
        self, reading: Reading, command: Command, guessed: bool
    ) -> tuple[Decision, set[bytes]]:
        """Decide, and say which keys the decision read; a missing key is read, unless guessing."""
        while True:
            watched = reading.watched.begin()
            try:
                return decide(watched, command, reading.now), watched.keys
            except NotLoaded as missing:
                key = key_of(missing)
                if key in reading.damaged:
                    raise reading.damaged[key] from None
                if guessed:
                    raise
                self._read([key], reading)

    # --- reading -----------------------------------------------------------------------------

    def _beside(self) -> Store:
        """Return a connection of its own for looking and tidying, so that deciding never waits."""
        self._after_fork()
        if self._side is None:
            self._side = self._store.sibling()
        return self._side

    def intents(self) -> Iterator[Shown]:
        """Yield every intent that is not absent, as it stands now."""
        _, ms = self._beside().read(())
        now = Now(ms, ms)
        for key, record in self.records():
            seen = as_of(record, now, Liveness.CANNOT_TELL)
            if not isinstance(seen.state, Absent):
                yield Shown(key, seen, Liveness.CANNOT_TELL)

    def records(self) -> Iterator[tuple[IntentKey, IntentRecord]]:
        """Yield every record."""
        for key, value in self._scan(b"i"):
            yield key_of_intent(key), codec.decode_intent(value)

    def unfinished(self) -> Iterator[list[tuple[IntentKey, IntentRecord]]]:
        """Yield the intents without an outcome, page by page; a page may hold none."""
        after = b"i"
        while after:
            rows, after = self._beside().unfinished(after, UNFINISHED_ROWS)
            yield [
                (key_of_intent(key), codec.decode_intent(found.value or b"")) for key, found in rows
            ]

    def floor(self) -> Floor:
        """Return where absent domains start."""
        value = self._value(FLOOR_KEY)
        return Floor() if value is None else codec.decode_floor(value)

    def marker(self) -> Marker:
        """Return whether this ledger is open."""
        value = self._value(MARKER_KEY)
        return OPEN if value is None else codec.decode_marker(value)

    def _value(self, key: bytes) -> bytes | None:
        stored, _ = self._beside().read([key])
        return stored.get(key, Stored(0, None)).value

    def domains(self) -> Iterator[tuple[str, DomainHead]]:
        """Yield every domain."""
        for key, value in self._scan(b"d"):
            yield key[1:].decode(), codec.decode_domain(value)

    def _scan(self, prefix: bytes) -> Iterator[tuple[bytes, bytes]]:
        after = prefix
        while rows := self._beside().scan(prefix, after, 500):
            after = rows[-1][0]
            yield from ((key, found.value) for key, found in rows if found.value is not None)

    def audit(self, after: int = 0) -> Iterator[tuple[int, Event]]:
        """Yield the audit lines after number `after`."""
        while rows := self._beside().audit(after, 500):
            for number, line in rows:
                yield number, orjson.loads(line)
            after = rows[-1][0]

    def confirm_clock(self) -> None:
        """Nothing to accept: the server's clock is all there is."""

    def peek(self, key: IntentKey) -> int:
        """Return the revision of an intent's record."""
        value = self._value(intent_key(key))
        return 0 if value is None else codec.decode_intent(value).revision

    def sweep(self) -> int:
        """Delete what has expired, in small groups over a connection of its own."""
        return conditional_sweep.sweep_intents(self._beside())

    def sweep_audit(self, before_ms: int) -> int:
        """Delete old audit lines, in small steps over a connection of its own."""
        return conditional_sweep.sweep_audit(self._beside(), before_ms)

    def verify(self) -> Iterator[Problem]:
        """Read every record and recompute every certificate."""
        for key, value in self._scan(b"i"):
            intent = key_of_intent(key)
            try:
                record = codec.decode_intent(value)
            except LedgerError as damage:
                yield Problem(f"intent {intent.intent!r}", str(damage))
            else:
                yield from check_record(intent, record)

    def describe(self) -> Description:
        """Say what this ledger is and what its answers rest on."""
        return self._beside().describe()

    def save_counters(self, counters: dict[str, int]) -> None:
        """Replace this process's counters."""
        self._beside().save_counters(self._process, orjson.dumps(counters))

    def counters(self) -> dict[str, int]:
        """Return the sum over all processes."""
        return add_counters(map(orjson.loads, self._beside().counters()))

    def close(self) -> None:
        """Answer what waits, then let go of the store."""
        if os.getpid() != self._pid:
            return
        self._group.close()
        self._store.close()
        if self._side is not None:
            self._side.close()


# What a forked child inherited and must neither use nor close.
_LEFT_ALONE: list[object] = []


def _local_ms() -> int:
    return time.monotonic_ns() // 1_000_000
