"""Everything fencekit refuses, as one tree; the same objects are answers and exceptions.

    FenceError
    ├── Refused               prepare said no: the effect must not run
    │   ├── IntentInFlight      another attempt at this intent is running
    │   ├── IntentFailed        an earlier attempt ended unknown: reconcile first
    │   ├── IntentMismatch      the same intent was used for another action
    │   ├── ReadSetStale        what the decision was based on has moved (also raised by commit)
    │   ├── DomainRace          somebody else acted on the own domain first
    │   ├── CausalConflict      the caller's view is concurrent with the domain's
    │   └── AlreadyEnded        this very ticket has ended
    ├── Rejected              commit, abort, release or heartbeat of an attempt that is not current
    │   ├── StaleHolder         the attempt was superseded or ended by an operator
    │   ├── ResultDiffers       the attempt is done, with another result
    │   ├── NotAdmitted         this ticket was never admitted
    │   └── TicketAltered       fields of the ticket differ from what was admitted
    ├── OperatorRefused       clear, settle, forget or evict judged a state that is not there
    │   ├── NotFound, Moved, StillInFlight, HolderAlive, ResultReported, AlreadyDone, NotDone
    │   └── DomainInUse
    ├── MoveRefused           the ledger is not where a step of its move expects it
    ├── ResultNotKept         already done, but its result was too large or not JSON
    ├── Expired               the command is older than the time for which outcomes are kept
    ├── InvalidRequest        the caller's input is wrong; nothing happened (also a ValueError)
    └── LedgerError           the ledger cannot answer: nothing was admitted
        ├── LedgerUnavailable   unreachable, busy past the limit
        │   └── LedgerGone        its file was removed or replaced while it was open
        ├── LedgerDamaged       its content cannot be trusted
        ├── LedgerFull          no space, or read-only
        ├── LedgerLocked        another process holds it
        └── LedgerMoved         it was moved to another ledger

Two errors are equal when they have the same type and fields, so that answers compare.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fencekit.core.certificate import EffectCert
    from fencekit.core.state import Sealed


class FenceError(Exception):
    """The base of all refusals; `str()` is a sentence that says what to do next."""

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and vars(self) == vars(other)

    def __hash__(self) -> int:
        return hash(type(self))

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (type(self), dict(vars(self)))

    def fresh(self) -> FenceError:
        """Return an equal error without a traceback, for answering the same thing again."""
        return _rebuild(type(self), dict(vars(self)))


def _rebuild(cls: type[FenceError], fields: dict[str, Any]) -> FenceError:
    error = cls.__new__(cls)
    error.__dict__.update(fields)
    return error


class Refused(FenceError):
    """Prepare said no: the effect must not run."""


@dataclass(eq=False)
class IntentInFlight(Refused):
    """Another attempt at this intent is running since `since_ms` (wall time, milliseconds)."""

    intent: str
    agent: str
    since_ms: int
    revision: int

    def __str__(self) -> str:
        return (
            f"intent {self.intent!r} is in flight (agent {self.agent!r}): do not run it; "
            "wait for its outcome and ask again"
        )


@dataclass(eq=False)
class IntentFailed(Refused):
    """An earlier attempt ended unknown, for `cause`, since `since_ms`: it may have happened."""

    intent: str
    cause: str
    reason: str
    since_ms: int
    ticket: str
    revision: int

    def __str__(self) -> str:
        told = f": {self.reason}" if self.reason else ""
        return (
            f"intent {self.intent!r} may already have happened ({self.cause}{told}): "
            "do not run it; find out what happened, then use `fencekit ledger settle` or "
            "`fencekit ledger clear`"
        )


@dataclass(eq=False)
class IntentMismatch(Refused):
    """The same intent was used for another action (`recorded` is that action's fingerprint)."""

    intent: str
    recorded: str
    given: str

    def __str__(self) -> str:
        return (
            f"intent {self.intent!r} already names another action (other tool or arguments): "
            "do not run it; give a different action a different intent"
        )


@dataclass(eq=False)
class ReadSetStale(Refused):
    """What the decision was based on has moved, or (`pending`) is being changed right now."""

    domain: str
    expected: int
    actual: int
    pending: bool = False

    def __str__(self) -> str:
        what = "has an effect in flight or unknown" if self.pending else f"is now at {self.actual}"
        return (
            f"the decision cites domain {self.domain!r} at {self.expected}, which {what}: "
            "do not run it; read the domain again and decide anew"
        )


@dataclass(eq=False)
class DomainRace(Refused):
    """Somebody else acted on the request's own domain first."""

    domain: str
    expected: int
    actual: int

    def __str__(self) -> str:
        return (
            f"domain {self.domain!r} moved from {self.expected} to {self.actual} since it was "
            "read: do not run it; read the domain again and decide anew"
        )


@dataclass(eq=False)
class CausalConflict(Refused):
    """The caller's clock and the domain's are concurrent: neither saw the other."""

    domain: str
    known: dict[str, int]
    actual: dict[str, int]

    def __str__(self) -> str:
        return (
            f"the caller's view of domain {self.domain!r} is concurrent with what happened there: "
            "do not run it; ask a human to decide"
        )


@dataclass(eq=False)
class AlreadyEnded(Refused):
    """This very ticket has ended, as `how` says (done, unknown, released, cleared, …)."""

    intent: str
    ticket: str
    how: str

    def __str__(self) -> str:
        return (
            f"this attempt at intent {self.intent!r} has already ended ({self.how}): "
            "do not run it; a new attempt needs a new ticket"
        )


class Rejected(FenceError):
    """A command about an attempt that is not the current one."""


@dataclass(eq=False)
class StaleHolder(Rejected):
    """The attempt was superseded or ended by somebody else; its result is kept as evidence."""

    intent: str
    ticket: str
    how: str

    def __str__(self) -> str:
        return (
            f"this attempt at intent {self.intent!r} is no longer current ({self.how}); what it "
            "reported is kept as evidence: look with `fencekit ledger show`"
        )


@dataclass(eq=False)
class ResultDiffers(Rejected):
    """The attempt is done with another result, whose certificate is `cert`."""

    intent: str
    sealed: Sealed

    @property
    def cert(self) -> EffectCert:
        """The certificate of the recorded result."""
        return self.sealed.cert

    def __str__(self) -> str:
        return (
            f"intent {self.intent!r} is already done with another result; the recorded one stands "
            f"(certificate {self.sealed.hash[:12]}), the new one is kept as evidence"
        )


@dataclass(eq=False)
class NotAdmitted(Rejected):
    """This ticket was never admitted to this ledger."""

    intent: str
    ticket: str

    def __str__(self) -> str:
        return f"this ticket for intent {self.intent!r} was never admitted here: prepare first"


@dataclass(eq=False)
class TicketAltered(Rejected):
    """Fields of the ticket differ from what was admitted; nothing was recorded."""

    intent: str
    field: str

    def __str__(self) -> str:
        return (
            f"the ticket for intent {self.intent!r} was altered (field {self.field!r}): "
            "send it back exactly as prepare returned it"
        )


@dataclass(eq=False)
class OperatorRefused(FenceError):
    """An operator judged a state that is not there (any more); nothing was changed."""

    intent: str

    def __str__(self) -> str:
        return f"intent {self.intent!r}: {self.says}"

    says = "refused"


@dataclass(eq=False)
class NotFound(OperatorRefused):
    """Nothing is recorded for this intent."""

    says = "nothing is recorded; look with `fencekit ledger list`"


@dataclass(eq=False)
class Moved(OperatorRefused):
    """The state is not the one that was judged."""

    says = "the state moved since it was shown; look again with `fencekit ledger show`"


@dataclass(eq=False)
class StillInFlight(OperatorRefused):
    """The attempt is still believed to be running."""

    says = "still in flight; wait until it ends or its lease is over"


@dataclass(eq=False)
class HolderAlive(OperatorRefused):
    """The process that holds the attempt is alive, so the effect may still happen."""

    says = "its process is alive and may still run it; end that process, or say --even-if-alive"


@dataclass(eq=False)
class ResultReported(OperatorRefused):
    """The attempt reported a result, so it did happen."""

    says = "its own result was reported, so it did happen; use settle"


@dataclass(eq=False)
class AlreadyDone(OperatorRefused):
    """The attempt is done."""

    says = "already done; forget lets it run again"


@dataclass(eq=False)
class NotDone(OperatorRefused):
    """Only a finished intent can be forgotten."""

    says = "not done; only a finished intent can be forgotten"


@dataclass(eq=False)
class DomainInUse(FenceError):
    """The domain has open reservations, or an open intent cites it."""

    domain: str

    def __str__(self) -> str:
        return f"domain {self.domain!r} is in use by open intents: settle or clear those first"


@dataclass(eq=False)
class MoveRefused(FenceError):
    """A step of moving a ledger does not fit where the ledger stands (`told`); nothing changed."""

    told: str

    def __str__(self) -> str:
        return f"this step of the move does not fit the ledger: {self.told}"


@dataclass(eq=False)
class ResultNotKept(FenceError):
    """The intent is done, but its result was not kept; `cert_hash` names its certificate."""

    intent: str
    cert_hash: str

    def __str__(self) -> str:
        return (
            f"intent {self.intent!r} is already done: do not run it; its result was too large or "
            f"not JSON and was not kept (certificate {self.cert_hash[:12]})"
        )


@dataclass(eq=False)
class Expired(FenceError):
    """The command is older than the time for which outcomes are kept; nothing was recorded."""

    command: str

    def __str__(self) -> str:
        return (
            "this command is too old to be answered and nothing was recorded: "
            "look at the intent with `fencekit ledger show`"
        )


class InvalidRequest(FenceError, ValueError):
    """The caller's input is wrong; nothing happened."""


@dataclass(eq=False)
class LedgerError(FenceError):
    """The ledger cannot answer: nothing was admitted. `message` says where and what to do."""

    message: str

    def __str__(self) -> str:
        return self.message


class LedgerUnavailable(LedgerError):
    """Unreachable, or busy past the limit."""


class LedgerGone(LedgerUnavailable):
    """Its file was removed or replaced while it was open: going on needs a person's decision."""


class LedgerDamaged(LedgerError):
    """Its content cannot be trusted; it is never repaired by guessing."""


class LedgerFull(LedgerError):
    """No space is left, or it cannot be written."""


class LedgerLocked(LedgerError):
    """Another process holds it."""


class LedgerMoved(LedgerError):
    """It was moved to another ledger; new attempts go there."""
