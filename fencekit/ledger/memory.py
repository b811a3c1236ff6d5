"""`memory:`: two dictionaries and a lock; the same rules, gone with the process."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future
from typing import TypeVar

from fencekit.core.decide import decide
from fencekit.core.draft import Event, View, Writes
from fencekit.core.messages import Answer, Command
from fencekit.core.situation import as_of
from fencekit.core.state import (
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
from fencekit.core.sweep import may_sweep, sweep
from fencekit.ledger.base import AUDIT_KEPT, Callback, Description, Outcome, Problem, Shown
from fencekit.ledger.batch import GroupCommit
from fencekit.ledger.clocks import Clocks
from fencekit.ledger.due import old_among

K = TypeVar("K")
V = TypeVar("V")


class Everything(dict[K, V | None]):
    """A dictionary that holds all there is: a missing key is absent, not unknown."""

    def __missing__(self, key: K) -> None:
        return None


class _Alive(Mapping[IntentKey, Liveness]):
    """This process holds what it holds; nobody else can."""

    def __getitem__(self, key: IntentKey) -> Liveness:
        return Liveness.ALIVE

    def __iter__(self) -> Iterator[IntentKey]:
        return iter(())

    def __len__(self) -> int:
        return 0


class MemoryLedger:
    """Everything in memory. What was in flight dies with the process, so no holder is ever dead."""

    url = "memory:"

    def __init__(self, clocks: Clocks | None = None) -> None:
        self._clocks = clocks if clocks is not None else Clocks()
        self.holder = Holder("process", "this process")
        self._lock = threading.Lock()
        self._intents: Everything[IntentKey, IntentRecord] = Everything()
        self._domains: Everything[str, DomainHead] = Everything()
        self._view = View(self._intents, self._domains, Floor(), _Alive())
        self._audit: list[Event] = []
        self._swept = 0
        self._counters: dict[str, int] = {}
        self._group = GroupCommit(self._run)

    def now(self) -> Now:
        """Return the clocks of this process."""
        return self._clocks.now()

    def call(self, command: Command) -> Answer:
        """Decide one command."""
        return self._group.call(command)

    def submit(self, command: Command) -> Future[Answer]:
        """Decide one command in the ledger's thread."""
        return self._group.submit(command)

    def enqueue(self, command: Command, done: Callback) -> None:
        """Decide one command and call back at once: there is nothing to wait for."""
        flush = done(self._group.call(command))
        if flush is not None:
            flush()

    def _run(self, commands: Sequence[Command]) -> list[Outcome]:
        now = self.now()
        with self._lock:
            return [self._decide(command, now) for command in commands]

    def _decide(self, command: Command, now: Now) -> Outcome:
        decision = decide(self._view, command, now)
        self._apply(decision.writes)
        self._audit.extend(decision.audit)
        return decision.answer

    def _apply(self, writes: Writes) -> None:
        self._view.apply(writes)
        for key, record in writes.intents.items():
            if record is None:
                del self._intents[key]
        for domain, head in writes.domains.items():
            if head is None:
                del self._domains[domain]

    def records(self) -> Iterator[tuple[IntentKey, IntentRecord]]:
        """Yield every record."""
        with self._lock:
            held = list(self._intents.items())
        return ((key, record) for key, record in held if record is not None)

    def floor(self) -> Floor:
        """Return where absent domains start."""
        return self._view.floor or Floor()

    def marker(self) -> Marker:
        """Return whether this ledger is open."""
        return self._view.marker

    def intents(self) -> Iterator[Shown]:
        """Yield every intent that is not absent, as it stands now."""
        now = self.now()
        for key, record in self.records():
            seen = as_of(record, now, Liveness.ALIVE)
            if not isinstance(seen.state, Absent):
                yield Shown(key, seen, Liveness.ALIVE)

    def domains(self) -> Iterator[tuple[str, DomainHead]]:
        """Yield every domain."""
        with self._lock:
            heads = list(self._domains.items())
        return ((name, head) for name, head in heads if head is not None)

    def audit(self, after: int = 0) -> Iterator[tuple[int, Event]]:
        """Yield the audit lines after number `after`."""
        with self._lock:
            first = max(after, self._swept)
            lines = self._audit[first - self._swept :]
        return enumerate(lines, first + 1)

    def sweep_audit(self, before_ms: int) -> int:
        """Delete old audit lines."""
        with self._lock:
            old = old_among(self._audit[:-AUDIT_KEPT], before_ms)
            del self._audit[:old]
            self._swept += old
        return old

    def sweep(self) -> int:
        """Delete what has expired."""
        now, changed = self.now(), 0
        with self._lock:
            if not may_sweep(self._view.marker):
                return 0
            for key, record in list(self._intents.items()):
                if record is None:
                    continue
                left = sweep(record, now)
                if left is None:
                    del self._intents[key]
                elif left is not record:
                    self._intents[key] = left
                changed += left is not record
        return changed

    def confirm_clock(self) -> None:
        """Accept the present wall time after a jump."""
        self._clocks.confirm()

    def peek(self, key: IntentKey) -> int:
        """Return the revision of an intent's record."""
        record = self._intents.get(key)
        return 0 if record is None else record.revision

    def verify(self) -> Iterator[Problem]:
        """Nothing is stored, so nothing can be damaged."""
        return iter(())

    def describe(self) -> Description:
        """Say what this ledger is."""
        return Description("memory", "this process", "none: gone with the process", {})

    def save_counters(self, counters: dict[str, int]) -> None:
        """Keep this process's counters."""
        self._counters = dict(counters)

    def counters(self) -> dict[str, int]:
        """Return this process's counters: there are no others."""
        return dict(self._counters)

    def close(self) -> None:
        """Answer what waits."""
        self._group.close()


def open_url(url: str) -> MemoryLedger:
    """Open a new, empty ledger."""
    return MemoryLedger()
