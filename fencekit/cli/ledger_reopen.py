"""`fencekit ledger reopen`: open a ledger again whose successor is lost."""

from __future__ import annotations

import sys

import click

from fencekit.cli import ledger_view
from fencekit.cli.fencing import in_one_line, opened
from fencekit.report.escape import terminal

SAFE = "The other one was never opened: nothing can have run there."
RISK = (
    "Effects that only the other one recorded are not known here: what this one never saw, or had "
    "as free, may run a second time. Numbers of domains start again from where they stood."
)


@click.command()
@click.argument("source", metavar="FROM")
@click.option("--note", required=True, help="Why; kept in the audit with your name.")
@click.option("--to", "other", metavar="URL", help="The lost ledger, with its password if needed.")
@click.option("--yes", is_flag=True, help="Do not ask.")
def reopen(source: str, note: str, other: str | None, yes: bool) -> None:
    """Open a ledger again that was moved, because the one that it was moved to is lost.

    Refused while that one is there, or a server answers in its place. What had no outcome when
    FROM was sealed is unknown afterwards; what was done stays done.
    """
    from fencekit.fence.draw import operator_name
    from fencekit.ledger import reopening
    from fencekit.ledger.open import open_ledger

    with in_one_line():
        ledger = opened(lambda: open_ledger(source))
        try:
            found = reopening.standing(ledger)
            when = "an unknown time" if found.since_ms is None else ledger_view.iso(found.since_ms)
            click.echo(
                f"ledger   {terminal(ledger.url, limit=400)}\nmoved to {terminal(found.other)}\n"
                f"sealed   {when}\n{RISK if found.was_open else SAFE}",
                err=True,
            )
            if not yes:
                _confirm()
            unknown = reopening.reopen(ledger, operator_name(), note, other)
        finally:
            ledger.close()
    click.echo(f"{ledger.url} is open again: {unknown} attempts became unknown", err=True)


def _confirm() -> None:
    if not sys.stdin.isatty():
        raise click.UsageError("not a terminal: say --yes once you know that the other is lost")
    if not click.confirm("Go on?", err=True):
        sys.exit(1)
