"""What a ledger remembers: intents (absent, in flight, done, unknown) and the heads of domains.

All values are immutable. Times are integers in milliseconds: `*_ms` is wall time, except lease
ends, which are in the ledger's lease time (`Now.lease_ms`), valid for one boot (`Now.boot`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from fencekit.core.certificate import CertFields, EffectCert, ReadSetEntry
from fencekit.core.clock import NO_CLOCK, VectorClock

if TYPE_CHECKING:
    from fencekit.core.request import EffectRequest
    from fencekit.core.result import Result

# For how long ended tickets and answers are kept after they ended (promise 6).
RETENTION_MS = 3_600_000

LeaseExpiry = Literal["fence", "reclaim"]

How = Literal["done", "unknown", "released", "cleared", "superseded", "not admitted"]

Cause = Literal["aborted", "lapsed", "died", "stale", "stale holder"]


class IntentKey(NamedTuple):
    """The key of an intent: whose it is, and its name."""

    principal: str
    intent: str


class Now(NamedTuple):
    """The ledger's clocks at one decision."""

    wall_ms: int
    lease_ms: int
    boot: str = ""
    # Wall time has jumped against lease time: nothing may expire until somebody confirms it.
    expiry_paused: bool = False


class Liveness(Enum):
    """What the ledger can tell about the process that holds an attempt."""

    ALIVE = "alive"
    DEAD = "dead"
    CANNOT_TELL = "cannot tell"


@dataclass(frozen=True, slots=True)
class Holder:
    """Who has an intent in flight: a process whose death shows, or a ticket that may travel."""

    kind: Literal["process", "ticket"]
    process: str = ""


@dataclass(frozen=True, slots=True)
class PreparedEffect:
    """The ticket: proof that one attempt was admitted.

    `id` is random and drawn by the caller; `generation` counts the attempts at the intent;
    `seq` is the sequence number reserved in the request's domain (None without a domain);
    `clock` the vector clock of this effect; `lease_end_ms` until when the holder is believed
    without a heartbeat, in the ledger's lease time.
    """

    id: str
    request: EffectRequest
    generation: int
    seq: int | None
    clock: VectorClock
    lease_end_ms: int = field(compare=False)

    @property
    def intent(self) -> str:
        """The intent that this ticket is for."""
        return self.request.intent

    @property
    def key(self) -> IntentKey:
        """The ledger key of the intent."""
        return self.request.key


@dataclass(frozen=True, slots=True)
class Sealed:
    """One committed effect and the hash of its certificate, which is built only when asked for."""

    ticket: PreparedEffect
    result: Result
    hash: str

    @classmethod
    def make(cls, ticket: PreparedEffect, result: Result) -> Sealed:
        """Seal an effect with its result."""
        args = ticket.request.args_json.encode()
        fields = _cert_fields(ticket, {}, None)
        return cls(ticket, result, EffectCert.hash_of_parts(args, result.canonical, fields))

    @property
    def cert(self) -> EffectCert:
        """The certificate, with its values."""
        request = self.ticket.request
        return EffectCert(
            **_cert_fields(self.ticket, request.args, self.result.value), hash=self.hash
        )


def _cert_fields(ticket: PreparedEffect, args: dict[str, Any], result: Any) -> CertFields:
    request = ticket.request
    return {
        "intent": request.intent,
        "parent": request.parent,
        "domain": request.domain,
        "seq": ticket.seq,
        "tool": request.tool,
        "args": args,
        "result": result,
        "vector_clock": ticket.clock,
        "read_set": request.read_set,
        "agent": request.agent,
    }


@dataclass(frozen=True, slots=True)
class Doubt:
    """A refused result or abort of a ticket that was not current: its effect may have run."""

    ticket: PreparedEffect
    kind: Literal["result", "abort"]
    result: Result | None
    at_ms: int


@dataclass(frozen=True, slots=True)
class Ended:
    """How one ticket ended; kept for the retention, so that sending again answers the same."""

    ticket: str
    how: How
    at_ms: int
    sealed: Sealed | None = None
    commit: str = ""


@dataclass(frozen=True, slots=True)
class Remembered:
    """The answer that one command got, kept for the retention."""

    command: str
    at_ms: int
    answer: Any  # messages.Answer; Any breaks the import cycle


@dataclass(frozen=True, slots=True)
class Absent:
    """Nothing holds this intent; the record may still carry ended tickets."""


@dataclass(frozen=True, slots=True)
class InFlight:
    """One attempt is between admission and outcome."""

    ticket: PreparedEffect
    holder: Holder
    lease_end_ms: int
    boot: str
    since_ms: int
    lease_expiry: LeaseExpiry = "fence"


@dataclass(frozen=True, slots=True)
class Done:
    """The effect ran once; `sealed` holds the text that replays return."""

    sealed: Sealed
    at_ms: int
    expires_at_ms: int
    commit: str
    operator: str = ""
    note: str = ""

    @property
    def ticket(self) -> PreparedEffect:
        """The attempt that ran."""
        return self.sealed.ticket


@dataclass(frozen=True, slots=True)
class Unknown:
    """The effect may have happened; only a person, a read or that attempt itself ends this."""

    ticket: PreparedEffect
    holder: Holder
    boot: str
    cause: Cause
    reason: str
    since_ms: int
    # The attempt that ran it may still say how it ended.
    late_commit: bool
    reported: Result | None = None
    stale: Any = None  # the ReadSetStale that a rejected commit got


State = Absent | InFlight | Done | Unknown


@dataclass(frozen=True, slots=True)
class IntentRecord:
    """All that is remembered under one intent key; every write raises `revision`."""

    state: State = Absent()
    revision: int = 0
    generation: int = 0
    doubts: tuple[Doubt, ...] = ()
    ended: tuple[Ended, ...] = ()
    remembered: tuple[Remembered, ...] = ()


NOTHING = IntentRecord()


@dataclass(frozen=True, slots=True)
class OpenReservation:
    """A reservation whose effect is in flight or unknown, and the head from before it."""

    key: IntentKey
    seq: int
    before_seq: int
    before_clock: VectorClock


@dataclass(frozen=True, slots=True)
class DomainHead:
    """A domain: its sequence number and clock, its open reservations, and who cites it."""

    seq: int = 0
    clock: VectorClock = NO_CLOCK
    open: tuple[OpenReservation, ...] = ()
    cited_by: tuple[IntentKey, ...] = ()
    revision: int = 0
    remembered: tuple[Remembered, ...] = ()


@dataclass(frozen=True, slots=True)
class Floor:
    """Where absent domains start, so that an evicted one never gives a number twice."""

    seq: int = 0
    clock: VectorClock = NO_CLOCK
    remembered: tuple[Remembered, ...] = ()


Phase = Literal["open", "draining", "sealed", "handed", "reopening", "closed"]


@dataclass(frozen=True, slots=True)
class Marker:
    """Whether a ledger is open, and if not: `other` is where it moves to or is filled from.

    `move` names one move from one ledger to another; both carry it. `other` is a URL without
    secrets.
    """

    phase: Phase = "open"
    other: str = ""
    move: str = ""


OPEN = Marker()
"""The marker of a ledger that was never moved."""


__all__ = [
    "NOTHING",
    "OPEN",
    "RETENTION_MS",
    "Absent",
    "Cause",
    "DomainHead",
    "Done",
    "Doubt",
    "Ended",
    "Floor",
    "Holder",
    "How",
    "InFlight",
    "IntentKey",
    "IntentRecord",
    "LeaseExpiry",
    "Liveness",
    "Marker",
    "Now",
    "OpenReservation",
    "Phase",
    "PreparedEffect",
    "ReadSetEntry",
    "Remembered",
    "Sealed",
    "State",
    "Unknown",
]
