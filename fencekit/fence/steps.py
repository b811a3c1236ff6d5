"""Running a function behind the fence, as steps that a synchronous and an async driver carry out.

The generator decides; a driver asks the ledger, runs the function, waits. So `Fence.run` and
`AsyncFence.run` cannot differ in what they decide.
"""

from __future__ import annotations

import warnings
from collections.abc import Generator
from dataclasses import dataclass
from typing import Any

from fencekit.core.errors import FenceError, IntentInFlight, LedgerError, ResultNotKept
from fencekit.core.messages import Command, Committed, Fresh, Replay
from fencekit.core.request import EffectRequest
from fencekit.core.state import IntentKey, PreparedEffect
from fencekit.fence.draw import Draw

COMMIT_TRIES = 3


@dataclass(frozen=True, slots=True)
class Ask:
    """Ask the ledger; send back the answer, or the `LedgerError` (never raise it)."""

    command: Command


@dataclass(frozen=True, slots=True)
class Run:
    """Run the function under this ticket, with heartbeats; send back its `Ran`."""

    ticket: PreparedEffect


@dataclass(frozen=True, slots=True)
class AwaitTwin:
    """Wait until the record has left `revision`; send back False when the time is up."""

    key: IntentKey
    revision: int


@dataclass(frozen=True, slots=True)
class Ran:
    """How the function ended."""

    value: Any = None
    error: BaseException | None = None


Step = Ask | Run | AwaitTwin


def run_steps(
    draw: Draw, request: EffectRequest, definite: tuple[type[BaseException], ...]
) -> Generator[Step, Any, Any]:
    """Run once, or return what an earlier run returned.

    `definite` lists the exceptions that prove that the effect did not happen; any other leaves the
    intent unknown. Raises what the function raised, or the fence's refusal.
    """
    while True:
        command = draw.prepare(request, "process")
        answer = yield Ask(command)
        match answer:
            case Fresh():
                return (yield from _run(draw, answer.ticket, definite))
            case Replay():
                result = answer.sealed.result
                if not result.kept:
                    raise ResultNotKept(request.intent, answer.sealed.hash)
                return result.value
            case IntentInFlight():
                if not (yield AwaitTwin(command.key, answer.revision)):
                    raise answer
            case _:
                raise answer


def _run(
    draw: Draw, ticket: PreparedEffect, definite: tuple[type[BaseException], ...]
) -> Generator[Step, Any, Any]:
    ran: Ran = yield Run(ticket)
    if ran.error is not None:
        reason = f"{type(ran.error).__name__}: {_words(ran.error)}"
        if isinstance(ran.error, definite):
            yield Ask(draw.release(ticket, reason))
        else:
            yield Ask(draw.abort(ticket, reason))
        raise ran.error
    # From here on the effect has happened: its value is delivered whatever the ledger does.
    command = draw.commit(ticket, draw.result(ran.value))
    answer: Any = None
    for _ in range(COMMIT_TRIES):
        answer = yield Ask(command)
        if isinstance(answer, Committed):
            return ran.value
        if not isinstance(answer, LedgerError):
            break
    if isinstance(answer, LedgerError):
        warnings.warn(
            f"the effect of intent {ticket.intent!r} ran, but its outcome could not be recorded "
            f"({answer}); it reads as in flight, later as unknown",
            RuntimeWarning,
            stacklevel=2,
        )
        return ran.value
    assert isinstance(answer, FenceError)
    raise answer


def _words(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:  # a hostile __str__ must not hide the outcome
        return "(no text)"
