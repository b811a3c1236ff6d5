"""The official conformance suite, raw and through the fence: not one check is lost.

Both lines of the suite, against the SDK's own everything server (its source archive holds it), over
HTTP and on standard streams. Each leg has a fresh server, proxy, ledger and folder; the checks that
the suite writes are compared, never what it prints.
"""

from __future__ import annotations

import contextlib
import importlib.metadata
import json
import os
import socket
import subprocess
import sys
import tarfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.conftest import REQUIRE_ALL, missing, need
from tests.wrap import warm

from .test_stdio import WRAP

pytestmark = [pytest.mark.node, pytest.mark.slow, pytest.mark.timeout(600)]

SUITES = {
    "old": "@modelcontextprotocol/conformance@0.1.16",
    "new": "@modelcontextprotocol/conformance@0.2.0-alpha.12",
}
# A run of the suite: which line, which version, how many checks the bare server passes.
RUNS = {
    "0.1.16": ("old", None, 44),
    "2025-11-25": ("new", "2025-11-25", 84),
    "2026-07-28": ("new", "2026-07-28", 152),
}
# `test_trigger_*` is called with equal arguments and must act each time. The suite repeats calls of
# `test_input_required_*` that have finished, which the fence exists to stop, and sends one that the
# server refuses with -32602: their results are not replayed and that refusal frees them, but they
# stay fenced.
TRIGGERS = """
[tools."test_trigger_*"]
kind = "pass"
"""
ROUNDS = """
[tools."test_input_required_*"]
replay_for = "1ms"
definitive = ["-32602"]
"""
# On standard streams there is nothing that a client could come back to.
NOT_RESUMED = "server-sse-disconnect-resume"
LIST_CHANGED = "sep-2575-server-sends-tools-list-changed-on-subscription"

Check = tuple[str, str, int]


class Leg(NamedTuple):
    """One run of the suite against the server, bare (`absent`) or behind the proxy."""

    run: str
    upstream: str
    fence: str
    config: str = TRIGGERS + ROUNDS


BARE = {run: Leg(run, "http", "absent") for run in RUNS}
WRAPPED = [Leg(r, up, f) for r in RUNS for up in ("http", "stdio") for f in ("on", "off")]
UNCONFIGURED = Leg("2026-07-28", "stdio", "on", ROUNDS)


class Tools(NamedTuple):
    """What CI brings: Node with both suites, and the folder of the everything server."""

    node: Path
    suites: dict[str, Path]
    server: Path


@pytest.fixture(scope="module")
def tools(tmp_path_factory):
    """Install the suites, the Node that they need, and the server; only where all must run."""
    if not REQUIRE_ALL:
        missing("the conformance suite is installed only where everything must run")
    folder = tmp_path_factory.mktemp("conformance")
    packages = [f"{name}@npm:{package}" for name, package in SUITES.items()]
    npm = [need("npm"), "install", "--silent", "--no-audit", "node@24", *packages]
    subprocess.run(npm, cwd=folder, check=True, timeout=280, capture_output=True)
    modules = folder / "node_modules"
    suites = {name: modules / name / "dist" / "index.js" for name in SUITES}
    return Tools(modules / ".bin" / "node", suites, everything_server(folder))


def everything_server(folder: Path) -> Path:
    """Return the folder with the server's package, of the SDK's version that is installed."""
    version = importlib.metadata.version("mcp")
    pip = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--no-binary", "mcp"]
    subprocess.run([*pip, "-d", str(folder), f"mcp=={version}"], check=True, timeout=280)
    with tarfile.open(folder / f"mcp-{version}.tar.gz") as archive:
        archive.extractall(folder, filter="data")
    return folder / f"mcp-{version}" / "examples" / "servers" / "everything-server"


@pytest.fixture(scope="module")
def stdio_server(tools, tmp_path_factory):
    """Return a command that starts an everything server on standard streams at once."""
    way = tmp_path_factory.mktemp("warm") / "s"
    command = [sys.executable, warm.__file__, str(way), str(tools.server)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    assert process.stdout is not None
    assert process.stdout.readline() == b"warm\n"
    yield [sys.executable, "-S", "-E", "-c", warm.THIN, str(way)]
    process.kill()
    process.wait(20)
    process.stdout.close()


def free_port() -> int:
    with socket.socket() as it:
        it.bind(("127.0.0.1", 0))
        return int(it.getsockname()[1])


@contextlib.contextmanager
def listening(tools: Tools, command: list[str], port: int, log: Path) -> Iterator[str]:
    env = {**os.environ, "PYTHONPATH": str(tools.server)}
    with log.open("wb") as out:
        process = subprocess.Popen(command, env=env, stdout=out, stderr=out, cwd=log.parent)
    try:
        until = time.monotonic() + 60
        while time.monotonic() < until and process.poll() is None:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
                break
            time.sleep(0.05)
        assert process.poll() is None, log.read_text()
        yield f"http://127.0.0.1:{port}/mcp"
    finally:
        process.terminate()
        process.wait(20)


@contextlib.contextmanager
def http_server(tools: Tools, folder: Path) -> Iterator[str]:
    port = free_port()
    command = [sys.executable, "-m", "mcp_everything_server", "--port", str(port)]
    with listening(tools, command, port, folder / "server.log") as url:
        yield url


def score(tools: Tools, run: str, url: str, out: Path) -> dict[Check, str]:
    """Run all scenarios; returns the status of each check."""
    suite, version, _ = RUNS[run]
    command = [str(tools.node), str(tools.suites[suite]), "server", "--url", url, "--suite", "all"]
    more = ["--spec-version", version] if version else []
    out.mkdir()
    subprocess.run(
        [*command, *more, "-o", str(out)],
        cwd=out,
        check=False,  # it fails where any check fails; the checks are what counts
        capture_output=True,
        timeout=280,
    )
    made: dict[Check, str] = {}
    for path in sorted(out.glob("*/checks.json")):
        scenario = path.parent.name.split("-2026-")[0].removeprefix("server-")
        for check in json.loads(path.read_text()):
            nth = sum(1 for s, i, _ in made if (s, i) == (scenario, check["id"]))
            made[scenario, check["id"], nth] = check["status"]
    return made


def passed(checks: dict[Check, str]) -> set[Check]:
    return {check for check, status in checks.items() if status == "SUCCESS"}


def worse(checks: dict[Check, str], bare: dict[Check, str]) -> dict[str, str]:
    """Return what fails or warns behind the fence and not without it."""
    bad = ("FAILURE", "WARNING")
    return {c[1]: s for c, s in checks.items() if s in bad and bare.get(c) not in bad}


def run_leg(tools: Tools, stdio_server: list[str], leg: Leg, folder: Path) -> dict[Check, str]:
    """Score the server bare or behind the proxy."""
    with contextlib.ExitStack() as stack:
        if leg.upstream == "http":
            upstream = stack.enter_context(http_server(tools, folder))
            if leg.fence == "absent":
                return score(tools, leg.run, upstream, folder / "out")
            server = ["--url", upstream]
        else:
            server = ["--", *stdio_server]
        port = free_port()
        (folder / "mine.toml").write_text(leg.config)
        wrap = [*WRAP, "--http", f"127.0.0.1:{port}", "--ledger", str(folder / "l.db")]
        wrap += ["--config", str(folder / "mine.toml")]
        wrap += ["--observe"] if leg.fence == "off" else []
        url = stack.enter_context(listening(tools, [*wrap, *server], port, folder / "log"))
        return score(tools, leg.run, url, folder / "out")


@pytest.fixture(scope="module")
def legs(tools, stdio_server, tmp_path_factory):
    """Run all legs, two at a time: they mostly wait. Returns what each will have scored."""
    with ThreadPoolExecutor(2) as pool:
        yield {
            leg: pool.submit(run_leg, tools, stdio_server, leg, tmp_path_factory.mktemp("leg"))
            for leg in [*BARE.values(), *WRAPPED, UNCONFIGURED]
        }


@pytest.mark.parametrize("run", list(RUNS))
def test_the_bare_server_passes_everything(legs, run):
    checks = legs[BARE[run]].result()
    assert len(passed(checks)) == RUNS[run][2]
    assert "FAILURE" not in checks.values()


@pytest.mark.parametrize("leg", WRAPPED, ids=lambda leg: f"{leg.run}-{leg.upstream}-{leg.fence}")
def test_no_check_is_lost_behind_the_fence(legs, leg):
    bare, checks = legs[BARE[leg.run]].result(), legs[leg].result()
    lost = {check[1] for check in passed(bare) - passed(checks)}
    assert lost <= ({NOT_RESUMED} if leg.upstream == "stdio" else set())
    assert worse(checks, bare) == {}


def test_without_its_configuration_a_repeated_trigger_is_replayed(legs):
    """It is told as the one warning that it is: nothing acted, so nothing changed."""
    bare, checks = legs[BARE[UNCONFIGURED.run]].result(), legs[UNCONFIGURED].result()
    assert worse(checks, bare) == {LIST_CHANGED: "WARNING"}
