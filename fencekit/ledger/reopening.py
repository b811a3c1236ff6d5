"""Opening a ledger again that was moved, because the one that it was moved to is lost.

An operator's act. What FROM knows is what it knew when it was sealed:

- what had an outcome keeps it, and what had none is unknown;
- if TO was never opened (FROM is sealed, not handed), nothing can have happened there, and a copy
  that is still under way can no longer open it;
- if TO was open, effects that are recorded only there are not known here, under names that FROM
  never saw or that were free in it. They would run again. Nobody but the operator can know of them.

So it is refused as long as TO is there, or a server answers where it was. Killed at any step, the
ledger is not open, and the same call goes on.
"""

from __future__ import annotations

from dataclasses import dataclass

from fencekit.core.errors import InvalidRequest, LedgerError, MoveRefused
from fencekit.core.messages import Abort, Mark
from fencekit.core.moving import told
from fencekit.core.state import InFlight, Marker
from fencekit.ledger import crash
from fencekit.ledger.base import Ledger
from fencekit.ledger.copying import LEFT, ask, new_id
from fencekit.ledger.presence import find, name_of


@dataclass(frozen=True, slots=True)
class Standing:
    """Where a ledger that may be opened again stands.

    `other` is where it moved to, `since_ms` the wall time of its sealing (None if the audit no
    longer tells), `was_open` whether the other ledger may have been opened.
    """

    other: str
    since_ms: int | None
    was_open: bool


def standing(source: Ledger) -> Standing:
    """Say what would be opened again. Raises `MoveRefused` for a ledger that was not moved."""
    marker = source.marker()
    if marker.phase not in (*LEFT, "reopening"):
        raise MoveRefused(f"{source.url}: {told(marker)}; only a ledger that was moved is reopened")
    steps = {e["event"]: e["at_ms"] for _, e in source.audit() if e.get("move") == marker.move}
    was_open = marker.phase == "handed" or "handed" in steps
    return Standing(marker.other, steps.get("sealed"), was_open)


def reopen(source: Ledger, operator: str, note: str, at: str | None = None) -> int:
    """Open `source` again; returns how many attempts became unknown.

    `at` is the URL of the other ledger with the secrets that its marker leaves out. Raises
    `MoveRefused` where `source` was not moved or the other ledger is there, `LedgerError` where a
    server answers in its place and cannot be looked at, `InvalidRequest` for another ledger's `at`.
    """
    other = standing(source).other
    if name_of(at or other) != other:
        raise InvalidRequest(f"{source.url} was moved to {other}: say its URL with --to")
    _refuse_if_there(at or other)
    have = source.marker()
    _mark(source, have, Marker("reopening", other, have.move), operator, note)
    crash.point("reopening")
    made_unknown = _end_what_runs(source, f"{other}, to which this attempt was moved, was lost")
    crash.point("ended")
    _refuse_if_there(at or other)
    closed = Marker("reopening", other, have.move)
    _mark(source, closed, Marker("open", "", have.move), operator, note)
    crash.point("reopened")
    return made_unknown


def _refuse_if_there(other: str) -> None:
    try:
        found = find(other)
    except LedgerError as problem:
        raise LedgerError(
            f"{name_of(other)} answers and cannot be looked at, so nobody knows that it is lost "
            f"({problem}): say its whole URL with --to, or stop its server"
        ) from None
    if found is None:
        return
    marker = found.marker()
    found.close()
    if marker.phase == "closed":
        advice = "run `fencekit ledger copy` again to finish the move"
    else:
        advice = "use that one; if it holds nothing of the move, take it away first"
    raise MoveRefused(f"{found.url} is not lost: {told(marker)}; {advice}")


def _end_what_runs(source: Ledger, reason: str) -> int:
    running = [
        record.state.ticket for _, record in source.records() if isinstance(record.state, InFlight)
    ]
    for ticket in running:
        ask(source, Abort(new_id(), source.now().wall_ms, ticket, reason))
    return len(running)


def _mark(source: Ledger, expected: Marker, wanted: Marker, operator: str, note: str) -> None:
    ask(source, Mark(new_id(), source.now().wall_ms, expected, wanted, operator, note))
