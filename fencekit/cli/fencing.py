"""The options of every command that fences, and how a fence is opened for it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

import click

from fencekit.core.config import FenceConfig
from fencekit.core.errors import FenceError, InvalidRequest, LedgerError

if TYPE_CHECKING:
    from fencekit.fence import Fence

F = TypeVar("F", bound=Callable[..., object])
T = TypeVar("T")

UNUSABLE = 3
"""The exit code for a ledger that cannot be used."""

LEDGERS = "memory:, sqlite:PATH, jsonl:PATH, postgresql://… or redis://…"


def ledger_option(default: str) -> Callable[[F], F]:
    """Return the `--ledger` option; `default` says in words what is used without it."""
    return click.option(
        "--ledger",
        metavar="URL",
        envvar="FENCEKIT_LEDGER",
        help=f"Where it is remembered: {LEDGERS}. Default: FENCEKIT_LEDGER, else {default}.",
    )


def lease_option(function: F) -> F:
    """Add `--lease`."""
    return click.option(
        "--lease",
        type=click.FloatRange(0.001),
        envvar="FENCEKIT_LEASE_SECS",
        default=FenceConfig().lease,
        show_default=True,
        show_envvar=True,
        help="Seconds for which an attempt is believed without a heartbeat.",
    )(function)


def result_ttl_option(function: F) -> F:
    """Add `--result-ttl`."""
    return click.option(
        "--result-ttl",
        type=click.FloatRange(0.001),
        envvar="FENCEKIT_RESULT_TTL_SECS",
        default=FenceConfig().result_ttl,
        show_default=True,
        show_envvar=True,
        help="Seconds for which a duplicate gets the result.",
    )(function)


def opened(open_it: Callable[[], T]) -> T:
    """Return what `open_it` opens; a wrong URL exits 2, a ledger that cannot be used exits 3."""
    try:
        return open_it()
    except InvalidRequest as problem:
        raise click.UsageError(str(problem)) from None
    except LedgerError as problem:
        click.echo(f"fencekit: {problem}", err=True)
        sys.exit(UNUSABLE)


@contextmanager
def told(fence: Fence) -> Iterator[None]:
    """Close the fence at the end; failures are told as `in_one_line` does."""
    with in_one_line():
        try:
            yield
        finally:
            fence.close()


@contextmanager
def in_one_line() -> Iterator[None]:
    """Tell a failure in one line: a refusal exits 2 and an unusable ledger 3."""
    from fencekit.report.escape import terminal

    try:
        yield
    except LedgerError as problem:
        click.echo(f"fencekit: {problem}", err=True)
        sys.exit(UNUSABLE)
    except FenceError as problem:
        click.echo(f"fencekit: {terminal(problem, limit=400)}", err=True)
        sys.exit(2)
