"""One turn of the gate: the clocks it was given, and the actions that it has decided so far."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from fencekit.core.messages import Command
from fencekit.core.state import Holder
from fencekit.ledger.base import Outcome
from fencekit.wire.frames import Frame
from fencekit.wrap.actions import Action, Ask, Call, Moment, Say, ToClient, ToServer
from fencekit.wrap.identity import Scope, with_guest
from fencekit.wrap.rules import Rules

MAX_RESULT = 16 * 1024 * 1024
"""Bytes of a result that are kept for replays; of a longer one its digest and size are."""


START = Moment(0.0, 0)


@dataclass(frozen=True, slots=True)
class Settings:
    """What does not change while a gate lives."""

    rules: Rules
    scope: Scope
    holder: Callable[[], Holder]
    new_id: Callable[[], str]
    agent: str = "wrap"
    observe: bool = False
    expose_intent: bool = False
    ask: bool = False
    # The server is no child of ours: it may still work on a call whose proxy has died.
    remote: bool = False
    max_result: int = MAX_RESULT

    def acting_as(self, principal: str) -> Settings:
        """Return the settings of one principal of the HTTP front; "" is the account itself."""
        if not principal:
            return self
        account = with_guest(self.scope.account, principal)
        return replace(self, scope=replace(self.scope, account=account))


@dataclass(slots=True)
class Turn:
    """Where the parts of the gate put their actions."""

    at: Moment = START
    out: list[Action] = field(default_factory=list)
    # Something is due sooner than the clock's thread may expect.
    hurry: bool = False

    def to_client(self, raw: bytes) -> None:
        """Hand bytes to the client."""
        self.out.append(ToClient(raw))

    def to_server(self, frame: Frame, call: Call | None = None) -> None:
        """Hand a frame to the server."""
        self.out.append(ToServer(frame, call))

    def ask(self, command: Command, then: Callable[[Outcome], None]) -> None:
        """Ask the ledger; `then` runs in a later turn."""
        self.out.append(Ask(command, then))

    def say(self, text: str) -> None:
        """Tell the operator."""
        self.out.append(Say(text))

    def take(self) -> list[Action]:
        """Return the actions of this turn and start the next."""
        out, self.out = self.out, []
        return out
