"""The intents without an outcome, found within bounds of records and of time, on every ledger."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from fencekit.core.state import InFlight, IntentKey, Unknown
from fencekit.ledger.base import Ledger


@dataclass(slots=True)
class Unfinished:
    """What has no outcome, as it is stored, and whether everything was looked at."""

    found: list[tuple[IntentKey, InFlight | Unknown]] = field(default_factory=list)
    whole: bool = False


def unfinished(
    ledger: Ledger, most: int, seconds: float, clock: Callable[[], float] = time.monotonic
) -> Unfinished:
    """Look at no more than `most` records, and for no longer than `seconds`.

    A ledger that shows what has no outcome first is read only so far. Raises `LedgerError`.
    """
    seen, until = Unfinished(), clock() + seconds
    first = getattr(ledger, "unfinished_first", False)
    for count, (key, record) in enumerate(ledger.records()):
        state = record.state
        if first and not isinstance(state, InFlight | Unknown):
            break
        if count >= most or clock() >= until:
            return seen
        if isinstance(state, InFlight | Unknown):
            seen.found.append((key, state))
    seen.whole = True
    return seen
