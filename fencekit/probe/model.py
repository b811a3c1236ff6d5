"""The words of a probe run: what was asked, what came back, what was counted.

Plain frozen data. `fire` and the counters fill it, `judge` reads it, `document` writes it down.
Times called `…_ms` are milliseconds since the first request of the way left.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


class Way(StrEnum):
    """How the same call is asked for twice."""

    TWINS = "twins"
    RETRY = "retry"
    LOST_ANSWER = "lost-answer"
    RESTART = "restart"


class Verdict(StrEnum):
    """What a way showed, worst first."""

    PROVEN = "PROVEN DOUBLE-FIRE"
    INCONCLUSIVE = "INCONCLUSIVE"
    NO_SURFACE = "NO RACE SURFACE"
    ONE_EFFECT = "ONE EFFECT"


WORST_FIRST = tuple(Verdict)


class Outcome(StrEnum):
    """What became of one call."""

    OK = "ok"
    DISCARDED = "answer discarded unread"
    TOOL_ERROR = "tool error"
    RPC_ERROR = "protocol error"
    ASKED_BACK = "asked for input"
    PENDING_TASK = "task handle"
    RATE_LIMITED = "rate limited"
    HTTP_REFUSED = "refused by HTTP"
    TIMED_OUT = "timed out"
    UNANSWERED = "no answer"
    NEVER_LEFT = "never left"


# Answered by the server itself, so it was delivered to it.
ANSWERED = frozenset(
    {
        Outcome.OK, Outcome.DISCARDED, Outcome.TOOL_ERROR, Outcome.RPC_ERROR, Outcome.ASKED_BACK,
        Outcome.PENDING_TASK,
    }
)  # fmt: skip
# May still take effect, or have taken it, unseen.
OPEN_ENDED = frozenset({Outcome.TIMED_OUT, Outcome.UNANSWERED, Outcome.HTTP_REFUSED,
                        Outcome.PENDING_TASK})  # fmt: skip
TRANSPORT_FAILURES = frozenset(
    {Outcome.HTTP_REFUSED, Outcome.TIMED_OUT, Outcome.UNANSWERED, Outcome.NEVER_LEFT}
)


class MarkKind(StrEnum):
    """What a fence's mark on an answer says about this call."""

    EXECUTED = "executed now"
    REPLAYED_NOW = "replayed from now"
    REPLAYED_BEFORE = "replayed from before"
    REFUSED = "refused by the fence"


@dataclass(frozen=True)
class Mark:
    """A fence's own word on one answer (`_meta["fencekit/outcome"]`); `age` in seconds."""

    kind: MarkKind
    age: float | None = None


@dataclass(frozen=True)
class Call:
    """One call: its number in the way, which connection, and what came of it."""

    n: int
    outcome: Outcome
    connection: int = 0
    sent_ms: float | None = None
    answered_ms: float | None = None
    detail: str = ""
    result: Any = None
    mark: Mark | None = None


@dataclass(frozen=True)
class Observation:
    """What the observer counted before and after. `fault` says why it supports no verdict."""

    source: str
    before: int | None = None
    after: int | None = None
    drift: int = 0
    settled: bool = True
    fault: str = ""

    @property
    def delta(self) -> int | None:
        """How many effects it saw, or None where it cannot say."""
        if self.before is None or self.after is None:
            return None
        return self.after - self.before


@dataclass(frozen=True)
class SinkReading:
    """What the sink recorded during a way, for the target (method and path) written to most.

    One call may write to several targets, so only writes to one and the same target say that it
    ran twice. `keys` are the distinct idempotency keys with the number of writes under each;
    `conditional` are writes that HTTP itself calls idempotent (the same PUT or DELETE again), by
    body digest. `others` are the other targets with their writes. `overlap` is how many requests
    were inside the sink at once; `minted` the ids it gave out.
    """

    target: str = ""
    key_name: str = ""
    keys: Mapping[str, int] = field(default_factory=dict)
    unkeyed: int = 0
    conditional: Mapping[str, int] = field(default_factory=dict)
    reads: int = 0
    others: Mapping[str, int] = field(default_factory=dict)
    overlap: int = 0
    minted: frozenset[str] = frozenset()
    faults: int = 0

    @property
    def writes(self) -> int:
        """Every write to the target, whatever its key."""
        return sum(self.keys.values()) + self.unkeyed + sum(self.conditional.values())

    @property
    def effects(self) -> int:
        """Distinct keys, plus writes without a key."""
        return len(self.keys) + self.unkeyed + len(self.conditional)

    @property
    def condition(self) -> str:
        """What the API must honour for several writes to be one effect, or empty."""
        if any(n > 1 for n in self.keys.values()):
            return self.key_name
        if any(n > 1 for n in self.conditional.values()):
            return "a repeated " + self.target.partition(" ")[0]
        return ""


@dataclass(frozen=True)
class Cut:
    """How a lost answer was made: after what evidence the connection was cut."""

    evidence: str = ""
    first_ran: bool = False


@dataclass(frozen=True)
class Overlap:
    """How much the calls of a volley overlapped.

    `spread_ms`: first request out to last request out. `together`: requests that were out before
    the first answer came. `parallel`: about how many the server worked on at once, from the
    times of the answers (calls x first latency / time to the last answer).
    """

    spread_ms: float = 0.0
    first_answer_ms: float | None = None
    last_answer_ms: float | None = None
    together: int = 0
    parallel: float | None = None


@dataclass(frozen=True)
class Setting:
    """What `judge` must know about the target and the tool."""

    stdio: bool = True
    reads_only: bool = False
    reads_because: str = ""
    fenced: bool = False
    cwd: str = ""


@dataclass(frozen=True)
class Evidence:
    """Everything one way brought in. `earlier_effects`: what earlier ways of this run counted."""

    way: Way
    calls: tuple[Call, ...]
    setting: Setting = Setting()
    connections: int = 1
    observation: Observation | None = None
    sink: SinkReading | None = None
    cut: Cut | None = None
    earlier_effects: int | None = None


@dataclass(frozen=True)
class Judgement:
    """A verdict, the sentence that carries it, and what it rests on.

    `effects` is the number the best counter gives, None where nothing could count. `fresh` is
    false where they are those of an earlier way of the same run.
    """

    verdict: Verdict
    reason: str
    rests_on: str
    effects: int | None = None
    condition: str = ""
    fresh: bool = True
    disagreements: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def words(self) -> str:
        """The verdict as it is printed; a conditional one is never plain."""
        return (
            f"{self.verdict} if the API honours {self.condition}"
            if self.condition
            else self.verdict
        )
