"""VectorClock: a partial order whose merge is the least upper bound, and an immutable value."""

from __future__ import annotations

import copy
import hashlib
import pickle
from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fencekit.core.clock import MAX_COUNT, NO_CLOCK, ClockError, VectorClock

clocks = st.dictionaries(st.sampled_from("abc"), st.integers(0, 3)).map(VectorClock)

# Every clock over two agents with counts up to two: small enough to check each pair.
SMALL = [VectorClock({"a": a, "b": b}) for a, b in product(range(3), repeat=2)]


def test_order_is_the_elementwise_one():
    for left, right in product(SMALL, repeat=2):
        below = left["a"] <= right["a"] and left["b"] <= right["b"]
        above = left["a"] >= right["a"] and left["b"] >= right["b"]
        assert (left <= right) is below
        assert (left >= right) is above
        assert (left == right) is (below and above)
        assert (left < right) is (below and not above)
        assert (left > right) is (above and not below)
        assert left.concurrent(right) is (not below and not above)


@given(clocks, clocks, clocks)
def test_merge_is_the_least_upper_bound(left, right, other):
    both = left.merge(right)
    assert left <= both
    assert right <= both
    if left <= other and right <= other:
        assert both <= other
    assert both == right.merge(left)
    assert both.merge(other) == left.merge(right.merge(other))
    assert left.merge(left) == left.merge(NO_CLOCK) == NO_CLOCK.merge(left) == left


@given(clocks, st.sampled_from("abcd"))
def test_tick_is_strictly_after_and_moves_one_agent(clock, agent):
    after = clock.tick(agent)
    assert clock < after
    assert after[agent] == clock[agent] + 1
    assert all(after[name] == clock[name] for name in "abcd" if name != agent)


def test_ticks_of_two_agents_are_concurrent():
    start = VectorClock({"a": 1})
    assert start.tick("a").concurrent(start.tick("b"))
    assert not start.concurrent(start)


def test_zero_entries_are_nothing():
    assert VectorClock({"a": 0}) == NO_CLOCK
    assert hash(VectorClock({"a": 0, "b": 1})) == hash(VectorClock({"b": 1}))
    assert VectorClock({"a": 0, "b": 1}).digest() == VectorClock({"b": 1}).digest()
    assert VectorClock({"a": 0}).to_json() == {}
    assert len(NO_CLOCK) == 0
    assert list(VectorClock({"a": 0, "b": 1})) == ["b"]


@given(clocks, clocks)
def test_equal_clocks_share_hash_and_digest(left, right):
    assert (left == right) is (left.digest() == right.digest())
    if left == right:
        assert hash(left) == hash(right)


def test_digest_is_that_of_the_canonical_json():
    clock = VectorClock({"b": 2, "a": 1})
    assert clock.digest() == hashlib.sha256(b'{"a":1,"b":2}').hexdigest()


def test_nothing_changes_a_clock():
    counts = {"a": 1}
    clock = VectorClock(counts)
    counts["a"] = 7
    clock.to_json()["a"] = 8
    clock.tick("a")
    clock.merge(VectorClock({"a": 9}))
    assert clock == VectorClock({"a": 1})
    changing: Any = clock
    with pytest.raises(AttributeError, match="never changes"):
        changing._counts = {}
    with pytest.raises(AttributeError, match="never changes"):
        del changing._counts
    with pytest.raises(AttributeError):
        changing.other = 1


@given(clocks)
def test_copies_read_back(clock):
    assert VectorClock.from_json(clock.to_json()) == clock
    assert pickle.loads(pickle.dumps(clock)) == clock
    assert copy.deepcopy(clock) == clock
    assert eval(repr(clock)) == clock


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (None, "an object"),
        ([["a", 1]], "an object"),
        ({"a": -1}, "count of agent 'a'"),
        ({"a": 1.0}, "float"),
        ({"a": True}, "bool"),
        ({"a": "1"}, "str"),
        ({"a": None}, "NoneType"),
        ({"a": MAX_COUNT + 1}, "out of range"),
        ({"": 1}, "not empty"),
        ({1: 1}, "not of type int"),
        ({"\ud800": 1}, "lone surrogate"),
    ],
)
def test_what_is_no_clock_is_refused(value, said):
    with pytest.raises(ClockError, match=said):
        VectorClock.from_json(value)


def test_counters_end_where_json_readers_round():
    last = VectorClock({"a": MAX_COUNT})
    with pytest.raises(ClockError, match="out of range"):
        last.tick("a")
    assert last.tick("b")["b"] == 1


@pytest.mark.parametrize("agent", ["", 1, None])
def test_ticks_of_nobody_are_refused(agent):
    with pytest.raises(ClockError, match="agent's name"):
        NO_CLOCK.tick(agent)


def test_a_clock_is_compared_with_clocks_only():
    assert VectorClock({"a": 1}) != {"a": 1}
    anything: Any = {"a": 1}
    for compare in ("__lt__", "__le__", "__gt__", "__ge__"):
        assert getattr(VectorClock(), compare)(anything) is NotImplemented
