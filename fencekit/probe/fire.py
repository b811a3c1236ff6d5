"""Sends the calls: byte-identical, each exactly once, and notes when each left and was answered.

This is the only module that calls the tool under test. It decides nothing.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from fencekit.probe.model import Call, Mark, MarkKind, Outcome, Overlap
from fencekit.wire import protocol
from fencekit.wire.carriers import Pending
from fencekit.wire.client import Client
from fencekit.wire.errors import HttpRefused, NeverLeft, TimedOut, WireError
from fencekit.wire.frames import Frame, Kind

REPLAYED_SLACK = 1.0  # seconds: a fence tells whole seconds, cut off


@dataclass(frozen=True)
class Shot:
    """The one call that is made again and again: the tool, the arguments, its input schema."""

    tool: str
    arguments: Mapping[str, Any]
    schema: Mapping[str, Any] = field(default_factory=dict)
    timeout: float = 60.0

    def load(self, client: Client) -> Pending:
        """Return the call as a request on this connection, with the same params bytes each time."""
        params = client.params_bytes({"name": self.tool, "arguments": dict(self.arguments)})
        headers = {}
        if client.era == "modern":
            headers = protocol.param_headers(self.schema, self.arguments)
        return client.prepare("tools/call", params, headers)


@dataclass(frozen=True)
class Fired:
    """What one volley brought in: the calls, how they overlapped."""

    calls: tuple[Call, ...]
    overlap: Overlap


@dataclass(frozen=True)
class Clock:
    """When this began: `origin` on `time.monotonic`, `wall` in seconds since 1970.

    Times of calls are told from `origin`; `wall` tells a fence's replay of something that this
    run did from a replay of something older.
    """

    origin: float = field(default_factory=time.monotonic)
    wall: float = field(default_factory=time.time)


def volley(
    shot: Shot, clients: Sequence[Client], calls: int, clock: Clock, *, first: int = 1
) -> Fired:
    """Send `calls` twins over `clients` in turn, released together, and wait for every answer.

    Each call has its own time limit, from its own sending. Calls are numbered from `first`.
    """
    loaded = [(i % len(clients), shot.load(clients[i % len(clients)])) for i in range(calls)]
    lanes = _lanes(loaded, clients)
    barrier = threading.Barrier(len(lanes))
    threads = [
        threading.Thread(target=_release, args=(barrier, client, lane), daemon=True)
        for client, lane in lanes
    ]
    for thread in threads:
        thread.start()
    outcomes = [_await(pending, shot.timeout) for _, pending in loaded]
    return _collect(loaded, outcomes, clock, first)


def one(shot: Shot, client: Client, clock: Clock, *, n: int, connection: int) -> Call:
    """Make the call once, wait for its answer, and return it as number `n`."""
    (call,) = volley(shot, [client], 1, clock, first=n).calls
    return replace(call, connection=connection)


def _lanes(
    loaded: Sequence[tuple[int, Pending]], clients: Sequence[Client]
) -> list[tuple[Client, list[Pending]]]:
    """Group what one thread can send without waiting: a pipe pipelines, an HTTP call blocks."""
    lanes: dict[int, list[Pending]] = {}
    alone: list[tuple[Client, list[Pending]]] = []
    for connection, pending in loaded:
        if clients[connection].pipelines:
            lanes.setdefault(connection, []).append(pending)
        else:
            alone.append((clients[connection], [pending]))
    return [(clients[connection], lane) for connection, lane in lanes.items()] + alone


def _release(barrier: threading.Barrier, client: Client, lane: Sequence[Pending]) -> None:
    barrier.wait()
    for pending in lane:
        client.send(pending)


def _await(pending: Pending, timeout: float) -> tuple[Frame | None, WireError | None]:
    """Wait for one call on its own clock, which starts when the call does."""
    while True:
        began = pending.started_at
        left = timeout if began is None else began + timeout - time.monotonic()
        if pending.done.wait(max(0.0, min(left, 0.5) if began is None else left)):
            return pending.answer, pending.failure
        if began is not None:
            return None, TimedOut(f"no answer within {timeout:g} s")


def _collect(
    loaded: Sequence[tuple[int, Pending]],
    outcomes: Sequence[tuple[Frame | None, WireError | None]],
    clock: Clock,
    first: int,
) -> Fired:
    calls = []
    for n, ((connection, pending), (answer, failure)) in enumerate(
        zip(loaded, outcomes, strict=True), start=first
    ):
        outcome, detail = classify(answer, failure)
        answered = None if answer is None else pending.answered_at
        result = answer.result if answer is not None and outcome is Outcome.OK else None
        calls.append(
            Call(
                n=n,
                outcome=outcome,
                connection=connection,
                sent_ms=since(pending.sent_at or pending.started_at, clock),
                answered_ms=since(answered, clock),
                detail=detail,
                result=result,
                mark=_mark(answer, clock.wall),
            )
        )
    return Fired(tuple(calls), overlap(calls))


def since(at: float | None, clock: Clock) -> float | None:
    """Return a monotonic time as milliseconds since the clock's origin."""
    return None if at is None else round(max(0.0, at - clock.origin) * 1000, 3)


def classify(answer: Frame | None, failure: WireError | None) -> tuple[Outcome, str]:
    """Return what became of a call, and a word about it."""
    if answer is None:
        return _failed(failure), str(failure)
    if answer.kind is Kind.ERROR:
        error = answer.error
        return Outcome.RPC_ERROR, f"{error.get('code')}: {error.get('message', '')}"
    result = answer.result if isinstance(answer.result, dict) else {}
    if result.get("resultType") == "input_required":
        return Outcome.ASKED_BACK, "the server asked for input before it would act"
    if result.get("resultType") == "task" or "task" in result:
        return Outcome.PENDING_TASK, "the server answered with a task, not with a result"
    if result.get("isError") is True:
        return Outcome.TOOL_ERROR, first_text(result)
    return Outcome.OK, ""


def _failed(failure: WireError | None) -> Outcome:
    if isinstance(failure, HttpRefused):
        return Outcome.RATE_LIMITED if failure.status == 429 else Outcome.HTTP_REFUSED
    if isinstance(failure, NeverLeft):
        return Outcome.NEVER_LEFT
    return Outcome.TIMED_OUT if isinstance(failure, TimedOut) else Outcome.UNANSWERED


def first_text(result: Mapping[str, Any]) -> str:
    """Return the first text of a tool result, or nothing."""
    content = result.get("content")
    for block in content if isinstance(content, list) else []:
        if isinstance(block, dict) and isinstance(block.get("text"), str):
            return str(block["text"])
    return ""


def _mark(answer: Frame | None, began: float) -> Mark | None:
    """Read a fence's mark: `{state, since, replayed, …}` under its own key of `_meta`."""
    result = answer.result if answer is not None else None
    if not isinstance(result, dict):
        return None
    meta = result.get("_meta")
    said = meta.get(protocol.META_OUTCOME) if isinstance(meta, dict) else None
    if not isinstance(said, dict):
        return None
    at = _wall(said.get("since"))
    age = None if at is None else max(0.0, time.time() - at)
    if said.get("replayed") is False:
        return Mark(MarkKind.EXECUTED, age)
    # A refusal is an error that quotes the state; a replayed error says that it is one.
    refused = result.get("isError") is True or said.get("state") != "done"
    if said.get("replayed") is not True and refused:
        return Mark(MarkKind.REFUSED, age)
    fresh = at is not None and at >= began - REPLAYED_SLACK
    return Mark(MarkKind.REPLAYED_NOW if fresh else MarkKind.REPLAYED_BEFORE, age)


def _wall(since: object) -> float | None:
    """Read a wall time: seconds since 1970, or ISO 8601."""
    if isinstance(since, int | float) and not isinstance(since, bool):
        return float(since)
    if isinstance(since, str):
        from datetime import UTC, datetime

        try:
            read = datetime.fromisoformat(since)
        except ValueError:
            return None
        return (read if read.tzinfo else read.replace(tzinfo=UTC)).timestamp()
    return None


def overlap(calls: Sequence[Call]) -> Overlap:
    """Return how much the calls of a volley overlapped, from their own times."""
    sent = [c.sent_ms for c in calls if c.sent_ms is not None]
    answered = [c.answered_ms for c in calls if c.answered_ms is not None]
    if not sent:
        return Overlap()
    spread = max(sent) - min(sent)
    if not answered:
        return Overlap(spread, together=len(sent))
    first, last = min(answered), max(answered)
    together = sum(at <= first for at in sent)
    parallel = (
        len(answered) * (first - min(sent)) / (last - min(sent)) if last > min(sent) else None
    )
    parallel = None if parallel is None else round(max(1.0, min(parallel, len(answered))), 1)
    return Overlap(round(spread, 3), first, last, together, parallel)
