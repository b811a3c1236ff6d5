"""Whether a ledger is still there, asked without making it."""

from __future__ import annotations

import importlib
import socket

from fencekit.core.errors import LedgerDamaged
from fencekit.ledger.base import Ledger
from fencekit.ledger.location import locate
from fencekit.ledger.open import MODULES, open_ledger, scheme_of
from fencekit.ledger.server_url import without_secrets

CONNECT_SECONDS = 5.0

_FILES = ("sqlite", "jsonl")


def find(url: str) -> Ledger | None:
    """Open the ledger at a URL; None where there is none, or where nobody can be reached.

    A damaged one counts as none: nobody can use it. Raises `LedgerError` where something is there,
    or a server answers, and still it cannot be looked at.
    """
    scheme = scheme_of(url)
    if scheme == "memory":
        return None
    if scheme in _FILES:
        if not locate(url, scheme).path.exists():
            return None
    else:
        module = importlib.import_module(MODULES[scheme])
        if not any(_answers(address) for address in module.addresses(url)):
            return None
        if not module.is_made(url):
            return None
    try:
        return open_ledger(url)
    except LedgerDamaged:
        return None


def name_of(url: str) -> str:
    """Return the URL by which a ledger is called in the markers of others, without its secrets."""
    scheme = scheme_of(url)
    return f"{scheme}:{locate(url, scheme).path}" if scheme in _FILES else without_secrets(url)


def _answers(address: tuple[str, int]) -> bool:
    host, port = address
    try:
        if host.startswith("/"):
            with socket.socket(socket.AF_UNIX) as end:
                end.settimeout(CONNECT_SECONDS)
                end.connect(f"{host}/.s.PGSQL.{port}")
        else:
            socket.create_connection((host, port), CONNECT_SECONDS).close()
    except OSError:
        return False
    return True
