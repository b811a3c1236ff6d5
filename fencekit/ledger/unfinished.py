"""The intents without an outcome, found within bounds of number and of time, on every ledger."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from fencekit.core.state import InFlight, IntentKey, IntentRecord, Unknown
from fencekit.ledger.base import Ledger

PAGE = 500


@dataclass(slots=True)
class Unfinished:
    """What has no outcome, as it is stored, and whether everything was looked at."""

    found: list[tuple[IntentKey, InFlight | Unknown]] = field(default_factory=list)
    whole: bool = False


def unfinished(
    ledger: Ledger, most: int, seconds: float, clock: Callable[[], float] = time.monotonic
) -> Unfinished:
    """Look until `most` were found, and for no longer than `seconds`. Raises `LedgerError`.

    A ledger that can say which have no outcome is asked for those alone; one that shows them first
    is read only so far.
    """
    seen, until = Unfinished(), clock() + seconds
    for page in _pages(ledger):
        if clock() >= until:
            return seen
        for key, record in page:
            if not isinstance(record.state, InFlight | Unknown):
                continue
            if len(seen.found) == most:
                return seen
            seen.found.append((key, record.state))
    seen.whole = True
    return seen


def _pages(ledger: Ledger) -> Iterator[Iterable[tuple[IntentKey, IntentRecord]]]:
    own = getattr(ledger, "unfinished", None)
    if own is not None:
        yield from own()
        return
    first, page = getattr(ledger, "unfinished_first", False), []
    for key, record in ledger.records():
        if first and not isinstance(record.state, InFlight | Unknown):
            break
        page.append((key, record))
        if len(page) == PAGE:
            yield page
            page = []
    yield page
