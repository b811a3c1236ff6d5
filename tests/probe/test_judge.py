"""Verdicts: the order of evidence, and never more than was seen."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest

from fencekit.probe.answers import Lens
from fencekit.probe.judge import judge, worst
from fencekit.probe.model import (
    Call,
    Cut,
    Evidence,
    Mark,
    MarkKind,
    Observation,
    Outcome,
    Setting,
    SinkReading,
    Verdict,
    Way,
)

P, ONE, INC, NO = Verdict.PROVEN, Verdict.ONE_EFFECT, Verdict.INCONCLUSIVE, Verdict.NO_SURFACE
SAME = {"charge_id": "ch_1a2b3c4d"}


def calls(*results, outcome=Outcome.OK) -> tuple[Call, ...]:
    return tuple(
        Call(n, outcome, result={"structuredContent": r}) for n, r in enumerate(results, start=1)
    )


def distinct(count: int) -> tuple[Call, ...]:
    return calls(*({"charge_id": f"ch_{n:08d}"} for n in range(count)))


def seen(delta: int, **more) -> Observation:
    return Observation("a counter", before=3, after=3 + delta, **more)


def wrote(unkeyed: int = 0, **keys: int) -> SinkReading:
    return SinkReading(
        target="POST /charges", key_name="Idempotency-Key", keys=keys, unkeyed=unkeyed
    )


def twins(*evidence_calls, **more) -> Evidence:
    return Evidence(Way.TWINS, tuple(evidence_calls), **more)


def test_the_worst_verdict_counts():
    assert worst([ONE, INC, P, NO]) is P
    assert worst([ONE, NO]) is NO
    assert worst([]) is None


def test_identical_answers_alone_are_never_a_clean_bill():
    judgement = judge(twins(*calls(SAME, SAME, SAME)))

    assert judgement.verdict is INC
    assert "proves nothing" in judgement.reason
    assert "3 calls, 3 answered, 3 succeeded" in judgement.reason


def test_distinct_ids_prove_and_the_path_is_named():
    judgement = judge(twins(*distinct(12)))

    assert (judgement.verdict, judgement.effects) == (P, 12)
    assert "$.charge_id: 12 distinct" in judgement.reason


def test_a_tool_that_only_reads_is_never_proven_from_answers():
    judgement = judge(twins(*distinct(4), setting=Setting(reads_only=True)))

    assert judgement.verdict is INC
    assert "only reads" in judgement.reason


@pytest.mark.parametrize(("delta", "verdict"), [(1, ONE), (2, P), (3, P)])
def test_an_observer_decides_over_equal_answers(delta, verdict):
    judgement = judge(twins(*calls(SAME, SAME, SAME), observation=seen(delta)))

    assert (judgement.verdict, judgement.effects) == (verdict, delta)
    assert "3 → " in judgement.reason


@pytest.mark.parametrize(
    "observation",
    [
        seen(0),
        seen(4),
        seen(-1),
        seen(1, drift=1),
        seen(1, settled=False),
        Observation("c", fault="x"),
    ],
)
def test_an_observer_that_cannot_support_a_verdict_gives_none(observation):
    judgement = judge(twins(*calls(SAME, SAME, SAME), observation=observation))

    assert judgement.verdict is INC
    assert judgement.notes


def test_a_drifting_observer_proves_no_double_fire_either():
    assert judge(twins(*calls(SAME, SAME), observation=seen(2, drift=1))).verdict is INC


def test_one_effect_needs_every_call_to_have_an_outcome():
    late = Call(3, Outcome.TIMED_OUT)
    judgement = judge(twins(*calls(SAME, SAME), late, observation=seen(1)))

    assert judgement.verdict is INC
    assert "may still take effect" in judgement.reason


def test_a_time_out_takes_no_proof_away():
    late = Call(3, Outcome.TIMED_OUT)

    assert judge(twins(*calls(SAME, SAME), late, observation=seen(2))).verdict is P


def test_a_count_of_two_is_proof_even_when_no_call_succeeded():
    failed = tuple(Call(n, Outcome.TOOL_ERROR) for n in (1, 2))

    assert judge(twins(*failed, observation=seen(2))).verdict is P


def test_rate_limits_are_neither_effects_nor_safety():
    limited = tuple(Call(n, Outcome.RATE_LIMITED) for n in range(2, 12))
    judgement = judge(twins(*calls(SAME), *limited, observation=seen(1)))

    assert judgement.verdict is NO
    assert "fewer than two" in judgement.reason


def test_a_refused_duplicate_counts_as_answered():
    refused = tuple(Call(n, Outcome.TOOL_ERROR) for n in range(2, 6))

    assert judge(twins(*calls(SAME), *refused, observation=seen(1))).verdict is ONE
    assert judge(twins(*calls(SAME), *refused)).verdict is NO


def test_one_key_under_many_writes_is_conditional_and_never_plain():
    judgement = judge(twins(*calls(SAME, SAME), sink=wrote(k1=2)))

    assert judgement.verdict is ONE
    assert judgement.words == "ONE EFFECT if the API honours Idempotency-Key"


@pytest.mark.parametrize(
    ("reading", "verdict"),
    [
        (wrote(k1=1), ONE),
        (wrote(unkeyed=1), ONE),
        (wrote(k1=1, k2=1), P),
        (wrote(2), P),
        (wrote(1, k1=4), P),
    ],
)
def test_effects_at_the_sink_are_distinct_keys_plus_writes_without_one(reading, verdict):
    judgement = judge(twins(*calls(SAME, SAME), sink=reading))

    assert judgement.verdict is verdict
    assert judgement.condition == ""


def test_a_repeated_put_is_conditional_too():
    reading = SinkReading(target="PUT /scale", conditional={"d1": 2})

    assert judge(twins(*calls(SAME, SAME), sink=reading)).words == (
        "ONE EFFECT if the API honours a repeated PUT"
    )


def test_a_sink_that_saw_no_write_is_not_wired_and_never_zero():
    judgement = judge(twins(*calls(SAME, SAME), sink=SinkReading(reads=4)))

    assert judgement.verdict is INC
    assert any("not wired" in note for note in judgement.notes)


def test_ids_that_the_sink_minted_are_not_separate_evidence():
    results = [{"id": "sink_00000001"}, {"id": "sink_00000002"}]
    reading = replace(wrote(k1=1), minted=frozenset({"sink_00000001", "sink_00000002"}))

    assert judge(twins(*calls(*results), sink=reading)).verdict is ONE
    assert judge(twins(*calls(*results))).verdict is P


def test_the_better_counter_decides_and_a_disagreement_is_printed():
    judgement = judge(twins(*calls(SAME, SAME, SAME), sink=wrote(3), observation=seen(1)))

    assert judgement.verdict is P
    assert judgement.disagreements


@pytest.mark.parametrize("more", [{"observation": seen(2)}, {}])
def test_a_disagreement_never_ends_as_one_effect(more):
    judgement = judge(twins(*distinct(3), sink=wrote(k1=1), **more))

    assert judgement.verdict is INC
    assert "disagree" in judgement.reason


def marked(*kinds: MarkKind | None) -> tuple[Call, ...]:
    return tuple(
        Call(
            n,
            Outcome.OK,
            result={"structuredContent": SAME},
            mark=None if k is None else Mark(k, age=90.0),
        )
        for n, k in enumerate(kinds, start=1)
    )


NOW, BEFORE, REFUSED = MarkKind.REPLAYED_NOW, MarkKind.REPLAYED_BEFORE, MarkKind.REFUSED


def test_a_fence_that_let_one_through_is_one_effect_only_if_we_started_it():
    evidence = twins(*marked(None, *[NOW] * 11), setting=Setting(fenced=True))

    assert judge(evidence).verdict is ONE
    assert "1 executed now, 11 replayed from now" in judge(evidence).reason
    assert judge(replace(evidence, setting=Setting())).verdict is INC


def test_nothing_executed_now_is_no_race_surface_with_the_age():
    judgement = judge(twins(*marked(BEFORE, BEFORE), setting=Setting(fenced=True)))

    assert judgement.verdict is NO
    assert "nothing executed now" in judgement.reason
    assert "90 s old" in judgement.reason


def test_replays_of_an_earlier_way_of_the_same_run_are_one_in_all():
    setting = Setting(fenced=True)
    evidence = twins(*marked(NOW, NOW), setting=setting, earlier_effects=1)

    assert judge(evidence).verdict is ONE
    assert not judge(evidence).fresh


@pytest.mark.parametrize(("earlier", "verdict"), [(None, ONE), (1, ONE), (2, NO)])
def test_behind_a_fence_a_lost_answer_is_not_taken_for_an_execution(earlier, verdict):
    lost = Call(1, Outcome.DISCARDED)
    evidence = Evidence(
        Way.LOST_ANSWER,
        (lost, replace(marked(NOW)[0], n=2)),
        setting=Setting(fenced=True),
        cut=Cut("x", first_ran=True),
        earlier_effects=earlier,
    )
    judgement = judge(evidence)

    assert judgement.verdict is verdict
    assert judgement.fresh is (earlier != 1)


def test_refusals_after_an_earlier_effect_show_nothing_of_their_own():
    refused = tuple(Call(n, Outcome.TOOL_ERROR) for n in (1, 2))
    evidence = twins(*refused, observation=seen(0), earlier_effects=1)

    assert judge(evidence).verdict is NO
    assert judge(replace(evidence, calls=(*calls(SAME), *refused))).verdict is ONE


def test_a_counter_of_two_overrules_a_fence_that_says_one():
    evidence = twins(*marked(None, NOW), setting=Setting(fenced=True), observation=seen(2))

    assert judge(evidence).verdict is P


def test_calls_that_the_fence_refused_are_no_successes():
    refused = tuple(Call(n, Outcome.TOOL_ERROR, mark=Mark(REFUSED)) for n in range(1, 4))

    assert judge(twins(*refused, setting=Setting(fenced=True))).verdict is NO


def pair(way: Way, a, b, **more) -> Evidence:
    one, two = calls(a, b)
    return Evidence(way, (one, replace(two, connection=1)), **more)


DIFFER = ({"charge_id": "ch_0000000a"}, {"charge_id": "ch_0000000b"})


def test_answers_of_separate_processes_prove_nothing():
    evidence = replace(pair(Way.TWINS, *DIFFER), connections=2)

    assert judge(evidence).verdict is INC
    assert judge(replace(evidence, setting=Setting(stdio=False))).verdict is P


def test_after_a_restart_they_do_and_the_state_is_named():
    judgement = judge(pair(Way.RESTART, *DIFFER, setting=Setting(cwd="/srv/app")))

    assert judgement.verdict is P
    assert "/srv/app, HOME and temporary data" in judgement.reason
    assert judge(pair(Way.RESTART, *DIFFER, setting=Setting(reads_only=True))).verdict is INC


def test_an_answer_that_shows_shared_state_proves_across_processes():
    first, second = {"ids": ["ch_0000000a"]}, {"ids": ["ch_0000000a", "ch_0000000b"]}

    assert judge(replace(pair(Way.TWINS, first, second), connections=2)).verdict is P


def test_a_lost_answer_without_evidence_is_only_ever_proven():
    discarded = Call(1, Outcome.DISCARDED)
    two = Call(2, Outcome.OK, connection=1, result=SAME)
    for delta, ran, verdict in ((2, False, P), (1, False, INC), (1, True, ONE)):
        evidence = Evidence(
            Way.LOST_ANSWER, (discarded, two), observation=seen(delta), cut=Cut("x", first_ran=ran)
        )
        assert judge(evidence).verdict is verdict


def test_no_evidence_at_all_is_no_race_surface():
    assert judge(twins()).verdict is NO
    assert judge(twins(Call(1, Outcome.NEVER_LEFT))).verdict is NO


def test_a_verdict_never_says_more_than_the_best_counter():
    """Every combination of counters: PROVEN needs a count over one, ONE EFFECT a count of one."""
    sinks = [None, SinkReading(), wrote(1), wrote(3), wrote(k=3)]
    observers = [None, seen(0), seen(1), seen(2), seen(9), seen(1, drift=1)]
    answer_sets = [calls(SAME, SAME, SAME), distinct(3), calls(SAME), ()]
    for sink, observation, answers in itertools.product(sinks, observers, answer_sets):
        judgement = judge(twins(*answers, sink=sink, observation=observation), Lens())
        if judgement.verdict is P:
            assert (judgement.effects or 0) > 1
        if judgement.verdict is ONE:
            assert judgement.effects == 1
            assert judgement.rests_on in ("sink", "observer")
            assert judgement.disagreements == ()
