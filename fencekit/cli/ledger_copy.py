"""`fencekit ledger copy | migrate`: moving a ledger, and making its schema by hand."""

from __future__ import annotations

import json

import click

from fencekit.cli.fencing import in_one_line, opened
from fencekit.core.errors import InvalidRequest


@click.command()
@click.argument("source", metavar="FROM")
@click.argument("target", metavar="TO")
@click.option(
    "--drain",
    type=click.FloatRange(0),
    default=30.0,
    show_default=True,
    help="Seconds to wait for attempts in flight; what is left then becomes unknown.",
)
@click.option("--give-up", is_flag=True, help="Open FROM again; possible until it is sealed.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def copy(source: str, target: str, drain: float, give_up: bool, as_json: bool) -> None:
    """Move what a ledger remembers to another one, of any kind.

    FROM admits nothing new from then on and says where to go; TO, which must be empty, opens when
    everything has arrived and was compared. Run the same command again after any interruption.
    """
    from fencekit.ledger import copying
    from fencekit.ledger.open import open_ledger

    with in_one_line():
        old = opened(lambda: open_ledger(source))
        try:
            new = opened(lambda: open_ledger(target))
            try:
                if give_up:
                    copying.give_up(old, new)
                    click.echo(f"{old.url} is open again", err=True)
                    return
                copied = copying.copy(old, new, drain, _say)
            finally:
                new.close()
        finally:
            old.close()
    if as_json:
        click.echo(
            json.dumps(
                {
                    "records": copied.records,
                    "domains": copied.domains,
                    "made_unknown": copied.made_unknown,
                    "digest": copied.digest,
                }
            )
        )
    _say(f"done: use --ledger {new.url} from now on")


def _say(text: str) -> None:
    click.echo(f"fencekit ledger copy: {text}", err=True)


@click.command()
@click.option(
    "--ledger",
    metavar="URL",
    envvar="FENCEKIT_LEDGER",
    help="The postgresql:// ledger to migrate. Default: FENCEKIT_LEDGER.",
)
@click.option("--schema", help="The schema; also ?schema= in the URL. Default: fencekit.")
@click.option("--print", "print_only", is_flag=True, help="Print the statements, run nothing.")
def migrate(ledger: str | None, schema: str | None, print_only: bool) -> None:
    """Make or update the schema of a PostgreSQL ledger, or print the statements that do.

    Opening a ledger does the same by itself where its role may; run this as the owner where the
    role that fences has no right to create. The rights that such a role needs are printed too.
    """
    from fencekit.ledger import postgres_schema
    from fencekit.ledger.open import open_ledger, scheme_of

    if print_only:
        try:
            name = schema or postgres_schema.schema_of(ledger or "")
            click.echo(f"BEGIN;\n{postgres_schema.statements(name)}COMMIT;")
            click.echo(postgres_schema.rights(name))
        except InvalidRequest as problem:
            raise click.UsageError(str(problem)) from None
        return
    if ledger is None or opened(lambda: scheme_of(ledger)) not in ("postgresql", "postgres"):
        raise click.UsageError(
            "only a postgresql:// ledger has a schema to migrate: say --ledger URL, or --print"
        )
    chosen = ledger if schema is None else postgres_schema.with_schema(ledger, schema)
    opened(lambda: open_ledger(chosen)).close()
    made = postgres_schema.schema_of(chosen)
    click.echo(f"schema {made} is at version {postgres_schema.VERSION}", err=True)
