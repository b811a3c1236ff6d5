"""Checking what a ledger kept: does every recorded outcome still have its certificate?"""

from __future__ import annotations

from collections.abc import Iterator

from fencekit.core.state import Done, IntentKey, IntentRecord, Sealed
from fencekit.ledger.base import Problem


def check_record(key: IntentKey, record: IntentRecord) -> Iterator[Problem]:
    """Recompute the certificates of one record; yields those that do not verify."""
    state = record.state
    if isinstance(state, Done):
        yield from _check(key, state.sealed)
    for ended in record.ended:
        if ended.sealed is not None:
            yield from _check(key, ended.sealed)


def _check(key: IntentKey, sealed: Sealed) -> Iterator[Problem]:
    if Sealed.make(sealed.ticket, sealed.result).hash != sealed.hash:
        yield Problem(
            f"intent {key.intent!r}",
            f"certificate {sealed.hash[:12]} does not match what is recorded",
        )
