"""The server as MCP Inspector's command line sees it: a client that is not from this SDK.

Each call starts a server of its own, so every ticket below has survived a restart.
"""

from __future__ import annotations

import json
import os
import subprocess

import pytest

from tests.conftest import missing, need
from tests.serve.conftest import FENCEKIT

INSPECTOR = "@modelcontextprotocol/inspector@2.12.0"
"""Needs Node 20 or newer; fetched by npx, which keeps it."""

CHARGE = {
    "intent": "charge:1",
    "domain": "order:1",
    "tool": "charge_card",
    "args": {"cents": 4200},
    "agent": "inspector",
}

pytestmark = [pytest.mark.node, pytest.mark.slow, pytest.mark.timeout(300)]


@pytest.fixture(scope="module")
def inspector(tmp_path_factory):
    """Return the command line that starts the Inspector, fetched once."""
    command = [need("npx"), "--yes", INSPECTOR, "--cli"]
    home = tmp_path_factory.mktemp("inspector")
    tried = subprocess.run(
        [*command, "--help"], capture_output=True, text=True, timeout=240, cwd=home, check=False
    )
    if tried.returncode != 0:
        missing(f"{INSPECTOR} could not be fetched: {tried.stderr[-300:]}")
    return command, home


@pytest.fixture
def inspect(inspector, ledger):
    """Return a function that makes one request through the Inspector."""
    command, home = inspector

    def run(method, *options):
        return subprocess.run(
            [*command, "--method", method, *options, "--", *FENCEKIT, "serve", "--ledger", ledger],
            capture_output=True,
            text=True,
            timeout=120,
            cwd=home,
            env={**os.environ, "MCP_INSPECTOR_STORAGE_DIR": str(home)},
            check=False,
        )

    return run


def call(inspect, tool, arguments):
    """Call a tool; the Inspector checks answers against the published schema."""
    ended = inspect("tools/call", "--tool-name", tool, "--tool-args-json", json.dumps(arguments))
    assert ended.stdout, ended.stderr
    return json.loads(ended.stdout)


def test_the_schemas_are_portable(inspect):
    ended = inspect("tools/list", "--strict")

    assert ended.returncode == 0, ended.stderr
    assert "Schema portability" not in ended.stderr
    assert len(json.loads(ended.stdout)["tools"]) == 6


def test_prepare_commit_replay_abort_refused(inspect):
    fresh = call(inspect, "fence_prepare", CHARGE)["structuredContent"]
    refused = call(inspect, "fence_prepare", CHARGE)
    ticket = fresh["prepared"]
    done = call(inspect, "fence_commit", {"prepared": ticket, "result": {"id": "ch_1"}})
    replay = call(inspect, "fence_prepare", CHARGE)
    other = {**CHARGE, "intent": "charge:2"}
    second = call(inspect, "fence_prepare", other)["structuredContent"]
    gone = call(inspect, "fence_abort", {"prepared": second["prepared"], "reason": "timeout"})
    failed = call(inspect, "fence_prepare", other)

    assert fresh["status"] == "fresh"
    assert refused["isError"]
    assert "do not run it" in refused["content"][0]["text"]
    assert done["structuredContent"]["status"] == "committed"
    assert replay["structuredContent"] == {
        "status": "already_done",
        "cert": done["structuredContent"]["cert"],
    }
    assert gone["structuredContent"] == {"status": "aborted"}
    assert failed["isError"]
    assert "may already have happened" in failed["content"][0]["text"]
