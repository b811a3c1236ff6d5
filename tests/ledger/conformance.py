"""What every ledger must do alike; a new ledger joins the suite with one line in `LEDGERS`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fencekit.core.decide import decide
from fencekit.core.draft import View
from fencekit.core.state import Floor, Holder, InFlight, IntentKey, Liveness, Now, Unknown
from fencekit.ledger.base import Ledger
from fencekit.ledger.clocks import Clocks
from fencekit.ledger.conditional import ConditionalLedger
from fencekit.ledger.jsonl import JsonlLedger
from fencekit.ledger.location import Location
from fencekit.ledger.memory import Everything, MemoryLedger
from fencekit.ledger.sqlite import SqliteLedger
from tests.ledger import servers

START_MS = 1_800_000_000_000


@dataclass
class TestClock:
    """A clock that tests move; lease time and wall time go together."""

    __test__ = False

    ms: int = 0
    boot: str = "boot-1"

    def clocks(self) -> Clocks:
        """Return the clocks of a ledger that live by this one."""
        return Clocks(lambda: START_MS + self.ms, lambda: START_MS + self.ms, self.boot)

    def shared(self, ledger: ConditionalLedger) -> ConditionalLedger:
        """Make a shared ledger and its store live by this clock instead of the server's."""
        store: Any = ledger._store
        told: Any = ledger
        read, write = store.read, store.compare_and_write
        store.read = lambda keys: (read(keys)[0], START_MS + self.ms)
        store.compare_and_write = lambda groups, _now=0: write(groups)
        told._beside = lambda: store
        told.now = lambda: Now(START_MS + self.ms, START_MS + self.ms)
        return ledger


Opener = Callable[[Path, TestClock], Ledger]


def _postgres(kind: str) -> Opener:
    def opener(path: Path, clock: TestClock) -> Ledger:
        from fencekit.ledger.postgres import PostgresStore

        store = PostgresStore(servers.postgres(kind), servers.name_for(path))
        return clock.shared(ConditionalLedger("postgresql://", store, "p" * 32))

    return opener


def _redis(kind: str) -> Opener:
    def opener(path: Path, clock: TestClock) -> Ledger:
        from fencekit.ledger.redis import RedisStore

        store = RedisStore(servers.redis(kind=kind), servers.name_for(path))
        return clock.shared(ConditionalLedger("redis://", store, "r" * 32))

    return opener


LEDGERS: dict[str, Opener] = {
    "memory": lambda path, clock: MemoryLedger(clock.clocks()),
    "sqlite": lambda path, clock: SqliteLedger(Location(path / "l.db"), clock.clocks()),
    "jsonl": lambda path, clock: JsonlLedger(Location(path / "l.jsonl"), clock.clocks()),
}
SHARED: dict[str, Opener] = {
    "postgresql": _postgres("wheel"),
    "postgresql-debian": _postgres("debian"),
    "postgresql-pgbouncer": _postgres("pgbouncer"),
    "redis": _redis("wheel"),
    "redis-debian": _redis("debian"),
}
LEDGERS |= SHARED
DURABLE = [name for name in LEDGERS if name != "memory"]


def url_of(name: str, path: Path) -> str:
    """Return the URL by which a ledger in a test's folder is opened by several."""
    kind, _, server = name.partition("-")
    if kind == "postgresql":
        return f"{servers.postgres(server or 'wheel')}&schema={servers.name_for(path)}"
    if kind == "redis":
        address = servers.redis(kind=server or "wheel")
        return f"{address}?namespace={servers.name_for(path)}"
    return f"{kind}:{path / 'ledger'}"


@dataclass
class Model:
    """The rules over two dictionaries: what a ledger must be indistinguishable from."""

    clock: TestClock
    process: str
    sees_processes: bool = True
    view: View = field(default_factory=View)
    audit: list[dict[str, Any]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.view = View(Everything(), Everything(), Floor())

    def now(self) -> Now:
        """The same clock as the ledger's."""
        ms = START_MS + self.clock.ms
        return Now(ms, ms, self.clock.boot if self.sees_processes else "")

    def call(self, command: Any) -> Any:
        """Decide one command."""
        self.view.liveness = {
            key: self._liveness(record.state.holder)
            for key, record in self.view.intents.items()
            if record is not None and isinstance(record.state, InFlight | Unknown)
        }
        decision = decide(self.view, command, self.now())
        self.view.apply(decision.writes)
        self.audit.extend(decision.audit)
        return decision.answer

    def _liveness(self, holder: Holder) -> Liveness:
        """This process is alive; those that held the same ledger before it are dead."""
        if holder.kind != "process" or not self.sees_processes:
            return Liveness.CANNOT_TELL
        return Liveness.ALIVE if holder.process == self.process else Liveness.DEAD

    def records(self) -> dict[IntentKey, Any]:
        """What is remembered."""
        return {key: record for key, record in self.view.intents.items() if record is not None}


def told(events: Iterator[tuple[int, dict[str, Any]]]) -> list[dict[str, Any]]:
    """Return an audit without its numbers, which must be 1, 2, 3, …"""
    lines = list(events)
    assert [number for number, _ in lines] == list(range(1, len(lines) + 1))
    return [event for _, event in lines]
