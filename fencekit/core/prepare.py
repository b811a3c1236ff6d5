"""Prepare: may this attempt run? One answer for every situation, decided atomically."""

from __future__ import annotations

from dataclasses import replace
from typing import assert_never

from fencekit.core.domains import close_reservation, gates, open_reservation
from fencekit.core.draft import Decision, Draft
from fencekit.core.errors import (
    AlreadyEnded,
    IntentFailed,
    IntentInFlight,
    IntentMismatch,
)
from fencekit.core.messages import Fresh, Prepare, Replay
from fencekit.core.records import add_ended, written
from fencekit.core.situation import as_unknown, situation, tombstone
from fencekit.core.state import (
    Done,
    Ended,
    InFlight,
    IntentRecord,
    Liveness,
    PreparedEffect,
    Unknown,
)
from fencekit.core.table import OnPrepare, row


def prepare(draft: Draft, command: Prepare, record: IntentRecord) -> Decision:
    """Admit, replay or refuse one attempt."""
    key, state = command.key, record.state
    ended = tombstone(draft, record, command.id)
    if ended is not None:
        return draft.done(AlreadyEnded(key.intent, command.id, ended.how))
    cell = row(situation(draft, record, key, command.id)).prepare
    match cell:
        case OnPrepare.ADMIT:
            return _admit(draft, command, record)
        case OnPrepare.ENDED:
            how = "done" if isinstance(state, Done) else "unknown"
            return draft.done(AlreadyEnded(key.intent, command.id, how))
        case OnPrepare.EXPIRED:
            assert isinstance(state, Done)
            return _admit(draft, command, record, ended_of(state))
    mismatch = _mismatch(command, state)
    match cell:
        case OnPrepare.SAME:
            assert isinstance(state, InFlight)
            if _same_attempt(draft, command, state):
                ticket = replace(state.ticket, lease_end_ms=state.lease_end_ms)
                return draft.done(Fresh(ticket, resent=True))
            return draft.done(mismatch or _in_flight(state, record.revision))
        case OnPrepare.DIED:
            assert isinstance(state, InFlight)
            return _note_unknown(draft, record, state)
        case OnPrepare.IN_FLIGHT:
            assert isinstance(state, InFlight)
            return draft.done(mismatch or _in_flight(state, record.revision))
        case OnPrepare.DIED_OTHERS:
            assert isinstance(state, InFlight)
            return draft.done(mismatch) if mismatch else _note_unknown(draft, record, state)
        case OnPrepare.LAPSED:
            assert isinstance(state, InFlight)
            if mismatch:
                return draft.done(mismatch)
            if state.lease_expiry == "fence":
                return _note_unknown(draft, record, state)
            gone = Ended(state.ticket.id, "superseded", draft.now.wall_ms)
            return _admit(draft, command, record, gone, state.ticket)
        case OnPrepare.REPLAY:
            assert isinstance(state, Done)
            return draft.done(mismatch or Replay(state.sealed, state.at_ms))
        case OnPrepare.FAILED:
            assert isinstance(state, Unknown)
            return draft.done(mismatch or _failed(state, record.revision))
        case _:
            assert_never(cell)


def ended_of(state: Done, at_ms: int | None = None) -> Ended:
    """Return the tombstone of a finished attempt, which still answers its own commit."""
    at_ms = state.at_ms if at_ms is None else at_ms
    return Ended(state.ticket.id, "done", at_ms, state.sealed, state.commit)


def _admit(
    draft: Draft,
    command: Prepare,
    record: IntentRecord,
    gone: Ended | None = None,
    superseded: PreparedEffect | None = None,
) -> Decision:
    """Pass the gates and admit; `gone` is the tombstone of what the new attempt replaces."""
    request, key, now = command.request, command.key, draft.now
    problem = gates(draft, request, key)
    if problem is not None:
        return draft.done(problem)
    if superseded is not None and superseded.request.domain != request.domain:
        close_reservation(draft, superseded)
    seq, clock = open_reservation(draft, request, key)
    lease_end = now.lease_ms + command.lease_ms
    ticket = PreparedEffect(command.id, request, record.generation + 1, seq, clock, lease_end)
    state = InFlight(ticket, command.holder, lease_end, now.boot, now.wall_ms, command.lease_expiry)
    record = add_ended(draft, record, gone) if gone is not None else record
    doubts = () if isinstance(record.state, Done) else record.doubts
    draft.writes.intents[key] = written(
        draft, record, state=state, generation=ticket.generation, doubts=doubts
    )
    if superseded is not None:
        draft.note("superseded", superseded)
    draft.note("admitted", ticket, fingerprint=request.fingerprint, tool=request.tool)
    return draft.done(Fresh(ticket))


def _same_attempt(draft: Draft, command: Prepare, state: InFlight) -> bool:
    same = state.ticket.request == command.request and state.holder == command.holder
    dead = draft.liveness(command.key) is Liveness.DEAD
    return same and not (state.holder.kind == "process" and dead)


def _mismatch(command: Prepare, state: object) -> IntentMismatch | None:
    assert isinstance(state, InFlight | Done | Unknown)
    recorded = state.ticket.request.fingerprint
    if recorded == command.request.fingerprint:
        return None
    return IntentMismatch(command.key.intent, recorded, command.request.fingerprint)


def _in_flight(state: InFlight, revision: int) -> IntentInFlight:
    request = state.ticket.request
    return IntentInFlight(request.intent, request.agent, state.since_ms, revision)


def _failed(state: Unknown, revision: int) -> IntentFailed:
    return IntentFailed(
        state.ticket.intent,
        state.cause,
        state.reason,
        state.since_ms,
        state.ticket.id,
        revision,
    )


def _note_unknown(draft: Draft, record: IntentRecord, state: InFlight) -> Decision:
    """Note a lapse or a death that already happened, and refuse."""
    unknown = as_unknown(state, draft.now, draft.liveness(state.ticket.key))
    noted = written(draft, record, state=unknown)
    draft.writes.intents[state.ticket.key] = noted
    draft.note("unknown", state.ticket, cause=unknown.cause)
    return draft.done(_failed(unknown, noted.revision))
