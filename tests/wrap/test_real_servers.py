"""Servers that nobody here wrote, direct and wrapped: every answer byte for byte the same."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from fencekit.wire import protocol
from fencekit.wire.client import Target
from tests.conftest import REQUIRE_ALL, missing, need

from .test_stdio import WRAP

pytestmark = [pytest.mark.node, pytest.mark.slow, pytest.mark.timeout(300)]

Steps = list[tuple[str, dict[str, Any]]]

ENTITY = {"name": "a", "entityType": "t", "observations": ["x"]}
LISTS: Steps = [
    ("tools/list", {}),
    ("resources/list", {}),
    ("resources/templates/list", {}),
    ("prompts/list", {}),
    ("no/such/method", {"x": 1}),
]


def call(tool: str, **arguments: Any) -> tuple[str, dict[str, Any]]:
    return ("tools/call", {"name": tool, "arguments": arguments})


def answers(target: Target, steps: Steps, era: str) -> list[Any]:
    """Ask one thing after another; returns the answers as the bytes they came in."""
    client = Target(**{**vars(target), "era": era}).connect()
    heard = []
    for method, params in steps:
        pending = client.prepare(method, client.params_bytes(params))
        client.send(pending)
        heard.append(pending.wait(60.0).raw)
    client.close()
    return heard


def both(tmp_path: Path, command: tuple[str, ...], steps: Steps, era: str = "legacy") -> None:
    """Compare a server with itself behind the proxy, each started anew."""
    direct = answers(Target(command=command, timeout=120.0), steps, era)
    wrap = (*WRAP, "--ledger", str(tmp_path / "l.db"), "--scope", "t", "--")
    wrapped = answers(Target(command=(*wrap, *command), timeout=120.0), steps, era)
    assert wrapped == direct
    assert len(direct) == len(steps)


@pytest.fixture(scope="module")
def npx():
    return need("npx")


def test_server_memory(tmp_path, npx, monkeypatch):
    monkeypatch.setenv("MEMORY_FILE_PATH", str(tmp_path / "memory.json"))
    steps = [*LISTS, call("read_graph"), call("search_nodes", query="a"), call("nothing")]
    both(tmp_path, (npx, "-y", "@modelcontextprotocol/server-memory"), steps)


def test_server_filesystem_and_a_revert_between_two_equal_writes(tmp_path, npx):
    folder = tmp_path / "files"
    folder.mkdir()
    (folder / "a.txt").write_text("é\n")
    command = (npx, "-y", "@modelcontextprotocol/server-filesystem", str(folder))
    read = call("read_text_file", path=str(folder / "a.txt"))
    both(tmp_path, command, [*LISTS, read, call("list_directory", path=str(folder)), call("x")])

    wrap = (*WRAP, "--ledger", str(tmp_path / "w.db"), "--scope", "t", "--")
    one = call("write_file", path=str(folder / "b.txt"), content="one")
    two = call("write_file", path=str(folder / "b.txt"), content="two")
    answers(Target(command=(*wrap, *command), timeout=120.0), [one, two, one], "legacy")
    assert (folder / "b.txt").read_text() == "one"


def test_server_everything(tmp_path, npx):
    steps = [*LISTS, call("echo", message="hé"), call("get-sum", a=1, b=2**53 + 1), call("nope")]
    both(tmp_path, (npx, "-y", "@modelcontextprotocol/server-everything"), steps)


def test_creating_twice_creates_once(tmp_path, npx, monkeypatch):
    monkeypatch.setenv("MEMORY_FILE_PATH", str(tmp_path / "memory.json"))
    server = (npx, "-y", "@modelcontextprotocol/server-memory")
    wrap = (*WRAP, "--ledger", str(tmp_path / "l.db"), "--scope", "t", "--")
    create = call("create_entities", entities=[ENTITY])
    heard = answers(Target(command=(*wrap, *server), timeout=120.0), [create, create], "legacy")

    first, second = (json.loads(raw)["result"] for raw in heard)
    assert second["content"] == first["content"]
    assert protocol.META_OUTCOME not in first.get("_meta", {})
    assert second["_meta"][protocol.META_OUTCOME]["replayed"] is True


@pytest.fixture(scope="module")
def python_servers(tmp_path_factory):
    """Install the reference servers of PyPI beside each other; only where everything must run."""
    if not REQUIRE_ALL:
        missing("the servers of PyPI are installed only where everything must run")
    folder = tmp_path_factory.mktemp("servers")
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    names = ["mcp-server-git", "mcp-server-time", "fastmcp"]
    subprocess.run([folder / "bin" / "pip", "install", "-q", *names], check=True, timeout=280)
    return Path(folder)


def test_mcp_server_time(tmp_path, python_servers):
    steps = [*LISTS[:1], LISTS[-1], call("get_current_time", timezone="No/Where")]
    both(tmp_path, (str(python_servers / "bin" / "mcp-server-time"),), steps)


def test_mcp_server_git(tmp_path, python_servers):
    repo = tmp_path / "repo"
    subprocess.run([need("git"), "init", "-q", "-b", "main", str(repo)], check=True)
    steps = [*LISTS, call("git_status", repo_path=str(repo)), call("git_log", repo_path=str(repo))]
    both(tmp_path, (str(python_servers / "bin" / "mcp-server-git"),), steps)


FASTMCP = """
from fastmcp import Context, FastMCP

mcp = FastMCP("x")


@mcp.tool
async def work(ctx: Context, n: int) -> dict:
    for step in range(n):
        await ctx.report_progress(step, n)
    return {"n": n, "big": 2**60, "none": None}


mcp.run(show_banner=False)
"""


def test_fastmcp_with_progress_and_structured_results(tmp_path, python_servers):
    script = tmp_path / "server.py"
    script.write_text(FASTMCP)
    steps = [*LISTS[:1], call("work", n=3), call("work", n="x"), call("gone")]
    both(tmp_path, (str(python_servers / "bin" / "python"), str(script)), steps)
