"""What every view of a scan shows: the same counts, the same rows in the same order, the same end.

A pure reading of `fencekit.scan/1` documents. The renderers (`scan_terminal`, `scan_html`,
`scan_markdown`, `scan_sarif`) only lay it out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from fencekit.report.mechanisms import SCANNER_KINDS

Json = dict[str, Any]

CANNOT_SEE = tuple(
    """\
What the code does when it runs: nothing was executed, and calls chosen at run time (reflection, \
plug-ins, generated clients, names built from data) are followed only where the source says so.
What the far side does with a repeat. An API may recognise one without being asked; that is not in \
this repository.
Code outside this repository: installed packages, other services, gateways and queues.
Whether a caller ever repeats. A row says that a second effect could follow, not that one did.
Anything listed above as skipped, partly parsed or unknown.""".splitlines()
)
CONTEST = """\
To contest a row: open the file at the line given, follow the chain, and answer with the line that \
stops it (a key that reaches the write, a guard that holds, a hop that does not exist). Quote the \
row's fingerprint; it stays the same when lines move. A fencekit issue with that line and the \
fingerprint is enough, and `--baseline` drops rows that were looked at before."""
MARKS = {
    "money": "money",
    "unresolved": "handler not resolved",
    "declarative": "declarative: a repeat sets the same state",
}
# Counts in the order in which every view prints them.
LABELS = {
    "tools": "tools",
    "candidates": "candidates",
    "money": "of them touch money",
    "unresolved": "of them not resolved",
    "declarative": "of them declarative only",
    "undetermined": "tools whose reach is not known",
    "twins": "twins (same list in a second file, not counted)",
    "skipped": "paths skipped",
    "partial": "files partly parsed",
    "unknowns": "names that nothing resolves",
}


def counts(document: Json) -> dict[str, int]:
    """Count one document; twins are counted only as twins. Keys as in `LABELS`, in that order."""
    own = [tool for tool in document["tools"] if not tool.get("twin_of")]
    candidates = [tool for tool in own if tool["candidate"]]
    return {
        "tools": len(own),
        "candidates": len(candidates),
        "money": sum(bool(tool["money"]) for tool in candidates),
        "unresolved": sum(bool(tool["unresolved"]) for tool in candidates),
        "declarative": sum(bool(tool["declarative"]) for tool in candidates),
        "undetermined": sum(tool["reaches_write"] is None for tool in own),
        "twins": len(document["tools"]) - len(own),
        "skipped": len(document.get("skipped", ())),
        "partial": len(document.get("partial", ())),
        "unknowns": len(document.get("unknowns", ())),
    }


def total(all_counts: list[dict[str, int]]) -> dict[str, int]:
    """Add up the counts of several documents."""
    return {key: sum(one[key] for one in all_counts) for key in LABELS}


@dataclass(frozen=True)
class ScanView:
    """One document, ready to be laid out; rows keep the order in which the scan put them."""

    document: Json
    name: str
    commit: str
    counts: dict[str, int]
    mechanisms: dict[str, int]
    rows: list[Json]
    """Candidates that a repeat would add to."""
    declarative: list[Json]
    """Candidates whose every write sets a state; shown last and folded."""
    others: list[Json]
    """Tools that are no candidates."""
    twins: list[Json]


def view(document: Json) -> ScanView:
    """Sort one document into what the views show."""
    own = [tool for tool in document["tools"] if not tool.get("twin_of")]
    candidates = [tool for tool in own if tool["candidate"]]
    found = Counter(kind for tool in candidates for kind in sorted(mechanism_kinds(tool)))
    order = {kind: at for at, kind in enumerate(SCANNER_KINDS)}
    repository = document.get("repository") or {}
    return ScanView(
        document=document,
        name=str(repository.get("path") or "."),
        commit=str(repository.get("commit") or ""),
        counts=counts(document),
        mechanisms={k: found[k] for k in sorted(found, key=lambda k: (order.get(k, 99), k))},
        rows=[tool for tool in candidates if not tool["declarative"]],
        declarative=[tool for tool in candidates if tool["declarative"]],
        others=[tool for tool in own if not tool["candidate"]],
        twins=[tool for tool in document["tools"] if tool.get("twin_of")],
    )


def mechanism_kinds(tool: Json) -> set[str]:
    """Return the kinds of mechanism that a row points at."""
    return {item["kind"] for item in tool["mechanisms"]}


def marks(tool: Json) -> list[str]:
    """Return the words that mark a row, in a fixed order."""
    return [words for key, words in MARKS.items() if tool.get(key)]


def hops(write: Json) -> list[Json]:
    """Return the chain to a write, the write itself as the last hop."""
    end = {
        "symbol": write["what"],
        "file": write["file"],
        "line": write["line"],
        "certain": write["certain"],
    }
    chain = list(write["chain"])
    if chain and all(chain[-1][key] == end[key] for key in ("symbol", "file", "line")):
        return chain
    return [*chain, end]


WRAPS: dict[bool | None, str] = {
    True: "wraps the write",
    False: "does not repeat the write",
    None: "may wrap the write: the source leaves it open",
}


def facts(tool: Json) -> Iterator[tuple[str, str, int, str]]:
    """Yield the guards, retries and mechanisms of a row: (what, file, line, words)."""
    for guard in tool["guards"]:
        yield (
            "guard",
            guard["file"],
            guard["line"],
            f"{guard['kind']} {guard.get('name') or ''}".strip(),
        )
    for retry in tool["retries"]:
        words = WRAPS[retry.get("wraps_write")]
        yield "retry", retry["file"], retry["line"], words
    for item in tool["mechanisms"]:
        yield "mechanism", item["file"], item["line"], f"{item['kind']}: {item['note']}"


def declarative_words(one: ScanView) -> str:
    """Return the heading of the folded group."""
    return f"{len(one.declarative)} declarative only (a repeat sets the same state)"


def beside(one: ScanView) -> list[tuple[str, list[str]]]:
    """Return what is listed after the rows, by heading; headings without lines are left out."""
    document = one.document
    groups = [
        ("Mechanisms pointed at", [f"{kind}: {n}" for kind, n in one.mechanisms.items()]),
        (
            "On no tool's chain",
            [f"{kind} {unknown_words(i)}" for kind, i in _unattributed(document)],
        ),
        ("Twins, not counted", [_twin_words(tool) for tool in one.twins]),
        (
            "Tools that are no candidates",
            [f"{t['name']} {t['file']}:{t['line']}" for t in one.others],
        ),
        ("Skipped", [f"{item['path']}: {item['reason']}" for item in document.get("skipped", ())]),
        ("Partly parsed", [partial_words(item) for item in document.get("partial", ())]),
        ("Unknown", [unknown_words(item) for item in document.get("unknowns", ())]),
    ]
    return [(title, lines) for title, lines in groups if lines]


def _unattributed(document: Json) -> list[tuple[str, Json]]:
    """Return writes, guards and retries that no tool's chain touches, each with its kind."""
    groups = document.get("unattributed") or {}
    found: list[tuple[str, Json]] = []
    for kind in ("guards", "retries", "writes"):
        items = groups.get(kind)
        if isinstance(items, list):
            found += [(kind.removesuffix("s"), item) for item in items if isinstance(item, dict)]
    return found


def _twin_words(tool: Json) -> str:
    twin = tool["twin_of"]
    return f"{tool['name']} {tool['file']}:{tool['line']} = {twin['file']}:{twin['line']}"


def unknown_words(item: object) -> str:
    """Return one unknown as a line: its place, its name, its reason."""
    if not isinstance(item, dict):
        return str(item)
    place = f"{item.get('file', '')}:{item.get('line', '')}".strip(":")
    rest = " · ".join(
        str(item[key])
        for key in ("name", "symbol", "what", "kind", "reason", "note")
        if item.get(key)
    )
    return f"{place} {rest}".strip()


def partial_words(item: Json) -> str:
    """Return one partly parsed file as a line: its path and the line ranges that were not read."""
    ranges = ", ".join(
        "-".join(map(str, pair)) if isinstance(pair, list | tuple) else str(pair)
        for pair in item.get("ranges", ())
    )
    return f"{item['path']} (lines {ranges})" if ranges else str(item["path"])
