"""Running a function behind the fence: once, whatever callers, function or ledger do."""

from __future__ import annotations

import threading

import pytest

from fencekit import Fence, FenceConfig, IntentFailed, IntentInFlight, IntentMismatch
from fencekit.core.errors import InvalidRequest, LedgerUnavailable, ResultNotKept
from fencekit.core.messages import Commit
from fencekit.core.state import Done, Unknown


class Refusal(Exception):
    """An exception that proves that nothing happened."""


@pytest.fixture
def fence():
    with Fence() as fence:
        yield fence


def only(fence):
    (shown,) = fence.intents()
    return shown.record.state


def test_runs_once_and_replays(fence):
    ran = []

    def charge(order):
        ran.append(order)
        return {"charge": len(ran)}

    first = fence.run("charge:1", charge, "o1")
    again = fence.run("charge:1", charge, "o1")

    assert (first, again, ran) == ({"charge": 1}, {"charge": 1}, ["o1"])


def test_sixteen_at_one_instant_run_once(fence):
    ran, out = [], []
    together, inside = threading.Barrier(16), threading.Event()

    def charge():
        ran.append(1)
        inside.wait(10)
        return len(ran)

    def call():
        together.wait(10)
        out.append(fence.run("charge:1", charge))

    threads = [threading.Thread(target=call) for _ in range(16)]
    for thread in threads:
        thread.start()
    # Everybody has asked while the one is inside: fifteen were told that it is in flight.
    while fence.stats().in_flight < 15:
        pass
    inside.set()
    for thread in threads:
        thread.join(10)

    assert (out, ran) == ([1] * 16, [1])


def test_an_exception_leaves_the_intent_unknown(fence):
    def charge():
        raise ConnectionError("reset by peer")

    with pytest.raises(ConnectionError):
        fence.run("charge:1", charge)
    assert isinstance(only(fence), Unknown)
    with pytest.raises(IntentFailed, match="reset by peer"):
        fence.run("charge:1", charge)


def test_a_definite_exception_frees_the_intent(fence):
    tries = []

    def charge():
        tries.append(1)
        if len(tries) == 1:
            raise Refusal
        return "ok"

    with pytest.raises(Refusal):
        fence.run("charge:1", charge, definite=(Refusal,))

    assert fence.run("charge:1", charge, definite=(Refusal,)) == "ok"


def test_even_a_keyboard_interrupt_leaves_a_trace(fence):
    def charge():
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fence.run("charge:1", charge)

    assert isinstance(only(fence), Unknown)


def test_other_arguments_under_the_same_intent_are_refused(fence):
    fence.run("charge:1", lambda amount: amount, 10, tool="charge")

    with pytest.raises(IntentMismatch):
        fence.run("charge:1", lambda amount: amount, 11, tool="charge")


def test_a_wait_ends(fence):
    ticket = fence.prepare("slow", "t", {"args": []}).ticket

    with pytest.raises(IntentInFlight):
        fence.run("slow", lambda: 1, tool="t", wait=0.01, kwargs=None)
    fence.release(ticket)


def test_arguments_that_are_not_json_are_refused_before_anything_happens(fence):
    ran = []

    with pytest.raises(InvalidRequest, match="args"):
        fence.run("charge:1", ran.append, object())
    assert (ran, list(fence.intents())) == ([], [])


def test_a_result_that_is_not_json_still_ends_the_intent(fence):
    value = object()

    assert fence.run("charge:1", lambda: value, tool="t") is value
    assert isinstance(only(fence), Done)
    with pytest.raises(ResultNotKept):
        fence.run("charge:1", lambda: value, tool="t")


@pytest.mark.parametrize("hostile", ["repr", "iter", "str"])
def test_nothing_about_a_result_can_raise_between_effect_and_record(fence, hostile):
    class Hostile(dict):
        def __repr__(self):
            raise RuntimeError(hostile)

        __str__ = __iter__ = items = keys = __repr__

    fence.run("charge:1", lambda: Hostile(a=1), tool="t")

    assert isinstance(only(fence), Done)


def test_a_large_result_is_recorded_by_digest():
    with Fence(FenceConfig(max_result_bytes=100)) as fence:
        assert len(fence.run("big", lambda: "x" * 200, tool="t")) == 200
        with pytest.raises(ResultNotKept):
            fence.run("big", lambda: "x" * 200, tool="t")


def test_the_answer_is_delivered_when_its_outcome_cannot_be_recorded(fence, monkeypatch):
    ask = fence.ledger.call

    def broken(command):
        if isinstance(command, Commit):
            raise LedgerUnavailable("the disk is gone")
        return ask(command)

    monkeypatch.setattr(fence.ledger, "call", broken)
    with pytest.warns(RuntimeWarning, match="the disk is gone"):
        assert fence.run("charge:1", lambda: "paid", tool="t") == "paid"
    with pytest.raises(IntentInFlight):
        fence.run("charge:1", lambda: "paid", tool="t", wait=0)


def test_the_decorator_names_the_intent_from_the_arguments(fence):
    ran = []

    @fence.effect("charge:{order}", domain="order:{order}")
    def charge(order, amount=5):
        ran.append((order, amount))
        return len(ran)

    assert [charge("a"), charge("a"), charge(order="b"), charge("a", 5)] == [1, 1, 2, 1]
    assert ran == [("a", 5), ("b", 5)]
    assert charge.__name__ == "charge"


def test_a_name_that_does_not_fit_is_refused_before_anything_happens(fence):
    @fence.effect("charge:{ordr}")
    def charge(order):
        raise AssertionError("must not run")

    with pytest.raises(InvalidRequest, match="ordr"):
        charge("a")


def test_heartbeats_keep_a_slow_function_from_lapsing():
    """The function outlives three leases; its twin is still told that it runs."""
    with Fence(FenceConfig(lease=0.2)) as fence:
        beaten = threading.Semaphore(0)
        enqueue = fence.ledger.enqueue

        def counted(command, done):
            enqueue(command, lambda outcome: (done(outcome), beaten.release()))

        fence.ledger.enqueue = counted

        def slow():
            for _ in range(9):
                assert beaten.acquire(timeout=10)
            with pytest.raises(IntentInFlight):
                fence.prepare("slow", "t", {"args": []})
            return "done"

        assert fence.run("slow", slow, tool="t") == "done"
