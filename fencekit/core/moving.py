"""Moving a ledger: the marker that says whether it is open, and what it lets through. Pure.

    open ──> draining ──> sealed ──> handed     the ledger that is left
      │          └──> open  └───┬──────┘        (given up)
      │                     reopening ──> open  (the other one was lost)
      └────> closed ──> open                    the ledger that is moved to

Every decision reads the marker as one of its keys, so no attempt is admitted on the strength of a
marker that somebody has changed. While it drains, a ledger admits nothing new and everything that
was admitted may end; sealed, it does not change any more. The ledger that is moved to takes nothing
but what is copied into it until it is opened, and it is opened only after the sealed one was marked
handed. So at most one of the two is ever open, unless an operator says that the other is lost: from
sealed that is as safe, for the step to handed fails then; from handed nobody can know.
"""

from __future__ import annotations

from typing import Final

from fencekit.core.draft import Decision, Draft
from fencekit.core.errors import LedgerMoved, MoveRefused
from fencekit.core.messages import Command, Fill, Look, Mark, Ok, Prepare, Reserve
from fencekit.core.situation import situation
from fencekit.core.state import Marker
from fencekit.core.table import Situation

_NEXT: Final = frozenset(
    {
        ("open", "draining"),
        ("draining", "sealed"),
        ("draining", "open"),
        ("sealed", "handed"),
        ("sealed", "reopening"),
        ("handed", "reopening"),
        ("reopening", "open"),
        ("open", "closed"),
        ("closed", "open"),
    }
)

_NOTHING_NEW: Final = {
    "draining": (
        "this ledger is being moved to {}: nothing new starts here; use that one as soon as it is "
        "open"
    ),
    "reopening": (
        "this ledger is being opened again, because {} was lost: nothing new starts here yet; run "
        "`fencekit ledger reopen` again if it was interrupted"
    ),
}

# A prepare that finds its own ticket is a question about what was admitted, not a new attempt.
_OWN: Final = frozenset(s for s in Situation if "MINE" in s.name) | {Situation.ABSENT_ENDED}


def turned_away(draft: Draft, command: Command) -> LedgerMoved | None:
    """Return why the marker does not let a command through, or None."""
    marker = draft.view.marker
    if marker.phase == "open" or isinstance(command, Look | Mark):
        return None
    if marker.phase in ("draining", "reopening"):
        if isinstance(command, Reserve) or (
            isinstance(command, Prepare) and not _asks_again(draft, command)
        ):
            return LedgerMoved(_NOTHING_NEW[marker.phase].format(marker.other))
        return None
    if marker.phase in ("sealed", "handed"):
        return LedgerMoved(
            f"this ledger was moved to {marker.other}: nothing was admitted or changed here; use "
            "that one"
        )
    if isinstance(command, Fill):
        return None
    return LedgerMoved(
        f"this ledger is being filled from {marker.other} and is not open yet: nothing was "
        "admitted; wait until `fencekit ledger copy` has ended, or run it again"
    )


def _asks_again(draft: Draft, command: Prepare) -> bool:
    record = draft.record(command.key)
    return situation(draft, record, command.key, command.id) in _OWN


def mark(draft: Draft, command: Mark) -> Decision:
    """Change the marker, if it is the one that was expected and the step is one of the drawing."""
    have, wanted = draft.view.marker, command.marker
    if have == wanted:
        return draft.done(Ok("marked"))
    same_move = have.phase == "open" or have.move == wanted.move
    if have != command.expected or not same_move or (have.phase, wanted.phase) not in _NEXT:
        return draft.done(MoveRefused(told(have)))
    draft.writes.marker = wanted
    event = {"event": wanted.phase, "at_ms": draft.now.wall_ms, **_fields(wanted)}
    if command.operator:
        event |= {"operator": command.operator, "note": command.note}
    draft.audit.append(event)
    return draft.done(Ok("marked"))


def fill(draft: Draft, command: Fill) -> Decision:
    """Take over records of the ledger that is left, while this one is closed for that move."""
    marker = draft.view.marker
    if marker.phase != "closed" or marker.move != command.move:
        return draft.done(MoveRefused(told(marker)))
    for key, record in command.intents:
        draft.record(key)  # read, so that the write is compared with what is there
        draft.writes.intents[key] = record
    for name, head in command.domains:
        draft.head(name)
        draft.writes.domains[name] = head
    if command.floor is not None:
        draft.floor()
        draft.writes.floor = command.floor
    return draft.done(Ok("filled"))


def told(marker: Marker) -> str:
    """Say in words where a ledger stands."""
    match marker.phase:
        case "open":
            return f"it was moved here from {marker.other}" if marker.other else "it is open"
        case "draining":
            return f"it is being moved to {marker.other}"
        case "sealed":
            return f"it is sealed and being copied to {marker.other}"
        case "handed":
            return f"it was moved to {marker.other}"
        case "reopening":
            return f"it is being opened again, because {marker.other} was lost"
        case _:
            return f"it is being filled from {marker.other}"


def _fields(marker: Marker) -> dict[str, str]:
    return {"other": marker.other, "move": marker.move}
