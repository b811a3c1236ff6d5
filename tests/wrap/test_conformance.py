"""The official conformance suite, raw and through the fence: not one check is lost.

The server is `fixtures/servers/conforming.py`, or the one that FENCEKIT_EVERYTHING_SERVER names (a
folder that holds the SDK's `mcp_everything_server` package). Each leg has a fresh ledger.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import REQUIRE_ALL, missing, need

from .test_stdio import WRAP

pytestmark = [pytest.mark.node, pytest.mark.slow, pytest.mark.timeout(600)]

SUITE = "@modelcontextprotocol/conformance@0.2.0-alpha.12"
FIXTURE = Path(__file__).parent.parent.parent / "fixtures" / "servers" / "conforming.py"
EVERYTHING = os.environ.get("FENCEKIT_EVERYTHING_SERVER")
# The tools of these scenarios are called with equal arguments and must act each time.
CONFIG = """
[tools."test_trigger_*"]
kind = "pass"
[tools."test_input_required_*"]
kind = "pass"
"""
# A server on standard streams has no response stream that a client could come back to.
NOT_OVER_STDIO = "server-sse-disconnect-resume"


@pytest.fixture(scope="module")
def suite(tmp_path_factory):
    """Install the suite and the Node that it needs; only where everything must run."""
    if not REQUIRE_ALL:
        missing("the conformance suite is installed only where everything must run")
    folder = tmp_path_factory.mktemp("conformance")
    command = [need("npm"), "install", "--silent", "--no-audit", "node@24", SUITE]
    subprocess.run(command, cwd=folder, check=True, timeout=280, capture_output=True)
    return folder


def server(port: int | None) -> list[str]:
    if EVERYTHING is None:
        return [sys.executable, str(FIXTURE), *([str(port)] if port else [])]
    if port:
        return [sys.executable, "-m", "mcp_everything_server", "--port", str(port)]
    run = "from mcp_everything_server.server import mcp; mcp.run(transport='stdio')"
    return [sys.executable, "-c", run]


def free_port() -> int:
    with socket.socket() as it:
        it.bind(("127.0.0.1", 0))
        return int(it.getsockname()[1])


@contextlib.contextmanager
def listening(command: list[str], port: int, log: Path) -> Iterator[str]:
    env = {**os.environ, **({"PYTHONPATH": EVERYTHING} if EVERYTHING else {})}
    with log.open("wb") as out:
        process = subprocess.Popen(command, env=env, stdout=out, stderr=out)
    try:
        until = time.monotonic() + 60
        while time.monotonic() < until:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
                break
            time.sleep(0.05)
        yield f"http://127.0.0.1:{port}/mcp"
    finally:
        process.terminate()
        process.wait(20)


def score(suite: Path, url: str, version: str, out: Path) -> dict[tuple[str, str, int], str]:
    """Run all scenarios of a version; returns the status of each check."""
    node, run = suite / "node_modules/.bin/node", "@modelcontextprotocol/conformance/dist/index.js"
    script = str(suite / "node_modules" / run)
    command = [str(node), script, "server", "--url", url, "--suite", "all"]
    subprocess.run(
        [*command, "--spec-version", version, "-o", str(out)],
        cwd=suite,
        check=False,  # it fails where any check fails, raw included
        capture_output=True,
        timeout=280,
    )
    made: dict[tuple[str, str, int], str] = {}
    for path in sorted(out.glob("*/checks.json")):
        scenario = path.parent.name.split("-2026-")[0].removeprefix("server-")
        for check in json.loads(path.read_text()):
            nth = sum(1 for s, i, _ in made if (s, i) == (scenario, check["id"]))
            made[scenario, check["id"], nth] = check["status"]
    return made


@pytest.fixture(scope="module", params=["2025-11-25", "2026-07-28"])
def raw(request, suite, tmp_path_factory):
    """Score the bare server once for each version."""
    folder, port = tmp_path_factory.mktemp("raw"), free_port()
    with listening(server(port), port, folder / "log") as url:
        return request.param, score(suite, url, request.param, folder / "out")


@pytest.mark.parametrize("fence", ["on", "off"])
def test_no_check_is_lost_behind_the_fence(suite, raw, tmp_path, fence):
    version, bare = raw
    front = free_port()
    config = tmp_path / "mine.toml"
    config.write_text(CONFIG)
    wrap = [*WRAP, "--http", f"127.0.0.1:{front}", "--ledger", str(tmp_path / "l.db")]
    options = ["--config", str(config), *(["--observe"] if fence == "off" else [])]
    command = [*wrap, *options, "--", *server(None)]
    with listening(command, front, tmp_path / "wrapped.log") as url:
        wrapped = score(suite, url, version, tmp_path / "wrapped")

    passed = {check for check, status in bare.items() if status == "SUCCESS"}
    lost = {check for check in passed if wrapped.get(check) != "SUCCESS"}
    assert len(passed) > 20
    assert {check for check in lost if check[1] != NOT_OVER_STDIO} == set()
