"""SIGKILL of proxy, server and host at every step of a call behind `--http`: never two effects.

The same matrix as on standard streams (`test_crash`). Retries go to a proxy that lives through all
of it, on the same ledger; every step has an action of its own.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import psutil
import pytest

from fencekit.wire.client import Target
from fencekit.wire.errors import HttpRefused, WireError
from fencekit.wire.protocol import META_OUTCOME
from tests.wire.web import web

from . import stepped
from .test_crash import SLOW, STEPPED
from .test_front import front, until_refused
from .test_relay import Shop
from .test_stdio import count

ERAS = ("legacy", "modern")
# What a proxy passes on the way of its first call, each point as often as a call does.
BEFORE_A_CHILD = [
    "ledger answered:1", "ledger answered:2", "sending:1", "sent:1", "server answered:1",
    "server answered:2", "server answered:3", "answering:1", "answering:2", "decided:1",
    "decided:2", "written:1", "written:2",
]  # fmt: skip
BEFORE_A_SERVER = [
    "ledger answered:1", "ledger answered:2", "sent:1", "posted:1", "server answered:2",
    "answering:2", "written:1", "written:2",
]  # fmt: skip


def call(order: str, **more: str) -> dict[str, Any]:
    return {"name": "charge_card", "arguments": {"order": order, **more}}


def asked(url: str, params: Any, era: Any = "legacy") -> Any:
    """Call as a client that begins anew; returns the result, or the error that it met."""
    try:
        client = Target(url=url, era=era, timeout=20).connect()
    except WireError as error:
        return error
    try:
        return client.request("tools/call", params).result
    except WireError as error:
        return error
    finally:
        with contextlib.suppress(WireError):
            client.close()


def state(result: Any) -> str:
    """Return the outcome that a result is marked with; empty for a first answer."""
    return str(result.get("_meta", {}).get(META_OUTCOME, {"state": ""})["state"])


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    return tmp_path_factory.mktemp("crash")


@pytest.fixture(scope="module")
def survivor(place):
    """A proxy before a child that is not killed."""
    with front(place) as (url, _):
        yield url


@pytest.fixture(scope="module")
def shop():
    """An HTTP server that counts its effects itself."""
    made = Shop()
    made.tools = [{"name": "charge_card"}]
    return made


@pytest.fixture(scope="module")
def before_shop(place, shop):
    """The address of that server, and of a proxy before it that lives."""
    with web(shop) as served, front(place, "--url", served.url, server=()) as (url, _):
        yield served.url, url


def doomed(place: Path, step: str, params: Any, *options: str, era: str, server: Any = None) -> Any:
    """Ask a proxy that dies at a step; returns what its client heard."""
    more = {} if server is None else {"server": server}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FENCEKIT_CRASH_AT", step)
        with front(place, *options, **more) as (url, process):
            heard = asked(url, params, era)
            # A matrix whose points are never passed would prove nothing.
            assert process.wait(20) == -signal.SIGKILL
    return heard


def judge(heard: Any, later: list[Any], effects: int) -> None:
    assert effects <= 1
    states = [state(result) for result in later]
    assert set(states) <= {"", "done", "unknown"}
    assert states[1] in ("done", "unknown")
    if not isinstance(heard, WireError) or "done" in states:
        assert effects == 1
    if states[1] == "unknown":
        assert states[0] == "unknown"


@pytest.mark.parametrize("step", BEFORE_A_CHILD)
def test_a_proxy_killed_at_any_step_never_lets_the_effect_happen_twice(place, survivor, step):
    era = ERAS[BEFORE_A_CHILD.index(step) % 2]
    before = count(place / "effects")
    heard = doomed(place, step, call(step), era=era)
    later = [asked(survivor, call(step), again) for again in ERAS]
    judge(heard, later, count(place / "effects") - before)


@pytest.mark.parametrize("step", BEFORE_A_SERVER)
def test_a_reverse_proxy_killed_at_any_step_never_lets_it_happen_twice(
    place, shop, before_shop, step
):
    era = ERAS[BEFORE_A_SERVER.index(step) % 2]
    upstream, url = before_shop
    before = len(shop.effects)
    heard = doomed(place, step, call(f"r {step}"), "--url", upstream, era=era, server=())
    later = [asked(url, call(f"r {step}"), again) for again in ERAS]
    judge(heard, later, len(shop.effects) - before)


@pytest.fixture(scope="module")
def steps(place):
    """A proxy before servers that die or stand still where a call says so."""
    with front(place, server=STEPPED) as (url, process):
        yield url, process


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize(
    ("step", "effects", "outcome"),
    [("asked", 0, "unknown"), ("fired", 1, "unknown"), ("half answered", 1, "unknown"),
     ("answered", 1, "done")],
)  # fmt: skip
def test_a_server_killed_at_any_step_never_acts_again(place, steps, step, effects, outcome, era):
    url, _ = steps
    before = count(place / "effects")
    params = call(f"s {step} {era}", step=step)
    client = Target(url=url, era=era, timeout=20).connect()
    first = client.request("tools/call", params).result
    assert state(first) == ("" if outcome == "done" else "unknown")
    if era == "legacy":  # its session is over; a stateless client gets a new server at once
        refused = until_refused(client)
        assert isinstance(refused, HttpRefused)
        assert refused.status == 404
    else:
        assert state(client.request("tools/call", params).result) == outcome
    client.close()

    assert [state(asked(url, params, again)) for again in ERAS] == [outcome, outcome]
    assert count(place / "effects") - before == effects


# A client that goes so far and then waits for its end, saying that it is there.
CLIENT = """
import json, signal, socket, sys
step, host, port, path, era, params = sys.argv[1:]
params = json.loads(params)
sock = socket.create_connection((host, int(port)))
def post(message, half=False, **more):
    body = json.dumps({"jsonrpc": "2.0", **message}).encode()
    head = {"Host": f"{host}:{port}", "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream", "Content-Length": len(body), **more}
    lines = "".join(f"{n}: {v}\\r\\n" for n, v in head.items())
    raw = f"POST {path} HTTP/1.1\\r\\n{lines}\\r\\n".encode() + body
    sock.sendall(raw[:-30] if half else raw)
more = {}
if era == "modern":
    more = {"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": "charge_card"}
    params["_meta"] = {"io.modelcontextprotocol/protocolVersion": "2026-07-28",
                       "io.modelcontextprotocol/clientCapabilities": {}}
else:
    info = {"name": "c", "version": "1"}
    post({"id": 0, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": info}})
    heard = sock.makefile("rb")
    for line in heard:
        if line.lower().startswith(b"mcp-session-id:"):
            more = {"Mcp-Session-Id": line.split()[1].decode(), "MCP-Protocol-Version": "2025-11-25"}
            break
    heard.close()
    sock.close()
    sock = socket.create_connection((host, int(port)))
post({"id": 1, "method": "tools/call", "params": params}, step == "half sent", **more)
got = b""
while step == "heard" and b"charge_id" not in got:
    got += sock.recv(4096)
print("there", flush=True)
signal.pause()
"""  # noqa: E501 - a client in a string


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("step", ["half sent", *stepped.STEPS[1:], "heard"])
def test_a_host_killed_at_any_step_leaves_one_effect_and_its_result(
    tmp_path, place, steps, step, era
):
    url, _ = steps
    held = step in stepped.STEPS
    gate = tmp_path / "gate"
    for name in ("there", "go"):
        os.mkfifo(f"{gate}.{name}")
    params = call(f"h {step} {era}", **({"step": step, "gate": str(gate)} if held else {}))
    before = count(place / "effects")
    host, port = url.removeprefix("http://").removesuffix("/mcp").split(":")
    command = [sys.executable, "-c", CLIENT, step, host, port, "/mcp", era, json.dumps(params)]
    client = subprocess.Popen(command, stdout=subprocess.PIPE)
    assert client.stdout is not None
    assert client.stdout.readline() == b"there\n"
    if held:
        Path(f"{gate}.there").read_bytes()  # the server is at the step
    client.kill()
    client.wait(20)
    client.stdout.close()
    if held:
        Path(f"{gate}.go").write_bytes(b"")

    later = [asked(url, params, again) for again in ERAS]
    first = "" if step == "half sent" else "done"
    assert [state(result) for result in later] == [first, "done"]
    assert {result["content"][0]["text"] for result in later} == {"charge_id"}
    assert count(place / "effects") - before == 1


def test_fronts_that_race_on_one_ledger_make_one_effect_though_one_is_killed(tmp_path):
    with contextlib.ExitStack() as stack:
        server = (sys.executable, "-c", SLOW)
        fronts = [stack.enter_context(front(tmp_path, server=server)) for _ in range(3)]
        heard: list[Any] = []
        threads = [
            threading.Thread(target=lambda u=url: heard.append(asked(u, call("o"), "modern")))
            for url, _ in fronts
        ]
        for thread in threads:
            thread.start()
        while count(tmp_path / "effects") == 0:
            os.sched_yield()
        fronts[0][1].kill()
        for thread in threads:
            thread.join()
        last = asked(fronts[1][0], call("o"), "modern")

    assert count(tmp_path / "effects") == 1
    assert len(heard) == 3
    answered = [result for result in [*heard, last] if not isinstance(result, WireError)]
    assert len(answered) >= 3
    assert {state(result) for result in answered} <= {"", "done", "unknown"}


def test_the_servers_of_a_killed_front_end_with_it(tmp_path):
    with front(tmp_path, server=STEPPED) as (url, process):
        clients = [Target(url=url, era="legacy").connect() for _ in range(2)]
        children = psutil.Process(process.pid).children(recursive=True)
        process.kill()
        process.wait(20)
        _, alive = psutil.wait_procs(children, 20)
        for client in clients:
            with contextlib.suppress(WireError):
                client.close()
    assert [p for p in alive if p.status() != psutil.STATUS_ZOMBIE] == []
