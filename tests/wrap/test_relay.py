"""The reverse proxy: all but a fenced call passes as HTTP, and a fenced call runs once."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import json
import os
import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import urlsplit

import pytest
import uvicorn

from fencekit.core.config import FenceConfig
from fencekit.fence.draw import new_id
from fencekit.wire.protocol import META_OUTCOME
from fencekit.wrap import exchange
from fencekit.wrap import relay as relay_module
from fencekit.wrap.clients import EVERYBODY, Guests
from fencekit.wrap.door import PRINCIPAL, Listen
from fencekit.wrap.door import Door as FrontDoor
from fencekit.wrap.identity import Scope
from fencekit.wrap.record import Record
from fencekit.wrap.relay import Relay
from fencekit.wrap.rules import Rules
from fencekit.wrap.turn import Settings
from tests.wire.web import Handler, Web, web

from .test_front import front

MODERN = "2026-07-28"
TOOLS = [
    {"name": "charge_card", "inputSchema": {"type": "object", "properties": {
        "order": {"type": "string", "x-mcp-header": "Order"}}}},
    {"name": "list_charges", "annotations": {"readOnlyHint": True}},
]  # fmt: skip
PAID = {"content": [{"type": "text", "text": "paid"}], "big": 2**70, "unknown": None}


class Shop:
    """An HTTP server that charges; each effect is counted when its call has come in whole."""

    tools = TOOLS

    def __init__(self) -> None:
        self.effects: list[Any] = []
        self.seen: list[tuple[str, dict[str, str], Any]] = []
        self.came, self.go = threading.Semaphore(0), threading.Event()
        self.go.set()

    def __call__(self, it: Handler, message: Any) -> None:
        self.seen.append((it.command, {k.lower(): v for k, v in it.headers.items()}, message))
        if it.command != "POST" or "id" not in message or "method" not in message:
            it.json(b"", 200 if it.command == "DELETE" else 202)
        elif message["method"] == "tools/call" and message["params"]["name"] == "charge_card":
            self.effects.append(message["params"].get("arguments"))
            self.came.release()
            self.go.wait(20)
            self.charge(it, message)
        elif message["method"] == "initialize":
            result = {"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": {}}
            body = {"jsonrpc": "2.0", "id": message["id"], "result": result}
            it.json(body, Mcp_Session_Id=f"s{len(self.seen)}")
        elif message["method"] == "tools/list":
            it.answer(message, {"tools": self.tools})
        else:
            self.other(it, message)

    def charge(self, it: Handler, message: Any) -> None:
        it.answer(message, PAID)

    def other(self, it: Handler, message: Any) -> None:
        it.answer(message, {"content": []})


class Door:
    """What a client sees of the proxy."""

    def __init__(self, url: str, behind: Relay | None = None) -> None:
        self.at = urlsplit(url)
        self.behind = behind

    def waiting(self) -> dict[Any, Any]:
        """Return the fenced calls of clients without a session that wait for an answer."""
        assert self.behind is not None
        return self.behind._desk("", None).gate.calls.by_client_id

    def send(
        self, message: Any, *, method: str = "POST", **headers: str
    ) -> tuple[int, dict[str, str], bytes]:
        connection, response = self.open(message, method=method, **headers)
        with contextlib.closing(connection):
            body = response.read()
            return response.status, {k.lower(): v for k, v in response.getheaders()}, body

    def open(self, message: Any, *, method: str = "POST", **headers: str) -> Any:
        connection = http.client.HTTPConnection(self.at.hostname or "", self.at.port, timeout=20)
        body = message if isinstance(message, bytes) else json.dumps(message).encode()
        given = {
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
        }
        given |= {name.replace("_", "-"): value for name, value in headers.items()}
        connection.request(method, self.at.path, body, given)
        return connection, connection.getresponse()


def call(ident: Any, order: str = "o1", *, token: Any = None, tool: str = "charge_card") -> Any:
    params: dict[str, Any] = {"name": tool, "arguments": {"order": order}}
    if token is not None:
        params["_meta"] = {"progressToken": token}
    return {"jsonrpc": "2.0", "id": ident, "method": "tools/call", "params": params}


def modern(message: Any) -> tuple[Any, dict[str, str]]:
    """Return a stateless request and the headers that repeat it."""
    meta = {
        "io.modelcontextprotocol/protocolVersion": MODERN,
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    params = {**message["params"], "_meta": {**message["params"].get("_meta", {}), **meta}}
    headers = {
        "MCP_Protocol_Version": MODERN,
        "Mcp_Method": message["method"],
        "Mcp_Name": message["params"]["name"],
        "Mcp_Param_Order": message["params"]["arguments"]["order"],
    }
    return {**message, "params": params}, headers


@contextlib.contextmanager
def before(
    tmp_path: Any,
    url: str,
    own: dict[str, str] | None = None,
    guests: Guests = EVERYBODY,
    **settings: Any,
) -> Iterator[Door]:
    """Serve a proxy in a thread of this process; `own` are its headers for the server."""
    record = Record(f"sqlite:{tmp_path / 'l.db'}", FenceConfig(), lambda: True)
    made = Settings(Rules(), Scope("t"), record.holder, new_id, **settings)
    behind = Relay(made, record, (url, own or {}), forward_auth=guests.forward_auth)
    listen = Listen("127.0.0.1", 0)
    config = uvicorn.Config(
        FrontDoor(behind.web(listen), behind, guests), log_level="warning", lifespan="on"
    )
    server = uvicorn.Server(config)
    with socket.create_server(("127.0.0.1", 0)) as sock:
        thread = threading.Thread(target=server.run, args=([sock],))
        thread.start()
        try:
            yield Door(f"http://127.0.0.1:{sock.getsockname()[1]}/mcp", behind)
        finally:
            server.should_exit = True
            thread.join()
            record.close()


@contextlib.contextmanager
def relay(
    tmp_path: Any, shop: Any, own: dict[str, str] | None = None, guests: Guests = EVERYBODY
) -> Iterator[tuple[Door, Web]]:
    with web(shop) as served, before(tmp_path, served.url, own, guests) as door:
        yield door, served


def mark(body: bytes) -> Any:
    return json.loads(body)["result"].get("_meta", {}).get(META_OUTCOME)


def session_of(door: Door, **given: str) -> str:
    ask = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"capabilities": {}}}
    status, headers, _ = door.send(ask, **given)
    assert status == 200
    return headers["mcp-session-id"]


def test_what_is_not_fenced_passes_as_http(tmp_path):
    body = b'{"jsonrpc":"2.0" , "id":7,"result":{"b":1.0,"a":"\\u0041"}}'

    class Odd(Shop):
        def other(self, it, message):
            it.json(body, 207, X_Tenant="t\xe9\xff", Connection="close, X-Hop", X_Hop="1")

    shop = Odd()
    asked = b'{ "jsonrpc":"2.0","id":7,"method":"odd\\/thing","params":{"n":1.0,"z":null} }'
    with relay(tmp_path, shop, {"X-Key": "mine"}) as (door, served):
        status, headers, got = door.send(
            asked, X_Custom="kept\xe9\xff", X_Key="theirs", Cookie="c=1", Connection="X-Mine",
            X_Mine="1", Origin="http://127.0.0.1:1", Sec_Fetch_Site="cross-site",
            X_Forwarded_For="1.2.3.4",
        )  # fmt: skip

    assert (status, got) == (207, body)
    assert headers["x-tenant"] == "t\xe9\xff"
    assert "x-hop" not in headers
    _, up, _ = shop.seen[-1]
    assert up["host"] == urlsplit(served.url).netloc
    assert (up["x-custom"], up["x-key"]) == ("kept\xe9\xff", "mine")
    assert not {"cookie", "origin", "x-mine", "sec-fetch-site", "x-forwarded-for"} & set(up)


def test_the_bytes_of_a_request_reach_the_server_as_they_came(tmp_path):
    raws = []

    def server(it, message):
        raws.append(message)
        it.answer(message, {"tools": TOOLS})

    spelled = (
        b'{"jsonrpc":"2.0","id":1e2,"method":"tools\\/call",'
        b'"params":{"name":"list_charges","arguments":{"n":12345678901234567890123}}}'
    )
    with relay(tmp_path, server) as (door, served):
        assert door.send(spelled)[0] == 200
        assert served.asked[-1][2] == json.loads(spelled)
        assert int(served.asked[-1][1]["content-length"]) == len(spelled)


def test_the_token_of_the_front_never_reaches_the_server(tmp_path):
    secret, own = tmp_path / "token", tmp_path / "own"
    secret.write_text("fr0nt\n")
    own.write_text("upstream\n")
    shop = Shop()
    options = ("--front-token-file", str(secret), "--bearer-file", str(own))
    with web(shop) as served, front(tmp_path, "--url", served.url, *options, server=()) as (url, _):
        door = Door(url)
        assert door.send(call(1))[0] == 401
        assert shop.seen == []
        status, _, _ = door.send(call(1), Authorization="Bearer fr0nt")
        assert status == 200
        door.send(None, method="DELETE", Authorization="Bearer fr0nt")
    # The proxy's own list of tools speaks as the proxy does, too.
    assert {up.get("authorization") for _, up, _ in shop.seen} == {"Bearer upstream"}
    assert "fr0nt" not in str(shop.seen)


def test_a_call_runs_once_for_clients_of_both_eras_that_use_the_same_ids(tmp_path):
    shop = Shop()
    with relay(tmp_path, shop) as (door, _):
        first = door.send(call(1), Mcp_Session_Id=session_of(door))
        message, headers = modern(call(1))
        again = [
            door.send(call(1), Mcp_Session_Id=session_of(door)),
            door.send(message, **headers),
            door.send(call("1")),
        ]

    assert len(shop.effects) == 1
    assert json.loads(first[2]) == {"jsonrpc": "2.0", "id": 1, "result": PAID}
    assert [status for status, _, _ in again] == [200, 200, 200]
    assert [json.loads(body)["id"] for _, _, body in again] == [1, 1, "1"]
    assert all(mark(body)["replayed"] for _, _, body in again)
    assert json.loads(again[0][2])["result"]["big"] == 2**70
    assert json.loads(again[1][2])["result"]["resultType"] == "complete"


def test_other_calls_with_the_same_id_and_token_at_one_moment_get_their_own_answers(tmp_path):
    class Chatty(Shop):
        def charge(self, it, message):
            token = message["params"]["_meta"]["progressToken"]
            order = message["params"]["arguments"]["order"]
            told = {"progressToken": token, "progress": 1, "message": order}
            it.sse(_event(method="notifications/progress", params=told)
                   + _event(id=message["id"], result={"content": [], "order": order}))  # fmt: skip

    shop = Chatty()
    shop.go.clear()
    heard = {}
    with relay(tmp_path, shop) as (door, _):

        def ask(order):
            message, headers = modern(call(5, order, token=9))
            heard[order] = door.send(message, **headers)[2].decode()

        threads = [threading.Thread(target=ask, args=(f"o{n}",)) for n in range(4)]
        for thread in threads:
            thread.start()
        for _ in threads:
            assert shop.came.acquire(timeout=20)
        shop.go.set()
        for thread in threads:
            thread.join()

    for order, text in heard.items():
        told, answered = [json.loads(d) for d in _data(text)]
        assert told["params"] == {"progressToken": 9, "progress": 1, "message": order}
        assert (answered["id"], answered["result"]["order"]) == (5, order)


def _event(ident: str | None = None, **message: Any) -> str:
    head = "" if ident is None else f"id: {ident}\n"
    return f"{head}data: {json.dumps({'jsonrpc': '2.0', **message})}\n\n"


def _data(text: str) -> list[str]:
    return [line[6:] for line in text.splitlines() if line.startswith("data: ")]


def test_many_clients_at_one_moment_make_each_effect_once(tmp_path):
    shop = Shop()
    shop.tools = [{"name": "charge_card"}]
    with relay(tmp_path, shop) as (door, _):
        sessions = [session_of(door) for _ in range(4)]

        def ask(n: int) -> Any:
            if n % 2:
                return door.send(call(n, f"o{n % 25}"), Mcp_Session_Id=sessions[n % 4])
            message, headers = modern(call(1, f"o{n % 25}"))
            return door.send(message, **headers)

        with ThreadPoolExecutor(20) as pool:
            heard = list(pool.map(ask, range(100)))

    assert sorted(effect["order"] for effect in shop.effects) == sorted(f"o{n}" for n in range(25))
    assert {status for status, _, _ in heard} == {200}
    results = [json.loads(body)["result"] for _, _, body in heard]
    assert {result["content"][0]["text"] for result in results} == {"paid"}
    assert sum(mark(body) is None for _, _, body in heard) == 25


def test_twins_wait_for_the_one_answer_and_see_its_progress(tmp_path):
    class Chatty(Shop):
        def charge(self, it, message):
            told = {"progressToken": message["params"]["_meta"]["progressToken"], "progress": 1}
            it.sse(_event(method="notifications/progress", params=told)
                   + _event(id=message["id"], result=PAID))  # fmt: skip

    shop = Chatty()
    shop.go.clear()
    heard: list[list[Any]] = []
    with relay(tmp_path, shop) as (door, _):

        def ask(ident, token):
            message, headers = modern(call(ident, token=token))
            heard.append([json.loads(d) for d in _data(door.send(message, **headers)[2].decode())])

        threads = [threading.Thread(target=ask, args=(1, "a"))]
        threads[0].start()
        assert shop.came.acquire(timeout=20)
        threads.append(threading.Thread(target=ask, args=(2, "b")))
        threads[1].start()
        while len(door.waiting()) < 2:
            os.sched_yield()
        shop.go.set()
        for thread in threads:
            thread.join()

    assert len(shop.effects) == 1
    tokens = {1: "a", 2: "b"}
    assert sorted(frames[-1]["id"] for frames in heard) == [1, 2]
    for told, answered in heard:
        assert told["params"]["progressToken"] == tokens[answered["id"]]


@pytest.mark.parametrize("era", ["legacy", "modern"])
def test_a_fenced_call_outlives_the_client_that_hung_up(tmp_path, era):
    shop = Shop()
    shop.go.clear()
    with relay(tmp_path, shop) as (door, _):
        message, headers = modern(call(1)) if era == "modern" else (call(1), {})
        hang_up(door, message, shop, **headers)
        shop.go.set()
        _, _, body = door.send(message, **headers)

    assert len(shop.effects) == 1
    assert mark(body)["state"] == "done"
    assert json.loads(body)["result"]["content"] == PAID["content"]


def test_a_stream_that_the_server_cuts_is_resumed_by_proxy_and_client(tmp_path):
    class Cut(Shop):
        def __call__(self, it, message):
            if it.command == "GET":
                self.seen.append(("GET", {k.lower(): v for k, v in it.headers.items()}, None))
                assert it.headers["last-event-id"] == "e1"
                it.sse(_event("e2", id=4, result=PAID))
            else:
                super().__call__(it, message)

        def charge(self, it, message):
            it.sse(": hello\n\nid: e1\nretry: 1\ndata:\n\n")

    shop = Cut()
    with relay(tmp_path, shop) as (door, _):
        session = session_of(door)
        _, headers, primed = door.send(call(4), Mcp_Session_Id=session)
        back = {"Accept": "text/event-stream", "Mcp_Session_Id": session}
        _, _, rest = door.send(b"", method="GET", Last_Event_ID="e1", **back)
        _, _, once_more = door.send(b"", method="GET", Last_Event_ID="e1", **back)
        _, _, repeat = door.send(call(5), Mcp_Session_Id=session)

    assert headers["content-type"] == "text/event-stream"
    assert primed.decode() == ": hello\n\nid: e1\nretry: 1\ndata:\n\n"
    assert rest.decode() == once_more.decode() == _event("e2", id=4, result=PAID)
    assert len(shop.effects) == 1
    # The client's own ways back were answered here: the server was asked for the rest once.
    assert [up["last-event-id"] for how, up, _ in shop.seen if how == "GET"] == ["e1"]
    assert mark(repeat)["state"] == "done"


def test_a_stream_of_an_unfenced_request_is_resumed_at_the_server(tmp_path):
    class Cut(Shop):
        def __call__(self, it, message):
            if it.command == "GET":
                asked.append(it.headers.get("last-event-id"))
                it.sse(_event("e2", id=4, result={"content": []}))
            else:
                super().__call__(it, message)

        def other(self, it, message):
            it.sse("id: e1\ndata:\n\n")

    asked: list[Any] = []
    with relay(tmp_path, Cut()) as (door, _):
        session = session_of(door)
        message = {"jsonrpc": "2.0", "id": 4, "method": "slow/thing"}
        _, _, primed = door.send(message, Mcp_Session_Id=session)
        _, _, rest = door.send(b"", method="GET", Last_Event_ID="e1", Mcp_Session_Id=session)

    assert primed == b"id: e1\ndata:\n\n"
    assert rest.decode() == _event("e2", id=4, result={"content": []})
    assert asked == ["e1"]


def test_a_server_that_is_down_is_told_and_frees_the_call(tmp_path):
    shop = Shop()
    with web(shop) as served:
        address = served.url
    with before(tmp_path, address) as door:
        plain = door.send({"jsonrpc": "2.0", "id": 3, "method": "tools/list"})
        told = door.send({"jsonrpc": "2.0", "method": "notifications/x"})
        stream = door.send(b"", method="GET")
        _, _, fenced = door.send(call(1))

    assert [plain[0], told[0], stream[0]] == [502, 502, 502]
    assert json.loads(plain[2])["id"] == 3
    assert address in json.loads(plain[2])["error"]["message"]
    assert address in told[2].decode()
    assert address in stream[2].decode()
    assert mark(fenced)["state"] == "free"
    with relay(tmp_path, shop) as (door, _):
        assert json.loads(door.send(call(1))[2])["result"]["content"] == PAID["content"]


@pytest.mark.parametrize(
    ("status", "headers", "state"),
    [(401, {"WWW_Authenticate": 'Bearer realm="x"'}, None), (503, {"Retry_After": "7"}, "unknown"),
     (404, {}, None), (415, {}, None), (429, {"Retry_After": "1"}, "unknown")],
)  # fmt: skip
def test_a_status_reaches_the_client_and_only_what_proves_it_frees_the_call(
    tmp_path, status, headers, state
):
    class Refusing(Shop):
        def charge(self, it, message):
            if len(self.effects) == 1:
                it.json(b"no", status, Content_Type="text/plain", **headers)
            else:
                super().charge(it, message)

    shop = Refusing()
    with relay(tmp_path, shop) as (door, _):
        session = session_of(door)
        got = door.send(call(1), Mcp_Session_Id=session)
        _, _, repeat = door.send(call(2), Mcp_Session_Id=session)

    assert (got[0], got[2]) == (status, b"no")
    for name, value in headers.items():
        assert got[1][name.lower().replace("_", "-")] == value
    assert (mark(repeat) or {}).get("state") == state
    assert len(shop.effects) == (1 if state else 2)


def test_a_redirect_is_not_handed_on_because_it_leads_around_the_fence(tmp_path):
    def server(it, message):
        it.json(b"", 307, Location="http://127.0.0.1:9/other")

    with relay(tmp_path, server) as (door, _):
        status, headers, body = door.send({"jsonrpc": "2.0", "id": 1, "method": "tools/list"})

    assert status == 502
    assert "location" not in headers
    assert b"--url" in body


def test_no_spelling_and_no_batch_slips_past_the_fence(tmp_path):
    shop = Shop()
    spelled = json.dumps(call(2)).replace("tools/call", "tools\\/call").encode()
    doubled = json.dumps(call(3)).replace('"method"', '"method": "ping", "method"').encode()
    with relay(tmp_path, shop) as (door, _):
        door.send(call(1))
        bodies = [door.send(raw)[2] for raw in (spelled, doubled)]
        batch = [call(4), {"jsonrpc": "2.0", "id": 5, "method": "ping"}, call(6)]
        status, _, stream = door.send(batch)
        assert door.send(b"[1, 2")[0] == 400
        door.send({k: v for k, v in call(9, "o9").items() if k != "id"})

    assert len(shop.effects) == 1
    assert all(mark(body)["replayed"] for body in bodies)
    assert status == 200
    answers = {json.loads(d)["id"]: json.loads(d) for d in _data(stream.decode())}
    assert set(answers) == {4, 5, 6}
    assert answers[6]["result"]["_meta"][META_OUTCOME]["replayed"]


@pytest.mark.parametrize(
    "wrong", [{"Mcp_Name": "other"}, {"Mcp_Method": "tools/list"}, {"Mcp_Param_Order": "o2"}]
)
def test_a_recorded_result_is_not_given_to_headers_that_contradict_the_body(tmp_path, wrong):
    shop = Shop()
    message, headers = modern(call(1))
    with relay(tmp_path, shop) as (door, _):
        assert door.send(message, **headers)[0] == 200
        status, _, body = door.send(message, **{**headers, **wrong})
        assert door.send(message, **headers)[0] == 200

    assert status == 400
    assert json.loads(body)["error"]["code"] == -32020
    assert "paid" not in body.decode()
    assert len(shop.effects) == 1


def test_cancelling_a_fenced_call_detaches_and_other_cancels_pass(tmp_path):
    shop = Shop()
    shop.go.clear()
    with relay(tmp_path, shop) as (door, _):
        session = session_of(door)
        heard: list[Any] = []
        ask = threading.Thread(
            target=lambda: heard.append(door.send(call(1), Mcp_Session_Id=session))
        )

        def cancel(ident):
            note = {"jsonrpc": "2.0", "method": "notifications/cancelled"}
            note["params"] = {"requestId": ident}
            return door.send(note, Mcp_Session_Id=session)[0]

        ask.start()
        assert shop.came.acquire(timeout=20)
        assert [cancel(1), cancel(77)] == [202, 202]
        shop.go.set()
        _, _, body = door.send(call(2), Mcp_Session_Id=session)
        ask.join()

    told = [m["params"]["requestId"] for _, _, m in shop.seen if m and m["method"] == CANCELLED]
    assert told == [77]
    assert len(shop.effects) == 1
    assert json.loads(body)["result"]["content"] == PAID["content"]


CANCELLED = "notifications/cancelled"


def test_what_the_server_asks_in_a_fenced_call_reaches_its_client(tmp_path):
    class Asking(Shop):
        def charge(self, it, message):
            asks = {"message": "sure?", "requestedSchema": {}}
            it.send_response(200)
            it.send_header("Content-Type", "text/event-stream")
            it.send_header("Connection", "close")
            it.end_headers()
            it.wfile.write(_event(id="q", method="elicitation/create", params=asks).encode())
            it.wfile.flush()
            said.acquire(timeout=20)
            result = {"content": [], "said": self.seen[-1][2]["result"]}
            it.wfile.write(_event(id=message["id"], result=result).encode())
            it.close_connection = True

        def __call__(self, it, message):
            super().__call__(it, message)
            if message and "method" not in message:
                said.release()

    said = threading.Semaphore(0)
    with relay(tmp_path, Asking()) as (door, _):
        session = session_of(door)
        connection, response = door.open(call(1), Mcp_Session_Id=session)
        with contextlib.closing(connection):
            asked = json.loads(response.readline()[6:])
            assert (asked["id"], asked["params"]["message"]) == ("q", "sure?")
            answer = {"jsonrpc": "2.0", "id": "q", "result": {"action": "accept"}}
            assert door.send(answer, Mcp_Session_Id=session)[0] == 202
            rest = _data(response.read().decode())

    assert json.loads(rest[-1])["result"]["said"] == {"action": "accept"}


def test_a_question_to_a_client_that_does_not_come_back_is_answered_for_it(tmp_path, monkeypatch):
    monkeypatch.setattr(exchange, "COMES_BACK", 0.05)

    class Asking(Shop):
        def charge(self, it, message):
            gone.wait(20)
            it.send_response(200)
            it.send_header("Content-Type", "text/event-stream")
            it.send_header("Connection", "close")
            it.end_headers()
            it.wfile.write(_event(id="q", method="elicitation/create", params={}).encode())
            it.wfile.flush()
            assert said.acquire(timeout=20)
            it.wfile.write(_event(id=message["id"], result=PAID).encode())
            it.close_connection = True

        def __call__(self, it, message):
            super().__call__(it, message)
            if message and "method" not in message:
                answers.append(message)
                said.release()

    answers: list[Any] = []
    said, gone = threading.Semaphore(0), threading.Event()
    shop = Asking()
    with relay(tmp_path, shop) as (door, _):
        session = session_of(door)
        hang_up(door, call(1), shop, Mcp_Session_Id=session)
        gone.set()
        _, _, body = door.send(call(2), Mcp_Session_Id=session)

    assert answers == [{"jsonrpc": "2.0", "id": "q", "result": {"action": "cancel"}}]
    assert json.loads(body)["result"]["content"] == PAID["content"]
    assert len(shop.effects) == 1


def hang_up(door: Door, message: Any, shop: Shop, **headers: str) -> None:
    """Send a call, and close the connection once the server has it."""
    raw = http.client.HTTPConnection(door.at.hostname or "", door.at.port, timeout=20)
    given = {"Content-Type": "application/json", "Accept": "application/json"}
    given |= {n.replace("_", "-"): v for n, v in headers.items()}
    raw.request("POST", door.at.path, json.dumps(message), given)
    assert shop.came.acquire(timeout=20)
    raw.close()


def test_a_client_that_leaves_an_unfenced_request_leaves_the_server_too(tmp_path):
    class Slow(Shop):
        def other(self, it, message):
            it.send_response(200)
            it.send_header("Content-Type", "text/event-stream")
            it.end_headers()
            it.wfile.write(b"data: \n\n")
            it.wfile.flush()
            it.connection.settimeout(20)
            left.append(it.connection.recv(1))
            it.close_connection = True

    left: list[bytes] = []
    with relay(tmp_path, Slow()) as (door, _):
        connection, response = door.open({"jsonrpc": "2.0", "id": 1, "method": "slow/thing"})
        assert response.readline() == b"data: \n"
        response.close()
        connection.close()
    assert left == [b""]


def test_a_request_that_is_too_large_is_refused_before_the_server(tmp_path, monkeypatch):
    monkeypatch.setattr(relay_module, "MAX_BODY", 1000)
    shop = Shop()
    with relay(tmp_path, shop) as (door, _):
        assert door.send(call(1, "x" * 1000))[0] == 413
    assert shop.seen == []


def test_half_a_body_is_no_request_even_where_it_reads_as_one(tmp_path):
    """The rest that is missing is only space: a proxy that takes what came would run the call."""
    shop = Shop()
    sent: list[Any] = []

    async def play() -> None:
        whole = json.dumps(call(1)).encode()
        came = iter([
            {"type": "http.request", "body": whole, "more_body": True},
            {"type": "http.disconnect"},
        ])  # fmt: skip

        async def receive() -> Any:
            return next(came)

        async def send(message: Any) -> None:
            sent.append(message)

        with web(shop) as served:
            record = Record("memory:", FenceConfig(), lambda: True)
            made = Settings(Rules(), Scope("t"), record.holder, new_id)
            behind = Relay(made, record, (served.url, {}))
            headers = [(b"host", b"127.0.0.1:1"), (b"content-type", b"application/json")]
            scope = {"type": "http", "method": "POST", "path": "/mcp", "headers": headers}
            web_app = behind.web(Listen("127.0.0.1", 0))
            await web_app({**scope, PRINCIPAL: ""}, receive, send)
            await behind.close()
            record.close()

    asyncio.run(play())
    assert (shop.seen, sent) == ([], [])


def test_an_exposed_intent_is_added_to_the_list_and_taken_from_the_call(tmp_path):
    shop = Shop()
    with web(shop) as served, before(tmp_path, served.url, expose_intent=True) as door:
        _, _, listed = door.send({"jsonrpc": "2.0", "id": 3, "method": "tools/list"})
        message = call(7, token="tok")
        message["params"]["arguments"]["fencekit_intent"] = "first"
        first = door.send(message)[2]
        again = door.send(message)[2]
        message["params"]["arguments"]["fencekit_intent"] = "second"
        second = door.send(message)[2]

    tools = json.loads(listed)["result"]["tools"]
    assert json.loads(listed)["id"] == 3
    assert ["fencekit_intent" in t.get("inputSchema", {}).get("properties", {}) for t in tools] == [
        True, False,
    ]  # fmt: skip
    assert shop.effects == [{"order": "o1"}, {"order": "o1"}]
    sent = [m for _, _, m in shop.seen if m["method"] == "tools/call"]
    assert [(m["id"], m["params"]["_meta"]["progressToken"]) for m in sent] == [(7, "tok")] * 2
    assert [bool(mark(body)) for body in (first, again, second)] == [False, True, False]


def test_host_origin_path_and_health_are_looked_at_before_the_server(tmp_path):
    shop = Shop()
    with relay(tmp_path, shop) as (door, _):
        ping = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
        assert door.send(ping, Host="evil.example.com")[0] == 421
        assert door.send(ping, Origin="http://evil.example.com")[0] == 403
        assert door.send(ping, Content_Type="text/plain")[0] == 400
        door.at = door.at._replace(path="/other")
        assert door.send(ping)[0] == 404
        door.at = door.at._replace(path="/health")
        assert door.send(b"", method="GET")[0] == 200

    assert shop.seen == []


def test_delete_and_an_unknown_session_are_the_servers_to_answer(tmp_path):
    class Forgetful(Shop):
        def other(self, it, message):
            it.json(b"", 404)

    shop = Forgetful()
    with relay(tmp_path, shop) as (door, _):
        session = session_of(door)
        gone = door.send({"jsonrpc": "2.0", "id": 1, "method": "ping"}, Mcp_Session_Id=session)
        assert gone[0] == 404
        assert door.send(b"", method="DELETE", Mcp_Session_Id=session)[0] == 200

    how, up, _ = shop.seen[-1]
    assert (how, up["mcp-session-id"]) == ("DELETE", session)
