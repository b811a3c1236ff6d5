"""`fencekit ledger … -- CMD…`: the intents of one wrapped command, named as short as can be."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TypeVar

import click

F = TypeVar("F", bound=Callable[..., object])


def wrapped_argument(function: F) -> F:
    """Add the command behind `--`, whose own intents are meant."""
    return click.argument("wrapped", nargs=-1, metavar="[-- CMD…]")(function)


def scope_of(wrapped: tuple[str, ...]) -> str | None:
    """Return the scope that `fencekit wrap -- CMD…` has in this folder; None without a command."""
    if not wrapped:
        return None
    from fencekit.wrap import scope

    return scope.scope_of(wrapped, os.getcwd(), os.environ).name


def is_within(intent: str, scope: str | None) -> bool:
    """Whether an intent is of a scope; every intent is where none is meant."""
    return scope is None or intent.startswith(f"{scope}/")


def whole(intent: str, wrapped: tuple[str, ...]) -> str:
    """Return an intent with the scope of the wrapped command, which may be left out of it."""
    scope = scope_of(wrapped)
    return intent if is_within(intent, scope) else f"{scope}/{intent}"
