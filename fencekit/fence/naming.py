"""Naming the action of a Python function: its tool, its arguments, its intent and domain."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Any

from fencekit.core.errors import InvalidRequest

Namer = str | Callable[..., str]


def function_name(fn: Callable[..., Any]) -> str:
    """Return the module and qualified name of a function: the tool of its intents."""
    while isinstance(fn, functools.partial):
        fn = fn.func
    name = getattr(fn, "__qualname__", type(fn).__qualname__)
    return f"{getattr(fn, '__module__', '')}.{name}"


def run_args(args: tuple[Any, ...], kwargs: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return positional and named arguments as the JSON object that tells actions apart."""
    named: dict[str, Any] = {"args": list(args)}
    if kwargs:
        named["kwargs"] = dict(kwargs)
    return named


class Naming:
    """Turns one call of a decorated function into its intent, domain and arguments by name."""

    def __init__(self, fn: Callable[..., Any], intent: Namer, domain: Namer | None) -> None:
        self._signature = inspect.signature(fn)
        self._where = function_name(fn)
        self._intent = intent
        self._domain = domain

    def __call__(
        self, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> tuple[str, str | None, dict[str, Any]]:
        """Return intent, domain and arguments; raises `TypeError` as the call itself would."""
        bound = self._signature.bind(*args, **kwargs)
        bound.apply_defaults()
        given = dict(bound.arguments)
        intent = self._name(self._intent, given, args, kwargs)
        domain = None
        if self._domain is not None:
            domain = self._name(self._domain, given, args, kwargs)
        return intent, domain, given

    def _name(
        self, namer: Namer, given: dict[str, Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> str:
        if callable(namer):
            return namer(*args, **kwargs)
        try:
            return namer.format(**given)
        except (KeyError, IndexError, AttributeError, ValueError) as problem:
            raise InvalidRequest(
                f"the name {namer!r} of {self._where} does not fit its arguments ({problem!r})"
            ) from None
