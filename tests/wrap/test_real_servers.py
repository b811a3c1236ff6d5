"""Servers that nobody here wrote, direct and wrapped: every answer byte for byte the same."""

from __future__ import annotations

import http.server
import json
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from fencekit.wire import protocol
from fencekit.wire.client import Target
from tests.conftest import REQUIRE_ALL, missing, need

from .test_stdio import WRAP, Host

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
    wrapped = Target(command=(*wrap, *command), timeout=120.0)
    answers(wrapped, [one, two, one], "legacy")
    assert (folder / "b.txt").read_text() == "one"
    (folder / "b.txt").write_text("reverted behind the server's back")
    answers(wrapped, [one], "legacy")
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


# The servers of npm are of the handshake era only.
both_eras = pytest.mark.parametrize("era", ["legacy", "modern"])


@pytest.fixture(scope="module")
def python_servers(tmp_path_factory):
    """Install the reference servers of PyPI beside each other; only where everything must run."""
    if not REQUIRE_ALL:
        missing("the servers of PyPI are installed only where everything must run")
    folder = tmp_path_factory.mktemp("servers")
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    names = [
        "mcp-server-git",
        "mcp-server-time",
        "mcp-server-fetch",
        "fastmcp",
        "once-kernel==0.2.1",
    ]
    subprocess.run([folder / "bin" / "pip", "install", "-q", *names], check=True, timeout=280)
    return Path(folder)


@both_eras
def test_mcp_server_time(tmp_path, python_servers, era):
    steps = [*LISTS[:1], LISTS[-1], call("get_current_time", timezone="No/Where")]
    both(tmp_path, (str(python_servers / "bin" / "mcp-server-time"),), steps, era)


@both_eras
def test_mcp_server_git(tmp_path, python_servers, era):
    repo = tmp_path / "repo"
    subprocess.run([need("git"), "init", "-q", "-b", "main", str(repo)], check=True)
    steps = [*LISTS, call("git_status", repo_path=str(repo)), call("git_log", repo_path=str(repo))]
    both(tmp_path, (str(python_servers / "bin" / "mcp-server-git"),), steps, era)


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


@both_eras
def test_fastmcp_with_progress_and_structured_results(tmp_path, python_servers, era):
    script = tmp_path / "server.py"
    script.write_text(FASTMCP)
    steps = [*LISTS[:1], call("work", n=3), call("work", n="x"), call("gone")]
    both(tmp_path, (str(python_servers / "bin" / "python"), str(script)), steps, era)


class _Page(http.server.BaseHTTPRequestHandler):
    """One page, one that is missing, and nothing that a robot may not read."""

    def do_GET(self) -> None:
        found = self.path == "/page"
        self.send_response(200 if found else 404)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.end_headers()
        self.wfile.write("<html><body><h1>H\u00e9</h1><p>A page.</p></body></html>".encode())

    def log_message(self, *_said: Any) -> None:
        pass


@pytest.fixture
def site():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Page)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()


@both_eras
def test_mcp_server_fetch(tmp_path, python_servers, site, era):
    steps = [
        *LISTS,
        ("prompts/get", {"name": "fetch", "arguments": {"url": f"{site}/page"}}),
        call("fetch", url=f"{site}/page"),
        call("fetch", url=f"{site}/page", raw=True, max_length=20),
        call("fetch", url=f"{site}/missing"),
        call("fetch", url="no url"),
    ]
    both(tmp_path, (str(python_servers / "bin" / "mcp-server-fetch"),), steps, era)


@both_eras
def test_the_server_of_once_kernel(tmp_path, python_servers, era):
    steps = [
        *LISTS,
        call("once_fail", key="k", fence_token="no", error="e"),
        call("once_heartbeat", key="k", fence_token="no"),
        call("once_complete", key="k", fence_token="no", result={"big": 2**60, "none": None}),
        call("once_begin", key="k"),
        call("nothing"),
    ]
    server = (str(python_servers / "bin" / "once-mcp"),)
    both(tmp_path, server, steps, era)

    begin = [call("once_begin", key="k", payload={"n": 1})]
    wrap = (*WRAP, "--ledger", str(tmp_path / "b.db"), "--scope", "b", "--")
    heard = []
    for command in (server, (*wrap, *server)):
        [raw] = answers(Target(command=command, timeout=120.0), begin, era)
        said = json.loads(json.loads(raw)["result"]["content"][0]["text"])
        token = said["fence_token"]  # its own, drawn anew
        heard.append(raw.replace(token.encode(), b"token"))
    assert heard[0] == heard[1]


ASKING = """
from fastmcp import Context, FastMCP
from mcp_types import SamplingMessage, TextContent

mcp = FastMCP("x")


@mcp.tool
async def order(ctx: Context, what: str) -> dict:
    await ctx.report_progress(1, 3, "asking")
    size = await ctx.elicit("Which size?", response_type=str)
    await ctx.report_progress(2, 3)
    asked = SamplingMessage(role="user", content=TextContent(text="A word about " + what))
    word = await ctx.session.create_message(messages=[asked], max_tokens=9)
    await ctx.info("nearly there")
    await ctx.report_progress(3, 3)
    return {"size": size.data, "word": word.content.text}


mcp.run(show_banner=False)
"""


def conversation(command: list[str]) -> list[Any]:
    """Order once, answering what the server asks; returns every frame that the host heard."""
    it = Host(command, {})
    opening = {
        "protocolVersion": protocol.LATEST_HANDSHAKE,
        "capabilities": {"elicitation": {}, "sampling": {}},
        "clientInfo": {"name": "host", "version": "1"},
    }
    it.send({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": opening})
    heard = [json.loads(it.read())]
    it.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
    params = {"name": "order", "arguments": {"what": "tea"}, "_meta": {"progressToken": "t"}}
    it.send({"jsonrpc": "2.0", "id": "one", "method": "tools/call", "params": params})
    said = {
        "elicitation/create": {"action": "accept", "content": {"value": "large"}},
        "sampling/createMessage": {
            "role": "assistant",
            "content": {"type": "text", "text": "h\u00e9"},
            "model": "m",
        },
    }
    while heard[-1].get("id") != "one":
        heard.append(json.loads(it.read()))
        if heard[-1].get("method") in said:
            answer = {"id": heard[-1]["id"], "result": said[heard[-1]["method"]]}
            it.send({"jsonrpc": "2.0", **answer})
    it.end()
    assert it.process.stdout is not None
    assert it.process.stderr is not None
    it.process.stdout.close()
    it.process.stderr.close()
    return heard


def test_fastmcp_asking_its_client_in_the_middle_of_a_fenced_call(tmp_path, python_servers):
    script = tmp_path / "server.py"
    script.write_text(ASKING)
    server = [str(python_servers / "bin" / "python"), str(script)]
    wrap = [*WRAP, "--ledger", str(tmp_path / "l.db"), "--scope", "t", "--"]
    direct, wrapped = conversation(server), conversation([*wrap, *server])

    assert wrapped == direct
    asked = [frame["method"] for frame in direct if "method" in frame]
    progress = "notifications/progress"
    assert asked == [
        progress, "elicitation/create", progress, "sampling/createMessage",
        "notifications/message", progress,
    ]  # fmt: skip
    assert direct[-1]["result"]["structuredContent"] == {"size": "large", "word": "h\u00e9"}
