"""`fencekit wrap --plan`: how each tool would be treated, and a configuration to start from."""

from __future__ import annotations

import contextlib
import json
import os
import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NoReturn

import click

if TYPE_CHECKING:
    from fencekit.wrap.definitive import Errors
    from fencekit.wrap.rules import Rules

AUDIT_SECONDS = 5.0  # for looking through what the ledger tells of errors


def show(
    command: tuple[str, ...],
    rules: Rules,
    options: dict[str, Any],
    headers: Callable[[dict[str, Any]], dict[str, str]],
) -> None:
    """Print the plan; `headers` reads what the options say for a remote server."""
    from fencekit.wire.client import Target
    from fencekit.wire.errors import WireError
    from fencekit.wrap import plan

    try:
        target = Target(
            command=command,
            url=options["url"] or "",
            headers=headers(options),
            stderr="inherit",
        )
        client = target.connect()
    except (WireError, ValueError) as problem:
        _unreachable(problem)
    try:
        tools = client.list_tools()
    except WireError as problem:
        _unreachable(problem)
    finally:
        client.close()
    made = plan.treatments(tools, rules)
    found = plan.proposed(made, tools, _errors(command, options))
    if options["as_json"]:
        click.echo(json.dumps(plan.as_json(made, found), indent=2))
        return
    click.echo(plan.table(made))
    click.echo()
    click.echo(plan.config(made, tools, found), nl=False)


def _errors(command: tuple[str, ...], options: dict[str, Any]) -> Errors:
    """Return the errors of this program's calls that the ledger tells of, if it can be looked at.

    A ledger that is not there is not made.
    """
    from fencekit.core.errors import InvalidRequest, LedgerError
    from fencekit.ledger.open import is_there, open_ledger
    from fencekit.wrap.definitive import Errors
    from fencekit.wrap.scope import scope_of

    errors = Errors(scope_of(command, os.getcwd(), {}, url=options["url"] or "").program)
    until = time.monotonic() + AUDIT_SECONDS
    try:
        if is_there(options["ledger"]):
            with contextlib.closing(open_ledger(options["ledger"])) as ledger:
                for _, event in ledger.audit():
                    errors.take(event)
                    if time.monotonic() >= until:
                        click.echo("the ledger's newest errors were not looked at", err=True)
                        break
    except InvalidRequest as problem:
        raise click.UsageError(str(problem)) from None
    except LedgerError as problem:
        click.echo(f"no errors on record were looked at: {problem}", err=True)
    return errors


def _unreachable(problem: Exception) -> NoReturn:
    click.echo(f"Error: {problem}", err=True)
    sys.exit(2)
