"""A scan in the terminal: each candidate as a tree from the tool to its writes, at 80 columns."""

from __future__ import annotations

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text
from rich.tree import Tree

from fencekit.report import scan_view
from fencekit.report.escape import terminal
from fencekit.report.scan_view import Json, ScanView

_LISTED = 12  # how many skipped paths, unknowns and the like are listed before "and N more"


def render(documents: list[Json], console: Console) -> None:
    """Print the scan of one or more repositories; no text from outside is read as markup."""
    views = [scan_view.view(document) for document in documents]
    for one in views:
        console.print(_repository(one))
    if len(views) > 1:
        console.print(_summary(views))
    console.print(_end())


def _text(value: object, style: str = "", *, limit: int = 300) -> Text:
    return Text(terminal(value, limit=limit), style=style, overflow="fold")


def _place(file: object, line: object) -> Text:
    return _text(f"{terminal(file)}:{line}", "cyan")


def _repository(one: ScanView) -> RenderableType:
    title = Text.assemble(
        _text(one.name, "bold"), *([f"  at {terminal(one.commit)[:12]}"] if one.commit else [])
    )
    parts: list[RenderableType] = [title, _counts_line(one.counts), Text()]
    parts += [_row(at, tool) for at, tool in enumerate(one.rows, 1)]
    if one.declarative:
        parts += [_declarative(one)]
    parts += _beside(one)
    return Group(*parts)


def _counts_line(numbers: dict[str, int]) -> Text:
    shown = [
        f"{numbers[key]} {label}"
        for key, label in scan_view.LABELS.items()
        if key in ("tools", "candidates") or numbers[key]
    ]
    return Text(" · ".join(shown), style="dim", overflow="fold")


def _row(number: int, tool: Json) -> RenderableType:
    head = Text.assemble(
        f"{number}. ", _text(tool["name"], "bold"), "  ", _place(tool["file"], tool["line"])
    )
    for mark in scan_view.marks(tool):
        head.append(f"  [{mark}]", style="yellow")
    tree = Tree(head, guide_style="dim")
    for write in tool["writes"]:
        branch = tree
        for hop in scan_view.hops(write):
            label = Text.assemble(
                _text(hop["symbol"], limit=120), "  ", _place(hop["file"], hop["line"])
            )
            if not hop["certain"]:
                label.append("  (by name only)", style="dim italic")
            branch = branch.add(label)
    if not tool["writes"]:
        tree.add(
            Text(
                "no path to a write was resolved; the name or description says it writes",
                style="dim",
            )
        )
    for what, file, line, words in scan_view.facts(tool):
        tree.add(
            Text.assemble(
                (f"{what}: ", "magenta" if what == "mechanism" else "dim"),
                _text(words),
                "  ",
                _place(file, line),
            )
        )
    tree.add(_text(f"fingerprint {tool['fingerprint']}", "dim"))
    return Padding(tree, (0, 0, 1, 0))


def _declarative(one: ScanView) -> RenderableType:
    tree = Tree(
        Text(scan_view.declarative_words(one), style="bold"),
        guide_style="dim",
    )
    for tool in one.declarative:
        tree.add(Text.assemble(_text(tool["name"]), "  ", _place(tool["file"], tool["line"])))
    return Padding(tree, (0, 0, 1, 0))


def _beside(one: ScanView) -> list[RenderableType]:
    """Lists after the rows, each cut after a few lines."""
    parts: list[RenderableType] = []
    for title, lines in scan_view.beside(one):
        parts.append(Text(f"{title} ({len(lines)})", style="bold"))
        parts += [Padding(_text(line, limit=200), (0, 0, 0, 2)) for line in lines[:_LISTED]]
        if len(lines) > _LISTED:
            more = Text(f"and {len(lines) - _LISTED} more; --json lists all", style="dim")
            parts.append(Padding(more, (0, 0, 0, 2)))
    return parts


def _summary(views: list[ScanView]) -> Table:
    table = Table(
        box=None, pad_edge=False, title="Summary", title_justify="left", title_style="bold"
    )
    table.add_column("repository", overflow="fold")
    columns = ("tools", "candidates", "money", "unresolved", "declarative")
    for key in columns:
        table.add_column(key, justify="right")
    for one in views:
        table.add_row(_text(one.name), *(str(one.counts[key]) for key in columns))
    sums = scan_view.total([one.counts for one in views])
    table.add_row(
        Text("all", style="bold"), *(Text(str(sums[key]), style="bold") for key in columns)
    )
    return table


def _end() -> RenderableType:
    lines = [Text("What this scan cannot see", style="bold")]
    lines += [Text(f"- {line}") for line in scan_view.CANNOT_SEE]
    return Group(Text(), *lines, Text(), Text(scan_view.CONTEST))
