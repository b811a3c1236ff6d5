"""`sqlite:`: one file for all processes of a user on a machine; the default ledger.

WAL mode with `synchronous=FULL`: a transaction is on disk before anybody hears of it. Every batch
of waiting commands is one immediate transaction, inside which the records are read, the rules run,
and what they wrote goes back; so processes see each other's decisions one after another.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import sqlite3
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from typing import Any

import orjson

from fencekit.core.decide import decide
from fencekit.core.draft import Event, NotLoaded, View, Writes
from fencekit.core.errors import LedgerDamaged, LedgerError
from fencekit.core.messages import Answer, Command
from fencekit.core.situation import as_of
from fencekit.core.state import (
    Absent,
    DomainHead,
    Floor,
    Holder,
    InFlight,
    IntentKey,
    IntentRecord,
    Liveness,
    Marker,
    Now,
    Unknown,
)
from fencekit.ledger import codec, crash, sqlite_sweep
from fencekit.ledger.base import Callback, Description, Outcome, Problem, Shown, add_counters
from fencekit.ledger.batch import GroupCommit
from fencekit.ledger.clocks import Clocks
from fencekit.ledger.holders import HolderLocks
from fencekit.ledger.location import Location, locate, make_private
from fencekit.ledger.sealing import check_record
from fencekit.ledger.sqlite_file import (
    BUSY_SECONDS,
    check_place,
    connect,
    identities,
    key_of,
    translated,
)
from fencekit.ledger.sqlite_tables import ReadingView, Tables, checked_intent, transaction


class SqliteLedger:
    """A ledger in one SQLite file; open it once a process, share it between threads."""

    unfinished_first = True  # how `records` are ordered

    def __init__(
        self, location: Location, clocks: Clocks | None = None, busy: float = BUSY_SECONDS
    ) -> None:
        self.url = f"sqlite:{location.path}"
        self._location = location
        self._path = location.path
        self._busy = busy
        self._clocks = clocks if clocks is not None else Clocks()
        self._counted: dict[str, int] = {}
        make_private(location)
        self._start()

    def _start(self) -> None:
        """Open the file as a holder of its own: at first, and again in a forked child."""
        self._pid = os.getpid()
        self._process = secrets.token_hex(16)
        self._locks = HolderLocks(self._path.with_name(self._path.name + ".holders"), self._process)
        self._group = GroupCommit(self._run)
        self._side_lock = threading.Lock()
        with translated(self._path):
            self._db = connect(self._path, self._busy)
            self._side = connect(self._path, self._busy)
        self._tables = Tables(self._db)
        with translated(self._path), transaction(self._db) as begun:
            self._register()
            begun.commit()
        # The first write has made all three files; whoever takes one away splits the ledger in two.
        with translated(self._path):
            self._inodes = identities(self._path)

    def _register(self) -> None:
        """Take the holder's lock, tidy up after the dead, agree on the clock."""
        self._locks.take()
        rows = self._db.execute("SELECT record FROM intents WHERE due = 0").fetchall()
        needed = self._holders_in(row[0] for row in rows)
        for process in self._tables.counters():
            if process and self._locks.liveness(process) is not Liveness.ALIVE:
                self._tables.fold_counters(process)
        if needed is not None:
            self._locks.remove_dead(needed)
        if self._read_clock() != self._clocks.boot:
            now = self._clocks.now()
            self._tables.keep_clock(now.boot, now.wall_ms - now.lease_ms)

    @staticmethod
    def _holders_in(records: Iterator[bytes]) -> frozenset[str] | None:
        """Return the processes that open attempts name; None where a record cannot be read.

        A damaged record stops its own intent when it is asked for; opening only leaves all lock
        files in place.
        """
        try:
            states = [codec.decode_intent(record).state for record in records]
        except LedgerDamaged:
            return None
        held = (s.holder.process for s in states if isinstance(s, InFlight | Unknown))
        return frozenset(held)

    def _read_clock(self) -> str | None:
        """Take over the clock that was confirmed in this boot; returns the boot it is of."""
        kept = self._tables.clock()
        if kept is None:
            return None
        self._clocks.expect(*kept)
        return kept[0]

    # --- asking ------------------------------------------------------------------------------

    @property
    def holder(self) -> Holder:
        """The identity of this process; a forked child is another."""
        self._after_fork()
        return Holder("process", self._process)

    def now(self) -> Now:
        """Return the machine's clocks."""
        return self._clocks.now()

    def call(self, command: Command) -> Answer:
        """Decide one command; this thread writes if no other does."""
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

    def _after_fork(self) -> None:
        if os.getpid() != self._pid:
            # The parent's connections and locks are not ours to close; they are left alone.
            _LEFT_ALONE.extend((self._db, self._side, self._group))
            self._counted = {}
            self._start()

    # --- one batch ---------------------------------------------------------------------------

    def _run(self, commands: Sequence[Command]) -> list[Outcome]:
        with translated(self._path):
            check_place(self._path, self._inodes)
            with transaction(self._db) as begun:
                crash.point("begun")
                view = ReadingView(self._tables, self._locks)
                now = self._clocks.now()
                if now.expiry_paused:
                    # Another process may have confirmed it meanwhile.
                    self._read_clock()
                    now = self._clocks.now()
                writes, audit = Writes(), []
                answers: list[Outcome] = []
                for command in commands:
                    try:
                        decision = self._decide(view, command, now)
                    except LedgerError as damaged:
                        # One unreadable record stops its own intent, not its neighbours'.
                        answers.append(damaged)
                        continue
                    answers.append(decision.answer)
                    if decision.writes:
                        view.apply(decision.writes)
                        writes.intents.update(decision.writes.intents)
                        writes.domains.update(decision.writes.domains)
                        writes.floor = decision.writes.floor or writes.floor
                        writes.marker = decision.writes.marker or writes.marker
                        audit.extend(decision.audit)
                crash.point("decided")
                if writes:
                    self._tables.write(writes, audit)
                    crash.point("written")
                    begun.commit()
                    crash.point("synced")
        return answers

    def _decide(self, view: View, command: Command, now: Now) -> Any:
        while True:
            try:
                return decide(view, command, now)
            except NotLoaded:
                # Intents and domains load themselves; only the floor is asked for.
                view.floor = self._tables.floor()

    # --- reading -----------------------------------------------------------------------------

    def intents(self) -> Iterator[Shown]:
        """Yield every intent that is not absent: the open ones first."""
        now = self.now()
        for key, record in self.records():
            alive = self._shown_liveness(record)
            seen = as_of(record, now, alive)
            if not isinstance(seen.state, Absent):
                yield Shown(key, seen, alive)

    def records(self) -> Iterator[tuple[IntentKey, IntentRecord]]:
        """Yield every record: those without an outcome first."""
        after = (-1, -1)
        while True:
            with self._reading() as db:
                after, rows = Tables(db).page(after)
            if not rows:
                return
            for text, record, checksum in rows:
                key = key_of(text)
                yield key, checked_intent(key, record, checksum)

    def _shown_liveness(self, record: IntentRecord) -> Liveness:
        state = record.state
        if not isinstance(state, InFlight | Unknown) or state.holder.kind != "process":
            return Liveness.CANNOT_TELL
        with self._side_lock, translated(self._path), transaction(self._side):
            return self._locks.liveness(state.holder.process)

    def domains(self) -> Iterator[tuple[str, DomainHead]]:
        """Yield every domain."""
        with self._reading() as db:
            heads = Tables(db).domains()
        yield from heads

    def floor(self) -> Floor:
        """Return where absent domains start."""
        with self._reading() as db:
            return Tables(db).floor()

    def marker(self) -> Marker:
        """Return whether this ledger is open."""
        with self._reading() as db:
            return Tables(db).marker()

    def audit(self, after: int = 0) -> Iterator[tuple[int, Event]]:
        """Yield the audit lines after number `after`."""
        while True:
            with self._reading() as db:
                rows = db.execute(
                    "SELECT n, line FROM audit WHERE n > ? ORDER BY n LIMIT 500", (after,)
                ).fetchall()
            if not rows:
                return
            for number, line in rows:
                yield number, orjson.loads(line)
            after = rows[-1][0]

    def peek(self, key: IntentKey) -> int:
        """Return the revision of an intent's record."""
        with self._reading() as db:
            record = Tables(db).intent(key)
        return 0 if record is None else record.revision

    @contextlib.contextmanager
    def _reading(self) -> Iterator[sqlite3.Connection]:
        self._after_fork()
        with self._side_lock, translated(self._path):
            yield self._side

    # --- keeping -----------------------------------------------------------------------------

    def sweep(self) -> int:
        """Delete what has expired, in small transactions, and give the space back."""
        return sqlite_sweep.sweep_intents(self._reading, self.now())

    def sweep_audit(self, before_ms: int) -> int:
        """Delete old audit lines, in small transactions, and give the space back."""
        return 0 if self.now().expiry_paused else sqlite_sweep.sweep_audit(self._reading, before_ms)

    def confirm_clock(self) -> None:
        """Accept the present wall time after a jump: expiry goes on."""
        with self._reading() as db, transaction(db) as begun:
            Tables(db).keep_clock(self._clocks.boot, self._clocks.confirm())
            begun.commit()

    def verify(self) -> Iterator[Problem]:
        """Check pages, checksums, and every recorded certificate."""
        with self._reading() as db:
            for (line,) in db.execute("PRAGMA quick_check(20)").fetchall():
                if line != "ok":
                    yield Problem(str(self._path), line)
        after = 0
        while True:
            with self._reading() as db:
                rows = db.execute(
                    "SELECT rowid, key, record, sum FROM intents WHERE rowid > ? "
                    "ORDER BY rowid LIMIT 500",
                    (after,),
                ).fetchall()
            if not rows:
                return
            after = rows[-1][0]
            for _, text, stored, checksum in rows:
                key = key_of(text)
                where = f"intent {key.intent!r}"
                try:
                    record = checked_intent(key, stored, checksum)
                except LedgerDamaged as damage:
                    yield Problem(where, str(damage))
                else:
                    yield from check_record(key, record)

    def describe(self) -> Description:
        """Say what this ledger is and what its answers rest on."""
        size = sum(
            os.path.getsize(f"{self._path}{suffix}")
            for suffix in ("", "-wal")
            if os.path.exists(f"{self._path}{suffix}")
        )
        details = {"bytes": size, "expiry_paused": self.now().expiry_paused}
        return Description("sqlite", str(self._path), "synced before every answer", details)

    def save_counters(self, counters: dict[str, int]) -> None:
        """Replace this process's counters."""
        with self._reading() as db, transaction(db) as begun:
            Tables(db).save_counters(self._process, counters)
            begun.commit()

    def counters(self) -> dict[str, int]:
        """Return the sum over all processes, the ended ones included."""
        with self._reading() as db:
            return add_counters(Tables(db).counters().values())

    def close(self) -> None:
        """Answer what waits, drop the holder's lock, close the file."""
        if os.getpid() != self._pid:
            return
        self._group.close()
        self._locks.release()
        with self._side_lock, contextlib.suppress(sqlite3.Error):
            self._side.close()
            self._db.close()


# What a forked child inherited and must neither use nor close.
_LEFT_ALONE: list[object] = []


def open_url(url: str) -> SqliteLedger:
    """Open the ledger of a `sqlite:` URL or a path; without a path, the user's own."""
    return SqliteLedger(locate(url, "sqlite"))
