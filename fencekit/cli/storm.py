"""`fencekit storm`: a thousand attempts at one charge, and one execution."""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import click

from fencekit.cli.fencing import ledger_option, opened

if TYPE_CHECKING:
    from fencekit.demo.storm import Outcome


@click.command()
@click.option("--attempts", type=click.IntRange(1, 1_000_000), default=1000, show_default=True)
@click.option(
    "--processes",
    type=click.IntRange(1, 64),
    default=1,
    show_default=True,
    help="From how many processes the attempts come.",
)
@click.option(
    "--intents",
    type=click.IntRange(1, 100_000),
    default=1,
    show_default=True,
    help="How many different charges, each of which may run once.",
)
@click.option(
    "--seconds",
    type=click.FloatRange(0.1, 86_400),
    help="Go on for so long instead of --attempts: with --intents, a test of your database.",
)
@click.option("--kill", is_flag=True, help="SIGKILL the process that charges, in the middle of it.")
@ledger_option("a temporary SQLite ledger")
@click.option("--json", "as_json", is_flag=True, help="Print the outcome as JSON.")
def command(
    attempts: int,
    processes: int,
    intents: int,
    seconds: float | None,
    kill: bool,
    ledger: str | None,
    as_json: bool,
) -> None:
    """Let many callers make the same charges at once and again later: each runs once.

    Each run charges order numbers of its own, so a kept ledger can be stormed again. Executions are
    counted in a file outside the fence. Exit: 0 no charge ran twice and nothing was missed, 1
    anything else.
    """
    from fencekit.demo import storm
    from fencekit.ledger.open import scheme_of

    processes = min(processes, attempts)
    if kill and processes < 2:
        raise click.UsageError("--kill needs --processes 2 or more: one must live to tell")
    with tempfile.TemporaryDirectory(prefix="fencekit-storm-") as folder:
        url = ledger or f"sqlite:{folder}/storm.db"
        if processes > 1 and opened(lambda: scheme_of(url)) == "memory":
            raise click.UsageError("memory: is one process's own; storm it with --processes 1")
        plan = storm.Plan(url, Path(folder), attempts, processes, kill, intents, seconds)
        outcome = opened(lambda: storm.run(plan, _say))
    if as_json:
        click.echo(json.dumps(outcome.to_json()))
    else:
        _print(outcome)
    for shortcoming in outcome.shortcomings:
        click.echo(f"fencekit storm: {shortcoming}", err=True)
    sys.exit(1 if outcome.shortcomings else 0)


def _say(text: str) -> None:
    click.echo(f"fencekit storm: {text}", err=True)


def _print(outcome: Outcome) -> None:
    plan, tally = outcome.plan, outcome.tally
    rows = [
        ("attempts", f"{outcome.attempts}"),
        ("ACTUAL EXECUTIONS", f"{outcome.executions}"),
        ("served sealed receipt", f"{tally.served}"),
        ("told to stand down", f"{tally.stood_down}"),
        ("elapsed", f"{outcome.elapsed:.2f} s"),
        ("double-charges prevented", f"{outcome.prevented}"),
    ]
    if tally.unanswered:
        rows.insert(4, ("not answered by the ledger", f"{tally.unanswered}"))
    if outcome.killed:
        rows.insert(
            4, ("killed in the middle", f"{outcome.killed} process, {outcome.lost} attempts")
        )
    if plan.intents > 1:
        rows.insert(0, ("different charges", f"{plan.intents}"))
        rows.insert(3, ("CHARGED MORE THAN ONCE", f"{outcome.repeated}"))
    width = max(len(name) for name, _ in rows)
    many = "1 process" if plan.processes == 1 else f"{plan.processes} processes"
    click.echo(f"storm on {plan.order} from {many}")
    for name, value in rows:
        click.echo(f"  {name:<{width}} : {value}")
