"""The two pictures of the front page, as positions: time to fix over time, states by kind. Pure."""

from __future__ import annotations

import math
from collections import Counter
from datetime import date
from typing import Any

from fencekit.index.rows import STATE_WORDS

Json = dict[str, Any]

_TICKS = ((1, "1 h"), (24, "1 day"), (24 * 7, "1 week"), (24 * 30, "1 month"), (24 * 365, "1 year"))
_COLOURS = {"verified-safe": 4, "fixed": 5, "unassessable": 6, "ended": 7}


def fixes(rows: list[Json]) -> Json | None:
    """Return the dots of "time to fix over time": x by date, y by hours on a log scale, percent."""
    timed = [row for row in rows if row["time_to_fix"]]
    if not timed:
        return None
    days = {row["id"]: date.fromisoformat(row["fixed"][:10]).toordinal() for row in timed}
    hours = {row["id"]: max(_hours(row["time_to_fix"]), 0.25) for row in timed}
    first, last = min(days.values()), max(days.values())
    low = math.log10(min(*hours.values(), 1.0))
    high = math.log10(max(*hours.values(), 24.0)) + 0.15

    def height(value: float) -> float:
        return round(88 - (math.log10(value) - low) / (high - low) * 80, 2)

    return {
        "dots": [
            {
                "x": round(14 + (days[row["id"]] - first) / max(last - first, 1) * 82, 2)
                if last > first
                else 55.0,
                "y": height(hours[row["id"]]),
                "rough": row["time_to_fix"]["seconds"] is None,
                "words": _dot_words(row),
            }
            for row in timed
        ],
        "ticks": [(height(h), label) for h, label in _TICKS if low <= math.log10(h) <= high],
        "from": date.fromordinal(first).isoformat(),
        "to": date.fromordinal(last).isoformat() if last > first else "",
        "words": f"{len(timed)} fixes, by the day they were public and the time they took",
    }


def _dot_words(row: Json) -> str:
    return f"{row['implementation']}: {row['time_to_fix']['words']}, {row['fixed'][:10]}"


def _hours(taken: Json) -> float:
    if taken["seconds"] is not None:
        return float(taken["seconds"]) / 3600
    return max(float(taken["days"]) * 24, 12.0)


def states_by_kind(rows: list[Json]) -> Json | None:
    """Return stacked bars, one per kind, in percent of the longest."""
    if not rows:
        return None
    counts: dict[str, Counter[str]] = {}
    for row in rows:
        state = "ended" if row["observation_ended"] else row["state"]
        counts.setdefault(row["kind"], Counter())[state] += 1
    longest = max(sum(counter.values()) for counter in counts.values())
    bars: list[Json] = []
    for kind, counter in sorted(counts.items(), key=lambda pair: (-sum(pair[1].values()), pair[0])):
        at = 24.0
        pieces: list[Json] = []
        for state, colour in _COLOURS.items():
            if number := counter[state]:
                width = number / longest * 66
                words = f"{number} {_label(state).lower()}"
                pieces.append(
                    {
                        "x": round(at, 2),
                        "width": round(width - 0.3, 2),
                        "colour": colour,
                        "words": words,
                    }
                )
                at += width
        bars.append(
            {
                "kind": kind,
                "pieces": pieces,
                "total": sum(counter.values()),
                "end": round(at + 1, 2),
            }
        )
    present = {state for counter in counts.values() for state in counter}
    return {
        "bars": bars,
        "legend": [(_label(s), colour) for s, colour in _COLOURS.items() if s in present],
        "words": "; ".join(
            f"{bar['kind']}: {', '.join(piece['words'] for piece in bar['pieces'])}" for bar in bars
        ),
    }


def _label(state: str) -> str:
    return "Observation ended" if state == "ended" else STATE_WORDS[state]
