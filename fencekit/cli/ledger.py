"""`fencekit ledger`: look at what is remembered, and decide what only a person can."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import click

from fencekit.cli import ledger_view
from fencekit.cli.fencing import ledger_option, opened, told
from fencekit.cli.ledger_scope import is_within, scope_of, whole, wrapped_argument
from fencekit.core.config import FenceConfig
from fencekit.core.errors import LedgerError
from fencekit.core.moving import told as standing_of
from fencekit.core.stats import FenceStats
from fencekit.fence import Fence
from fencekit.ledger.base import Shown
from fencekit.report.escape import terminal

json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
with_ledger = ledger_option("the SQLite ledger in the user's state directory")
principal_option = click.option("--principal", help="Whose intent, where several share a name.")


@click.group()
def command() -> None:
    """Look at a ledger, and decide what only a person can.

    An intent whose outcome is unknown stays fenced until somebody finds out what happened and says
    so: `settle` (it did happen) or `clear` (it did not, and cannot any more).
    """


@contextmanager
def _fence(url: str | None, config: FenceConfig | None = None) -> Iterator[Fence]:
    fence = opened(lambda: Fence.open(url, config))
    with told(fence):
        yield fence


def _print_json(value: Any) -> None:
    click.echo(json.dumps(value, ensure_ascii=True, indent=2))


@command.command("list")
@with_ledger
@json_option
@click.option(
    "--state", type=click.Choice(ledger_view.STATES), multiple=True, help="Only these states."
)
@click.option("--limit", type=click.IntRange(1), default=100, show_default=True)
@click.option("--scope", help="Only the intents of this scope of `fencekit wrap`.")
@wrapped_argument
def list_(
    ledger: str | None,
    as_json: bool,
    state: tuple[str, ...],
    limit: int,
    scope: str | None,
    wrapped: tuple[str, ...],
) -> None:
    """List intents: what has no outcome first. With a wrapped command, only its own."""
    scope = scope or scope_of(wrapped)
    with _fence(ledger) as fence:
        now, more = fence.ledger.now(), False
        rows: list[dict[str, Any]] = []
        for shown in fence.intents():
            if state and ledger_view.state_name(shown.record.state) not in state:
                continue
            if not is_within(shown.key.intent, scope):
                continue
            if len(rows) == limit:
                more = True
                break
            rows.append(ledger_view.summary(shown, now))
        if as_json:
            _print_json({"intents": rows, "truncated": more})
            return
        if not rows:
            click.echo("nothing is recorded", err=True)
            return
        _table(rows)
        if more:
            click.echo(f"… and more: --limit {limit} was reached", err=True)


def _table(rows: list[dict[str, Any]]) -> None:
    """Print rows in columns that fit 80 characters, the intent last and whole."""
    click.echo(f"{'STATE':<10} {'AGE':>7}  {'HOLDER':<22}  INTENT")
    for row in rows:
        words = f"{row['state']:<10} {ledger_view.age(row['age_s']):>7}  {row['holder']:<22}"
        who = f"  [{terminal(row['principal'], limit=16)}]" if row["principal"] else ""
        click.echo(f"{words}  {terminal(row['intent'], limit=200)}{who}")


@command.command()
@click.argument("intent")
@principal_option
@with_ledger
@json_option
@wrapped_argument
def show(
    intent: str,
    principal: str | None,
    ledger: str | None,
    as_json: bool,
    wrapped: tuple[str, ...],
) -> None:
    """Show all that is recorded of one intent, with the ticket and revision to judge by."""
    with _fence(ledger) as fence:
        shown = _one(fence, whole(intent, wrapped), principal)
        recorded = ledger_view.detail(shown, fence.ledger.now())
        if as_json:
            _print_json(recorded)
        else:
            _fields(recorded)


def _one(fence: Fence, intent: str, principal: str | None) -> Shown:
    found = ledger_view.find(list(fence.intents()), intent, principal)
    if len(found) > 1:
        names = ", ".join(repr(terminal(one.key.principal, limit=60)) for one in found)
        raise click.UsageError(f"several principals have this intent: say --principal, of {names}")
    if not found:
        click.echo(
            f"fencekit: nothing is recorded for {terminal(intent)!r}; look with `fencekit ledger "
            "list`",
            err=True,
        )
        sys.exit(2)
    return found[0]


def _fields(recorded: dict[str, Any]) -> None:
    for name, value in recorded.items():
        if value in ("", None, [], {}):
            continue
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        click.echo(f"{name.replace('_', ' '):<13} {terminal(text, limit=2000)}")


@command.command()
@with_ledger
@json_option
def stats(ledger: str | None, as_json: bool) -> None:
    """Add up what all processes counted, and say what the ledger rests on."""
    with _fence(ledger) as fence:
        described = fence.ledger.describe()
        total = FenceStats.from_counters(fence.ledger.counters())
        standing = standing_of(fence.ledger.marker())
        if as_json:
            _print_json(
                {
                    "kind": described.kind,
                    "standing": standing,
                    "where": described.where,
                    "durability": described.durability,
                    **described.details,
                    "stats": total.to_json(),
                }
            )
            return
        click.echo(f"ledger      {terminal(described.where, limit=400)} ({described.kind})")
        click.echo(f"durability  {described.durability}")
        click.echo(f"standing    {terminal(standing, limit=400)}")
        for name, value in described.details.items():
            click.echo(f"{name.replace('_', ' '):<11} {value}")
        click.echo(total.line().replace("since boot", "all processes"))


@command.command()
@with_ledger
@click.option("--follow", is_flag=True, help="Go on with new lines until interrupted.")
@click.option("--after", type=click.IntRange(0), default=0, help="Only lines after this number.")
@wrapped_argument
def log(ledger: str | None, follow: bool, after: int, wrapped: tuple[str, ...]) -> None:
    """Print the audit as JSON lines: every admission, outcome and operator's act."""
    import threading

    scope = scope_of(wrapped)
    with _fence(ledger) as fence:
        waiting = threading.Event()
        while True:
            for number, event in fence.ledger.audit(after):
                if is_within(event.get("intent", ""), scope):
                    click.echo(json.dumps({"n": number, **event}, ensure_ascii=True))
                after = number
            if not follow:
                return
            sys.stdout.flush()
            waiting.wait(0.25)


@command.command()
@with_ledger
@json_option
def verify(ledger: str | None, as_json: bool) -> None:
    """Recompute every checksum and certificate, and walk the parent chains.

    Says from where the audit begins: older lines were swept.

    Exit: 0 all is sound, 1 something is wrong, 3 the ledger is unusable.
    """
    from fencekit.ledger.chains import check_chains

    with _fence(ledger) as fence:
        problems = list(fence.ledger.verify())
        # A damaged record is among the problems already; its chain cannot be walked then.
        with suppress(LedgerError):
            problems += check_chains(fence.intents())
        first = next(fence.ledger.audit(), None)
        if first is not None:
            since = ledger_view.iso(first[1]["at_ms"])
            click.echo(f"the audit begins at line {first[0]}, {since}", err=True)
        if as_json:
            _print_json([{"where": p.where, "what": p.what} for p in problems])
        for problem in [] if as_json else problems:
            click.echo(f"{terminal(problem.where)}: {terminal(problem.what, limit=400)}")
        if not as_json and not problems:
            click.echo("every checksum, certificate and chain holds")
    sys.exit(1 if problems else 0)


@command.command()
@with_ledger
@click.option(
    "--audit-ttl",
    type=click.FloatRange(0.001),
    envvar="FENCEKIT_AUDIT_TTL_SECS",
    default=FenceConfig().audit_ttl,
    show_default=True,
    show_envvar=True,
    help="Seconds for which lines of the audit are kept; the newest thousand always are.",
)
def sweep(ledger: str | None, audit_ttl: float) -> None:
    """Delete what has expired and give the space back; nobody can see the difference.

    Of the audit, whatever is older than --audit-ttl goes.
    """
    with _fence(ledger, FenceConfig(audit_ttl=audit_ttl)) as fence:
        lines = fence.calls.sweep_audit()
        click.echo(f"{fence.sweep()} intents swept, and {lines} lines of the audit")


@command.command()
@with_ledger
def compact(ledger: str | None) -> None:
    """Rewrite a journal to what is live; other ledgers give their space back by `sweep`."""
    with _fence(ledger) as fence:
        rewrite = getattr(fence.ledger, "compact", None)
        if rewrite is None:
            click.echo(f"{fence.sweep()} intents swept (only a journal can be compacted)")
        else:
            rewrite()
            click.echo("compacted")


@command.command("confirm-clock")
@with_ledger
def confirm_clock(ledger: str | None) -> None:
    """Say that the wall clock is right after a jump: recorded results may expire again."""
    with _fence(ledger) as fence:
        paused = fence.ledger.now().expiry_paused
        fence.ledger.confirm_clock()
    click.echo("confirmed: expiry goes on" if paused else "the clock had not jumped")


def _register_operators() -> None:
    from fencekit.cli.ledger_adopt import adopt
    from fencekit.cli.ledger_copy import copy, migrate
    from fencekit.cli.ledger_operators import OPERATORS
    from fencekit.cli.ledger_reopen import reopen
    from fencekit.cli.ledger_report import report

    for one in (*OPERATORS, adopt, report, copy, migrate, reopen):
        command.add_command(one)


_register_operators()
