"""A run as the versioned document `fencekit.probe/1`: what every output is made from.

The schema is `schema.json` beside this module. Values under keys that look secret are masked here,
once, so that no renderer can forget to.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from importlib import resources
from typing import Any

from fencekit import __version__
from fencekit.probe import answers as answers_
from fencekit.probe.answers import Comparison
from fencekit.probe.judge import executed_now, successes
from fencekit.probe.model import (
    ANSWERED,
    TRANSPORT_FAILURES,
    Call,
    Evidence,
    MarkKind,
    Observation,
    Outcome,
    SinkReading,
    Verdict,
    Way,
)
from fencekit.probe.run import Asked, Run
from fencekit.report.escape import mask, mask_argv, mask_text, shorten

SCHEMA = "fencekit.probe/1"
TEXT_LIMIT = 600  # characters of one answer that are kept
DETAIL_LIMIT = 300
SDK_OVERLAP = 40  # threads of the limiter that the SDK runs synchronous tools in
BLIND = (
    "effects that neither the answers nor a counter show",
    "what a repeat with other arguments, later, or from another account would do",
    "the inside of the API behind the server: a key that was sent is not a key that is honoured",
)


def schema() -> dict[str, Any]:
    """Return the JSON Schema of the document."""
    text = resources.files("fencekit.probe").joinpath("schema.json").read_text(encoding="utf-8")
    found: dict[str, Any] = json.loads(text)
    return found


def document(
    run: Run, commands: Mapping[str, str], ended: datetime | None = None
) -> dict[str, Any]:
    """Return the run as a document. `commands`: `this`, `raw` and `fenced` command lines."""
    now = ended or datetime.now(UTC)
    verdict = run.verdict
    deciding = next((a for a in run.asked if a.judgement.verdict is verdict), None)
    return {
        "schema": SCHEMA,
        "tool_version": __version__,
        "started": _iso(run.began),
        "ended": _iso(now),
        "elapsed_ms": round((now - run.began).total_seconds() * 1000, 1),
        "complete": not run.stopped,
        "stopped": run.stopped or None,
        "commands": dict(commands),
        "target": _target(run),
        "tool": _tool(run),
        "plan": _plan(run),
        "control": run.control or None,
        "self_check": _self_check(run),
        "verdict": None if verdict is None else str(verdict),
        "verdict_words": deciding.judgement.words if deciding else None,
        "reason": deciding.judgement.reason if deciding else None,
        "rests_on": deciding.judgement.rests_on if deciding else None,
        "effects": deciding.judgement.effects if deciding else None,
        "ways": [_way(asked) for asked in run.asked],
        "skipped": [{"way": str(way), "because": why} for way, why in run.skipped.items()],
        "notes": [*run.notes],
        "cannot_see": [*BLIND, *_blind(run)],
    }


def _iso(at: datetime) -> str:
    return at.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _blind(run: Run) -> list[str]:
    found = []
    if any(asked.judgement.rests_on == "fence" for asked in run.asked):
        found.append("what the server did with the one call that the fence let through")
    elif run.plan.counter is None and run.plan.sink is None:
        found.append("how many effects happened: only answers were compared (--count-tool, --sink)")
    if run.plan.sink is not None:
        found.append("traffic that does not go through the sink; TLS is not intercepted")
    if not run.plan.target.url and run.plan.connections > 1:
        found.append("a state that the separate server processes do not share")
    return found


def _target(run: Run) -> dict[str, Any]:
    target = run.plan.target
    return {
        "kind": "http" if target.url else "stdio",
        "command": mask_argv(list(target.command)) or None,
        "url": mask_text(target.url) or None,
        "fenced": run.plan.fenced,
        **{key: run.server.get(key, "") for key in ("name", "version", "protocol", "era")},
    }


def _tool(run: Run) -> dict[str, Any]:
    tool, arguments = run.tool, run.plan.arguments
    canonical = answers_.text_of(dict(arguments)).encode("utf-8", "surrogatepass")
    return {
        "name": run.plan.tool,
        "description": shorten(tool.description, TEXT_LIMIT) if tool else "",
        "hints": dict(tool.hints) if tool else {},
        "arguments": mask(dict(arguments)),
        "arguments_sha256": hashlib.sha256(canonical).hexdigest(),
    }


def _plan(run: Run) -> dict[str, Any]:
    plan = run.plan
    sink = plan.sink
    return {
        "ways": [str(way) for way in plan.ways],
        "calls": plan.calls,
        "connections": plan.connections,
        "timeout_s": plan.timeout,
        "observer": mask_text(plan.counter.name) if plan.counter else None,
        "sink": None
        if sink is None
        else {"env": sink.env, "fault": sink.fault or None, "only": sink.only or None},
        "ignore": list(plan.ignore),
        "id_paths": list(plan.ids),
    }


def _self_check(run: Run) -> dict[str, Any] | None:
    if run.check is None:
        return None
    return {
        "passed": run.check.passed,
        "elapsed_ms": run.check.elapsed_ms,
        "checks": [
            {
                "way": str(check.way),
                "counter": check.counter,
                "specimen": check.specimen,
                "verdict": str(check.verdict),
                "passed": check.passed,
            }
            for check in run.check.checks
        ],
    }


def _way(asked: Asked) -> dict[str, Any]:
    evidence, judgement, comparison = asked.evidence, asked.judgement, asked.comparison
    groups = dict(
        zip((call.n for call in successes(evidence.calls)), comparison.groups, strict=True)
    )
    return {
        "way": str(asked.way),
        "verdict": str(judgement.verdict),
        "verdict_words": judgement.words,
        "condition": judgement.condition or None,
        "reason": mask_text(judgement.reason),
        "rests_on": judgement.rests_on or None,
        "effects": judgement.effects,
        "disagreements": list(judgement.disagreements),
        "notes": [*judgement.notes, *_raced(asked)],
        "counts": counts(evidence.calls),
        "marks": _marks(evidence),
        "overlap": {
            "spread_ms": asked.overlap.spread_ms,
            "first_answer_ms": asked.overlap.first_answer_ms,
            "last_answer_ms": asked.overlap.last_answer_ms,
            "together": asked.overlap.together,
            "parallel": asked.overlap.parallel,
        },
        "cut": None if evidence.cut is None else evidence.cut.evidence,
        "counters": {
            "answers": {"distinct": comparison.distinct, "executions": comparison.executions},
            "observer": _observer(evidence.observation),
            "sink": _sink(evidence.sink),
        },
        "calls": [_call(call, groups.get(call.n)) for call in evidence.calls],
        "answers": _answers(evidence, comparison),
        "differences": [
            {
                "path": d.path,
                "distinct": d.distinct,
                "nature": str(d.nature),
                "samples": _samples(d.path, d.samples),
            }
            for d in comparison.differences
        ],
    }


def _raced(asked: Asked) -> list[str]:
    lap, calls = asked.overlap, len(asked.evidence.calls)
    if asked.way is not Way.TWINS or calls < 2 or asked.judgement.verdict is Verdict.PROVEN:
        return []
    if lap.together < 2:
        return ["no two calls were out at the same time: these calls did not race"]
    if lap.parallel is not None and calls >= 4 and lap.parallel < 1.5:
        text = f"the answers came one after another (about {lap.parallel:g} at a time): the server"
        return [f"{text} seems to run these calls in turn, so they hardly raced"]
    if calls > SDK_OVERLAP:
        return [f"a server on the Python SDK overlaps at most {SDK_OVERLAP} synchronous calls"]
    return []


def counts(calls: Sequence[Call]) -> dict[str, int]:
    """Return the denominators: calls, answered, succeeded, tool errors, failures of transport."""

    def among(kinds: object) -> int:
        return sum(call.outcome in kinds for call in calls)  # type: ignore[operator]

    return {
        "calls": len(calls),
        "answered": among(ANSWERED),
        "succeeded": among({Outcome.OK, Outcome.DISCARDED}),
        "tool_errors": among({Outcome.TOOL_ERROR, Outcome.RPC_ERROR}),
        "asked_back": among({Outcome.ASKED_BACK, Outcome.PENDING_TASK}),
        "rate_limited": among({Outcome.RATE_LIMITED}),
        "transport_failures": among(TRANSPORT_FAILURES),
    }


def _marks(evidence: Evidence) -> dict[str, Any] | None:
    marks = [call.mark for call in evidence.calls if call.mark is not None]
    if not marks:
        return None
    kinds = [mark.kind for mark in marks]
    ages = [mark.age for mark in marks if mark.age is not None]
    return {
        "executed_now": executed_now(evidence),
        "replayed_now": kinds.count(MarkKind.REPLAYED_NOW),
        "replayed_before": kinds.count(MarkKind.REPLAYED_BEFORE),
        "refused": kinds.count(MarkKind.REFUSED),
        "oldest_age_s": round(max(ages), 1) if ages else None,
    }


def _observer(seen: Observation | None) -> dict[str, Any] | None:
    if seen is None:
        return None
    return {
        "source": mask_text(seen.source),
        "before": seen.before,
        "after": seen.after,
        "delta": seen.delta,
        "drift": seen.drift,
        "settled": seen.settled,
        "fault": mask_text(seen.fault) or None,
    }


def _sink(reading: SinkReading | None) -> dict[str, Any] | None:
    if reading is None:
        return None
    keys = reading.keys
    return {
        "target": reading.target or None,
        "writes": reading.writes,
        "effects": reading.effects,
        "key_name": reading.key_name or None,
        "distinct_keys": len(keys),
        "writes_without_key": reading.unkeyed,
        "reads": reading.reads,
        "other_targets": dict(reading.others),
        "overlap": reading.overlap,
        "faults_injected": reading.faults,
    }


def _call(call: Call, group: int | None) -> dict[str, Any]:
    return {
        "n": call.n,
        "connection": call.connection,
        "outcome": str(call.outcome),
        "sent_ms": call.sent_ms,
        "answered_ms": call.answered_ms,
        "answer": group,
        "mark": None if call.mark is None else str(call.mark.kind),
        "detail": shorten(mask_text(call.detail), DETAIL_LIMIT) or None,
    }


def _answers(evidence: Evidence, comparison: Comparison) -> list[dict[str, Any]]:
    seen: dict[int, list[Call]] = {}
    for call, group in zip(successes(evidence.calls), comparison.groups, strict=True):
        seen.setdefault(group, []).append(call)
    return [
        {
            "n": group,
            "count": len(members),
            "calls": [call.n for call in members],
            "text": shorten(answers_.text_of(mask(answers_.normal(members[0].result))), TEXT_LIMIT),
        }
        for group, members in seen.items()
    ]


def _samples(path: str, samples: Sequence[str]) -> list[str]:
    leaf = path.rpartition(".")[2]
    masked = mask({leaf: "x"})[leaf] != "x"
    return ["[masked]"] if masked else [mask_text(sample) for sample in samples]


def exit_code(doc: Mapping[str, Any]) -> int:
    """Return 1 for a proven double-fire, 2 where there is no verdict, else 0."""
    if doc["verdict"] is None:
        return 2
    return 1 if doc["verdict"] == Verdict.PROVEN else 0
