"""Driving `fencekit serve` as hosts do: a process, spoken to by the SDK's client on its pipes."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import AsyncIterator

import pytest
from mcp import Client
from mcp.client.stdio import StdioServerParameters

ERAS = {"legacy": "legacy", "modern": "2026-07-28"}

COMMAND = [sys.executable, "-c", "from fencekit.cli.main import main; main()"]


@pytest.fixture(params=list(ERAS))
def era(request):
    """Both protocol eras, as the client's `mode`."""
    return ERAS[request.param]


@contextlib.asynccontextmanager
async def serving(ledger: str, mode: str, *options: str) -> AsyncIterator[Client]:
    """Start a server on a ledger and connect to it; leaving ends it."""
    parameters = StdioServerParameters(
        command=COMMAND[0], args=[*COMMAND[1:], "serve", "--ledger", ledger, *options]
    )
    async with Client(parameters, mode=mode) as client:
        yield client
