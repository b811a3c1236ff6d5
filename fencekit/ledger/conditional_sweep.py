"""Sweeping a shared ledger: in small steps, over a connection that nobody who decides waits for."""

from __future__ import annotations

import contextlib
import time
from typing import TYPE_CHECKING

from fencekit.core.errors import LedgerDamaged
from fencekit.core.state import Now
from fencekit.core.sweep import may_sweep, sweep
from fencekit.ledger import codec
from fencekit.ledger.due import due_of
from fencekit.ledger.groups import MARKER_KEY, Group, Stored

if TYPE_CHECKING:
    from fencekit.ledger.conditional import Store

SWEEP_ROWS = 200
"""How many intents one step of a sweep writes, and locks until they are on disk."""


def sweep_intents(store: Store) -> int:
    """Delete what has expired; returns how many intents changed.

    Whoever decides meanwhile waits for one group at most, and only for the same intents.
    """
    changed, since = 0, 1
    while True:
        began = time.monotonic()
        stored, ms = store.read([MARKER_KEY])
        marker = stored.get(MARKER_KEY, Stored(0, None))
        if marker.value is not None and not may_sweep(codec.decode_marker(marker.value)):
            return changed
        rows = store.due(since, ms, SWEEP_ROWS)
        groups, before = [], (since, changed)
        for key, found in rows:
            # A damaged record is for `verify` to tell; it keeps nothing else.
            with contextlib.suppress(LedgerDamaged):
                record = codec.decode_intent(found.value or b"")
                since = max(since, due_of(record))
                left = sweep(record, Now(ms, ms))
                value = None if left is None else codec.encode_intent(left)
                due = 0 if left is None else due_of(left)
                expected = {key: found.version, MARKER_KEY: marker.version}
                groups.append(Group(expected, {key: value}, {key: due}))
        if groups:
            changed += len(groups) - len(store.compare_and_write(groups).failed)
        if len(rows) < SWEEP_ROWS or (since, changed) == before:
            return changed
        _give_way(began)


def sweep_audit(store: Store, before_ms: int) -> int:
    """Delete audit lines from before a time, the oldest first; returns how many went."""
    total, after = 0, 0
    while True:
        began = time.monotonic()
        swept, after = store.sweep_audit(before_ms, after)
        total += swept
        if not swept:
            return total
        _give_way(began)


def _give_way(began: float) -> None:
    """Leave half of the time to whoever decides, here and at the server."""
    time.sleep(min(0.1, time.monotonic() - began))
