"""A scan as Markdown, for an issue or a pull request: outside text stands in code spans only."""

from __future__ import annotations

from fencekit.report import scan_view
from fencekit.report.escape import markdown_code as code
from fencekit.report.scan_view import Json, ScanView


def render(documents: list[Json]) -> str:
    """Return the scan of one or more repositories as GitHub-flavoured Markdown."""
    views = [scan_view.view(document) for document in documents]
    lines = ["# Tools that could fire the same effect twice", ""]
    for one in views:
        lines += _repository(one)
    if len(views) > 1:
        lines += ["## Summary", "", *_summary(views), ""]
    lines += ["## What this scan cannot see", "", *(f"- {line}" for line in scan_view.CANNOT_SEE)]
    return "\n".join([*lines, "", scan_view.CONTEST, ""])


def _repository(one: ScanView) -> list[str]:
    title = f"## {code(one.name)}" + (f" at {code(one.commit[:12])}" if one.commit else "")
    shown = [f"**{one.counts[key]}** {label}" for key, label in scan_view.LABELS.items()]
    lines = [title, "", " · ".join(shown), ""]
    for number, tool in enumerate(one.rows, 1):
        lines += _row(number, tool)
    if one.declarative:
        lines += [
            f"<details><summary>{scan_view.declarative_words(one)}</summary>",
            "",
        ]
        lines += [f"- {code(tool['name'])} {_place(tool)}" for tool in one.declarative]
        lines += ["", "</details>", ""]
    return [*lines, *_beside(one)]


def _place(item: Json) -> str:
    return code(f"{item['file']}:{item['line']}")


def _row(number: int, tool: Json) -> list[str]:
    lines = [f"### {number}. {code(tool['name'])}", ""]
    lines += [
        " · ".join(
            [_place(tool), *scan_view.marks(tool), f"fingerprint {code(tool['fingerprint'])}"]
        ),
        "",
    ]
    for write in tool["writes"]:
        steps = [
            f"{code(hop['symbol'])} ({_place(hop)}{'' if hop['certain'] else ', by name only'})"
            for hop in scan_view.hops(write)
        ]
        lines += [f"{at}. {step}" for at, step in enumerate(steps, 1)] + [""]
    if not tool["writes"]:
        lines += ["No path to a write was resolved; the name or description says it writes.", ""]
    for item in tool["mechanisms"]:
        lines += [f"- mechanism: {code(item['kind'])} at {_place(item)}: {code(item['note'])}"]
    for what, file, line, words in scan_view.facts(tool):
        if what != "mechanism":
            lines += [f"- {what}: {code(words)} at {code(f'{file}:{line}')}"]
    return [*lines, ""]


def _beside(one: ScanView) -> list[str]:
    lines = []
    for title, items in scan_view.beside(one):
        lines += [f"<details><summary>{title} ({len(items)})</summary>", ""]
        lines += [f"- {code(item)}" for item in items]
        lines += ["", "</details>", ""]
    return lines


def _summary(views: list[ScanView]) -> list[str]:
    columns = ("tools", "candidates", "money", "unresolved", "declarative")
    sums = scan_view.total([one.counts for one in views])
    return [
        "| repository | " + " | ".join(columns) + " |",
        "| --- |" + " ---: |" * len(columns),
        *(
            f"| {code(one.name, in_table=True)} | "
            + " | ".join(str(one.counts[key]) for key in columns)
            + " |"
            for one in views
        ),
        "| all | " + " | ".join(str(sums[key]) for key in columns) + " |",
    ]
