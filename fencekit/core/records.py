"""How a record is written: the revision rises, and what is past the retention falls away."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal

from fencekit.core.domains import close_reservation, move, reopen
from fencekit.core.draft import Draft
from fencekit.core.messages import Answer
from fencekit.core.result import Result
from fencekit.core.state import (
    Absent,
    Doubt,
    Ended,
    Holder,
    How,
    IntentRecord,
    PreparedEffect,
    Remembered,
    Unknown,
)


def written(draft: Draft, record: IntentRecord, **changes: Any) -> IntentRecord:
    """Return a record with changes, its next revision, and without what is past the retention."""
    return IntentRecord(
        state=changes.get("state", record.state),
        revision=record.revision + 1,
        generation=changes.get("generation", record.generation),
        doubts=changes.get("doubts", record.doubts),
        ended=draft.kept(changes.get("ended", record.ended)),
        remembered=draft.kept_answers(changes.get("remembered", record.remembered)),
    )


def add_ended(draft: Draft, record: IntentRecord, ended: Ended) -> IntentRecord:
    """Return a record with one more tombstone; a ticket has at most one."""
    others = tuple(e for e in record.ended if e.ticket != ended.ticket)
    return replace(record, ended=(*draft.kept(others), ended))


def remember(draft: Draft, record: IntentRecord, command: str, answer: Answer) -> IntentRecord:
    """Return a record that also keeps the answer to one command."""
    kept = Remembered(command, draft.now.wall_ms, answer)
    return replace(record, remembered=(*draft.kept_answers(record.remembered), kept))


def stranger_ran(
    draft: Draft, record: IntentRecord, ticket: PreparedEffect, reported: Result | None
) -> IntentRecord:
    """U!: an intent that was thought free turns unknown; no late commit leads out of it."""
    reopen(draft, ticket)
    draft.note("unknown", ticket, cause="stale holder", reported=reported is not None)
    state = _doubted(draft, ticket, reported)
    generation = max(record.generation, ticket.generation)
    return written(draft, record, state=state, generation=generation, doubts=())


def add_doubt(
    draft: Draft, record: IntentRecord, ticket: PreparedEffect, reported: Result | None
) -> IntentRecord:
    """DOUBT: keep a refused result or abort beside the state that stands, and move its domain."""
    move(draft, ticket)
    draft.note("doubt", ticket, kind="abort" if reported is None else "result")
    before = next((d for d in record.doubts if d.ticket.id == ticket.id), None)
    if before is not None and before.result is not None:
        reported = before.result
    kind: Literal["result", "abort"] = "abort" if reported is None else "result"
    doubt = Doubt(ticket, kind, reported, draft.now.wall_ms)
    others = tuple(d for d in record.doubts if d.ticket.id != ticket.id)
    return written(draft, record, doubts=(*others, doubt))


def free(
    draft: Draft, record: IntentRecord, ticket: PreparedEffect, how: How
) -> tuple[IntentRecord, bool]:
    """FREE: a tombstone for the ticket, and the intent absent, or unknown where doubts are left.

    Returns the record, and whether it is still unknown.
    """
    close_reservation(draft, ticket)
    record = add_ended(draft, record, Ended(ticket.id, how, draft.now.wall_ms))
    doubts = tuple(d for d in record.doubts if d.ticket.id != ticket.id)
    if not doubts:
        return written(draft, record, state=Absent(), doubts=()), False
    doubt, left = doubts[0], doubts[1:]
    reopen(draft, doubt.ticket)
    draft.note("unknown", doubt.ticket, cause="stale holder", reported=doubt.kind == "result")
    state = _doubted(draft, doubt.ticket, doubt.result)
    return written(draft, record, state=state, doubts=left), True


def _doubted(draft: Draft, ticket: PreparedEffect, reported: Result | None) -> Unknown:
    return Unknown(
        ticket=ticket,
        holder=Holder("ticket"),
        boot=draft.now.boot,
        cause="stale holder",
        reason="an attempt that was no longer current reported that it may have run",
        since_ms=draft.now.wall_ms,
        late_commit=False,
        reported=reported,
    )
