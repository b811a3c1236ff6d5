"""Sweep: delete only what every verb already treats as absent, so that nobody can see it."""

from __future__ import annotations

from dataclasses import replace

from fencekit.core.prepare import ended_of
from fencekit.core.situation import expired
from fencekit.core.state import RETENTION_MS, Absent, Done, IntentRecord, Now


def sweep(record: IntentRecord, now: Now) -> IntentRecord | None:
    """Return the record without what has expired, or None where nothing is left.

    The same object comes back where nothing changes. In flight and unknown never go.
    """
    if now.expiry_paused:
        return record
    since = now.wall_ms - RETENTION_MS
    state, ended = record.state, record.ended
    if isinstance(state, Done) and expired(state, now):
        ended = (*(e for e in ended if e.ticket != state.ticket.id), ended_of(state))
        state = Absent()
    ended = tuple(e for e in ended if e.at_ms >= since)
    remembered = tuple(r for r in record.remembered if r.at_ms >= since)
    if isinstance(state, Absent) and not ended and not remembered:
        return None
    if state is record.state and ended == record.ended and remembered == record.remembered:
        return record
    doubts = () if isinstance(state, Absent) else record.doubts
    return replace(record, state=state, ended=ended, remembered=remembered, doubts=doubts)
