"""`fencekit ledger clear | settle | forget`: what a person decides of an attempt that was shown."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import TypeVar

import click

from fencekit.cli import ledger_view
from fencekit.cli.fencing import ledger_option, opened, told
from fencekit.cli.ledger_scope import whole, wrapped_argument
from fencekit.core.config import FenceConfig
from fencekit.core.state import Absent, Unknown
from fencekit.fence import Fence
from fencekit.ledger.base import Shown
from fencekit.report.escape import terminal

F = TypeVar("F", bound=Callable[..., object])

CLEAR_RISK = (
    "If it did happen after all, or still can, the next attempt makes it happen twice. "
    "Nothing can repair that."
)
SETTLE_RISK = "If it did not happen, nobody will do it: duplicates get the result that you give."
FORGET_RISK = "The next attempt with this intent runs it again."


def _common(function: F) -> F:
    for option in (
        click.option("--note", required=True, help="Why; kept in the audit with your name."),
        click.option("--principal", help="Whose intent, where several share a name."),
        click.option("--ticket", help="The attempt that was judged, from `ledger show`."),
        click.option("--revision", type=int, help="The revision that was judged, likewise."),
        click.option("--yes", is_flag=True, help="Do not ask; judge what is shown now."),
        ledger_option("the SQLite ledger in the user's state directory"),
        # Options and arguments are added from the last to the first.
        wrapped_argument,
        click.argument("intent"),
    ):
        function = option(function)
    return function


class _Judged:
    """One intent, shown to a person who then decided about exactly that state."""

    def __init__(
        self,
        ledger: str | None,
        intent: str,
        wrapped: tuple[str, ...],
        principal: str | None,
        ticket: str | None,
    ) -> None:
        self.intent = whole(intent, wrapped)
        self.fence = opened(lambda: Fence.open(ledger))
        found = ledger_view.find(list(self.fence.intents()), self.intent, principal)
        if len(found) != 1:
            self.fence.close()
            why = "nothing is recorded for" if not found else "several principals have"
            raise click.UsageError(
                f"{why} intent {terminal(intent)!r}: look with `fencekit ledger list`"
                + (", and say --principal" if found else "")
            )
        self.shown: Shown = found[0]
        state = self.shown.record.state
        assert not isinstance(state, Absent)
        self.ticket = ticket or state.ticket.id
        self.config = FenceConfig(principal=self.shown.key.principal)

    def confirm(self, risk: str, revision: int | None, yes: bool) -> int:
        """Show what is judged and what it risks; return the revision that was judged."""
        row = ledger_view.summary(self.shown, self.fence.ledger.now())
        click.echo(
            f"intent   {terminal(row['intent'])}\nstate    {row['state']} for "
            f"{ledger_view.age(row['age_s'])} {terminal(row.get('reason', ''))}\n"
            f"holder   {row['holder'] or 'none'}\nticket   {self.ticket}\n"
            f"revision {row['revision']}\n{risk}",
            err=True,
        )
        if revision is not None:
            return revision
        if not yes:
            if not sys.stdin.isatty():
                self.fence.close()
                raise click.UsageError(
                    "not a terminal: say --yes to judge what is shown now, or --ticket and "
                    "--revision as `fencekit ledger show` printed them"
                )
            if not click.confirm("Go on?", err=True):
                self.fence.close()
                sys.exit(1)
        return int(row["revision"])

    def carry_out(self, act: Callable[[Fence], object], done: str) -> None:
        """Carry the decision out as this intent's principal."""
        with told(self.fence):
            self.fence.calls.draw.config = self.config
            act(self.fence)
        click.echo(done)
        state = self.shown.record.state
        if isinstance(state, Unknown):
            from fencekit.wrap.adopt import adopted_from

            old = adopted_from(self.intent, state.reason)
            if old:
                told_too = "the record that this was adopted from is still as it was: judge it too"
                click.echo(f"{told_too}: {terminal(old)}", err=True)


@click.command()
@_common
@click.option("--even-if-alive", is_flag=True, help="Although its process is alive.")
def clear(
    intent: str,
    note: str,
    principal: str | None,
    ticket: str | None,
    revision: int | None,
    yes: bool,
    ledger: str | None,
    wrapped: tuple[str, ...],
    even_if_alive: bool,
) -> None:
    """It did not happen and cannot any more: let it run again."""
    judged = _Judged(ledger, intent, wrapped, principal, ticket)
    seen = judged.confirm(CLEAR_RISK, revision, yes)
    judged.carry_out(
        lambda fence: fence.clear(
            judged.intent, judged.ticket, seen, note, even_if_alive=even_if_alive
        ),
        "cleared: the intent is free",
    )


@click.command()
@_common
@click.option("--result", "result_text", required=True, metavar="JSON", help="Its result.")
def settle(
    intent: str,
    note: str,
    principal: str | None,
    ticket: str | None,
    revision: int | None,
    yes: bool,
    ledger: str | None,
    wrapped: tuple[str, ...],
    result_text: str,
) -> None:
    """It did happen: record it as done, with this result."""
    try:
        result = json.loads(result_text)
    except ValueError as problem:
        raise click.UsageError(f"--result is not JSON: {problem}") from None
    judged = _Judged(ledger, intent, wrapped, principal, ticket)
    seen = judged.confirm(SETTLE_RISK, revision, yes)
    judged.carry_out(
        lambda fence: fence.settle(judged.intent, judged.ticket, seen, result, note),
        "settled: duplicates get this result",
    )


@click.command()
@_common
def forget(
    intent: str,
    note: str,
    principal: str | None,
    ticket: str | None,
    revision: int | None,
    yes: bool,
    ledger: str | None,
    wrapped: tuple[str, ...],
) -> None:
    """Let a finished intent run again."""
    judged = _Judged(ledger, intent, wrapped, principal, ticket)
    judged.confirm(FORGET_RISK, revision, yes)
    judged.carry_out(
        lambda fence: fence.forget(judged.intent, judged.ticket, note),
        "forgotten: the intent is free",
    )


OPERATORS = (clear, settle, forget)
