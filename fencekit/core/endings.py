"""How an attempt ends: commit, abort, release; and heartbeat, which says that it has not."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import assert_never

from fencekit.core.domains import close_reservation, stale_read
from fencekit.core.draft import Decision, Draft
from fencekit.core.errors import (
    AlreadyEnded,
    FenceError,
    IntentFailed,
    NotAdmitted,
    ReadSetStale,
    ResultDiffers,
    StaleHolder,
    TicketAltered,
)
from fencekit.core.messages import (
    Abort,
    Answer,
    Beaten,
    Commit,
    Committed,
    Heartbeat,
    Ok,
    Release,
)
from fencekit.core.prepare import ended_of
from fencekit.core.records import add_doubt, add_ended, free, remember, stranger_ran, written
from fencekit.core.result import Result
from fencekit.core.situation import situation, tombstone
from fencekit.core.state import (
    Done,
    Ended,
    InFlight,
    IntentRecord,
    PreparedEffect,
    Unknown,
)
from fencekit.core.table import OnAbort, OnCommit, OnHeartbeat, OnRelease, row

# How much of a reason is kept: it is shown to people, and may come from anywhere.
MAX_REASON = 2000


def commit(draft: Draft, command: Commit, record: IntentRecord) -> Decision:
    """The effect ran, with this result: make it the recorded one, or keep it as evidence."""
    ticket, state = command.ticket, record.state
    cell = row(situation(draft, record, command.key, ticket.id)).commit
    altered = _altered(record, ticket)
    if altered is not None:
        return draft.done(altered)
    match cell:
        case OnCommit.FINISH:
            assert isinstance(state, InFlight)
            return _finish(draft, command, record, state)
        case OnCommit.LATE:
            assert isinstance(state, Unknown)
            return _late(draft, command, record, state)
        case OnCommit.SAME:
            assert isinstance(state, Done)
            if state.sealed.hash == command.sealed.hash:
                return draft.done(Committed(state.sealed))
            return _evidence(draft, command, record, ResultDiffers(ticket.intent, state.sealed))
        case OnCommit.ENDED:
            ended = tombstone(draft, record, ticket.id)
            assert ended is not None
            if ended.sealed is not None:
                if ended.sealed.hash == command.sealed.hash:
                    return draft.done(Committed(ended.sealed))
                return _evidence(draft, command, record, ResultDiffers(ticket.intent, ended.sealed))
            record = stranger_ran(draft, record, ticket, command.sealed.result)
            return _write(draft, command, record, _stale(ticket, ended))
        case OnCommit.STRANGER:
            stale = _stale(ticket, tombstone(draft, record, ticket.id))
            record = stranger_ran(draft, _expire(draft, record), ticket, command.sealed.result)
            return _write(draft, command, record, stale)
        case OnCommit.DOUBT:
            stale = _stale(ticket, tombstone(draft, record, ticket.id))
            return _write(
                draft, command, add_doubt(draft, record, ticket, command.sealed.result), stale
            )
        case OnCommit.NOTED:
            stale = _stale(ticket, tombstone(draft, record, ticket.id))
            return _evidence(draft, command, record, stale)
        case _:
            assert_never(cell)


def abort(draft: Draft, command: Abort, record: IntentRecord) -> Decision:
    """The attempt ended and nobody knows whether the effect happened: fence it."""
    ticket, state = command.ticket, record.state
    cell = row(situation(draft, record, command.key, ticket.id)).abort
    altered = _altered(record, ticket)
    if altered is not None:
        return draft.done(altered)
    ended = tombstone(draft, record, ticket.id)
    ran_anyway = ended is not None and ended.how in ("cleared", "superseded")
    match cell:
        case OnAbort.UNKNOWN:
            assert isinstance(state, InFlight)
            unknown = _unknown(draft, state, command.reason)
            draft.note("unknown", ticket, cause="aborted", reason=unknown.reason)
            return _write(draft, command, written(draft, record, state=unknown), Ok("aborted"))
        case OnAbort.AGREED:
            assert isinstance(state, Unknown)
            return _agree(draft, command, record, state)
        case OnAbort.ALREADY:
            return draft.done(AlreadyEnded(ticket.intent, ticket.id, "done"))
        case OnAbort.NOTED if ran_anyway:
            return _evidence(draft, command, record, _stale(ticket, ended))
        case OnAbort.ENDED | OnAbort.NOTED_EXPIRED if ran_anyway:
            record = stranger_ran(draft, _expire(draft, record), ticket, None)
            return _write(draft, command, record, _stale(ticket, ended))
        case OnAbort.DOUBT if ran_anyway:
            return _write(
                draft, command, add_doubt(draft, record, ticket, None), _stale(ticket, ended)
            )
        case (
            OnAbort.NOT_ADMITTED
            | OnAbort.ENDED
            | OnAbort.DOUBT
            | OnAbort.NOTED
            | OnAbort.NOTED_EXPIRED
        ):
            return _not_admitted(draft, command, record, ended)
        case _:
            assert_never(cell)


def release(draft: Draft, command: Release, record: IntentRecord) -> Decision:
    """The attempt ended and the effect is proven not to have happened: free the intent."""
    ticket, state = command.ticket, record.state
    ended = tombstone(draft, record, ticket.id)
    if ended is not None:
        return draft.done(AlreadyEnded(ticket.intent, ticket.id, ended.how))
    cell = row(situation(draft, record, command.key, ticket.id)).release
    altered = _altered(record, ticket)
    if altered is not None:
        return draft.done(altered)
    match cell:
        case OnRelease.FREE:
            return _release(draft, command, record)
        case OnRelease.UNHEARD:
            assert isinstance(state, Unknown)
            if state.cause in ("lapsed", "died") and state.reported is None:
                return _release(draft, command, record)
            return draft.done(AlreadyEnded(ticket.intent, ticket.id, "unknown"))
        case OnRelease.ALREADY:
            return draft.done(AlreadyEnded(ticket.intent, ticket.id, "done"))
        case OnRelease.NOT_ADMITTED:
            return _not_admitted(draft, command, record, None)
        case _:
            assert_never(cell)


def heartbeat(draft: Draft, command: Heartbeat, record: IntentRecord) -> Decision:
    """The attempt still runs: move its lease, never backwards, also one that lapsed untaken."""
    ticket, state, now = command.ticket, record.state, draft.now
    ended = tombstone(draft, record, ticket.id)
    if ended is not None:
        return draft.done(AlreadyEnded(ticket.intent, ticket.id, ended.how))
    cell = row(situation(draft, record, command.key, ticket.id)).heartbeat
    altered = _altered(record, ticket)
    if altered is not None:
        return draft.done(altered)
    match cell:
        case OnHeartbeat.EXTEND:
            assert isinstance(state, InFlight)
            same_boot = state.boot == now.boot
            lease_end = max(now.lease_ms + command.lease_ms, state.lease_end_ms if same_boot else 0)
            if lease_end != state.lease_end_ms or not same_boot:
                moved = replace(state, lease_end_ms=lease_end, boot=now.boot)
                draft.writes.intents[command.key] = written(draft, record, state=moved)
            return draft.done(Beaten(lease_end))
        case OnHeartbeat.HARMLESS:
            assert isinstance(state, InFlight)
            return draft.done(Beaten(state.lease_end_ms))
        case OnHeartbeat.FAILED:
            assert isinstance(state, Unknown)
            return draft.done(
                IntentFailed(
                    ticket.intent,
                    state.cause,
                    state.reason,
                    state.since_ms,
                    ticket.id,
                    record.revision,
                )
            )
        case OnHeartbeat.ALREADY:
            return draft.done(AlreadyEnded(ticket.intent, ticket.id, "done"))
        case OnHeartbeat.NOT_ADMITTED:
            return draft.done(NotAdmitted(ticket.intent, ticket.id))
        case _:
            assert_never(cell)


def _finish(draft: Draft, command: Commit, record: IntentRecord, state: InFlight) -> Decision:
    problem = stale_read(draft, state.ticket.request, command.key)
    if problem is None:
        return _become_done(draft, command, record, late=False)
    unknown = replace(
        _unknown(draft, state, str(problem)),
        cause="stale",
        late_commit=False,
        reported=command.sealed.result,
        stale=problem,
    )
    draft.note("unknown", state.ticket, cause="stale", reported=True)
    return _write(draft, command, written(draft, record, state=unknown), problem)


def _late(draft: Draft, command: Commit, record: IntentRecord, state: Unknown) -> Decision:
    """The one who ran it is the authority, unless somebody else judged it meanwhile."""
    answer: FenceError
    if state.late_commit:
        problem = stale_read(draft, state.ticket.request, command.key)
        if problem is None:
            return _become_done(draft, command, record, late=True)
        state = replace(state, cause="stale", late_commit=False, stale=problem)
        answer = problem
    elif isinstance(state.stale, ReadSetStale):
        answer = state.stale.fresh()
    else:
        answer = StaleHolder(command.ticket.intent, command.ticket.id, "unknown")
    state = replace(state, reported=state.reported or command.sealed.result)
    draft.note("late result", command.ticket, cert=command.sealed.hash)
    return _write(draft, command, written(draft, record, state=state), answer)


def _become_done(draft: Draft, command: Commit, record: IntentRecord, *, late: bool) -> Decision:
    ticket, now = command.ticket, draft.now
    close_reservation(draft, ticket)
    done = Done(
        sealed=command.sealed,
        at_ms=now.wall_ms,
        expires_at_ms=now.wall_ms + command.result_ttl_ms,
        commit=command.id,
    )
    draft.writes.intents[command.key] = written(draft, record, state=done, doubts=())
    draft.note("late commit" if late else "committed", ticket, cert=command.sealed.hash)
    return draft.done(Committed(command.sealed))


def _agree(draft: Draft, command: Abort, record: IntentRecord, state: Unknown) -> Decision:
    if state.cause not in ("lapsed", "died"):
        return draft.done(Ok("aborted"))
    agreed = replace(state, cause="aborted", reason=command.reason[:MAX_REASON])
    draft.note("unknown", command.ticket, cause="aborted", reason=agreed.reason)
    return _write(draft, command, written(draft, record, state=agreed), Ok("aborted"))


def _release(draft: Draft, command: Release, record: IntentRecord) -> Decision:
    draft.note("released", command.ticket, reason=command.reason[:MAX_REASON])
    record, still_unknown = free(draft, record, command.ticket, "released")
    return _write(draft, command, record, Ok("released", still_unknown))


def _unknown(draft: Draft, state: InFlight, reason: str) -> Unknown:
    return Unknown(
        ticket=state.ticket,
        holder=state.holder,
        boot=state.boot,
        cause="aborted",
        reason=reason[:MAX_REASON],
        since_ms=draft.now.wall_ms,
        late_commit=True,
    )


def _not_admitted(
    draft: Draft, command: Abort | Release, record: IntentRecord, ended: Ended | None
) -> Decision:
    """End an id that was never seen, so that its late prepare cannot run it."""
    ticket = command.ticket
    if ended is not None:
        return draft.done(AlreadyEnded(ticket.intent, ticket.id, ended.how))
    record = add_ended(draft, record, Ended(ticket.id, "not admitted", draft.now.wall_ms))
    draft.note("ended before admission", ticket)
    answer = NotAdmitted(ticket.intent, ticket.id)
    return _write(draft, command, written(draft, record), answer)


def _evidence(
    draft: Draft, command: Commit | Abort, record: IntentRecord, answer: FenceError
) -> Decision:
    """Keep a refused report in the audit only; the state stands."""
    if isinstance(command, Commit):
        draft.note("refused result", command.ticket, **_reported(command.sealed.result, command))
    else:
        draft.note("refused abort", command.ticket)
    return _write(draft, command, written(draft, record), answer)


def _reported(result: Result, command: Commit) -> dict[str, object]:
    return {"cert": command.sealed.hash, "result": result.text[:MAX_REASON]}


def _write(
    draft: Draft, command: Commit | Abort | Release, record: IntentRecord, answer: Answer
) -> Decision:
    draft.writes.intents[command.key] = remember(draft, record, command.id, answer)
    return draft.done(answer)


def _expire(draft: Draft, record: IntentRecord) -> IntentRecord:
    """Return the record with an expired result turned into its tombstone."""
    state = record.state
    if not isinstance(state, Done):
        return record
    return add_ended(draft, record, ended_of(state))


def _stale(ticket: PreparedEffect, ended: Ended | None) -> StaleHolder:
    return StaleHolder(ticket.intent, ticket.id, ended.how if ended is not None else "not known")


def _altered(record: IntentRecord, ticket: PreparedEffect) -> TicketAltered | None:
    """Compare a ticket with the one that was admitted under its id."""
    state = record.state
    if not isinstance(state, InFlight | Done | Unknown) or state.ticket.id != ticket.id:
        return None
    if state.ticket is ticket or state.ticket == ticket:
        return None
    for field in fields(ticket):
        if field.compare and getattr(ticket, field.name) != getattr(state.ticket, field.name):
            return TicketAltered(ticket.intent, field.name)
    return None
