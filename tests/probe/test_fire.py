"""Sending: each call once, released together, each on its own clock, and what became of it."""

from __future__ import annotations

import sys
import time
from datetime import UTC, datetime

import pytest

from fencekit.probe import fire
from fencekit.probe.model import Call, MarkKind, Outcome
from fencekit.wire.client import Target
from fencekit.wire.errors import HttpRefused, NeverLeft, TimedOut, Unanswered
from fencekit.wire.frames import encode, parse

# Answers `initialize`; then holds every call until all of the twins are in.
HOLD = """
import json, sys
held, n = [], int(sys.argv[1])
def ok(m, r): print(json.dumps({"jsonrpc": "2.0", "id": m["id"], "result": r}), flush=True)
for line in sys.stdin:
    m = json.loads(line)
    if m.get("method") == "initialize":
        ok(m, {"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": {}})
    elif "id" in m:
        held.append((m, line))
        if len(held) == n:
            same = len({l.split('"method"')[1] for _, l in held})
            for h, _ in held: ok(h, {"content": [], "same": same})
"""


def clients(count: int, hold: int):
    target = Target(command=(sys.executable, "-c", HOLD, str(hold)), timeout=20.0)
    return [target.connect() for _ in range(count)]


@pytest.mark.parametrize(("connections", "twins"), [(1, 32), (4, 8)])
def test_all_twins_are_out_before_any_answer_and_are_the_same_bytes(connections, twins):
    """The server answers only once it holds them all, so one by one would time out."""
    opened = clients(connections, twins // connections)
    shot = fire.Shot("t", {"n": 2**60, "f": 1.0}, timeout=20.0)

    fired = fire.volley(shot, opened, twins, fire.Clock())
    for client in opened:
        client.close()

    assert [call.outcome for call in fired.calls] == [Outcome.OK] * twins
    assert {call.result["same"] for call in fired.calls} == {1}
    assert {call.connection for call in fired.calls} == set(range(connections))
    if connections == 1:
        assert fired.overlap.together == twins


def test_each_call_has_its_own_time_limit():
    (client,) = clients(1, hold=99)
    began = time.monotonic()
    fired = fire.volley(fire.Shot("t", {}, timeout=0.2), [client], 20, fire.Clock())
    client.close()

    assert {call.outcome for call in fired.calls} == {Outcome.TIMED_OUT}
    assert time.monotonic() - began < 2.0


def answer(result: object = None, error: object = None):
    body = {"jsonrpc": "2.0", "id": 1, **({"error": error} if error else {"result": result})}
    return parse(encode(body))[0]


@pytest.mark.parametrize(
    ("frame", "failure", "outcome"),
    [
        (answer({"content": []}), None, Outcome.OK),
        (answer({"content": [], "isError": True}), None, Outcome.TOOL_ERROR),
        (answer(error={"code": -32603, "message": "x"}), None, Outcome.RPC_ERROR),
        (answer({"resultType": "input_required"}), None, Outcome.ASKED_BACK),
        (answer({"resultType": "task"}), None, Outcome.PENDING_TASK),
        (None, HttpRefused(429, "slow"), Outcome.RATE_LIMITED),
        (None, HttpRefused(503, "down"), Outcome.HTTP_REFUSED),
        (None, NeverLeft("x"), Outcome.NEVER_LEFT),
        (None, TimedOut("x"), Outcome.TIMED_OUT),
        (None, Unanswered("x"), Outcome.UNANSWERED),
    ],
)  # fmt: skip
def test_what_became_of_a_call(frame, failure, outcome):
    assert fire.classify(frame, failure)[0] is outcome


@pytest.mark.parametrize(
    ("said", "error", "kind"),
    [
        ({"state": "done", "replayed": True, "ago": 0}, False, MarkKind.REPLAYED_NOW),
        ({"state": "done", "replayed": True, "ago": 600}, False, MarkKind.REPLAYED_BEFORE),
        ({"state": "done", "replayed": True}, False, MarkKind.REPLAYED_BEFORE),
        ({"state": "done", "replayed": True, "ago": 0}, True, MarkKind.REPLAYED_NOW),
        ({"state": "done", "replayed": False, "ago": 0}, False, MarkKind.EXECUTED),
        ({"state": "unknown", "ago": 3}, True, MarkKind.REFUSED),
        ({"state": "in_flight"}, True, MarkKind.REFUSED),
    ],
)
@pytest.mark.parametrize("iso", [True, False])
def test_a_fences_mark(said, error, kind, iso):
    """`since` may be seconds since 1970 or ISO 8601; before this run began is "from before"."""
    clock = fire.Clock()
    mark = {key: value for key, value in said.items() if key != "ago"}
    if "ago" in said:
        at = clock.wall - said["ago"]
        mark["since"] = datetime.fromtimestamp(at, UTC).isoformat() if iso else at
    result = {"content": [], "isError": error, "_meta": {"fencekit/outcome": mark}}

    found = fire._mark(answer(result), clock.wall)

    assert found is not None
    assert found.kind is kind


@pytest.mark.parametrize("meta", [None, 7, {}, {"fencekit/outcome": "x"}])
def test_no_mark_is_no_mark(meta):
    assert fire._mark(answer({"content": [], "_meta": meta}), 0.0) is None
    assert fire._mark(None, 0.0) is None


def test_overlap_tells_a_race_from_a_queue():
    race = [Call(n, Outcome.OK, sent_ms=0.1 * n, answered_ms=100 + n) for n in range(10)]
    queue = [Call(n, Outcome.OK, sent_ms=0.1 * n, answered_ms=100.0 * (n + 1)) for n in range(10)]

    assert fire.overlap(race).parallel == pytest.approx(9.2, abs=0.5)
    assert fire.overlap(queue).parallel == 1.0
    assert fire.overlap(race).together == 10
    assert fire.overlap([Call(1, Outcome.NEVER_LEFT)]).together == 0
