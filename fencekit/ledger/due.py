"""When sweep may look at a record or at a line of the audit."""

from __future__ import annotations

import itertools
from collections.abc import Iterable

from fencekit.core.draft import Event
from fencekit.core.state import RETENTION_MS, Absent, Done, IntentRecord


def due_of(record: IntentRecord) -> int:
    """Return wall time in milliseconds; 0, which is never, for what has no outcome.

    The one rule that storage keeps in a column of its own.
    """
    state = record.state
    if isinstance(state, Done):
        return max(1, state.expires_at_ms)
    if isinstance(state, Absent):
        kept = [e.at_ms for e in record.ended] + [r.at_ms for r in record.remembered]
        return max(1, max(kept, default=0) + RETENTION_MS + 1)
    return 0


def old_among(events: Iterable[Event], before_ms: int) -> int:
    """Count the first events of an audit that are older than a wall time."""
    return sum(1 for _ in itertools.takewhile(lambda event: event["at_ms"] < before_ms, events))
