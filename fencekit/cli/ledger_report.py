"""`fencekit ledger report`: a page of a ledger, or its document."""

from __future__ import annotations

import collections
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from fencekit import __version__
from fencekit.cli import ledger_view
from fencekit.cli.fencing import ledger_option, opened
from fencekit.core.stats import FenceStats
from fencekit.fence import Fence

LISTED = 500
"""How many open intents and how many of the newest events a report carries."""

_UNKNOWN = ("intent", "principal", "tool", "since", "age_s", "ticket", "revision")
_IN_FLIGHT = ("intent", "principal", "tool", "age_s", "lease_left_s")

# The audit's words for what the page calls by one name each.
_EVENTS = {"committed": "done", "late commit": "done"}


def document(fence: Fence, now: datetime) -> dict[str, Any]:
    """Return the `fencekit.ledger-report/1` document of a ledger."""
    described, at = fence.ledger.describe(), fence.ledger.now()
    states: collections.Counter[str] = collections.Counter()
    unknown: list[dict[str, Any]] = []
    in_flight: list[dict[str, Any]] = []
    for shown in fence.intents():
        state = ledger_view.state_name(shown.record.state)
        states[state.replace(" ", "_")] += 1
        if state == "unknown" and len(unknown) < LISTED:
            row = ledger_view.summary(shown, at)
            cause = ": ".join(part for part in (row["cause"], row["reason"]) if part)
            unknown.append({**{key: row[key] for key in _UNKNOWN}, "cause": cause})
        elif state == "in flight" and len(in_flight) < LISTED:
            row = ledger_view.detail(shown, at)
            in_flight.append({key: row[key] for key in _IN_FLIGHT})
    timeline: collections.deque[dict[str, Any]] = collections.deque(maxlen=LISTED)
    events = 0
    for _, event in fence.ledger.audit():
        events += 1
        name = _EVENTS.get(event["event"], event["event"])
        timeline.append(
            {
                "at": ledger_view.iso(event["at_ms"]),
                "event": name,
                "intent": event.get("intent", event.get("domain", "")),
                "note": str(event.get("note", event.get("reason", ""))),
            }
        )
    stats = FenceStats.from_counters(fence.ledger.counters())
    return {
        "schema": "fencekit.ledger-report/1",
        "tool_version": __version__,
        "generated": now.isoformat(timespec="seconds").replace("+00:00", "Z"),
        "ledger": {"url": fence.ledger.url, "kind": described.kind},
        "stats": {
            "admitted": stats.admitted,
            "replayed": stats.replayed,
            "refused": stats.refused,
            "total_attempts": stats.total_attempts,
            "prevented": stats.prevented,
        },
        "states": {key: states.get(key, 0) for key in ("in_flight", "done", "unknown")},
        "unknown": unknown,
        "in_flight": in_flight,
        "timeline": list(timeline),
        "left_out": {"timeline": events - len(timeline)},
    }


@click.command()
@ledger_option("the SQLite ledger in the user's state directory")
@click.option("--html", type=click.Path(path_type=Path, dir_okay=False), help="Write a page.")
def report(ledger: str | None, html: Path | None) -> None:
    """Report what was admitted, replayed, refused and is unknown: JSON, or a page with --html."""
    fence = opened(lambda: Fence.open(ledger))
    try:
        made = document(fence, datetime.now(UTC))
    finally:
        fence.close()
    if html is None:
        click.echo(json.dumps(made, ensure_ascii=True, indent=2))
        return
    from fencekit.report import ledger_html

    html.write_text(ledger_html.render(made), encoding="utf-8")
    click.echo(f"{html}: written", err=True)
