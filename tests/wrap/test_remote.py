"""A server behind HTTP: which statuses of the POST prove that nothing ran, and which do not."""

from __future__ import annotations

import json
import threading
from typing import Any

import pytest

from fencekit.wire.protocol import (
    LATEST_MODERN,
    META_CLIENT_CAPABILITIES,
    META_OUTCOME,
    META_PROTOCOL_VERSION,
)
from tests.wire.web import Handler, web
from tests.wrap.test_stdio import WRAP, Host

PAY = {"name": "pay", "inputSchema": {"type": "object"}}


def serving(status: int, headers: Any, worded: bool, session: str | None) -> Any:
    """A server whose first call gets this status; `worded`: with an error of JSON-RPC."""
    calls = []

    def script(it: Handler, message: Any) -> None:
        method = message["method"] if message else ""
        if method == "initialize":
            more: Any = {"Mcp_Session_Id": session} if session else {}
            said = {"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": {}}
            it.json({"jsonrpc": "2.0", "id": message["id"], "result": said}, **more)
        elif method == "tools/list":
            it.answer(message, {"tools": [PAY]})
        elif method == "tools/call":
            calls.append(message)
            if len(calls) == 1 and worded:
                error = {"code": -32001, "message": "no"}
                it.json({"jsonrpc": "2.0", "id": None, "error": error}, status, **headers)
            elif len(calls) == 1:
                it.json(b"no", status, Content_Type="text/plain", **headers)
            else:
                it.answer(message, {"content": [{"type": "text", "text": "paid"}]})
        else:
            it.json(b"", 202 if it.command == "POST" else 405)

    return script, calls


ASKS = {"WWW_Authenticate": "Bearer"}


@pytest.mark.parametrize("worded", [False, True])
@pytest.mark.parametrize(
    ("status", "headers", "session", "freed"),
    [
        (401, ASKS, None, True),
        (401, {}, None, False),
        (404, {}, "s1", True),
        (404, {}, None, False),
        (405, {}, None, True),
        (406, {}, None, True),
        (413, {}, None, True),
        (415, {}, None, True),
        (421, {}, None, True),
        (400, {}, None, False),
        (403, {}, None, False),
        (408, {}, None, False),
        (429, {}, None, False),
        (500, {}, "s1", False),
        (503, {}, None, False),
    ],
)
def test_only_what_stands_before_every_handler_frees_a_call(
    tmp_path, status, headers, session, freed, worded
):
    script, calls = serving(status, headers, worded, session)
    with web(script) as it:
        ledger = ["--ledger", str(tmp_path / "l.db"), "--scope", "t"]
        host = Host([*WRAP, *ledger, "--url", it.url], {})
        host.open()
        answers = []
        for ident in (1, 2):
            params = {"name": "pay", "arguments": {"order": "o1"}}
            host.send({"jsonrpc": "2.0", "id": ident, "method": "tools/call", "params": params})
            answers.append(json.loads(host.read()))
        host.end()

    first, second = (a.get("result", {}).get("_meta", {}).get(META_OUTCOME, {}) for a in answers)
    if worded:
        assert answers[0]["error"] == {"code": -32001, "message": "no"}
    else:
        assert first["state"] == ("free" if freed else "unknown")
    assert second.get("state") == (None if freed else "unknown")
    assert len(calls) == (2 if freed else 1)


def test_a_cancelled_request_of_the_stateless_era_has_its_connection_ended(tmp_path):
    there, ended = threading.Event(), threading.Event()

    def script(it: Handler, message: Any) -> None:
        if message["method"] == "resources/read":
            there.set()
            if it.connection.recv(1) == b"":
                ended.set()
            it.close_connection = True
        else:
            it.answer(message, {"resultType": "complete"})

    meta = {META_PROTOCOL_VERSION: LATEST_MODERN, META_CLIENT_CAPABILITIES: {}}
    with web(script) as it:
        host = Host([*WRAP, "--ledger", "memory:", "--scope", "t", "--url", it.url], {})
        params = {"uri": "x:y", "_meta": meta}
        host.send({"jsonrpc": "2.0", "id": 1, "method": "resources/read", "params": params})
        assert there.wait(10)
        gone = {"requestId": 1}
        host.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": gone})
        assert ended.wait(10)
        host.send({"jsonrpc": "2.0", "id": 2, "method": "ping", "params": {"_meta": meta}})
        said = json.loads(host.read())
        host.end()

    assert said["id"] == 2
    assert [message["method"] for _, _, message in it.asked] == ["resources/read", "ping"]
