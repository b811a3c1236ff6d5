"""`fencekit scan`: list the MCP tools from which a write is reachable, with the path to it."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import click


@click.command("scan")
@click.argument("paths", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print the fencekit.scan/1 document.")
@click.option("--include", multiple=True, metavar="PATTERN", help="Bring skipped files back.")
@click.option("--jobs", default=1, show_default=True, type=click.IntRange(1, 64), help="Processes.")
@click.option("--baseline", type=click.Path(path_type=Path), help="Show only what FILE lacks.")
@click.option("--exit-code", is_flag=True, help="Exit 1 where candidates are listed.")
def command(
    paths: tuple[Path, ...],
    as_json: bool,
    include: tuple[str, ...],
    jobs: int,
    baseline: Path | None,
    exit_code: bool,
) -> None:
    """List the tools of the repositories at PATH that could fire the same effect twice."""
    from fencekit.scan.engine import Options, scan

    for path in paths:
        if not path.exists():
            raise click.UsageError(
                f"{path}: no such file or folder. Give the path of a repository."
            )
    documents = [scan(path, Options(include, jobs)) for path in paths]
    if as_json:
        shown: Any = documents[0] if len(documents) == 1 else documents
        click.echo(json.dumps(shown, indent=1, ensure_ascii=False))
    else:
        for one in documents:
            click.echo(f"{one['repository']['path']}: {one['summary']}")
    if exit_code and any(d["summary"]["candidates"] for d in documents):
        sys.exit(1)
