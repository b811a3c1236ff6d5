"""Driving `fencekit serve` as hosts do: a process, spoken to on its pipes."""

from __future__ import annotations

import sys

import pytest

ERAS = {"legacy": "legacy", "modern": "2026-07-28"}

FENCEKIT = [sys.executable, "-c", "from fencekit.cli.main import main; main()"]
"""`fencekit` as a command, whether or not its script is on the path."""


@pytest.fixture(params=list(ERAS))
def era(request):
    """Both protocol eras, as the `mode` of the SDK's client."""
    return ERAS[request.param]


@pytest.fixture
def ledger(tmp_path):
    """Return the URL of a ledger that outlives its servers."""
    return f"sqlite:{tmp_path / 'fence.db'}"
