"""Sweep: delete only what every verb already treats as absent, so that nobody can see it."""

from __future__ import annotations

from dataclasses import replace

from fencekit.core.prepare import ended_of
from fencekit.core.situation import expired
from fencekit.core.state import (
    RETENTION_MS,
    Absent,
    Done,
    InFlight,
    IntentRecord,
    Marker,
    Now,
    Unknown,
)


def may_sweep(marker: Marker) -> bool:
    """Whether anything may be swept: what is being copied stays as it is until it is compared."""
    return marker.phase in ("open", "draining", "reopening")


def sweep(record: IntentRecord, now: Now) -> IntentRecord | None:
    """Return the record without what has expired, or None where nothing is left.

    The same object comes back where nothing changes: in flight and unknown never go, and what is
    still kept of a record keeps all of it until its next write.
    """
    state = record.state
    if now.expiry_paused or isinstance(state, InFlight | Unknown):
        return record
    if isinstance(state, Done):
        if not expired(state, now):
            return record
        others = tuple(e for e in record.ended if e.ticket != state.ticket.id)
        record = replace(record, state=Absent(), doubts=(), ended=(*others, ended_of(state)))
    since = now.wall_ms - RETENTION_MS
    kept = any(e.at_ms >= since for e in record.ended) or any(
        r.at_ms >= since for r in record.remembered
    )
    return record if kept else None
