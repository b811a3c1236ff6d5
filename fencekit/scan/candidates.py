"""From a tool and what the walk found to one row of the report. Pure: no files, no grammar.

A candidate is a tool from which a write is reachable, or whose handler could not be resolved and
whose name or description says it writes. The order: money, then what a repeat adds to, then how
certain the chain is, then missing guards.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from fencekit.scan import words
from fencekit.scan.mechanisms import Guard, Mechanism, guards_of, mechanisms_of
from fencekit.scan.toolspec import Tool
from fencekit.scan.walked import Hit, Walked


@dataclass(slots=True)
class Row:
    """One declared tool with everything the report says of it."""

    tool: Tool
    hits: list[Hit]
    reaches_write: bool | None
    candidate: bool
    unresolved: bool
    declarative: bool
    money: bool
    guards: list[Guard] = field(default_factory=list)
    mechanisms: list[Mechanism] = field(default_factory=list)
    walked: Walked = field(default_factory=Walked)


def judge(tool: Tool, walked: Walked) -> Row:
    """Return the row of one tool."""
    hits = writes_of(tool, walked)
    unresolved = tool.handler is None and tool.data is None
    reaches: bool | None = bool(hits)
    if not hits and unresolved:
        reaches = None
    candidate = bool(hits) or (unresolved and says_it_writes(tool))
    declarative = bool(hits) and all(h.effect.declarative for h in hits)
    row = Row(
        tool, hits, reaches, candidate, unresolved, declarative, is_money(tool, hits, candidate)
    )
    row.walked = walked
    if hits:
        row.guards = guards_of(tool, hits, walked)
        row.mechanisms = mechanisms_of(tool, hits, walked)
    return row


def writes_of(tool: Tool, walked: Walked) -> list[Hit]:
    """Choose the writes that count: doubtful ones need the tool's own name to agree."""
    told = {(h.file, h.line) for h in walked.hits if h.effect.what.startswith("HTTP ")}
    # A call whose verb is known on one way to it is not listed again for a way that leaves it open.
    hits = [h for h in walked.hits if h.effect.what != "HTTP" or (h.file, h.line) not in told]
    if hits and words.reads_by_name(tool.name) and not any(h.effect.certain for h in hits):
        return []
    if tool.annotations.get("readOnlyHint") is True and all(_open_command(h) for h in hits):
        return []
    if (
        not hits
        and words.writes_by_name(tool.name)
        and tool.annotations.get("readOnlyHint") is not True
    ):
        hits = list(walked.weak)
    return sorted(hits, key=lambda h: (h.effect.declarative, not h.effect.certain, h.order))


def _open_command(hit: Hit) -> bool:
    """Tell whether a write is a child process whose command the source does not show."""
    return hit.effect.what.startswith("child process") and not hit.effect.certain


def says_it_writes(tool: Tool) -> bool:
    """Tell whether a tool's name, or the first verb of its description, says that it writes."""
    if tool.annotations.get("readOnlyHint") is True:
        return False
    if words.writes_by_name(tool.name):
        return True
    first = words.split(tool.description.strip().split(" ")[0])[:1]
    verb = first[0].removesuffix("s") if first else ""
    named = words.reads_by_name(tool.name)
    return not named and verb in (words.ADDING | words.DECLARING) - words.READING


def is_money(tool: Tool, hits: list[Hit], candidate: bool) -> bool:
    """Tell whether the writes touch something whose change moves value."""
    if not candidate:
        return False
    if words.about_money(tool.name):
        return True
    return any(words.about_money(h.effect.target) for h in hits if "/" in h.effect.target)


def order(row: Row) -> tuple[object, ...]:
    """Return the sort key of a row in the report."""
    protective = any(g.kind in ("caller-key", "derived-key", "dedup-store") for g in row.guards)
    certain = any(h.effect.certain for h in row.hits)
    return (
        not row.candidate,
        row.declarative,
        not row.money,
        not any(not h.effect.declarative for h in row.hits),
        not certain,
        protective,
        row.tool.file,
        row.tool.line,
        row.tool.name,
    )
