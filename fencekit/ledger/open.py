"""Choosing a ledger by its URL; a driver is imported only when its ledger is opened."""

from __future__ import annotations

import importlib
import os
from typing import cast

from fencekit.core.errors import InvalidRequest
from fencekit.ledger.base import Ledger
from fencekit.ledger.location import DEFAULT_NAMES, locate

# scheme -> module whose `open_url(url)` opens that ledger
MODULES = {
    "memory": "fencekit.ledger.memory",
    "sqlite": "fencekit.ledger.sqlite",
    "jsonl": "fencekit.ledger.jsonl",
    "postgresql": "fencekit.ledger.postgres",
    "postgres": "fencekit.ledger.postgres",
    "redis": "fencekit.ledger.redis",
    "rediss": "fencekit.ledger.redis",
}
_SUFFIXES = {".db": "sqlite", ".sqlite": "sqlite", ".jsonl": "jsonl"}


def open_ledger(url: str | None = None) -> Ledger:
    """Open the ledger at `url`, else at `FENCEKIT_LEDGER`, else the user's SQLite ledger.

    Raises `InvalidRequest` for a URL that names no ledger, `LedgerError` where it cannot be used.
    """
    url = _meant(url)
    scheme = scheme_of(url)
    try:
        module = importlib.import_module(MODULES[scheme])
    except ImportError as missing:
        extra = MODULES[scheme].rpartition(".")[2]
        raise InvalidRequest(
            f"a {scheme} ledger needs a driver that is not installed ({missing.name}): "
            f"pip install 'mcp-fencekit[{extra}]'"
        ) from None
    return cast("Ledger", module.open_url(url))


def _meant(url: str | None) -> str:
    return url or os.environ.get("FENCEKIT_LEDGER") or "sqlite:"


def is_there(url: str | None = None) -> bool:
    """Whether opening the ledger that `open_ledger` would open can find anything in it.

    A server is only asked by opening. Raises `InvalidRequest` for a URL that names no ledger.
    """
    url = _meant(url)
    scheme = scheme_of(url)
    if scheme in DEFAULT_NAMES:
        return locate(url, scheme).path.exists()
    return scheme != "memory"


def scheme_of(url: str) -> str:
    """Return which kind of ledger a URL or a bare path names."""
    scheme, colon, _ = url.partition(":")
    if colon and scheme in MODULES:
        return scheme
    for suffix, kind in _SUFFIXES.items():
        if not colon and url.endswith(suffix):
            return kind
    raise InvalidRequest(
        "a ledger is memory:, sqlite:PATH or PATH.db, jsonl:PATH or PATH.jsonl, postgresql://… or "
        f"redis://…; {url.rsplit('@', maxsplit=1)[-1]!r} is none of these"
    )
