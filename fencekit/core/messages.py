"""What may be asked of a ledger and what it may answer.

Every command carries a random id drawn once by the caller (for `Prepare` it is the ticket id) and
the ledger's wall time at which it was drawn, so that sending it again is harmless (promise 6).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from fencekit.core.certificate import EffectCert
from fencekit.core.clock import VectorClock
from fencekit.core.errors import FenceError
from fencekit.core.request import EffectRequest
from fencekit.core.result import Result
from fencekit.core.state import (
    DomainHead,
    Floor,
    Holder,
    IntentKey,
    IntentRecord,
    LeaseExpiry,
    Marker,
    PreparedEffect,
    Sealed,
)

# --- commands ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Prepare:
    """May this attempt run? `lease_ms` is how long it is believed without a heartbeat."""

    id: str
    drawn_ms: int
    request: EffectRequest
    holder: Holder
    lease_ms: int
    lease_expiry: LeaseExpiry = "fence"

    @property
    def key(self) -> IntentKey:
        """The ledger key of the intent."""
        return self.request.key


@dataclass(frozen=True, slots=True)
class Commit:
    """The effect ran, with this result. Build it with `make`, which computes the certificate."""

    id: str
    drawn_ms: int
    ticket: PreparedEffect
    sealed: Sealed
    result_ttl_ms: int

    @classmethod
    def make(
        cls,
        command_id: str,
        drawn_ms: int,
        ticket: PreparedEffect,
        result: Result,
        result_ttl_ms: int,
    ) -> Commit:
        """Return the command; the certificate is computed here, outside every lock."""
        return cls(command_id, drawn_ms, ticket, Sealed.make(ticket, result), result_ttl_ms)

    @property
    def key(self) -> IntentKey:
        """The ledger key of the intent."""
        return self.ticket.request.key


@dataclass(frozen=True, slots=True)
class Abort:
    """This attempt ended and nobody knows whether the effect happened."""

    id: str
    drawn_ms: int
    ticket: PreparedEffect
    reason: str

    @property
    def key(self) -> IntentKey:
        """The ledger key of the intent."""
        return self.ticket.request.key


@dataclass(frozen=True, slots=True)
class Release:
    """This attempt ended and the effect is proven not to have happened."""

    id: str
    drawn_ms: int
    ticket: PreparedEffect
    reason: str

    @property
    def key(self) -> IntentKey:
        """The ledger key of the intent."""
        return self.ticket.request.key


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """This attempt is still running: believe it for another `lease_ms`."""

    id: str
    drawn_ms: int
    ticket: PreparedEffect
    lease_ms: int

    @property
    def key(self) -> IntentKey:
        """The ledger key of the intent."""
        return self.ticket.request.key


@dataclass(frozen=True, slots=True)
class Clear:
    """An operator says: the attempt `ticket` did not happen and cannot any more."""

    id: str
    drawn_ms: int
    key: IntentKey
    ticket: str
    revision: int
    operator: str
    note: str
    even_if_alive: bool = False


@dataclass(frozen=True, slots=True)
class Settle:
    """An operator (or an authoritative read) says: it did happen, and this is its result."""

    id: str
    drawn_ms: int
    key: IntentKey
    ticket: str
    revision: int
    result: Result
    result_ttl_ms: int
    operator: str
    note: str


@dataclass(frozen=True, slots=True)
class Forget:
    """An operator says: this finished intent may run again."""

    id: str
    drawn_ms: int
    key: IntentKey
    ticket: str
    operator: str
    note: str


@dataclass(frozen=True, slots=True)
class Reserve:
    """Compare-and-set on a domain: take the next number if the head is at `expected`."""

    id: str
    drawn_ms: int
    domain: str
    expected: int
    agent: str


@dataclass(frozen=True, slots=True)
class EvictDomain:
    """Forget a domain; absent domains then start from a floor above it."""

    id: str
    drawn_ms: int
    domain: str


@dataclass(frozen=True, slots=True)
class Current:
    """Read what may be cited of a domain."""

    id: str
    drawn_ms: int
    domain: str


@dataclass(frozen=True, slots=True)
class Look:
    """Read one intent as it stands now: time and death applied, nothing written."""

    id: str
    drawn_ms: int
    key: IntentKey


@dataclass(frozen=True, slots=True)
class Mark:
    """Compare-and-set on the marker that says whether the ledger is open.

    `operator` and `note` say who takes the step, and why, where that is a person's decision.
    """

    id: str
    drawn_ms: int
    expected: Marker
    marker: Marker
    operator: str = ""
    note: str = ""


@dataclass(frozen=True, slots=True)
class Fill:
    """Take over what another ledger remembered; only a ledger that is closed for `move` does."""

    id: str
    drawn_ms: int
    move: str
    intents: tuple[tuple[IntentKey, IntentRecord], ...] = ()
    domains: tuple[tuple[str, DomainHead], ...] = ()
    floor: Floor | None = None


IntentCommand = Prepare | Commit | Abort | Release | Heartbeat | Clear | Settle | Forget
DomainCommand = Reserve | EvictDomain
MoveCommand = Mark | Fill
Command = IntentCommand | DomainCommand | MoveCommand | Current | Look

# --- answers ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Fresh:
    """Admitted: run the effect, then commit with this ticket. `resent`: asked before."""

    ticket: PreparedEffect
    resent: bool = False


@dataclass(frozen=True, slots=True)
class Replay:
    """Already done: do not run; this is the recorded result, every field unchanged."""

    sealed: Sealed
    at_ms: int

    @property
    def cert(self) -> EffectCert:
        """The certificate of the recorded effect."""
        return self.sealed.cert

    @property
    def result(self) -> Any:
        """The recorded result, as a new JSON value."""
        return self.sealed.result.value


Admission = Fresh | Replay


@dataclass(frozen=True, slots=True)
class Committed:
    """The outcome is durable."""

    sealed: Sealed

    @property
    def cert(self) -> EffectCert:
        """The certificate of the effect."""
        return self.sealed.cert


@dataclass(frozen=True, slots=True)
class Ok:
    """Done as asked: aborted, released, cleared, forgotten, evicted, marked or filled."""

    what: Literal["aborted", "released", "cleared", "forgotten", "evicted", "marked", "filled"]
    # Set where freeing met another attempt that may have run: the intent is unknown, not free.
    still_unknown: bool = False


@dataclass(frozen=True, slots=True)
class Beaten:
    """The lease moved; it ends at this lease time."""

    lease_end_ms: int


@dataclass(frozen=True, slots=True)
class Reserved:
    """The number is the caller's."""

    seq: int
    clock: VectorClock


@dataclass(frozen=True, slots=True)
class Head:
    """What may be cited of a domain, and the intents whose reservations are open."""

    domain: str
    seq: int
    clock: VectorClock
    open: tuple[IntentKey, ...]


@dataclass(frozen=True, slots=True)
class Seen:
    """One intent as it stands now."""

    key: IntentKey
    record: IntentRecord


Answer = Fresh | Replay | Committed | Ok | Beaten | Reserved | Head | Seen | FenceError
