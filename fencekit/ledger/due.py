"""When sweep may look at a record: the one rule that storage keeps in a column of its own."""

from __future__ import annotations

from fencekit.core.state import RETENTION_MS, Absent, Done, IntentRecord


def due_of(record: IntentRecord) -> int:
    """Return wall time in milliseconds; 0, which is never, for what has no outcome."""
    state = record.state
    if isinstance(state, Done):
        return max(1, state.expires_at_ms)
    if isinstance(state, Absent):
        kept = [e.at_ms for e in record.ended] + [r.at_ms for r in record.remembered]
        return max(1, max(kept, default=0) + RETENTION_MS + 1)
    return 0
