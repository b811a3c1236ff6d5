"""`fencekit ledger adopt`: fence here what another scope left without an outcome."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fencekit.cli import ledger_view
from fencekit.cli.fencing import ledger_option, opened, told
from fencekit.cli.ledger_scope import is_within, wrapped_argument
from fencekit.core.errors import InvalidRequest
from fencekit.core.state import InFlight
from fencekit.fence import Fence
from fencekit.fence.draw import new_id, operator_name
from fencekit.report.escape import terminal

if TYPE_CHECKING:
    from fencekit.ledger.base import Shown
    from fencekit.wrap.adopt import Act, Adoption, Judged

SHOWN = 20  # intents that are listed before asking
RISK = (
    "Duplicates of these are then refused under the new scope as well, until somebody settles or "
    "clears them there. The records of the old scope stay, so that nothing becomes free."
)
_WORDS = {
    "adopted": "unknown here now",
    "known": "has a record here already; left as it is",
    "running": "still running there; say --running, or run this again when it has ended",
    "moved": "changed meanwhile; left alone, run this again",
}


@click.command()
@click.argument("old_scope", metavar="OLD-SCOPE")
@wrapped_argument
@click.option("--scope", envvar="FENCEKIT_SCOPE", help="The scope to adopt into, as for wrap.")
@click.option(
    "--account-env", multiple=True, metavar="NAME", help="Variable of the account, as for wrap."
)
@click.option("--url", help="The server's address instead of CMD, as for wrap.")
@click.option(
    "--config",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    envvar="FENCEKIT_CONFIG",
    help="A fencekit.toml of your own, as for wrap.",
)
@click.option("--principal", help="The account in the old scope, where it has several.")
@click.option("--note", required=True, help="Why; kept in the record with your name.")
@click.option("--running", is_flag=True, help="Also what is still in flight there.")
@click.option("--yes", is_flag=True, help="Do not ask; judge what is shown now.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@ledger_option("the SQLite ledger in the user's state directory")
def adopt(old_scope: str, wrapped: tuple[str, ...], **options: Any) -> None:
    """Fence here what another scope left unknown: another folder, command line or name.

    Say the server's command (and options) exactly as the host gives them to `fencekit wrap`, in the
    folder where the host starts it. Each unknown call of OLD-SCOPE becomes unknown here too, so
    that a duplicate meets it. Exit: 0 all of them are known here now, 2 some were left.
    """
    from fencekit.wrap.adopt import adopt as take_over
    from fencekit.wrap.adopt import guess_of

    act, ledger = _act(wrapped, options)
    fence = opened(lambda: Fence.open(ledger))
    with told(fence):
        shown = [
            one
            for one in fence.intents()
            if is_within(one.key.intent, old_scope) or is_within(one.key.intent, act.scope.name)
        ]
        chosen = _chosen(shown, old_scope, options["principal"], act)
        act = replace(act, scope=replace(act.scope, guess=guess_of(shown, act.scope)))
        _confirm(chosen, act, fence, yes=options["yes"])
        done = [take_over(fence.ledger, one, act, new_id) for one in chosen]
        _tell(done, as_json=options["as_json"])
    if any(one.what in ("running", "moved") for one in done):
        sys.exit(2)


def _act(wrapped: tuple[str, ...], options: dict[str, Any]) -> tuple[Act, str | None]:
    """Return what is to be done in the scope that `fencekit wrap` has here, and in which ledger."""
    from fencekit.wrap.adopt import Act
    from fencekit.wrap.scope import scope_of
    from fencekit.wrap.trust import load

    if bool(wrapped) == bool(options["url"]):
        raise click.UsageError("say the server that is wrapped: -- CMD... or --url ADDRESS")
    try:
        top = load(options["config"], Path.cwd()).top
        name = options["scope"] or top.get("scope")
        accounts = options["account_env"] or top.get("account_env") or ()
        # Behind a URL our own environment acts as nobody, as for wrap.
        environ = {n: os.environ[n] for n in accounts if n in os.environ}
        scope = scope_of(
            wrapped,
            os.getcwd(),
            environ if options["url"] else os.environ,
            name=name,
            account_env=accounts,
            url=options["url"] or "",
        )
    except InvalidRequest as problem:
        raise click.UsageError(str(problem)) from None
    act = Act(
        scope,
        name is None and not accounts,
        operator_name(),
        options["note"],
        options["running"],
    )
    return act, options["ledger"] or top.get("ledger")


def _chosen(shown: list[Shown], old: str, principal: str | None, act: Act) -> list[Judged]:
    """Return what the old scope has without an outcome, under the one account that is meant."""
    from fencekit.wrap.adopt import judged
    from fencekit.wrap.identity import guest_in

    wanted = {one.key.principal for one in shown} if principal is None else {principal}
    by_account = {who: found for who in wanted if (found := judged(shown, old, who))}
    if old == act.scope.name:
        by_account = {
            who: found for who, found in by_account.items() if guest_in(who)[0] != act.scope.account
        }
    if not by_account:
        raise click.UsageError(
            f"scope {terminal(old, limit=120)!r} has nothing without an outcome"
            f"{' that is not of this very scope' if old == act.scope.name else ''}: look with "
            "`fencekit ledger list --state unknown`"
        )
    if len(by_account) > 1:
        names = ", ".join(repr(terminal(who, limit=60)) for who in sorted(by_account))
        raise click.UsageError(f"several accounts have calls there: say --principal, of {names}")
    ((_, found),) = by_account.items()
    return found


def _confirm(chosen: list[Judged], act: Act, fence: Fence, *, yes: bool) -> None:
    """Show what is taken over and what it means; ask, where somebody can answer."""
    now = fence.ledger.now().wall_ms
    for one in chosen[:SHOWN]:
        word = "in flight" if isinstance(one.state, InFlight) else "unknown"
        age = ledger_view.age(max(0, (now - one.state.since_ms) // 1000))
        click.echo(f"{word:<9} {age:>7}  {terminal(one.key.intent, limit=200)}", err=True)
    if len(chosen) > SHOWN:
        click.echo(f"… and {len(chosen) - SHOWN} more", err=True)
    whose = f" for {act.scope.account}" if act.scope.account else ""
    click.echo(f"into scope {terminal(act.scope.name, limit=120)}{whose}\n{RISK}", err=True)
    if yes:
        return
    if not sys.stdin.isatty():
        raise click.UsageError("not a terminal: say --yes to judge what is shown now")
    if not click.confirm("Go on?", err=True):
        sys.exit(1)


def _tell(done: list[Adoption], *, as_json: bool) -> None:
    if as_json:
        rows = [
            {"intent": one.old.intent, "here": one.new.intent, "what": one.what} for one in done
        ]
        click.echo(json.dumps(rows, indent=2))
        return
    for one in done:
        click.echo(f"{terminal(one.new.intent, limit=200)}: {_WORDS[one.what]}")
