"""A run as text for a terminal of 80 columns; without colour where the console has none."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.console import Console
from rich.text import Text

from fencekit.probe.model import Verdict
from fencekit.report.escape import terminal

STYLES = {
    Verdict.PROVEN: "bold red",
    Verdict.ONE_EFFECT: "bold green",
    Verdict.INCONCLUSIVE: "bold yellow",
    Verdict.NO_SURFACE: "bold cyan",
}
MAX_DIFFERENCES = 6


def render(doc: Mapping[str, Any], console: Console) -> None:
    """Print a `fencekit.probe/1` document."""
    _Printer(console).document(doc)


class _Printer:
    def __init__(self, console: Console) -> None:
        self._console = console

    def line(self, text: str = "", style: str = "", indent: int = 0, name: str = "") -> None:
        """Print text from anywhere: nothing in it is markup, wrapped lines keep the indent."""
        hang = len(name)
        body = Text(terminal(text, lines=True), style=style)
        width = max(20, self._console.width - indent - hang)
        head, *rest = body.wrap(self._console, width) if text else [Text()]
        head.rstrip()
        self._console.print(Text(" " * indent + name, style) + head, highlight=False)
        for part in rest:
            part.rstrip()
            self._console.print(Text(" " * (indent + hang)) + part, highlight=False)

    def row(self, name: str, value: object, style: str = "") -> None:
        self.line(str(value), style, indent=2, name=f"{name:<18} : ")

    def command(self, text: str) -> None:
        """Print a command on one line of its own, however long, so that it can be copied."""
        self._console.print(Text("  " + terminal(text, limit=20_000)), soft_wrap=True)

    def document(self, doc: Mapping[str, Any]) -> None:
        target, tool = doc["target"], doc["tool"]
        name = " ".join(part for part in (target["name"], target["version"]) if part)
        where = f"{name or 'unnamed server'} ({target['kind']}, MCP {target['protocol'] or '?'})"
        self.line(f"{tool['name']} on {where}", "bold")
        for way in doc["ways"]:
            self.line()
            self.way(way, doc["plan"])
        for skipped in doc["skipped"]:
            self.line()
            self.line(f"{skipped['way']}: not asked, {skipped['because']}")
        self.line()
        self.end(doc)

    def way(self, way: Mapping[str, Any], plan: Mapping[str, Any]) -> None:
        counts, marks = way["counts"], way["marks"]
        if way["way"] == "twins":
            several = plan["connections"] > 1
            on = f" on {plan['connections']} connections" if several else ""
            self.line(f"twins: {counts['calls']} calls at one instant{on}", "bold")
        else:
            self.line(f"{way['way']}: {counts['calls']} calls", "bold")
        self.row("calls", counts["calls"])
        self.row("succeeded", counts["succeeded"])
        self.row("tool errors", counts["tool_errors"])
        self.row("transport failures", counts["transport_failures"])
        for key, name in (("rate_limited", "rate limited"), ("asked_back", "asked for input")):
            if counts[key]:
                self.row(name, counts[key])
        if marks:
            self.row("callers", counts["answered"])
            self.row("executed", marks["executed_now"])
            replayed = f"{marks['replayed_now']}"
            if marks["replayed_before"]:
                replayed += f", and {marks['replayed_before']} from before"
            self.row("replayed", replayed)
        if way["cut"]:
            self.row("cut after", way["cut"])
        self.counters(way)
        self.verdict(way)
        self.failures(way)

    def counters(self, way: Mapping[str, Any]) -> None:
        observer, sink = way["counters"]["observer"], way["counters"]["sink"]
        lap = way["overlap"]
        if way["way"] == "twins":
            spread = f"{lap['spread_ms']:.1f} ms from first to last out"
            self.row("overlap", f"{spread}, {lap['together']} out before the first answer")
        if observer and observer["fault"]:
            self.row("observer", observer["fault"])
        elif observer:
            self.row("observer", f"{observer['before']} → {observer['after']}")
        if sink:
            keys = f"{sink['distinct_keys']} {sink['key_name']}" if sink["key_name"] else "no key"
            some = "write" if sink["writes"] == 1 else "writes"
            text = f"{sink['writes']} {some} to {sink['target']}, {keys}"
            self.row("sink", text if sink["writes"] else "no write")

    def verdict(self, way: Mapping[str, Any]) -> None:
        by, effects = way["rests_on"], way["effects"]
        shown = way["counters"]["answers"]["executions"] if effects is None else effects
        source = f" (by {by})" if by and effects is not None else " (by answers alone)"
        self.row("DISTINCT effects", f"{shown}{source}", "bold")
        self.line(f"  {way['verdict_words']}", STYLES[Verdict(way["verdict"])])
        self.line(way["reason"], indent=4)
        for other in way["disagreements"]:
            self.line(f"disagreement: {other}", "yellow", indent=4)
        for note in way["notes"]:
            self.line(f"note: {note}", indent=4)
        for difference in way["differences"][:MAX_DIFFERENCES]:
            samples = ", ".join(difference["samples"][:3])
            text = f"{difference['path']}: {difference['distinct']} distinct, "
            self.line(f"{text}{difference['nature']}: {terminal(samples, limit=100)}", indent=4)
        if (more := len(way["differences"]) - MAX_DIFFERENCES) > 0:
            self.line(f"and {more} more paths that differ", indent=4)

    def failures(self, way: Mapping[str, Any]) -> None:
        seen: dict[str, int] = {}
        for call in way["calls"]:
            if call["detail"] and call["outcome"] not in ("ok", "answer discarded unread"):
                text = f"{call['outcome']}: {call['detail']}"
                seen[text] = seen.get(text, 0) + 1
        for text, count in list(seen.items())[:3]:
            self.line(f"{count} × {terminal(text, limit=200)}", indent=4)

    def end(self, doc: Mapping[str, Any]) -> None:
        check = doc["self_check"]
        if check is not None:
            passed = sum(one["passed"] for one in check["checks"])
            words = "passed" if check["passed"] else "FAILED, this run is void"
            self.line(f"self-check {words} ({passed} of {len(check['checks'])} trials)")
        for note in doc["notes"]:
            self.line(note)
        if doc["stopped"]:
            self.line(f"stopped early: {doc['stopped']}", "yellow")
        if doc["verdict"] is not None and len(doc["ways"]) > 1:
            style = STYLES[Verdict(doc["verdict"])]
            self.line(f"in all: {doc['verdict_words']}", style)
        self.line("cannot see: " + "; ".join(doc["cannot_see"]), "dim")
        if not doc["target"]["fenced"]:
            self.line()
            self.line("the same calls behind the fence:")
            self.command(doc["commands"]["fenced"])
