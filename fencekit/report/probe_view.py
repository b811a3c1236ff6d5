"""What pages show of a `fencekit.probe/1` document: the page of a run, and rows of the Index."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from fencekit.report import timeline
from fencekit.report.escape import shorten

Json = dict[str, Any]

TONES = {
    "PROVEN DOUBLE-FIRE": "bad",
    "INCONCLUSIVE": "warn",
    "NO RACE SURFACE": "info",
    "ONE EFFECT": "good",
}
HELD = "ONE EFFECT"
PROVEN = "PROVEN DOUBLE-FIRE"


@dataclass(frozen=True)
class Headline:
    """The verdict as it is shown: a tone (a CSS class), the words, the sentence that carries it."""

    tone: str
    words: str
    reason: str


def self_check(document: Json) -> bool | None:
    """Whether the probe's self-check passed; None where none was made."""
    check = document.get("self_check")
    return None if not check else bool(check.get("passed"))


def headline(document: Json) -> Headline:
    """Return what stands on top; a failed self-check makes the run void, whatever it counted."""
    if self_check(document) is False:
        return Headline(
            "bad",
            "VOID: the self-check failed",
            "The probe did not recognise its own broken or its own correct server, so nothing below"
            " is evidence.",
        )
    if document.get("verdict") is None:
        why = document.get("stopped") or document.get("reason") or "nothing was asked twice"
        return Headline("info", "NO VERDICT", str(why))
    tone = TONES.get(str(document["verdict"]), "info")
    words = str(document.get("verdict_words") or document["verdict"])
    return Headline(tone, words, str(document.get("reason") or ""))


def held(document: Json) -> tuple[int, int]:
    """Return in how many ways the effect was counted once, and of how many that were tried."""
    ways = document["ways"]
    return sum(way["verdict"] == HELD for way in ways), len(ways)


def ways(document: Json) -> list[Json]:
    """Return each way with its tone, timeline and lettered answers."""
    return [
        {
            "way": way,
            "tone": TONES.get(way["verdict"], "info"),
            "timeline": timeline.draw(way),
            "answers": [
                {**answer, "letter": timeline.letter(answer["n"]), "colour": answer["n"] % 8}
                for answer in way["answers"]
            ],
            "counters": _counters(way),
            "sentence": _sentence(way["counts"]),
        }
        for way in document["ways"]
    ]


def _sentence(counts: Json) -> str:
    parts = [f"{counts['calls']} calls", f"{counts['answered']} answered"]
    parts.append(f"{counts['succeeded']} succeeded")
    for key in ("tool_errors", "rate_limited", "transport_failures"):
        if counts.get(key):
            parts.append(f"{counts[key]} {key.replace('_', ' ')}")
    return ", ".join(parts)


def _counters(way: Json) -> list[tuple[str, str, str]]:
    """Return each counter as (name, what it says, detail), the strongest evidence first."""
    counters = way["counters"]
    found = []
    if sink := counters.get("sink"):
        keys = f"{sink['distinct_keys']} distinct {sink['key_name'] or 'keys'}"
        detail = f"{sink['writes']} writes, {keys}, {sink['writes_without_key']} without a key"
        found.append(("Sink", _effects(sink["effects"], sink["writes"]), detail))
    if seen := counters.get("observer"):
        said = seen["fault"] or f"{seen['before']} before, {seen['after']} after"
        delta = "could not count" if seen["delta"] is None else _effects(seen["delta"], 1)
        found.append(("Observer", delta, f"{seen['source']}: {said}"))
    if marks := way.get("marks"):
        replayed = marks["replayed_now"] + marks["replayed_before"]
        detail = f"{marks['replayed_now']} from now, {marks['replayed_before']} from before"
        found.append(("Fence", f"{marks['executed_now']} executed, {replayed} replayed", detail))
    answers = counters["answers"]
    plural = "s" if answers["distinct"] != 1 else ""
    detail = f"{answers['executions']} executions by identity" if answers["executions"] else ""
    found.append(("Answers", f"{answers['distinct']} distinct answer{plural}", detail))
    return found


def _effects(number: int, seen: int) -> str:
    if not seen:
        return "not wired: saw no write"
    return f"{number} effect{'s' if number != 1 else ''}"


def facts(document: Json) -> list[tuple[str, str]]:
    """Return what was asked of whom, as label and value."""
    target, tool, plan = document["target"], document["tool"], document["plan"]
    rows = [
        ("Server", f"{target['name']} {target['version']}".strip() or "unnamed"),
        ("Protocol", f"{target['protocol']} ({target['era']})" if target["protocol"] else ""),
        ("Tool", tool["name"]),
        ("Its hints", ", ".join(f"{k}: {v}" for k, v in tool["hints"].items()) or "none"),
        ("Arguments", f"SHA-256 {tool['arguments_sha256'][:16]}…"),
        ("Asked", _asked(plan["calls"], plan["connections"])),
        ("Started", document["started"]),
        ("Ended", document["ended"]),
        ("fencekit", document["tool_version"]),
    ]
    return [(label, shorten(value, 400)) for label, value in rows if value]


def comparison(raw: Json, fenced: Json) -> list[Json]:
    """Return before and after, per way: what was called, what ran, what was replayed."""
    by_way = {way["way"]: way for way in fenced["ways"]}
    return [
        {"way": way["way"], "raw": _side(way), "fenced": _side(by_way[way["way"]])}
        for way in raw["ways"]
        if way["way"] in by_way
    ]


def _side(way: Json) -> Json:
    marks = way.get("marks") or {}
    executions = way["counters"]["answers"]["executions"]
    executed = marks.get(
        "executed_now", way["effects"] if way["effects"] is not None else executions
    )
    return {
        "verdict": way["verdict_words"],
        "tone": TONES.get(way["verdict"], "info"),
        "calls": way["counts"]["calls"],
        "executed": executed,
        "replayed": marks.get("replayed_now", 0) + marks.get("replayed_before", 0),
    }


def _asked(calls: int, connections: int) -> str:
    """Say how many calls went out on how many connections."""
    plural = "" if connections == 1 else "s"
    return f"{calls} calls on {connections} connection{plural}"
