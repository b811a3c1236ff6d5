"""What the ledger could not record yet: asked again, once a second, for a bounded time.

Every command carries its own id, so asking again is harmless. What is still owed at the end stays
as the ledger knows it: in flight while this process lives, unknown after.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from fencekit.core.errors import LedgerError
from fencekit.core.messages import Abort, Command, Commit, Fresh, Prepare, Release
from fencekit.ledger.base import Outcome
from fencekit.wrap.turn import Turn

EVERY = 1.0  # seconds
TRIES = 600


@dataclass(slots=True)
class Owed:
    """Commands whose answer nobody waits for, but that must reach the ledger."""

    turn: Turn
    _waiting: list[tuple[Command, float, int]] = field(default_factory=list)

    def end(self, command: Commit | Abort | Release | None) -> None:
        """Record how an attempt ended, now or later; None: there is nothing to record."""
        if command is not None:
            self._ask(command, 0)

    def later(self, command: Command) -> None:
        """Ask again what just failed. An admission that comes of it is given back."""
        self._again(command, 0)

    def _ask(self, command: Command, tries: int) -> None:
        def said(outcome: Outcome) -> None:
            if isinstance(outcome, LedgerError):
                self._again(command, tries + 1)
            elif isinstance(command, Prepare) and isinstance(outcome, Fresh):
                why = "the ledger failed before the admission was heard"
                given_back = f"{command.id}:back"
                self.end(Release(given_back, self.turn.at.wall_ms, outcome.ticket, why))

        self.turn.ask(command, said)

    def _again(self, command: Command, tries: int) -> None:
        if tries < TRIES:
            self._waiting.append((command, self.turn.at.mono + EVERY, tries))

    def tick(self) -> None:
        """Ask again what is due."""
        now = self.turn.at.mono
        due = [one for one in self._waiting if one[1] <= now]
        self._waiting = [one for one in self._waiting if one[1] > now]
        for command, _, tries in due:
            self._ask(command, tries)

    def due(self) -> list[float]:
        """Return when there is something to do."""
        return [at for _, at, _ in self._waiting]

    def __len__(self) -> int:
        return len(self._waiting)
