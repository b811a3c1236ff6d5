"""`--ask` with the SDK's own client as the host, in both eras, over stdio and Streamable HTTP."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import mcp_types as types
import pytest
from mcp import Client
from mcp.client.stdio import StdioServerParameters

from fencekit import Fence
from fencekit.core.config import FenceConfig
from fencekit.core.state import Done, Unknown
from fencekit.fence.draw import new_id
from fencekit.wire.frames import Frame
from fencekit.wire.protocol import LATEST_MODERN
from fencekit.wrap.actions import Call
from fencekit.wrap.form import CHOICES, NOTE, OUTCOME
from fencekit.wrap.identity import Scope
from fencekit.wrap.pump import Pump
from fencekit.wrap.record import Record
from fencekit.wrap.room import Room
from fencekit.wrap.rules import Rules
from fencekit.wrap.stdio import HOST_GONE_GRACE
from fencekit.wrap.turn import Settings

from .test_front import front
from .test_stdio import WRAP, Host, count

HAPPENED, NOT, UNSURE = CHOICES
MODES = {"legacy": "legacy", "modern": LATEST_MODERN}

# It acts, and says that it failed; the second time it says what it did.
SERVER = """
import os
from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError

mcp = MCPServer("till")
calls = []

@mcp.tool()
def charge_card(order: str) -> str:
    calls.append(order)
    with open(os.environ["FENCEKIT_EFFECTS"], "a") as file:
        file.write("effect\\n")
    if len(calls) == 1:
        raise ToolError("503 try again")
    return "charged"

def http(port: int) -> None:
    mcp.run(transport="streamable-http", port=port)

if __name__ == "__main__":
    mcp.run(transport="stdio")
"""


@contextlib.contextmanager
def served(server: tuple[str, ...], tmp_path: Path) -> Iterator[str]:
    """Serve the same tools over HTTP in a process of their own; yields the address."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    process = subprocess.Popen(
        [server[0], "-c", f"import till; till.http({port})"],
        cwd=Path(server[1]).parent,
        env={**os.environ, "FENCEKIT_EFFECTS": str(tmp_path / "effects")},
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    for line in process.stderr:
        if "running on" in line:
            break
    drain = threading.Thread(target=process.stderr.read)
    drain.start()
    try:
        yield f"http://127.0.0.1:{port}/mcp"
    finally:
        process.terminate()
        process.wait(20)
        drain.join()
        process.stderr.close()


@pytest.fixture
def server(tmp_path):
    path = tmp_path / "till.py"
    path.write_text(SERVER)
    return (sys.executable, str(path))


class Human:
    """Whoever sits before the host: answers with `said`, and keeps what he was shown."""

    def __init__(self, said: str) -> None:
        self.said = said
        self.shown: list[str] = []

    async def __call__(self, context: Any, params: Any) -> types.ElicitResult:
        self.shown.append(params.message)
        return types.ElicitResult(action="accept", content={OUTCOME: self.said, NOTE: "looked"})


@contextlib.asynccontextmanager
async def connected(
    where: str, mode: str, human: Human, tmp_path: Path, server: tuple[str, ...]
) -> AsyncIterator[Client]:
    """Connect the SDK's client through the proxy."""
    info = types.Implementation(name="desk", version="1")
    make: Callable[[Any], Client] = lambda to: Client(  # noqa: E731 - one set of options
        to, mode=mode, elicitation_callback=human, client_info=info
    )
    with contextlib.ExitStack() as stack:
        options: tuple[str, ...] = ("--ask",)
        if where.endswith("> http"):
            options += ("--url", stack.enter_context(served(server, tmp_path)))
            server = ()
        if where.startswith("http"):
            url, _ = stack.enter_context(front(tmp_path, *options, server=server))
            async with make(url) as client:
                yield client
            return
        own = ("--ledger", str(tmp_path / "l.db"), "--scope", "t", "--", *server)
        proxy = StdioServerParameters(
            command=WRAP[0],
            args=[*WRAP[1:], *options, *own],
            env={**os.environ, "FENCEKIT_EFFECTS": str(tmp_path / "effects")},
        )
        async with make(proxy) as client:
            yield client


def text(result: Any) -> str:
    return "".join(block.text for block in result.content)


WAYS = ["stdio > stdio", "http > stdio", "stdio > http", "http > http"]


@pytest.mark.parametrize("era", MODES)
@pytest.mark.parametrize(
    ("where", "said"), [*itertools.product(WAYS, [HAPPENED, NOT]), (WAYS[0], UNSURE)]
)
def test_a_human_before_a_real_host_decides(tmp_path, server, where, era, said):
    human = Human(said)

    async def talk() -> list[Any]:
        async with connected(where, MODES[era], human, tmp_path, server) as client:
            return [await client.call_tool("charge_card", {"order": "o1"}) for _ in range(3)]

    first, second, third = asyncio.run(asyncio.wait_for(talk(), 120))

    assert "503 try again" in text(first)
    assert '"order": "o1"' in human.shown[0]
    assert len(human.shown) == (2 if said == UNSURE else 1)
    assert count(tmp_path / "effects") == (2 if said == NOT else 1)
    with Fence.open(f"sqlite:{tmp_path / 'l.db'}") as fence:
        (state,) = (s.record.state for s in fence.intents())
    if said == UNSURE:
        assert isinstance(state, Unknown)
        assert second.is_error
        assert third.is_error
        return
    assert isinstance(state, Done)
    if said == NOT:
        assert (text(second), text(third)) == ("charged", "charged")
        assert state.operator == ""
    else:
        assert "a person confirmed it" in text(second)
        assert "a person confirmed it" in text(third)
        assert (state.operator, state.note) == ("human at desk", "looked")


def test_a_host_that_goes_away_with_an_open_question_is_not_waited_for(tmp_path, server):
    """Hosts kill a server that has not ended four seconds after they closed its input."""
    command = [*WRAP, "--ask", "--ledger", str(tmp_path / "l.db"), "--scope", "t", "--", *server]
    host = Host(command, {"FENCEKIT_EFFECTS": str(tmp_path / "effects")})
    able = {"elicitation": {}}
    info = {"name": "desk", "version": "1"}
    hello = {"protocolVersion": "2025-11-25", "capabilities": able, "clientInfo": info}
    host.send({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": hello})
    host.read()
    host.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
    host.call(1)
    host.read()
    host.call(2)
    assert json.loads(host.read())["method"] == "elicitation/create"

    began = time.monotonic()
    host.end()
    took = time.monotonic() - began
    for stream in (host.process.stdout, host.process.stderr):
        assert stream is not None
        stream.close()

    assert took < HOST_GONE_GRACE
    with Fence.open(f"sqlite:{tmp_path / 'l.db'}") as fence:
        assert [type(s.record.state) for s in fence.intents()] == [Unknown]


class Till:
    """A server in this process: charging fails, `list_charges` never answers."""

    def __init__(self, pump: Pump) -> None:
        self.pump = pump

    def send(self, frame: Frame, call: Call | None) -> None:
        results: dict[str, Any] = {
            "initialize": {"protocolVersion": "2025-11-25", "capabilities": {}},
            "tools/list": {
                "tools": [
                    {"name": "charge_card"},
                    {"name": "list_charges", "annotations": {"readOnlyHint": True}},
                ]
            },
            "charge_card": {"isError": True, "content": [{"type": "text", "text": "503"}]},
        }
        name = frame.params["name"] if frame.method == "tools/call" else frame.method
        if name in results:
            answer = {"jsonrpc": "2.0", "id": frame.id, "result": results[str(name)]}
            self.pump.from_server(json.dumps(answer).encode())

    def flush(self) -> None:
        pass

    def close(self, grace: float) -> int:
        return 0


class Channel:
    """A way back to a client, which notes what it is asked and gives nothing away."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    async def notify(self, method: str, params: Any) -> None:
        pass

    async def ask(self, method: str, params: Any) -> dict[str, Any]:
        self.asked.append(method)
        return {"action": "cancel"}


def test_the_question_goes_the_way_of_the_call_that_it_is_about():
    """A session has several requests waiting; the human must be asked on the stream of this one."""

    record = Record("memory:", FenceConfig(), lambda: True)

    async def talk() -> tuple[Channel, Channel, Channel]:
        settings = Settings(Rules(), Scope("t"), record.holder, new_id, ask=True)
        room = Room(settings, record, lambda pump, _ended: Till(pump))
        room.standalone = alone = Channel()
        slow, charge = Channel(), Channel()
        able: dict[str, Any] = {"capabilities": {"elicitation": {}}}
        await room.request(0, "initialize", able, slow)
        await room.request(1, "tools/list", {}, slow)
        other = asyncio.ensure_future(room.request(2, "tools/call", {"name": "list_charges"}, slow))
        call = {"name": "charge_card", "arguments": {"order": "o1"}}
        for ident in (3, 4):
            said = await room.request(ident, "tools/call", call, charge)
            assert said.result["isError"] is True
        other.cancel()
        await room.close()
        return alone, slow, charge

    alone, slow, charge = asyncio.run(asyncio.wait_for(talk(), 60))
    record.close()

    assert (alone.asked, slow.asked) == ([], [])
    assert charge.asked == ["elicitation/create"]
