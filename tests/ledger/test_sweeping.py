"""Sweeping a shared ledger: all that has expired goes, and nobody who decides waits for it."""

from __future__ import annotations

import threading

import pytest

from fencekit import Fence, FenceConfig, Fresh
from fencekit.core.state import RETENTION_MS
from fencekit.fence import Calls
from fencekit.ledger import conditional_sweep
from fencekit.ledger.open import open_ledger
from tests.ledger.conformance import url_of

HOUR = RETENTION_MS


@pytest.fixture(params=["postgresql", "redis"])
def fence(request, tmp_path):
    """A ledger whose results expire at once, read by a clock that is hours ahead."""
    ledger = open_ledger(url_of(request.param, tmp_path))
    with Fence(calls=Calls(ledger, FenceConfig(result_ttl=0.001))) as fence:
        yield fence


def ahead(fence):
    """Make the side of the ledger that tidies believe that the retention is over."""
    side = fence.ledger._beside()
    read = side.read

    def later(keys):
        stored, ms = read(keys)
        return stored, ms + 3 * HOUR

    side.read = later
    return side


def test_everything_that_expired_goes_in_several_steps(fence, monkeypatch):
    monkeypatch.setattr(conditional_sweep, "SWEEP_ROWS", 20)
    for n in range(90):
        fence.commit(fence.prepare(f"done-{n}", "t").ticket)
    fence.abort(fence.prepare("lost", "t").ticket)
    fence.prepare("running", "t")
    ahead(fence)
    assert fence.sweep() == 90
    assert fence.sweep() == 0
    kept = {key.intent for key, _ in fence.ledger.records()}
    assert kept == {"lost", "running"}
    assert isinstance(fence.prepare("done-7", "t"), Fresh)


def test_a_record_that_cannot_be_read_stops_no_sweep(fence, monkeypatch):
    monkeypatch.setattr(conditional_sweep, "SWEEP_ROWS", 2)
    for n in range(9):
        fence.commit(fence.prepare(f"done-{n}", "t").ticket)
    side = ahead(fence)
    due = side.due
    side.due = lambda *page: [
        (key, conditional_sweep.Stored(found.version, b"[9]") if key.endswith(b"-4") else found)
        for key, found in due(*page)
    ]
    assert fence.sweep() == 8
    assert [key.intent for key, _ in fence.ledger.records()] == ["done-4"]


def test_nobody_waits_for_a_sweep_that_hangs(fence):
    fence.commit(fence.prepare("done", "t").ticket)
    side = ahead(fence)
    due, hanging, goes_on = side.due, threading.Event(), threading.Event()

    def hang(*page):
        with side._pool.connection() if hasattr(side, "_pool") else side._lock:
            hanging.set()
            goes_on.wait(30)
        return due(*page)

    side.due = hang
    sweeper = threading.Thread(target=fence.sweep)
    sweeper.start()
    assert hanging.wait(30)
    fence.commit(fence.prepare("pay", "t").ticket)
    assert sweeper.is_alive()
    goes_on.set()
    sweeper.join(30)


def test_an_intent_that_changes_under_the_sweep_is_left(fence):
    fence.commit(fence.prepare("done", "t").ticket)
    side = ahead(fence)
    write = side.compare_and_write

    def late(groups, now=0):
        fence.prepare("done", "t")
        return write(groups, now)

    side.compare_and_write = late
    assert fence.sweep() == 0
    assert fence.intents().__next__().key.intent == "done"
