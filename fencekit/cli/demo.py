"""`fencekit demo`: a charge that fires twelve times, then once."""

from __future__ import annotations

import json
import os
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from fencekit.demo.double_fire import Act


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print what was shown as JSON.")
def command(as_json: bool) -> None:
    """Watch one charge fire twelve times, then the same calls run once behind the fence.

    Talks to a built-in server only: no network, no account, a temporary ledger. Exit: 0 both acts
    showed what they say, 1 one did not.
    """
    from fencekit.demo.double_fire import play

    acts = []
    with tempfile.TemporaryDirectory(prefix="fencekit-demo-") as folder:
        for fenced in (False, True):
            place = Path(folder) / ("fenced" if fenced else "raw")
            place.mkdir()
            act = play(place, fenced=fenced)
            acts.append(act)
            if not as_json:
                _print(act)
    missed = [f"act {n}: {what}" for n, act in enumerate(acts, 1) for what in act.shortcomings]
    if as_json:
        click.echo(json.dumps(_document(acts, missed)))
    elif not missed:
        _echo("12 callers, 12 clean answers, one execution. Fence your own server:")
        _echo("  $ fencekit wrap -- CMD...")
    for what in missed:
        click.echo(f"fencekit demo: {what}", err=True)
    sys.exit(1 if missed else 0)


def _print(act: Act) -> None:
    from fencekit.demo.double_fire import ARGUMENTS, TOOL

    _echo("ACT 2  the same server behind the fence" if act.fenced else "ACT 1  a server as it is")
    wrap = "fencekit wrap -- " if act.fenced else ""
    _echo(f"  $ fencekit probe --tool {TOOL} --args '{ARGUMENTS}' \\")
    _echo(f"      -- {wrap}python -m fencekit.demo.server")
    if act.problem:
        return
    rows = [("callers", act.counts.get("calls")), ("clean answers", act.counts.get("succeeded"))]
    if act.fenced:
        rows += [("executed", act.executed), ("replayed", act.replayed)]
    rows.append(("charges on file", act.charges))
    for name, count in rows:
        _echo(f"  {name:<16} : {count}")
    verdict = click.style(act.verdict, fg="green" if act.fenced else "red", bold=True)
    _echo(f"  {'DISTINCT effects':<16} : {act.effects}  {verdict}\n")


def _echo(text: str) -> None:
    click.echo(text, color=False if os.environ.get("NO_COLOR") else None)


def _document(acts: list[Act], missed: list[str]) -> dict[str, object]:
    return {
        "acts": [
            {
                "fenced": act.fenced,
                "callers": act.counts.get("calls"),
                "clean_answers": act.counts.get("succeeded"),
                "executed": act.executed,
                "replayed": act.replayed,
                "charges": act.charges,
                "effects": act.effects,
                "verdict": act.verdict,
            }
            for act in acts
        ],
        "shortcomings": missed,
    }
