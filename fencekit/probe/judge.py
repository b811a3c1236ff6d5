"""From evidence to a verdict, and never more than was seen. Pure.

Order of evidence: sink, observer, a fence's own marks, answers. The best counter that can speak
decides; a lower one that saw *more* is printed and takes ONE EFFECT away. A count of two or more
is proof whatever the answers said; ONE EFFECT needs a counter outside the answers, at least two
calls that the server answered, and no call left that may still take effect. Identical answers
alone are never a clean bill.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from fencekit.probe.answers import PLAIN_LENS, Comparison, Lens, Nature, compare, shared_ids
from fencekit.probe.model import (
    ANSWERED,
    OPEN_ENDED,
    WORST_FIRST,
    Call,
    Evidence,
    Judgement,
    MarkKind,
    Outcome,
    Verdict,
    Way,
)

ANSWERS = "answers"


@dataclass(frozen=True)
class Count:
    """What one counter says; `effects` is None where it cannot support a verdict."""

    name: str
    effects: int | None
    reason: str
    condition: str = ""
    may_prove: bool = True
    fresh: bool = True  # false: no effect now, the one counted is of an earlier way of this run


def worst(verdicts: Iterable[Verdict]) -> Verdict | None:
    """Return the worst of several verdicts, or None for none."""
    found = set(verdicts)
    return next((verdict for verdict in WORST_FIRST if verdict in found), None)


def judge(evidence: Evidence, lens: Lens = PLAIN_LENS) -> Judgement:
    """Return what the evidence of one way shows."""
    comparison = compare_calls(evidence, lens)
    said = (_sink(evidence), _observer(evidence), _fence(evidence), _answers(evidence, comparison))
    counts = [count for count in said if count is not None]
    able = [count for count in counts if count.effects is not None]
    best = able[0] if able else None
    base = Judgement(
        Verdict.INCONCLUSIVE,
        reason="",
        rests_on=best.name if best else "",
        effects=best.effects if best else None,
        fresh=best is None or best.fresh,
        disagreements=_disagreements(able),
        notes=tuple(f"{c.name}: {c.reason}" for c in counts if c.effects is None),
    )
    if best is not None and (best.effects or 0) > 1 and best.may_prove:
        return replace(base, verdict=Verdict.PROVEN, reason=best.reason)
    one = best is not None and best.name != ANSWERS and best.effects == 1
    # Where nothing worked and nothing moved, this way showed nothing of its own.
    idle = best is not None and not best.fresh and not _good(evidence)
    if best is not None and one and len(_answered(evidence)) > 1 and not idle:
        if (doubt := _doubt(evidence, base)) is not None:
            return replace(base, reason=f"{best.reason}; but {doubt}")
        verdict = Verdict.ONE_EFFECT
        return replace(base, verdict=verdict, reason=best.reason, condition=best.condition)
    if (why := _nothing_ran(evidence)) is not None:
        return replace(base, verdict=Verdict.NO_SURFACE, reason=why, rests_on="")
    return replace(base, reason=_undecided(evidence, comparison, best))


def compare_calls(evidence: Evidence, lens: Lens) -> Comparison:
    """Compare the answers of the calls that succeeded; ids that the sink minted prove nothing."""
    minted = evidence.sink.minted if evidence.sink else frozenset()
    lens = replace(lens, minted=lens.minted | minted)
    return compare([call.result for call in successes(evidence.calls)], lens)


def successes(calls: Iterable[Call]) -> list[Call]:
    """Return the calls that succeeded and whose answer was read."""
    return [call for call in calls if call.outcome is Outcome.OK]


def _answered(evidence: Evidence) -> list[Call]:
    return [call for call in evidence.calls if call.outcome in ANSWERED]


def _good(evidence: Evidence) -> list[Call]:
    good = (Outcome.OK, Outcome.DISCARDED)
    return [call for call in evidence.calls if call.outcome in good]


def _of(evidence: Evidence) -> str:
    """Return the denominators that every count is printed with."""
    answered, good = _answered(evidence), successes(evidence.calls)
    return f"of {len(evidence.calls)} calls, {len(answered)} answered, {len(good)} succeeded"


def _sink(evidence: Evidence) -> Count | None:
    sink, of = evidence.sink, _of(evidence)
    if sink is None:
        return None
    if sink.writes == 0:
        if evidence.earlier_effects == 1:
            return Count("sink", 1, f"no further write, one in the whole run ({of})", fresh=False)
        return Count("sink", None, "saw no write from these calls: not wired, which is not zero")
    if sink.effects > 1:
        keys = f"{len(sink.keys)} distinct {sink.key_name}" if sink.keys else ""
        bare = f"{sink.unkeyed} without a key" if sink.unkeyed else ""
        how = ", ".join(part for part in (keys, bare) if part) or "different bodies"
        text = f"{sink.writes} writes to {sink.target} ({how}): {sink.effects} effects {of}"
        return Count("sink", sink.effects, text)
    if sink.condition:
        text = f"{sink.writes} writes to {sink.target} under one {sink.condition} {of}"
        return Count("sink", 1, text, condition=sink.condition)
    return Count("sink", 1, f"one write to {sink.target} {of}")


def _observer(evidence: Evidence) -> Count | None:
    seen, calls = evidence.observation, len(evidence.calls)
    if seen is None:
        return None
    name = "observer"
    if seen.fault:
        return Count(name, None, seen.fault)
    delta = seen.delta
    if delta is None:
        return Count(name, None, "could not count")
    if seen.drift:
        return Count(name, None, f"moved by {seen.drift} while nothing was called")
    if not seen.settled:
        return Count(name, None, "was still moving when the time for it to settle was over")
    if delta < 0 or delta > calls:
        text = f"moved by {delta} for {calls} calls: something else moves it too"
        return Count(name, None, text)
    of = f"{seen.before} → {seen.after} {_of(evidence)}"
    if delta == 0 and evidence.earlier_effects == 1:
        return Count(name, 1, f"no further effect, one in the whole run ({of})", fresh=False)
    if delta == 0:
        return Count(name, None, f"saw nothing ({of})")
    return Count(name, delta, f"counted {delta} effect{'s' * (delta != 1)}: {of}")


def _kinds(evidence: Evidence) -> list[MarkKind]:
    return [call.mark.kind for call in evidence.calls if call.mark is not None]


def executed_now(evidence: Evidence) -> int:
    """Return how many calls a fence let through: answers without the mark of a replay.

    An answer that was discarded unread had a mark or not; it is not counted.
    """
    replays = (MarkKind.REPLAYED_NOW, MarkKind.REPLAYED_BEFORE, MarkKind.REFUSED)
    read = [call for call in _answered(evidence) if call.outcome is not Outcome.DISCARDED]
    return sum(call.mark is None or call.mark.kind not in replays for call in read)


def _fence(evidence: Evidence) -> Count | None:
    kinds = _kinds(evidence)
    if not kinds:
        return None
    ran, now = executed_now(evidence), kinds.count(MarkKind.REPLAYED_NOW)
    before = kinds.count(MarkKind.REPLAYED_BEFORE)
    text = f"{ran} executed now, {now} replayed from now, {before} replayed from before"
    if not evidence.setting.fenced:
        return Count("fence", None, f"{text}; but this probe did not start the fence that says so")
    # What is replayed from now was executed in this run: by an earlier way, or by the one call
    # of this way whose answer was not read.
    earlier = evidence.earlier_effects or 0
    unread = any(call.outcome is Outcome.DISCARDED for call in evidence.calls)
    if ran == 0 and now and not before and earlier + (unread and not earlier) == 1:
        return Count("fence", 1, f"{text}; one in the whole run", fresh=not earlier)
    if ran == 0 or ran > 1:
        return Count("fence", None, text)
    return Count("fence", 1, f"{text} {_of(evidence)}")


def _answers(evidence: Evidence, comparison: Comparison) -> Count | None:
    if comparison.executions < 2:
        return None
    counted = [d for d in comparison.identifying if d.strong] or list(comparison.identifying)
    paths = ", ".join(f"{d.path}: {d.distinct} distinct" for d in counted[:3])
    text = f"{paths} {_of(evidence)}"
    if evidence.setting.reads_only:
        return Count(ANSWERS, comparison.executions, text, may_prove=False)
    if not _separate_worlds(evidence) or shared_ids(_by_connection(evidence)):
        return Count(ANSWERS, comparison.executions, text)
    if evidence.way is Way.RESTART and len(successes(evidence.calls)) > 1:
        where = evidence.setting.cwd or "the working directory"
        text += (
            "; the server answered, was ended, and ran it again: this rests on the state it was "
            f"left with ({where}, HOME and temporary data as they were)"
        )
        return Count(ANSWERS, comparison.executions, text)
    return Count(ANSWERS, comparison.executions, text, may_prove=False)


def _separate_worlds(evidence: Evidence) -> bool:
    """Whether the calls went to different processes, each perhaps with a state of its own."""
    new_process = evidence.way in (Way.RESTART, Way.LOST_ANSWER)
    return evidence.setting.stdio and (evidence.connections > 1 or new_process)


def _by_connection(evidence: Evidence) -> list[list[object]]:
    made: dict[int, list[object]] = {}
    for call in successes(evidence.calls):
        made.setdefault(call.connection, []).append(call.result)
    return list(made.values())


def _disagreements(able: Sequence[Count]) -> tuple[str, ...]:
    """Say where counters contradict each other, the better one first."""
    if not able:
        return ()
    best = able[0]
    return tuple(
        f"{best.name} says {best.effects}, {other.name} says {other.effects} ({other.reason})"
        for other in able[1:]
        if other.effects != best.effects
    )


def _doubt(evidence: Evidence, base: Judgement) -> str | None:
    """Return why a count of one is not ONE EFFECT, or None."""
    if base.disagreements:
        return f"the counters disagree: {base.disagreements[0]}"
    waiting = sum(call.outcome in OPEN_ENDED for call in evidence.calls)
    if waiting:
        return f"{waiting} of {len(evidence.calls)} calls have no outcome and may still take effect"
    if evidence.way is Way.LOST_ANSWER and not (evidence.cut and evidence.cut.first_ran):
        return "nothing shows that the first call ran before its answer was cut"
    return None


def _nothing_ran(evidence: Evidence) -> str | None:
    """Return why there was no race to lose, or None where there was one."""
    kinds = _kinds(evidence)
    if kinds and executed_now(evidence) == 0:
        ages = [c.mark.age for c in evidence.calls if c.mark is not None and c.mark.age is not None]
        old = f", the oldest {max(ages):.0f} s old" if ages else ""
        return f"nothing executed now: all {len(kinds)} answers came from a fence's record{old}"
    if len(_good(evidence)) < 2:
        waiting = sum(call.outcome in OPEN_ENDED for call in evidence.calls)
        may = f"; {waiting} have no outcome and may have happened" if waiting else ""
        return f"fewer than two calls succeeded ({_of(evidence)}){may}"
    return None


def _undecided(evidence: Evidence, seen: Comparison, best: Count | None) -> str:
    of = _of(evidence)
    if best is not None and best.effects != 1:
        if evidence.setting.reads_only:
            why = evidence.setting.reads_because or "the tool says it only reads"
            return f"the answers differ ({best.reason}), but {why}"
        return (
            f"the answers differ ({best.reason}), but they come from separate processes, each "
            "perhaps with a world of its own, and no counter stands outside them"
        )
    if len(successes(evidence.calls)) < 2:
        return f"no two answers were read to compare, and no counter stands outside them ({of})"
    natures = {d.nature for d in seen.differences}
    paths = ", ".join(d.path for d in seen.differences[:3])
    if seen.agrees_on and seen.differences:
        return f"the answers differ in {paths} but agree on {seen.agrees_on} ({of})"
    if Nature.DESCRIPTIVE in natures or Nature.IDENTIFYING in natures:
        return f"the answers differ in words only ({paths}), which shows no second effect ({of})"
    if Nature.VOLATILE in natures:
        return f"the answers differ only in volatile fields ({paths}; {of})"
    return f"identical answers and no counter outside them, which proves nothing ({of})"
