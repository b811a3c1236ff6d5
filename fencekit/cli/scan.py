"""`fencekit scan`: list the MCP tools from which a write is reachable, with the path to it."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import click

OUT = click.Path(path_type=Path, dir_okay=False)


@click.command("scan")
@click.argument("paths", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--json", "form", flag_value="json", help="Print the fencekit.scan/1 document.")
@click.option("--sarif", "form", flag_value="sarif", help="Print SARIF 2.1.0.")
@click.option("--markdown", "form", flag_value="markdown", help="Print Markdown.")
@click.option("--html", type=OUT, help="Write a page with the source lines around each hop.")
@click.option("--include", multiple=True, metavar="PATTERN", help="Bring skipped files back.")
@click.option("--jobs", default=1, show_default=True, type=click.IntRange(1, 64), help="Processes.")
@click.option("--baseline", type=OUT, help="An earlier --json: show only rows that are new.")
@click.option("--exit-code", is_flag=True, help="Exit 1 where candidates are listed.")
def command(
    paths: tuple[Path, ...],
    form: str | None,
    html: Path | None,
    include: tuple[str, ...],
    jobs: int,
    baseline: Path | None,
    exit_code: bool,
) -> None:
    """List the tools of the repositories at PATHS that could fire the same effect twice.

    Each row has the path from the tool to the write, with file and line at every hop. Nothing of a
    repository is run. Exit: 0 whatever is listed (1 with --exit-code), 2 for a bad path.
    """
    from fencekit.scan import document

    for path in paths:
        if not path.exists():
            raise click.UsageError(
                f"{path}: no such file or folder. Give the path of a repository."
            )
    known = _fingerprints(baseline) if baseline is not None else frozenset()
    documents = [document.only_new(one, known) for one in _scan(paths, include, jobs)]
    if html is not None:
        from fencekit.report import scan_html

        html.write_text(scan_html.render(documents, _sources(paths)), encoding="utf-8")
        click.echo(f"{html}: written", err=True)
    if form is not None or html is None:
        _print(form, documents)
    if exit_code and any(d["summary"]["candidates"] for d in documents):
        sys.exit(1)


def _scan(paths: tuple[Path, ...], include: tuple[str, ...], jobs: int) -> list[dict[str, Any]]:
    """Scan one repository after the other, telling a person at a terminal which one."""
    from rich.console import Console

    from fencekit.report.escape import markup
    from fencekit.scan.engine import Options, scan

    console = Console(stderr=True)
    documents = []
    with console.status("") as status:
        for number, path in enumerate(paths, 1):
            status.update(f"scanning {markup(path)} ({number} of {len(paths)})")
            documents.append(scan(path, Options(include, jobs)))
    return documents


def _print(form: str | None, documents: list[dict[str, Any]]) -> None:
    if form == "json":
        shown: Any = documents[0] if len(documents) == 1 else documents
        click.echo(json.dumps(shown, indent=1, ensure_ascii=False))
    elif form == "sarif":
        from fencekit.report import scan_sarif

        click.echo(scan_sarif.render(documents), nl=False)
    elif form == "markdown":
        from fencekit.report import scan_markdown

        click.echo(scan_markdown.render(documents), nl=False)
    else:
        from rich.console import Console

        from fencekit.report import scan_terminal

        # Piped, rich would take 80 columns from nowhere and still wrap: say so ourselves.
        console = Console() if sys.stdout.isatty() else Console(width=80, no_color=True)
        scan_terminal.render(documents, console)


def _sources(paths: tuple[Path, ...]) -> Any:
    """Return what gives the lines of a scanned file, and nothing outside the scanned trees."""
    from fencekit.scan.walk import read_source

    def lines(index: int, name: str) -> list[str] | None:
        root = paths[index] if paths[index].is_dir() else paths[index].parent
        path = (root / name).resolve()
        if not path.is_relative_to(root.resolve()):
            return None
        source, why = read_source(path)
        return None if why else source.decode("utf-8", "replace").splitlines()

    return lines


def _fingerprints(path: Path) -> frozenset[str]:
    """Return the fingerprints of an earlier scan document, or of a list of them."""
    try:
        loaded = json.loads(path.read_text("utf-8"))
        documents = loaded if isinstance(loaded, list) else [loaded]
        return frozenset(tool["fingerprint"] for one in documents for tool in one["tools"])
    except (OSError, ValueError, KeyError, TypeError) as problem:
        raise click.UsageError(
            f"--baseline {path} is no scan document ({problem}): make one with --json"
        ) from None
