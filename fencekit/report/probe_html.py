"""A probe run as one HTML page: the verdict, what it rests on, and how to see it for oneself."""

from __future__ import annotations

from fencekit.report import page, probe_view
from fencekit.report.probe_view import Json


def render(document: Json, raw: Json | None = None) -> str:
    """Return the page of a `fencekit.probe/1` document.

    `raw` is an earlier run without the fence; with it the page opens with both, side by side.
    """
    commands = document["commands"]
    return page.render(
        "probe.html",
        document=document,
        headline=probe_view.headline(document),
        self_check=probe_view.self_check(document),
        facts=probe_view.facts(document),
        ways=probe_view.ways(document),
        compared=probe_view.comparison(raw, document) if raw else [],
        raw_headline=probe_view.headline(raw) if raw else None,
        commands=[
            (label, commands[key])
            for key, label in (
                ("this", "This run"),
                ("raw", "Without the fence"),
                ("fenced", "The same through the fence"),
            )
            if commands.get(key)
        ],
    )
