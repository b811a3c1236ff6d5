"""FenceStats: each answer moves one counter, sums add up, the line is the same every time."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fencekit.core import errors, messages
from fencekit.core.state import PreparedEffect
from fencekit.core.stats import CAUSES, FenceStats, StatsError, counter_of

NAMES = [field.name for field in dataclasses.fields(FenceStats)]
APART = ["already_ended", "expired", "resent", "rejected_commits"]
stats = st.fixed_dictionaries({name: st.integers(0, 99) for name in NAMES}).map(
    lambda counts: FenceStats(**counts)
)


def blank(kind: Any) -> Any:
    """Return an object of a kind whose fields do not matter here."""
    return kind.__new__(kind)


def test_the_line_is_exact():
    shown = FenceStats(admitted=1, replayed=995, domain_race=4).line()
    assert shown == (
        "fencekit since boot: admitted=1 replayed=995 refused(stale=0 race=4 in-flight=0 failed=0 "
        "mismatch=0 causal=0) total=1000 prevented=999"
    )


def test_each_number_has_its_place_in_the_line():
    shown = FenceStats(*range(1, 13)).line()
    assert shown == (
        "fencekit since boot: admitted=1 replayed=2 refused(stale=3 race=4 in-flight=5 failed=6 "
        "mismatch=7 causal=8) total=36 prevented=35"
    )


@pytest.mark.parametrize("name", NAMES)
def test_an_attempt_is_counted_once_and_the_others_apart(name):
    one = FenceStats(**{name: 1})
    assert one.total_attempts == (0 if name in APART else 1)
    assert one.prevented == (0 if name in [*APART, "admitted"] else 1)
    assert sum(one.refused.values()) == (1 if name in CAUSES else 0)


@given(stats, stats)
def test_sums_add_each_counter(left, right):
    both = left + right
    for name in NAMES:
        assert getattr(both, name) == getattr(left, name) + getattr(right, name)
    assert both.total_attempts == left.total_attempts + right.total_attempts
    assert both.prevented == both.total_attempts - both.admitted
    assert left + FenceStats() == left


@given(stats)
def test_counters_read_back(one):
    assert FenceStats.from_counters(one.to_counters()) == one
    assert FenceStats.from_counters({**one.to_counters(), "of_a_newer_version": 7}) == one
    assert FenceStats.from_counters({}) == FenceStats()


@pytest.mark.parametrize("bad", [-1, 1.0, True, "1", None])
def test_what_is_no_counter_is_named(bad):
    with pytest.raises(StatsError, match=r"^admitted: "):
        FenceStats.from_counters({"admitted": bad})


def test_json_reports_totals_and_the_line():
    one = FenceStats(*range(1, 13))
    assert one.to_json() == {
        "admitted": 1,
        "replayed": 2,
        "refused": {
            "stale_read_set": 3,
            "domain_race": 4,
            "in_flight": 5,
            "prior_failure": 6,
            "mismatch": 7,
            "causal": 8,
        },
        "total_attempts": 36,
        "prevented": 35,
        "already_ended": 9,
        "expired": 10,
        "resent": 11,
        "rejected_commits": 12,
        "log_line": one.line(),
    }


PREPARED = {
    messages.Replay: "replayed",
    errors.ReadSetStale: "stale_read_set",
    errors.DomainRace: "domain_race",
    errors.IntentInFlight: "in_flight",
    errors.IntentFailed: "prior_failure",
    errors.IntentMismatch: "mismatch",
    errors.CausalConflict: "causal",
    errors.AlreadyEnded: "already_ended",
    errors.Expired: "expired",
    errors.LedgerUnavailable: None,
    errors.InvalidRequest: None,
}


@pytest.mark.parametrize(("kind", "counter"), PREPARED.items())
def test_what_prepare_answered_moves_one_counter(kind, counter):
    assert counter_of(blank(messages.Prepare), blank(kind)) == counter
    assert counter is None or counter in NAMES


@pytest.mark.parametrize(("resent", "counter"), [(False, "admitted"), (True, "resent")])
def test_an_admission_sent_again_is_not_admitted_twice(resent, counter):
    fresh = messages.Fresh(blank(PreparedEffect), resent)
    assert counter_of(blank(messages.Prepare), fresh) == counter


def test_no_refusal_is_forgotten():
    """A new way to be refused must get a counter: promise 7 is about counters alone."""
    assert set(errors.Refused.__subclasses__()) <= PREPARED.keys()


@pytest.mark.parametrize(
    "kind",
    [*errors.Rejected.__subclasses__(), errors.ReadSetStale],
)
def test_a_refused_commit_is_counted_apart(kind):
    assert counter_of(blank(messages.Commit), blank(kind)) == "rejected_commits"
    assert counter_of(blank(messages.Abort), blank(kind)) is None


def test_other_verbs_count_only_what_came_too_late():
    for verb in (messages.Commit, messages.Heartbeat, messages.Clear, messages.Reserve):
        assert counter_of(blank(verb), blank(errors.Expired)) == "expired"
        assert counter_of(blank(verb), blank(messages.Ok)) is None
