"""What the gate asks its pump to do, and what it knows about one fenced call.

Plain values; nothing here acts. The pump carries the actions out in their order.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import TYPE_CHECKING, NamedTuple

from fencekit.core.messages import Answer, Command, Prepare
from fencekit.ledger.base import Outcome
from fencekit.wire.frames import Frame, IdKey
from fencekit.wrap.identity import Identity
from fencekit.wrap.outcome import Asker
from fencekit.wrap.policy import Treatment

if TYPE_CHECKING:
    from fencekit.core.state import IntentKey, PreparedEffect
    from fencekit.wrap.ask import Reply


class Moment(NamedTuple):
    """One reading of the clocks: monotonic seconds, and the ledger's wall time."""

    mono: float
    wall_ms: int


class Stage(Enum):
    """Where a fenced call stands."""

    ASKING = auto()  # the ledger has been asked
    WAITING = auto()  # another process has it in flight
    SENDING = auto()  # handed to the server's writer; no byte is known to have left
    RUNNING = auto()  # at least one byte left
    ENDING = auto()  # its outcome is being recorded
    LATE = auto()  # recorded as unknown, but its answer may still come
    OVER = auto()


@dataclass(eq=False, slots=True)
class Waiter:
    """One request of a client that a fenced call will answer."""

    frame: Frame
    asker: Asker
    since: float
    token: object = None
    first: bool = False


@dataclass(eq=False, slots=True)
class Call:
    """One fenced action and everybody who waits for it."""

    identity: Identity
    treatment: Treatment
    frame: Frame
    stage: Stage = Stage.ASKING
    waiters: list[Waiter] = field(default_factory=list)
    ticket_id: str = ""
    asked: Prepare | None = None
    ticket: PreparedEffect | None = None
    asked_at: float = 0.0
    running_since_ms: int = 0
    next_beat: float = 0.0
    deadline: float = 0.0
    tries: int = 0
    # Waiting on another process: when to look next, how long until then, what was last seen.
    poll_at: float = 0.0
    pause: float = 0.0
    peeked: int | None = None
    look_by: float = 0.0
    # Observed only: it was sent although the fence would have answered so.
    observed: str = ""
    reconciled: bool = False
    # Why no handler of the server can have seen it, whatever its answer says in words.
    refused: str = ""
    # Whether a human was asked about it, and the answer that this very request brought.
    questioned: bool = False
    reply: Reply | None = None

    @property
    def key(self) -> IntentKey:
        """The ledger key of the intent."""
        return self.identity.key

    @property
    def server_id(self) -> IdKey:
        """The id under which the server knows the call."""
        return self.frame.key


@dataclass(frozen=True, slots=True)
class ToClient:
    """Hand these bytes to the client."""

    raw: bytes


@dataclass(frozen=True, slots=True)
class ToServer:
    """Hand a frame to the server; for a `call`, say whether any of it left."""

    frame: Frame
    call: Call | None = None


@dataclass(frozen=True, slots=True)
class Ask:
    """Ask the ledger; `then` gets its outcome."""

    command: Command
    then: Callable[[Outcome], None]


@dataclass(frozen=True, slots=True)
class Peek:
    """Look whether the record of a call that another process runs has changed."""

    call: Call


@dataclass(frozen=True, slots=True)
class Count:
    """Count one more attempt that was answered as `answer` answers this command."""

    command: Command
    answer: Answer


@dataclass(frozen=True, slots=True)
class Say:
    """Tell the operator, on stderr."""

    text: str


Action = ToClient | ToServer | Ask | Peek | Count | Say
