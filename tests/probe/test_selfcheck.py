"""The probe checks itself, and a probe that cannot fail does not pass its own check."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fencekit.probe import answers, fire, judge, selfcheck
from fencekit.probe.model import SinkReading, Verdict, Way
from fencekit.probe.observer import Observer
from fencekit.probe.selfcheck import self_check
from fencekit.probe.sink import Sink

ALL = tuple(Way)


def failed(ways=(Way.TWINS,)) -> set[tuple[str, str]]:
    """The (counter, specimen) pairs that a self-check caught."""
    result = self_check(ways)
    assert result.passed is all(check.passed for check in result.checks)
    return {(check.counter, check.specimen) for check in result.checks if not check.passed}


def test_the_probe_as_it_is_passes_in_every_way():
    result = self_check(ALL)

    assert result.passed
    assert len(result.checks) == 22
    assert {check.counter for check in result.checks} == {"answers", "observer", "sink"}


def test_it_passes_over_http_in_every_way_that_applies():
    result = self_check(ALL, http=True)

    assert result.passed
    assert {check.way for check in result.checks} == {*ALL} - {Way.RESTART}


def test_twins_sent_one_by_one_over_http_are_caught(monkeypatch):
    real = fire._lanes
    monkeypatch.setattr(
        fire,
        "_lanes",
        lambda loaded, clients: [
            (clients[0], [p for _, lane in real(loaded, clients) for p in lane])
        ],
    )

    checks = self_check((Way.TWINS,), http=True).checks

    assert [check.specimen for check in checks if not check.passed] == ["races"] * 3


def test_no_trials_are_no_pass():
    assert not selfcheck.SelfCheck((), 0.0).passed


def test_an_observer_that_always_says_one_is_caught(monkeypatch):
    real = Observer.after
    monkeypatch.setattr(
        Observer, "after", lambda self, seen, c: replace(real(self, seen, c), before=0, after=1)
    )

    assert failed() == {("observer", "races")}


def test_a_sink_that_always_says_one_is_caught(monkeypatch):
    one = SinkReading(target="POST /charges", unkeyed=1)
    monkeypatch.setattr(Sink, "reading", lambda self, since=0: one)

    assert failed() == {("sink", "races")}


def test_a_comparator_that_always_says_equal_is_caught(monkeypatch):
    def equal(results, lens):
        return answers.Comparison((0,) * len(results), 1, 1)

    monkeypatch.setattr(judge, "compare", equal)

    assert failed() == {("answers", "races")}


def test_a_comparator_that_always_says_different_is_caught(monkeypatch):
    def different(results, lens):
        return answers.Comparison(tuple(range(len(results))), len(results), len(results))

    monkeypatch.setattr(judge, "compare", different)

    assert ("answers", "keeps") in failed()


def test_twins_fired_one_by_one_are_caught_by_every_counter(monkeypatch):
    real = fire.volley

    def one_by_one(shot, clients, calls, clock, *, first=1):
        fired = [real(shot, clients, 1, clock, first=n).calls[0] for n in range(1, calls + 1)]
        return fire.Fired(tuple(fired), fire.overlap(fired))

    monkeypatch.setattr(fire, "volley", one_by_one)

    assert failed() == {("answers", "races"), ("observer", "races"), ("sink", "races")}


def test_a_judge_that_never_accuses_is_caught(monkeypatch):
    real = judge.judge
    monkeypatch.setattr(
        selfcheck,
        "judge",
        lambda e, lens: replace(real(e, lens), verdict=Verdict.INCONCLUSIVE),
    )

    assert failed((Way.RETRY,)) == {(c, "fires") for c in ("answers", "observer", "sink")}


def test_a_restart_that_ends_nothing_is_caught(monkeypatch):
    """If the server lives on, its memory answers and nothing doubles."""
    from fencekit.probe import ways

    def stay(self, first):
        calls = tuple(
            fire.one(self.rig.shot, first, self.clock, n=n, connection=n - 1) for n in (1, 2)
        )
        return calls, fire.overlap(calls), first, None

    monkeypatch.setattr(ways._Performance, "_restart", stay)

    assert failed((Way.RESTART,)) == {(c, "forgets") for c in ("answers", "observer", "sink")}


@pytest.mark.parametrize("way", ALL)
def test_each_way_is_tried_on_a_broken_and_a_correct_server(way):
    specimens = {check.specimen for check in self_check((way,)).checks}

    assert specimens == {selfcheck.BROKEN[way], "keeps"}
