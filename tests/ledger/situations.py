"""Ways into every situation of the table, and every verb to try there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fencekit.core.clock import VectorClock
from fencekit.core.messages import (
    Abort,
    Clear,
    Commit,
    Current,
    Forget,
    Heartbeat,
    Look,
    Prepare,
    Release,
    Settle,
)
from fencekit.core.request import EffectRequest
from fencekit.core.result import Result
from fencekit.core.state import Holder, IntentKey, PreparedEffect
from fencekit.core.table import Situation
from tests.ledger.conformance import START_MS, TestClock

KEY = IntentKey("me", "pay")
REQUEST = EffectRequest.make("pay", "charge", {"n": 1}, domain="d", principal="me", agent="a")
LEASE, TTL = 60_000, 1_000
T, U = "a" * 32, "b" * 32

Ask = Callable[[Any], Any]


class Script:
    """Draws commands against one ledger and remembers the tickets it got."""

    def __init__(self, ask: Ask, clock: TestClock, process: str) -> None:
        self.ask, self.clock, self.process = ask, clock, process
        self.tickets: dict[str, PreparedEffect] = {}
        self.drawn = 0

    def _id(self) -> tuple[str, int]:
        self.drawn += 1
        return f"{self.drawn:032x}", START_MS + self.clock.ms

    def ticket(self, name: str) -> PreparedEffect:
        """A ticket that was admitted, or one that never was."""
        never = PreparedEffect(name, REQUEST, 1, 1, VectorClock({"a": 1}), LEASE)
        return self.tickets.get(name, never)

    def prepare(self, name: str, kind: str = "ticket", expiry: Any = "fence") -> Any:
        holder = Holder("process", self.process) if kind == "process" else Holder("ticket")
        command = Prepare(name, START_MS + self.clock.ms, REQUEST, holder, LEASE, expiry)
        answer = self.ask(command)
        if hasattr(answer, "ticket") and not isinstance(answer.ticket, str):
            self.tickets[name] = answer.ticket
        return answer

    def commit(self, name: str, value: Any = "ok") -> Any:
        result = Result.of(value, 1000)
        return self.ask(Commit.make(*self._id(), self.ticket(name), result, TTL))

    def abort(self, name: str) -> Any:
        return self.ask(Abort(*self._id(), self.ticket(name), "no answer"))

    def release(self, name: str) -> Any:
        return self.ask(Release(*self._id(), self.ticket(name), "not run"))

    def heartbeat(self, name: str) -> Any:
        return self.ask(Heartbeat(*self._id(), self.ticket(name), LEASE))

    def revision(self) -> int:
        return int(self.ask(Look(*self._id(), KEY)).record.revision)

    def clear(self, name: str) -> Any:
        return self.ask(Clear(*self._id(), KEY, name, self.revision(), "op", "note"))

    def settle(self, name: str) -> Any:
        result = Result.of("seen", 1000)
        return self.ask(Settle(*self._id(), KEY, name, self.revision(), result, TTL, "op", "note"))

    def forget(self, name: str) -> Any:
        return self.ask(Forget(*self._id(), KEY, name, "op", "note"))

    def current(self) -> Any:
        return self.ask(Current(*self._id(), "d"))


VERBS = ("prepare", "commit", "abort", "release", "heartbeat", "clear", "settle", "forget")


def reach(situation: Situation, s: Script) -> None:
    """Bring the ledger into a situation, seen from ticket T."""
    mine = T if "MINE" in situation.name else U
    match situation:
        case Situation.ABSENT:
            return
        case Situation.ABSENT_ENDED:
            s.prepare(T)
            s.release(T)
        case Situation.MINE | Situation.OTHERS:
            s.prepare(mine)
        case Situation.MINE_LAPSED | Situation.OTHERS_LAPSED:
            s.prepare(mine)
            s.clock.ms += LEASE
        case Situation.MINE_DEAD | Situation.OTHERS_DEAD:
            s.prepare(mine, "process")
            s.clock.boot = "boot-2"
        case Situation.DONE_MINE | Situation.DONE_OTHERS:
            s.prepare(mine)
            s.commit(mine)
        case Situation.DONE_MINE_EXPIRED | Situation.DONE_OTHERS_EXPIRED:
            s.prepare(mine)
            s.commit(mine)
            s.clock.ms += TTL
        case Situation.UNKNOWN_MINE | Situation.UNKNOWN_OTHERS:
            s.prepare(mine)
            s.abort(mine)
