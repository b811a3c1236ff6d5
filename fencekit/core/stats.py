"""Counting answers: every attempt at an effect lands in exactly one counter.

`total_attempts` counts what was asked with `prepare` and answered by the rules; of these `admitted`
ran, and all others were `prevented`. Four counters stand apart, because they are no new attempts: a
ticket that had already ended, a command that was too old, an admission sent again, and a commit
that was refused. What a ledger could not answer at all is counted nowhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, Final

from fencekit.core import errors
from fencekit.core.canonical import Json
from fencekit.core.messages import Answer, Command, Commit, Fresh, Prepare, Replay

# Each cause of a refusal: the error it is counted for, and its name in the one-line form.
_CAUSES: Final[dict[str, tuple[type[errors.Refused], str]]] = {
    "stale_read_set": (errors.ReadSetStale, "stale"),
    "domain_race": (errors.DomainRace, "race"),
    "in_flight": (errors.IntentInFlight, "in-flight"),
    "prior_failure": (errors.IntentFailed, "failed"),
    "mismatch": (errors.IntentMismatch, "mismatch"),
    "causal": (errors.CausalConflict, "causal"),
}
CAUSES: Final = tuple(_CAUSES)
"""Why an attempt may be refused, in the order in which they are printed."""

_COUNTER_OF_ERROR: Final = {error: cause for cause, (error, _) in _CAUSES.items()}


class StatsError(errors.InvalidRequest):
    """What was offered as counters is none; the message names the counter."""


@dataclass(frozen=True, slots=True)
class FenceStats:
    """How many attempts were admitted, replayed and refused (by cause) since some beginning."""

    admitted: int = 0
    replayed: int = 0
    stale_read_set: int = 0
    domain_race: int = 0
    in_flight: int = 0
    prior_failure: int = 0
    mismatch: int = 0
    causal: int = 0
    already_ended: int = 0
    expired: int = 0
    resent: int = 0
    rejected_commits: int = 0

    @property
    def refused(self) -> dict[str, int]:
        """The refused attempts by cause."""
        return {cause: getattr(self, cause) for cause in CAUSES}

    @property
    def total_attempts(self) -> int:
        """All attempts that the rules answered."""
        return self.admitted + self.replayed + sum(self.refused.values())

    @property
    def prevented(self) -> int:
        """The attempts that did not run an effect: `total_attempts - admitted`."""
        return self.total_attempts - self.admitted

    def __add__(self, other: FenceStats) -> FenceStats:
        if not isinstance(other, FenceStats):
            return NotImplemented
        theirs = other.to_counters()
        return FenceStats(**{name: n + theirs[name] for name, n in self.to_counters().items()})

    def line(self) -> str:
        """Return the one-line form, the same words in the same order every time."""
        causes = " ".join(f"{label}={getattr(self, name)}" for name, (_, label) in _CAUSES.items())
        return (
            f"fencekit since boot: admitted={self.admitted} replayed={self.replayed} "
            f"refused({causes}) total={self.total_attempts} prevented={self.prevented}"
        )

    def to_counters(self) -> dict[str, int]:
        """Return the plain counters, one number a name: what a ledger keeps and adds up."""
        return asdict(self)

    @classmethod
    def from_counters(cls, counters: Mapping[str, Any]) -> FenceStats:
        """Read what `to_counters` wrote; a counter that is not there is zero.

        Names that are not known are left out: a newer version may count more. Raises `StatsError`
        for a known counter that is not a number of at least 0.
        """
        known: dict[str, int] = {}
        for name in _NAMES & counters.keys():
            count = counters[name]
            if type(count) is not int or count < 0:
                raise StatsError(f"{name}: a counter is an integer of at least 0")
            known[name] = count
        return cls(**known)

    def to_json(self) -> dict[str, Json]:
        """Return the numbers as they are reported, with the totals and the one-line form."""
        return {
            "admitted": self.admitted,
            "replayed": self.replayed,
            "refused": self.refused,
            "total_attempts": self.total_attempts,
            "prevented": self.prevented,
            "already_ended": self.already_ended,
            "expired": self.expired,
            "resent": self.resent,
            "rejected_commits": self.rejected_commits,
            "log_line": self.line(),
        }


_NAMES: Final = frozenset(field.name for field in fields(FenceStats))


def counter_of(command: Command, answer: Answer) -> str | None:
    """Return the name of the one counter that this answer moves, or None where it moves none.

    Only `prepare` is an attempt. An admission that was sent again is `resent`, not admitted twice.
    """
    if isinstance(answer, errors.Expired):
        return "expired"
    if isinstance(command, Prepare):
        return _counter_of_attempt(answer)
    if isinstance(command, Commit) and isinstance(answer, (errors.Rejected, errors.ReadSetStale)):
        return "rejected_commits"
    return None


def _counter_of_attempt(answer: Answer) -> str | None:
    if isinstance(answer, Fresh):
        return "resent" if answer.resent else "admitted"
    if isinstance(answer, Replay):
        return "replayed"
    if isinstance(answer, errors.AlreadyEnded):
        return "already_ended"
    return _COUNTER_OF_ERROR.get(type(answer))  # type: ignore[arg-type]
