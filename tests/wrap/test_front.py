"""The HTTP front: many clients through one fence, each session with a server of its own."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any

import httpx2
import psutil
import pytest

from fencekit.wire.client import Target
from fencekit.wire.errors import HttpRefused, WireError
from fencekit.wire.protocol import (
    HEADER_MISMATCH,
    LATEST_MODERN,
    META_CLIENT_CAPABILITIES,
    META_OUTCOME,
    META_PROTOCOL_VERSION,
)
from fencekit.wrap.clients import Client, Guests
from fencekit.wrap.door import Listen
from tests.wrap.test_stdio import servers

from .test_stdio import SPECIMEN, WRAP, count

CALL = {"name": "charge_card", "arguments": {"order": "o1"}}


@contextlib.contextmanager
def front(tmp_path, *options: str, server: tuple[str, ...] = (*SPECIMEN, "fires")) -> Iterator[Any]:
    """Start the proxy with an HTTP front; yields (address, process)."""
    command = [*WRAP, "--http", "127.0.0.1:0", "--ledger", str(tmp_path / "l.db"), "--scope", "t"]
    process = subprocess.Popen(
        [*command, *options, "--", *server],
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "FENCEKIT_EFFECTS": str(tmp_path / "effects")},
    )
    assert process.stderr is not None
    url = ""
    for line in process.stderr:
        if found := re.search(r"listening on (\S+),", line):
            url = found[1]
            break
    drain = threading.Thread(target=process.stderr.read)
    drain.start()
    try:
        yield url, process
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(20)
        drain.join()
        process.stderr.close()


def test_clients_of_both_eras_share_one_fence(tmp_path):
    with front(tmp_path) as (url, _):
        heard = []
        for era in ("legacy", "modern", "legacy"):
            client = Target(url=url, era=era).connect()
            assert [t["name"] for t in client.list_tools()] == ["charge_card", "list_charges"]
            heard.append(client.request("tools/call", CALL).result)
            client.close()

    assert count(tmp_path / "effects") == 1
    assert len({json.dumps(h["content"]) for h in heard}) == 1
    assert ["_meta" in h and META_OUTCOME in h["_meta"] for h in heard] == [False, True, True]
    assert ["resultType" in h for h in heard] == [False, True, False]


def test_twins_of_many_clients_wait_for_the_one_answer(tmp_path):
    with front(tmp_path) as (url, _):
        clients = [Target(url=url, era=era).connect() for era in ("modern", "legacy") * 4]
        heard: list[Any] = []
        start = threading.Barrier(len(clients))

        def call(client: Any) -> None:
            start.wait()
            heard.append(client.request("tools/call", CALL).result["content"])

        threads = [threading.Thread(target=call, args=(c,)) for c in clients]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for client in clients:
            client.close()

    assert len(heard) == len(clients)
    assert count(tmp_path / "effects") == 1
    assert len({json.dumps(h) for h in heard}) == 1


def until_refused(client: Any) -> WireError | None:
    """Ask until an error comes: the proxy may need a moment to see that its child is gone."""
    for _ in range(200):
        try:
            client.request("tools/list", {}, timeout=5.0)
        except WireError as error:
            return error
    return None


def test_a_session_whose_server_died_is_answered_404(tmp_path):
    with front(tmp_path) as (url, process):
        client = Target(url=url, era="legacy").connect()
        (child,) = servers(process.pid)
        child.kill()
        psutil.wait_procs([child], 10)
        caught = until_refused(client)
        again = Target(url=url, era="legacy").connect()
        assert again.list_tools()
        again.close()
        client.close()

    assert isinstance(caught, HttpRefused)
    assert caught.status == 404


def ask(url: str, **headers: str) -> int:
    request = urllib.request.Request(url, headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=10) as response:
            return int(response.status)
    except urllib.error.HTTPError as error:
        error.close()
        return error.code


HANGS = """
import json, os, sys
for line in sys.stdin:
    message = json.loads(line)
    if message["method"] == "initialize":
        said = {"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": {}}
        answer = {"jsonrpc": "2.0", "id": message["id"], "result": said}
        print(json.dumps(answer), flush=True)
    elif "id" in message:
        os._exit(3)
"""


def test_what_waits_for_a_server_that_dies_is_answered(tmp_path):
    with front(tmp_path, server=(sys.executable, "-c", HANGS)) as (url, _):
        client = Target(url=url, era="legacy").connect()
        said = client.request("resources/read", {"uri": "x:y"}, timeout=15.0)

    assert "ended (exit code 3)" in said.error["message"]


@pytest.mark.parametrize("wrong", [("mcp-name", "other"), ("mcp-method", "tools/list")])
def test_a_request_whose_headers_deny_its_body_is_refused_and_not_answered_by_a_replay(
    tmp_path, wrong
):
    meta = {META_PROTOCOL_VERSION: LATEST_MODERN, META_CLIENT_CAPABILITIES: {}}
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {**CALL, "_meta": meta}}
    right = {
        "accept": "application/json, text/event-stream",
        "mcp-protocol-version": LATEST_MODERN,
        "mcp-method": "tools/call",
        "mcp-name": CALL["name"],
    }
    with front(tmp_path) as (url, _):
        ran, replayed, refused = (
            httpx2.post(url, json=body, headers={**right, **dict(more)}, timeout=20).json()
            for more in ([], [], [wrong])
        )

    assert META_OUTCOME not in ran["result"].get("_meta", {})
    assert META_OUTCOME in replayed["result"]["_meta"]
    assert refused["error"]["code"] == HEADER_MISMATCH


def test_no_more_sessions_than_allowed_have_a_server(tmp_path):
    with front(tmp_path, "--max-sessions", "2") as (url, process):
        clients = [Target(url=url, era="legacy").connect() for _ in range(2)]
        with pytest.raises(WireError, match="Too many open sessions"):
            Target(url=url, era="legacy").connect()
        assert len(servers(process.pid)) == 2
        clients[0].close()
        again = Target(url=url, era="legacy").connect()
        assert len(again.list_tools()) == 2
        assert len(servers(process.pid)) == 2


def test_host_and_origin_are_checked_and_health_is_open(tmp_path):
    with front(tmp_path) as (url, _):
        assert ask(url.replace("/mcp", "/health")) == 200
        assert ask(url, Host="evil.example.com") == 421
        assert ask(url, Origin="http://evil.example.com") == 403


def test_a_token_is_needed_where_one_is_set(tmp_path):
    secret = tmp_path / "token"
    secret.write_text("s3cret\n")
    with front(tmp_path, "--front-token-file", str(secret)) as (url, _):
        assert ask(url) == 401
        assert ask(url, Authorization="Bearer wrong") == 401
        headers = {"Authorization": "Bearer s3cret"}
        client = Target(url=url, headers=headers, era="modern").connect()
        assert client.list_tools()
        client.close()


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "example.com"])
def test_other_addresses_than_loopback_need_a_token(host):
    with pytest.raises(ValueError, match="--front-token-env"):
        Listen(host, 0).check()
    Listen(host, 0, Guests((Client("token", "t"),))).check()


def test_the_servers_of_all_sessions_end_with_the_front(tmp_path):
    with front(tmp_path) as (url, process):
        clients = [Target(url=url, era="legacy").connect() for _ in range(3)]
        children = servers(process.pid)
        assert len(children) == 3
        process.send_signal(signal.SIGTERM)
        gone, _ = psutil.wait_procs(children, 15)
        for client in clients:
            client.close()

    assert len(gone) == 3


CHATTY = """
import json, sys
def say(**m): print(json.dumps({"jsonrpc": "2.0", **m}), flush=True)
for line in sys.stdin:
    m = json.loads(line)
    if m.get("method") == "initialize":
        say(id=m["id"], result={"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": {"name": "c", "version": "1"}})
    elif m.get("method") == "tools/list":
        say(id=m["id"], result={"tools": [{"name": "charge_card"}]})
    elif m.get("method") == "tools/call":
        call = m["id"]
        token = m["params"]["_meta"]["progressToken"]
        say(method="notifications/progress", params={"progressToken": token, "progress": 1})
        say(id=77, method="elicitation/create", params={"message": "sure?", "requestedSchema": {}})
    elif m.get("id") == 77:
        text = json.dumps(m.get("result", m.get("error")))
        say(id=call, result={"content": [{"type": "text", "text": text}], "big": 2**70, "unknown": None})
"""  # noqa: E501 - a server in a string


def test_what_a_server_asks_and_tells_in_a_call_reaches_the_client_that_made_it(tmp_path):
    with front(tmp_path, server=(sys.executable, "-c", CHATTY)) as (url, _):
        client = Target(url=url, era="legacy").connect()
        frames: list[Any] = []
        params = {**CALL, "_meta": {"progressToken": "tok"}}
        pending = client.prepare("tools/call", client.params_bytes(params))
        endpoint = client.carrier.endpoint
        for frame in endpoint.post(pending.frame):
            frames.append(frame)
            if frame.method == "elicitation/create":
                from fencekit.wire.frames import parse, result_bytes

                answer = result_bytes(frame.id, b'{"action":"accept","content":{"a":1}}')
                list(endpoint.post(parse(answer)[0]))
        client.close()

    told, asked, answered = frames
    assert told.params == {"progressToken": "tok", "progress": 1}
    assert asked.params["message"] == "sure?"
    assert json.loads(answered.result["content"][0]["text"])["content"] == {"a": 1}
    assert answered.result["big"] == 2**70
    assert answered.result["unknown"] is None
