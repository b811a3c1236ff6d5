"""What a refused tool call says: what happened, that the effect must not run, what to do next.

The sentences are for a model that has nothing else to go by. The same, for machines, travels under
`_meta`: some clients hold structured content against the output schema even where it is an error.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from fencekit.core.errors import (
    Expired,
    FenceError,
    IntentFailed,
    InvalidRequest,
    LedgerError,
    NotAdmitted,
    ReadSetStale,
    Refused,
    TicketAltered,
)
from fencekit.report.escape import terminal
from fencekit.serve.schemas import ABORT, COMMIT, HEARTBEAT, PREPARE

META_REFUSAL: Final = "fencekit/refusal"

_MAX_REASON: Final = 300
"""How much of another agent's words one agent is shown, in characters."""

_AGAIN: Final = {
    PREPARE.name: "do not run the effect",
    COMMIT.name: "do not run the effect again",
    ABORT.name: "do not run the effect again",
    HEARTBEAT.name: "do not start the effect",
}


def sentence(tool: str, error: FenceError) -> str:
    """Return the text of a refused call to `tool`."""
    if isinstance(error, IntentFailed):
        # The reason is another agent's free text; the rest is ours, or quoted by `repr`.
        error = replace(error, reason=terminal(error.reason, limit=_MAX_REASON))
    must_not = _AGAIN.get(tool)
    if must_not is None:
        return f"{error}."
    if isinstance(error, InvalidRequest):
        return f"{error}: nothing was recorded, so {must_not}; correct the call and send it again."
    if isinstance(error, LedgerError):
        return (
            f"the ledger could not answer ({error}): {must_not}; send the same {tool} again "
            "when the ledger is back."
        )
    if tool == PREPARE.name and isinstance(error, Refused):
        return f"{error}."
    if isinstance(error, ReadSetStale):
        return (
            f"domain {error.domain!r} moved from {error.expected} to {error.actual} while the "
            f"effect ran, so its outcome is fenced as unknown and its result is kept: {must_not}; "
            "tell an operator, who ends this with `fencekit ledger settle`."
        )
    if isinstance(error, (NotAdmitted, TicketAltered, Expired)):
        return f"{error}; {must_not} without a fresh fence_prepare."
    return f"{error}; {must_not}."


def machine(error: FenceError) -> dict[str, Any]:
    """Return the error's kind and its plain fields, for `_meta`."""
    plain = {
        name: value
        for name, value in vars(error).items()
        if isinstance(value, str | int | bool | dict)
    }
    return {META_REFUSAL: {"error": type(error).__name__, **plain}}
