"""The ledger protocol: run one pure decision atomically on the keys it touches, durably.

A ledger gives the clock and the liveness of process holders; it knows no rules. Nothing is answered
before it is durable. Answers (refusals of the core included) are returned, never raised; only a
`LedgerError` is raised, and then nothing is known to have happened: asking again with the same
command is harmless.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, Protocol, TypeGuard

from fencekit.core.draft import Event
from fencekit.core.errors import FenceError, LedgerError
from fencekit.core.messages import Answer, Command
from fencekit.core.state import (
    DomainHead,
    Floor,
    Holder,
    IntentKey,
    IntentRecord,
    Liveness,
    Marker,
    Now,
)

AUDIT_KEPT = 1_000
"""How many of the newest lines of the audit stay, however old they are."""
AUDIT_ROWS = 2_000
"""How many lines of the audit one step of a sweep looks at."""

Outcome = Answer | BaseException
"""What a callback gets: an answer, or the `LedgerError` that kept it from being given."""

After = Callable[[], object]
Callback = Callable[[Outcome], After | None]
"""Hears one outcome. What it returns is called once, when the whole batch has been heard."""


def is_answer(outcome: Outcome) -> TypeGuard[Answer]:
    """Whether an outcome is an answer, refusals included, rather than a failure of the ledger."""
    if not isinstance(outcome, BaseException):
        return True
    return isinstance(outcome, FenceError) and not isinstance(outcome, LedgerError)


def add_counters(saved: Iterable[Mapping[str, int]]) -> dict[str, int]:
    """Return the sum of the counters that processes saved."""
    total: dict[str, int] = {}
    for counts in saved:
        for name, count in counts.items():
            total[name] = total.get(name, 0) + count
    return total


@dataclass(frozen=True, slots=True)
class Shown:
    """One intent as an operator sees it: the record as it stands now, and its holder's liveness."""

    key: IntentKey
    record: IntentRecord
    liveness: Liveness


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that `verify` found: where, and what."""

    where: str
    what: str


@dataclass(frozen=True, slots=True)
class Description:
    """What `ledger stats` says of a ledger: its kind, where it is, and what its answers rest on."""

    kind: str
    where: str
    durability: str
    details: dict[str, Any]


class Ledger(Protocol):
    """Where intents, domains and outcomes are remembered."""

    url: str

    @property
    def holder(self) -> Holder:
        """The identity under which this process holds attempts (kind "process")."""
        ...

    def now(self) -> Now:
        """The ledger's clocks, as well as this process can know them without asking."""
        ...

    def call(self, command: Command) -> Answer:
        """Decide one command and wait until the answer is durable; may write in this thread."""
        ...

    def submit(self, command: Command) -> Future[Answer]:
        """Decide one command; returns at once and never writes in the caller's thread."""
        ...

    def enqueue(self, command: Command, done: Callback) -> None:
        """Like `submit`, but calls `done` in the writer's thread; it must return quickly."""
        ...

    def intents(self) -> Iterator[Shown]:
        """Every intent that is remembered and not absent, as it stands now."""
        ...

    def domains(self) -> Iterator[tuple[str, DomainHead]]:
        """Every domain that is remembered."""
        ...

    def records(self) -> Iterator[tuple[IntentKey, IntentRecord]]:
        """Every record as it is stored, also of absent intents whose ended tickets are kept."""
        ...

    def floor(self) -> Floor:
        """Where absent domains start."""
        ...

    def marker(self) -> Marker:
        """Whether this ledger is open, or moved, as it stands now."""
        ...

    def audit(self, after: int = 0) -> Iterator[tuple[int, Event]]:
        """The audit lines after number `after`, each with its own number.

        Numbers grow, and no line appears before one that was shown already; on PostgreSQL there may
        be gaps. The first one is greater than 1 once older lines were swept.
        """
        ...

    def sweep_audit(self, before_ms: int) -> int:
        """Delete audit lines from before a wall time, except the newest `AUDIT_KEPT`.

        In small steps, between which others write. Returns how many lines went.
        """
        ...

    def sweep(self) -> int:
        """Delete what every verb treats as absent; returns how many intents changed."""
        ...

    def confirm_clock(self) -> None:
        """Accept the present wall time after a jump: expiry goes on, in every process."""
        ...

    def peek(self, key: IntentKey) -> int:
        """Return the revision of the intent's record (0 for none); counts and creates nothing."""
        ...

    def verify(self) -> Iterator[Problem]:
        """Recompute checksums and whatever else the storage can check; yields what is wrong."""
        ...

    def describe(self) -> Description:
        """Say what kind of ledger this is and what its answers rest on."""
        ...

    def save_counters(self, counters: dict[str, int]) -> None:
        """Replace this process's counters, kept beside the ledger for `stats`."""
        ...

    def counters(self) -> dict[str, int]:
        """Return the sum of the counters of all processes."""
        ...

    def close(self) -> None:
        """Answer what waits, then let go of every resource."""
        ...
