"""A shared ledger may decide by what it last saw, and never answers by that alone."""

from __future__ import annotations

import os

import pytest

from fencekit import Fence, FenceConfig, Fresh, Replay
from fencekit.core.errors import IntentFailed, IntentInFlight, LedgerDamaged, StaleHolder
from fencekit.core.messages import Prepare
from fencekit.core.request import EffectRequest
from fencekit.core.state import Holder
from fencekit.fence import Calls
from fencekit.ledger.open import open_ledger
from fencekit.ledger.recall import LARGE, REMEMBERED
from tests.ledger.conformance import url_of


class Counted:
    """A fence over a ledger whose exchanges with the store are counted."""

    def __init__(self, url):
        self.ledger = open_ledger(url)
        self.fence = Fence(calls=Calls(self.ledger, FenceConfig()))
        self.reads = self.writes = 0
        self.clock_matters = False
        store = self.ledger._store
        read, write = store.read, store.compare_and_write

        def counted_read(keys):
            self.reads += 1
            return read(keys)

        def counted_write(groups, now=0):
            self.writes += 1
            # A busy machine may stall for half a second; only one test is about that.
            return write(groups, now if self.clock_matters else 0)

        store.read, store.compare_and_write = counted_read, counted_write


@pytest.fixture(params=["postgresql", "redis"])
def pair(request, tmp_path):
    url = url_of(request.param, tmp_path)
    sides = Counted(url), Counted(url)
    for side in sides:
        side.fence.commit(side.fence.prepare(f"first-{id(side)}", "t", domain="first").ticket)
        side.reads = side.writes = 0
    yield sides
    for side in sides:
        side.fence.close()


def test_a_new_intent_costs_one_exchange_for_each_of_its_two_verbs(pair):
    side, _ = pair
    for n in range(10):
        side.fence.commit(side.fence.prepare(f"new-{n}", "t", domain=f"order-{n}").ticket, n)
    assert (side.reads, side.writes) == (0, 20)
    assert isinstance(side.fence.prepare("new-3", "t", domain="order-3"), Replay)
    assert (side.reads, side.writes) == (1, 20)


def test_what_another_process_admitted_is_found(pair):
    here, there = pair
    there.fence.prepare("pay", "t")
    with pytest.raises(IntentInFlight):
        here.fence.prepare("pay", "t")
    assert (here.reads, here.writes) == (1, 1)


def test_a_result_that_is_no_longer_there_is_not_replayed(pair):
    here, there = pair
    ticket = here.fence.prepare("pay", "t").ticket
    here.fence.commit(ticket, "paid")
    there.fence.forget("pay", ticket.id, "refunded")
    fresh = there.fence.prepare("pay", "t").ticket
    with pytest.raises(IntentInFlight):
        here.fence.prepare("pay", "t")
    there.fence.abort(fresh, "lost")
    with pytest.raises(IntentFailed):
        here.fence.prepare("pay", "t")


def test_a_commit_after_somebody_ended_the_attempt_is_refused(pair):
    here, there = pair
    ticket = here.fence.prepare("pay", "t").ticket
    there.fence.abort(ticket, "lost")
    there.fence.clear("pay", ticket.id, there.ledger.peek(ticket.key), "did not happen")
    with pytest.raises(StaleHolder):
        here.fence.commit(ticket, "paid")


def test_a_clock_that_is_off_decides_nothing(pair):
    here, _ = pair
    here.clock_matters = True
    for off in (10_000, -10_000, 700, -700):
        here.ledger._offset_ms += off
        ticket = here.fence.prepare(f"pay{off}", "t").ticket
        left = ticket.lease_end_ms - here.ledger._store.read(())[1]
        assert 59_000 < left <= 60_000


def test_guesses_that_are_mostly_wrong_are_left_alone(pair):
    here, there = pair
    for n in range(40):
        there.fence.prepare(f"pay-{n}", "t")
        with pytest.raises(IntentInFlight):
            here.fence.prepare(f"pay-{n}", "t")
    assert here.reads == 40
    assert here.writes < 8


def test_only_so_much_is_kept(pair):
    side, _ = pair
    known = side.ledger._recall._known
    for n in range(10):
        side.fence.commit(side.fence.prepare(f"large-{n}", "t").ticket, "x" * LARGE)
    assert not any(key.startswith(b"i\x00large") for key in known)
    for n in range(REMEMBERED):
        side.ledger._recall._keep(b"i\x00%d" % n, 1, None)
    assert len(side.ledger._recall._known) <= REMEMBERED
    assert b"m" in side.ledger._recall._known


def test_a_damaged_record_stops_its_own_intent_only(tmp_path):
    url = url_of("redis", tmp_path)
    with Fence.open(url) as fence:
        fence.prepare("bad", "t")
    side = Counted(url)
    store = side.ledger._store
    store._db.hset(store._keys[0], b"i\x00bad", b"[9]")

    def prepare(name, intent):
        request = EffectRequest.make(intent, "t", {})
        return Prepare(name * 32, side.ledger.now().wall_ms, request, Holder("ticket"), 60_000)

    answers = side.ledger._run([prepare("a", "bad"), prepare("b", "good")])
    assert isinstance(answers[0], LedgerDamaged)
    assert isinstance(answers[1], Fresh)
    side.fence.close()


@pytest.mark.parametrize("name", ["postgresql", "redis"])
def test_a_forked_child_is_another_holder_over_a_connection_of_its_own(name, tmp_path):
    url = url_of(name, tmp_path)
    with Fence.open(url) as fence:
        ours = fence.prepare("ours", "t", holder="process").ticket
        list(fence.intents())
        holder = fence.ledger.holder
        child = os.fork()
        if child == 0:
            code = 1
            try:
                assert fence.ledger.holder != holder
                for n in range(20):
                    fence.commit(fence.prepare(f"theirs-{n}", "t", holder="process").ticket)
                with pytest.raises(IntentInFlight):
                    fence.prepare("ours", "t")
                list(fence.intents())
                fence.close()
                code = 0
            finally:
                os._exit(code)
        for n in range(20):
            fence.commit(fence.prepare(f"more-{n}", "t").ticket)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        fence.commit(ours, "done")
        assert len(list(fence.intents())) == 41
