"""How a record stands to a ticket at one moment: time and death applied, nothing written."""

from __future__ import annotations

from dataclasses import replace
from typing import assert_never

from fencekit.core.draft import Draft
from fencekit.core.state import (
    Absent,
    Done,
    Ended,
    InFlight,
    IntentKey,
    IntentRecord,
    Liveness,
    Now,
    State,
    Unknown,
)
from fencekit.core.table import Situation


def holder_dead(state: InFlight, now: Now, liveness: Liveness) -> bool:
    """Whether the holder is a process that is proven dead; another boot proves it."""
    if state.holder.kind != "process":
        return False
    return liveness is Liveness.DEAD or state.boot != now.boot


def lease_over(state: InFlight, now: Now) -> bool:
    """Whether the lease has ended; lease time does not carry over a boot."""
    return state.boot != now.boot or now.lease_ms >= state.lease_end_ms


def expired(state: Done, now: Now) -> bool:
    """Whether a recorded result is past its retention."""
    return now.wall_ms >= state.expires_at_ms and not now.expiry_paused


def tombstone(draft: Draft, record: IntentRecord, ticket: str) -> Ended | None:
    """Return how a ticket ended, if that is still kept."""
    for ended in draft.kept(record.ended):
        if ended.ticket == ticket:
            return ended
    return None


def situation(draft: Draft, record: IntentRecord, key: IntentKey, ticket: str) -> Situation:
    """Name the situation of the table."""
    state, now = record.state, draft.now
    match state:
        case Absent():
            if tombstone(draft, record, ticket):
                return Situation.ABSENT_ENDED
            return Situation.ABSENT
        case InFlight():
            return _in_flight(draft, state, key, ticket)
        case Done():
            mine, over = state.ticket.id == ticket, expired(state, now)
            if mine:
                return Situation.DONE_MINE_EXPIRED if over else Situation.DONE_MINE
            return Situation.DONE_OTHERS_EXPIRED if over else Situation.DONE_OTHERS
        case Unknown():
            mine = state.ticket.id == ticket
            return Situation.UNKNOWN_MINE if mine else Situation.UNKNOWN_OTHERS
        case _:
            assert_never(state)


def _in_flight(draft: Draft, state: InFlight, key: IntentKey, ticket: str) -> Situation:
    mine = state.ticket.id == ticket
    if holder_dead(state, draft.now, draft.liveness(key)):
        return Situation.MINE_DEAD if mine else Situation.OTHERS_DEAD
    if lease_over(state, draft.now):
        return Situation.MINE_LAPSED if mine else Situation.OTHERS_LAPSED
    return Situation.MINE if mine else Situation.OTHERS


def as_unknown(state: InFlight, now: Now, liveness: Liveness) -> Unknown:
    """Return what an attempt in flight becomes when its holder died or its lease is over."""
    dead = holder_dead(state, now, liveness)
    return Unknown(
        ticket=state.ticket,
        holder=state.holder,
        boot=state.boot,
        cause="died" if dead else "lapsed",
        reason="its process ended before saying how it went"
        if dead
        else "its lease ended before it said how it went",
        since_ms=now.wall_ms,
        late_commit=True,
    )


def as_of(record: IntentRecord, now: Now, liveness: Liveness) -> IntentRecord:
    """Return a record as it stands now, for showing: same revision, nothing written."""
    state: State = record.state
    if isinstance(state, InFlight):
        gone = holder_dead(state, now, liveness)
        if gone or (lease_over(state, now) and state.lease_expiry == "fence"):
            return replace(record, state=as_unknown(state, now, liveness))
    if isinstance(state, Done) and expired(state, now):
        return replace(record, state=Absent())
    return record
