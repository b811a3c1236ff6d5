"""A scan as one HTML page: every candidate with its chain and the source around each hop."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fencekit.report import page, scan_view
from fencekit.report.escape import shorten
from fencekit.report.mechanisms import MECHANISMS, mechanism
from fencekit.report.scan_view import Json, ScanView

Sources = Callable[[int, str], list[str] | None]

_AROUND = 2  # lines shown before and after a hop
_WIDTH = 200  # characters of a source line
_CHAINS = 3  # chains per row that carry source; the others are listed without


def render(documents: list[Json], sources: Sources) -> str:
    """Return the page. `sources(document_index, path)` gives a file's lines, or None."""
    views = [scan_view.view(document) for document in documents]
    sums = scan_view.total([one.counts for one in views])
    kinds: dict[str, int] = {}
    for one in views:
        for kind, number in one.mechanisms.items():
            kinds[kind] = kinds.get(kind, 0) + number
    return page.render(
        "scan.html",
        repositories=[_repository(at, one, sources) for at, one in enumerate(views)],
        counts=sums,
        labels=scan_view.LABELS,
        kinds=[
            {"tag": _tag(k), "title": mechanism(k).title, "number": n} for k, n in kinds.items()
        ],
        cannot_see=scan_view.CANNOT_SEE,
        contest=scan_view.CONTEST,
        tool=documents[0].get("tool", {}) if documents else {},
    )


def excerpt(lines: list[str] | None, line: int, around: int = _AROUND) -> list[dict[str, Any]]:
    """Return the numbered lines around one line (counted from 1), the line itself marked `at`."""
    if not lines or not 0 < line <= len(lines):
        return []
    first, last = max(1, line - around), min(len(lines), line + around)
    return [
        {"number": n, "text": shorten(lines[n - 1].rstrip("\r\n"), _WIDTH), "at": n == line}
        for n in range(first, last + 1)
    ]


def _tag(kind: str) -> str:
    """Return the kind as a filter word; a kind that this version does not know is `other`."""
    return kind if kind in MECHANISMS else "other"


def _repository(at: int, one: ScanView, sources: Sources) -> dict[str, Any]:
    return {
        "name": one.name,
        "commit": one.commit,
        "counts": one.counts,
        "rows": [_row(at, tool, sources) for tool in one.rows],
        "declarative_words": scan_view.declarative_words(one),
        "declarative": [_row(at, tool, sources) for tool in one.declarative],
        "beside": scan_view.beside(one),
    }


def _row(at: int, tool: Json, sources: Sources) -> dict[str, Any]:
    chains = []
    for number, write in enumerate(tool["writes"]):
        steps = scan_view.hops(write)
        shown = [
            excerpt(sources(at, s["file"]), s["line"]) if number < _CHAINS else [] for s in steps
        ]
        chains.append(
            {
                "what": write["what"],
                "declarative": write["declarative"],
                "hops": steps,
                "excerpts": shown,
            }
        )
    kinds = sorted(scan_view.mechanism_kinds(tool))
    return {
        "tool": tool,
        "marks": scan_view.marks(tool),
        "tags": [f"mechanism:{_tag(kind)}" for kind in kinds]
        + (["money:yes"] if tool["money"] else []),
        "chains": chains,
        "mechanisms": [
            {
                "about": mechanism(i["kind"]),
                "item": i,
                "excerpt": excerpt(sources(at, i["file"]), i["line"], 1),
            }
            for i in tool["mechanisms"]
        ],
        "facts": [fact for fact in scan_view.facts(tool) if fact[0] != "mechanism"],
    }
