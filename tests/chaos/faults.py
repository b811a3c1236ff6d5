"""Planted faults: each breaks one rule in the client's process, and the checker must see it."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from fencekit.core import endings, prepare
from fencekit.core.messages import Prepare
from fencekit.core.state import Absent, IntentKey, Unknown
from fencekit.core.table import OnCommit, OnPrepare, Situation
from fencekit.ledger import groups, jsonl, memory


def admission_without_a_lock(_client: Any) -> None:
    """Write without comparing what was read: two processes admit on the same state."""
    add = groups.Groups.add

    def blind(self: Any, *args: Any) -> None:
        add(self, *args)
        for group in self.all():
            group.expected.clear()

    _set(groups.Groups, "add", blind)


def commit_that_ignores_the_ticket(_client: Any) -> None:
    """Take anybody's result for that of the attempt that has no outcome."""
    flying = {Situation.OTHERS, Situation.OTHERS_LAPSED, Situation.OTHERS_DEAD}
    _cells(endings, flying, commit=OnCommit.FINISH)
    _cells(endings, {Situation.UNKNOWN_OTHERS}, commit=OnCommit.LATE)


def lease_judged_by_the_clients_clock(client: Any) -> None:
    """Read lease time from the clock that the nemesis steps."""
    clocks = client.fence.ledger._clocks
    true = clocks._lease_ms
    clocks._lease_ms = lambda: true() + client.step_ms


def acknowledged_before_it_is_synced(_client: Any) -> None:
    """Keep what was written in memory until the next write: the process is its page cache."""
    write_all = _get(jsonl, "write_all")
    cache = bytearray()

    def later(fd: int, data: bytes) -> None:
        write_all(fd, bytes(cache))
        cache[:] = data

    _set(jsonl, "write_all", later)


def sweep_that_frees_unknowns(_client: Any) -> None:
    """Delete what has no outcome."""
    sweep = _get(memory, "sweep")

    def frees(record: Any, now: Any) -> Any:
        if isinstance(record.state, Unknown):
            return replace(record, state=Absent())
        return sweep(record, now)

    _set(memory, "sweep", frees)


def replay_of_the_wrong_principal(_client: Any) -> None:
    """Look an intent up by its name alone."""
    _set(Prepare, "key", property(lambda self: IntentKey("", self.request.intent)))


def unknown_that_may_run(_client: Any) -> None:
    """Admit although nobody knows how the last attempt went."""
    _cells(prepare, {Situation.UNKNOWN_OTHERS}, prepare=OnPrepare.ADMIT)


def result_of_another_intent(_client: Any) -> None:
    """Answer a duplicate with the result that was replayed before."""
    replay = _get(prepare, "Replay")
    last: list[Any] = []

    def other(sealed: Any, at_ms: int) -> Any:
        last.append(sealed)
        return replay(last[-2] if len(last) > 1 else sealed, at_ms)

    _set(prepare, "Replay", other)


# How it is planted, and on which ledger it can show.
FAULTS: dict[str, tuple[Callable[[Any], None], str]] = {
    "an admission without a lock": (admission_without_a_lock, "redis"),
    "a commit that ignores the ticket": (commit_that_ignores_the_ticket, "sqlite"),
    "a lease judged by the client's clock": (lease_judged_by_the_clients_clock, "sqlite"),
    "an acknowledged write before fsync": (acknowledged_before_it_is_synced, "jsonl"),
    "a sweep that frees unknowns": (sweep_that_frees_unknowns, "memory"),
    "a replay of the wrong principal": (replay_of_the_wrong_principal, "sqlite"),
    "an unknown that may run": (unknown_that_may_run, "sqlite"),
    "the result of another intent": (result_of_another_intent, "memory"),
}


def step_clock(client: Any, by_ms: int) -> None:
    """Step every clock that this client's process reads and that somebody may set."""
    client.step_ms += by_ms
    ledger = client.fence.ledger
    clocks = getattr(ledger, "_clocks", None)
    if clocks is not None:
        clocks._wall_ms = lambda: time.time_ns() // 1_000_000 + client.step_ms
        return
    from fencekit.ledger import conditional

    _set(conditional, "_local_ms", lambda: time.monotonic_ns() // 1_000_000 + client.step_ms)


def _cells(module: Any, when: set[Situation], **cells: Any) -> None:
    original = module.row
    row = lambda at: replace(original(at), **cells) if at in when else original(at)  # noqa: E731
    _set(module, "row", row)


def _set(where: Any, name: str, value: Any) -> None:
    setattr(where, name, value)


def _get(where: Any, name: str) -> Any:
    """Return what a module uses under a name, also where it does not export it."""
    return getattr(where, name)
