"""The bare client: both eras, one send for each call, and an honest word about lost answers."""

from __future__ import annotations

import contextlib
import json
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from fencekit.wire.client import EraChoice, Target
from fencekit.wire.errors import HandshakeFailed, NeverLeft, TimedOut, Unanswered
from fencekit.wire.frames import Kind, encode
from tests.wire.web import web

SDK_SERVER = Path(__file__).parents[2] / "fixtures" / "servers" / "sdk_charge.py"

# A hand-written server: LINE decides what is printed for each request `m`.
HAND = """
import json, sys
def say(x): print(json.dumps(x), flush=True)
def ok(m, r): say({"jsonrpc": "2.0", "id": m["id"], "result": r})
def no(m, c): say({"jsonrpc": "2.0", "id": m["id"], "error": {"code": c, "message": "no"}})
me = {"name": "hand", "version": "3"}
def hello(m): ok(m, {"protocolVersion": "2025-06-18", "capabilities": {}, "serverInfo": me})
for line in sys.stdin:
    m = json.loads(line)
    if "id" not in m: continue
    %s
"""


def hand(body: str, **options) -> Target:
    code = HAND % body.replace("\n", "\n    ")
    return Target(command=(sys.executable, "-c", code), **{"timeout": 10.0, **options})


@contextlib.contextmanager
def sdk_over_http(effects: Path) -> Iterator[str]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    process = subprocess.Popen(
        [sys.executable, str(SDK_SERVER), "http", str(port)],
        env={"EFFECTS": str(effects), "PATH": ""},
        stderr=subprocess.DEVNULL,
    )
    try:
        for _ in range(400):
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
                break
            time.sleep(0.05)
        yield f"http://127.0.0.1:{port}/mcp"
    finally:
        process.terminate()
        process.wait(10)


def charge(client) -> str:
    answer = client.request("tools/call", {"name": "charge", "arguments": {"order": "1"}})
    assert answer.kind is Kind.RESPONSE, answer.raw
    return str(json.loads(answer.result["content"][0]["text"])["charge_id"])


def test_the_sdk_server_over_http_in_both_eras(tmp_path):
    effects = tmp_path / "effects"
    eras: list[tuple[EraChoice, str]] = [
        ("auto", "2026-07-28"),
        ("modern", "2026-07-28"),
        ("legacy", "2025-11-25"),
    ]
    with sdk_over_http(effects) as url:
        for era, version in eras:
            client = Target(url=url, era=era, timeout=30).connect()
            assert (client.protocol_version, client.server_name) == (version, "sdk-charge")
            assert [tool["name"] for tool in client.list_tools()] == ["charge", "big"]
            assert charge(client) != charge(client)
            text = client.request("tools/call", {"name": "big", "arguments": {"size": 1_500_000}})
            assert len(text.result["content"][0]["text"]) == 1_500_000
            client.close()

    assert effects.read_text().count("\n") == 6


@pytest.mark.parametrize(("era", "version"), [("auto", "2025-11-25"), ("modern", "2026-07-28")])
def test_the_sdk_server_over_stdio_in_both_eras(tmp_path, era, version):
    effects = tmp_path / "effects"
    command = (sys.executable, str(SDK_SERVER), "stdio")
    client = Target(command=command, env={"EFFECTS": str(effects)}, era=era).connect()

    assert client.protocol_version == version
    assert len(client.list_tools()) == 2
    assert charge(client) != charge(client)
    assert effects.read_text().count("\n") == 2
    client.close()


def test_an_old_version_is_taken_and_named():
    client = hand("hello(m)").connect()

    assert (client.era, client.protocol_version) == ("legacy", "2025-06-18")
    assert (client.server_name, client.server_version) == ("hand", "3")
    client.close()


def test_a_server_of_the_stateless_era_alone_is_found_on_stdio():
    body = (
        'if m["method"] == "initialize": no(m, -32601)\n'
        'else: ok(m, {"supportedVersions": ["2026-07-28"]})'
    )
    client = hand(body).connect()

    assert (client.era, client.protocol_version) == ("modern", "2026-07-28")
    client.close()


@pytest.mark.parametrize(
    "body", ["no(m, -32602)", 'ok(m, {"protocolVersion": "1999-01-01"})', "ok(m, 7)"]
)
def test_a_server_that_shares_no_version_is_refused(body):
    with pytest.raises(HandshakeFailed):
        hand(body).connect()


def test_an_unsupported_version_is_not_asked_again_in_the_other_era():
    def script(handler, message):
        error = {"code": -32022, "message": "Unsupported protocol version"}
        handler.json({"jsonrpc": "2.0", "id": message["id"], "error": error}, 400)

    with web(script) as it, pytest.raises(HandshakeFailed, match="Unsupported"):
        Target(url=it.url, timeout=5).connect()

    assert [message["method"] for _, _, message in it.asked] == ["server/discover"]


def test_an_old_http_server_falls_back_and_keeps_its_session():
    def script(handler, message):
        if message is None or "id" not in message:
            handler.json({}, 202)
        elif message["method"] == "initialize":
            result = {"protocolVersion": "2025-06-18", "capabilities": {}, "serverInfo": {}}
            handler.json(
                {"jsonrpc": "2.0", "id": message["id"], "result": result}, mcp_session_id="s1"
            )
        elif message["method"] == "tools/list":
            handler.answer(message, {"tools": []})
        else:
            handler.json({"oops": True}, 400)

    with web(script) as it:
        client = Target(url=it.url, timeout=5).connect()
        client.list_tools()
        client.close()

    sessions = [(verb, headers.get("mcp-session-id")) for verb, headers, _ in it.asked]
    assert sessions == [
        ("POST", None),
        ("POST", None),
        ("POST", "s1"),
        ("POST", "s1"),
        ("DELETE", "s1"),
    ]


def test_tools_are_listed_page_after_page_and_a_circle_is_refused():
    pages = (
        'if m["method"] == "initialize": hello(m)\n'
        'elif "cursor" not in m["params"]: ok(m, {"tools": [{"name": "a"}], "nextCursor": "2"})\n'
        'else: ok(m, {"tools": [{"name": "b"}, "junk"]})'
    )
    client = hand(pages).connect()
    assert [tool["name"] for tool in client.list_tools()] == ["a", "b"]
    client.close()

    circle = 'hello(m) if m["method"] == "initialize" else ok(m, {"tools": [], "nextCursor": "2"})'
    client = hand(circle).connect()
    with pytest.raises(HandshakeFailed, match="repeat"):
        client.list_tools()
    client.close()


def test_calls_are_pipelined_and_each_gets_its_own_answer():
    """Answers come in reverse order; the server waits until all have arrived."""
    body = (
        'if m["method"] == "initialize": hello(m); held = []; continue\n'
        "held.append(m)\n"
        "if len(held) == 12:\n"
        '    for h in reversed(held): ok(h, {"n": h["id"]})'
    )
    client = hand(body).connect()
    params = client.params_bytes({"name": "t", "arguments": {}})
    pending = [client.prepare("tools/call", params) for _ in range(12)]
    for one in pending:
        client.send(one)

    assert [p.wait(10).result["n"] for p in pending] == [p.frame.id for p in pending]
    assert all((p.sent_at or 0) <= (p.answered_at or 0) for p in pending)
    client.close()


def test_params_are_the_same_bytes_in_every_frame():
    client = hand('hello(m) if m["method"] == "initialize" else ok(m, m["params"])').connect()
    params = encode({"name": "t", "arguments": {"n": 2**63, "f": 1.0}})
    one, two = (client.prepare("tools/call", params) for _ in range(2))

    assert one.frame.raw.replace(b'"id":2', b"") == two.frame.raw.replace(b'"id":3', b"")
    assert params in one.frame.raw
    client.close()


def test_a_server_that_asks_back_is_declined_and_the_call_still_ends():
    body = (
        'if m["method"] == "initialize": hello(m)\n'
        'elif m["method"] == "tools/call":\n'
        '    say({"jsonrpc": "2.0", "id": 1, "method": "sampling/createMessage", "params": {}})\n'
        "    reply = json.loads(sys.stdin.readline())\n"
        '    ok(m, {"said": reply["error"]["code"]})'
    )
    client = hand(body).connect()

    assert client.request("tools/call", {"name": "t"}).result == {"said": -32601}
    client.close()


def test_noise_on_stdout_and_ids_of_another_type_are_not_answers():
    body = (
        'if m["method"] == "initialize": hello(m)\n'
        "else:\n"
        '    print("starting up...")\n'
        '    say({"jsonrpc": "2.0", "id": str(m["id"]), "result": "wrong"})\n'
        '    say([{"jsonrpc": "2.0", "id": m["id"], "result": "right"}])'
    )
    client = hand(body).connect()

    assert client.request("tools/call", {}).result == "right"
    client.close()


def test_a_server_that_dies_mid_call_leaves_it_unknown_and_the_next_call_never_leaves():
    body = (
        'if m["method"] == "initialize": hello(m)\n'
        'else: sys.stderr.write("boom: no database"); sys.stderr.flush(); sys.exit(3)'
    )
    client = hand(body).connect()

    with pytest.raises(Unanswered, match=r"exit code 3\): boom: no database"):
        client.request("tools/call", {})
    with pytest.raises(NeverLeft):
        client.request("tools/call", {})
    client.close()


def test_a_late_answer_is_a_time_out_and_nothing_else_is_sent():
    body = 'hello(m) if m["method"] == "initialize" else None'
    client = hand(body).connect()

    with pytest.raises(TimedOut, match=r"0\.05 s"):
        client.request("tools/call", {}, timeout=0.05)
    client.close()


def test_a_command_that_is_not_there_is_told_as_such():
    with pytest.raises(NeverLeft, match="no such program"):
        Target(command=("no-such-server",)).connect()


def test_the_wire_loads_neither_the_sdk_nor_the_http_library_on_stdio():
    code = (
        "import sys; import fencekit.wire.client; "
        "heavy = ('mcp', 'mcp_types', 'pydantic', 'asyncio', 'httpx2'); "
        "print([m for m in heavy if m in sys.modules])"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert out.stdout.strip() == "[]"
