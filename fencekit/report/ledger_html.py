"""A ledger as one HTML page: admitted, replayed, refused by cause, unknown with ages, a timeline.

The document is `fencekit.ledger-report/1`; its JSON Schema is `ledger.schema.json` beside this
module. Whoever can read a ledger makes it; this page only lays it out.
"""

from __future__ import annotations

import json
from collections import Counter
from datetime import datetime
from importlib import resources
from typing import Any

from fencekit.report import page

Json = dict[str, Any]

SCHEMA = "fencekit.ledger-report/1"
CAUSES = {
    "in_flight": "another attempt was under way",
    "prior_failure": "an earlier attempt has no known outcome",
    "stale_read_set": "it was decided on data that had moved",
    "domain_race": "its own domain had moved",
    "mismatch": "the same name for another action",
    "causal": "concurrent with what was there",
}
_SLOTS = 48  # columns of the timeline
_LISTED = 400  # events listed below it
_TONES = {
    "admitted": 0, "replayed": 5, "refused": 6, "done": 4, "unknown": 1, "cleared": 2, "settled": 2,
    "released": 7, "forgotten": 3,
}  # fmt: skip


def schema() -> Json:
    """Return the JSON Schema of the document."""
    text = (resources.files("fencekit.report") / "ledger.schema.json").read_text(encoding="utf-8")
    found: Json = json.loads(text)
    return found


def render(document: Json) -> str:
    """Return the page of a `fencekit.ledger-report/1` document."""
    refused = document["stats"]["refused"]
    return page.render(
        "ledger.html",
        document=document,
        refused_total=sum(refused.values()),
        refused=[
            {"cause": cause, "words": CAUSES.get(cause, ""), "number": number}
            for cause, number in sorted(refused.items(), key=lambda pair: (-pair[1], pair[0]))
        ],
        unknown=[
            {**item, "age": age(item["age_s"])}
            for item in sorted(document["unknown"], key=lambda item: -item["age_s"])
        ],
        in_flight=[{**item, "age": age(item["age_s"])} for item in document["in_flight"]],
        picture=columns(document["timeline"]),
        events=document["timeline"][-_LISTED:][::-1],
        left_out=document.get("left_out") or {},
    )


def age(seconds: float) -> str:
    """Return an age for reading: the two largest units."""
    whole = int(seconds)
    for size, unit, below, smaller in (
        (86400, "d", 3600, "h"),
        (3600, "h", 60, "min"),
        (60, "min", 1, "s"),
    ):
        if whole >= size:
            rest = whole % size // below
            return f"{whole // size} {unit}" + (f" {rest} {smaller}" if rest else "")
    return f"{whole} s"


def columns(events: list[Json]) -> Json | None:
    """Return a stacked column chart: events per slice of time, positions in percent. Pure."""
    times = [_seconds(event["at"]) for event in events]
    if not times:
        return None
    first, span = min(times), max(max(times) - min(times), 1.0)
    stacks: list[Counter[str]] = [Counter() for _ in range(_SLOTS)]
    for event, at in zip(events, times, strict=True):
        stacks[min(int((at - first) / span * _SLOTS), _SLOTS - 1)][event["event"]] += 1
    tallest = max(sum(stack.values()) for stack in stacks)
    boxes = []
    for slot, stack in enumerate(stacks):
        floor = 100.0
        for kind, number in sorted(stack.items()):
            height = number / tallest * 92
            floor -= height
            boxes.append(
                {
                    "x": round(slot / _SLOTS * 100, 2),
                    "y": round(floor, 2),
                    "height": round(height, 2),
                    "colour": _TONES.get(kind, 7),
                    "words": f"{number} {kind}",
                }
            )
    kinds = sorted({event["event"] for event in events})
    return {
        "boxes": boxes,
        "width": round(100 / _SLOTS * 0.82, 2),
        "legend": [{"kind": kind, "colour": _TONES.get(kind, 7)} for kind in kinds],
        "from": min(events, key=lambda e: _seconds(e["at"]))["at"],
        "to": max(events, key=lambda e: _seconds(e["at"]))["at"],
        "tallest": tallest,
    }


def _seconds(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()
