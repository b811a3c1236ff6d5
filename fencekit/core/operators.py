"""What a person may decide: clear, settle, forget; each names the attempt that was judged."""

from __future__ import annotations

from typing import assert_never

from fencekit.core.domains import close_reservation
from fencekit.core.draft import Decision, Draft
from fencekit.core.errors import (
    AlreadyDone,
    HolderAlive,
    Moved,
    NotDone,
    NotFound,
    ResultReported,
    StillInFlight,
)
from fencekit.core.messages import Clear, Committed, Forget, Ok, Settle
from fencekit.core.prepare import ended_of
from fencekit.core.records import add_ended, free, remember, written
from fencekit.core.situation import as_unknown, situation
from fencekit.core.state import Absent, Done, InFlight, IntentRecord, Liveness, Sealed, Unknown
from fencekit.core.table import OnClear, OnForget, OnSettle, row


def clear(draft: Draft, command: Clear, record: IntentRecord) -> Decision:
    """It did not happen and cannot any more: free the intent."""
    key = command.key
    cell = row(situation(draft, record, key, command.ticket)).clear
    match cell:
        case OnClear.JUDGE:
            unknown = _judged(draft, record)
            if record.revision != command.revision:
                return draft.done(Moved(key.intent))
            if unknown.reported is not None:
                return draft.done(ResultReported(key.intent))
            alive = unknown.holder.kind == "process" and draft.liveness(key) is Liveness.ALIVE
            if alive and not command.even_if_alive:
                return draft.done(HolderAlive(key.intent))
            draft.note("cleared", unknown.ticket, operator=command.operator, note=command.note)
            record, still_unknown = free(draft, record, unknown.ticket, "cleared")
            answer = Ok("cleared", still_unknown)
            draft.writes.intents[key] = remember(draft, record, command.id, answer)
            return draft.done(answer)
        case OnClear.STILL:
            return draft.done(StillInFlight(key.intent))
        case OnClear.DONE:
            return draft.done(AlreadyDone(key.intent))
        case OnClear.MOVED:
            return draft.done(Moved(key.intent))
        case OnClear.NOT_FOUND:
            return draft.done(NotFound(key.intent))
        case _:
            assert_never(cell)


def settle(draft: Draft, command: Settle, record: IntentRecord) -> Decision:
    """It did happen, and this is its result: record it as done."""
    key = command.key
    cell = row(situation(draft, record, key, command.ticket)).settle
    match cell:
        case OnSettle.JUDGE:
            if record.revision != command.revision:
                return draft.done(Moved(key.intent))
            return _settle(draft, command, record, _judged(draft, record))
        case OnSettle.STILL:
            return draft.done(StillInFlight(key.intent))
        case OnSettle.DONE:
            return draft.done(AlreadyDone(key.intent))
        case OnSettle.MOVED:
            return draft.done(Moved(key.intent))
        case OnSettle.NOT_FOUND:
            return draft.done(NotFound(key.intent))
        case _:
            assert_never(cell)


def forget(draft: Draft, command: Forget, record: IntentRecord) -> Decision:
    """This finished intent may run again."""
    key, state = command.key, record.state
    cell = row(situation(draft, record, key, command.ticket)).forget
    match cell:
        case OnForget.FORGET:
            assert isinstance(state, Done)
            draft.note("forgotten", state.ticket, operator=command.operator, note=command.note)
            # The ticket ended when it became done, but from now on its tombstone alone answers
            # for it, so the retention starts here.
            record = add_ended(draft, record, ended_of(state, draft.now.wall_ms))
            record = written(draft, record, state=Absent(), doubts=())
            answer = Ok("forgotten")
            draft.writes.intents[key] = remember(draft, record, command.id, answer)
            return draft.done(answer)
        case OnForget.NOT_DONE:
            return draft.done(NotDone(key.intent))
        case OnForget.MOVED:
            return draft.done(Moved(key.intent))
        case OnForget.NOT_FOUND:
            return draft.done(NotFound(key.intent))
        case _:
            assert_never(cell)


def _judged(draft: Draft, record: IntentRecord) -> Unknown:
    """Return the unknown that time or death has made of the attempt, or that it already is."""
    state = record.state
    if isinstance(state, InFlight):
        return as_unknown(state, draft.now, draft.liveness(state.ticket.key))
    assert isinstance(state, Unknown)
    return state


def _settle(draft: Draft, command: Settle, record: IntentRecord, unknown: Unknown) -> Decision:
    ticket, now = unknown.ticket, draft.now
    sealed = Sealed.make(ticket, command.result)
    close_reservation(draft, ticket)
    done = Done(
        sealed=sealed,
        at_ms=now.wall_ms,
        expires_at_ms=now.wall_ms + command.result_ttl_ms,
        commit=command.id,
        operator=command.operator,
        note=command.note,
    )
    draft.note("settled", ticket, cert=sealed.hash, operator=command.operator, note=command.note)
    answer = Committed(sealed)
    record = written(draft, record, state=done, doubts=())
    draft.writes.intents[command.key] = remember(draft, record, command.id, answer)
    return draft.done(answer)
