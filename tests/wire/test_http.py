"""Streamable HTTP: one POST for each frame, and what each failure proves about it."""

from __future__ import annotations

import socket
import threading

import pytest

from fencekit.wire.errors import HttpRefused, NeverLeft, TimedOut, Unanswered
from fencekit.wire.frames import Frame, Kind, parse, request_bytes
from fencekit.wire.http import Endpoint, secret_headers
from tests.wire.web import web

CALL = parse(request_bytes(7, "tools/call", b'{"name":"gr\\u00f6\\u00dfe","arguments":{}}'))[0]
EVENT = 'data: {"jsonrpc":"2.0","id":7,"result":{"n":%d}}\n\n'


def ask(url: str, *, version: str | None = "2025-11-25", timeout: float = 5.0) -> list[Frame]:
    endpoint = Endpoint(url, headers={"x-mine": "yes"}, timeout=timeout)
    endpoint.protocol_version = version
    try:
        return list(endpoint.post(CALL))
    finally:
        endpoint.close()


def test_a_json_answer_keeps_its_bytes():
    body = b'{"jsonrpc":"2.0", "id":7, "result":{"a":1.0}}'
    with web(lambda h, _m: h.json(body)) as it:
        (frame,) = ask(it.url)

    assert frame.raw == body
    assert len(it.asked) == 1


def test_the_stateless_era_repeats_method_and_name_in_headers():
    with web(lambda h, m: h.answer(m, {})) as it:
        ask(it.url, version="2026-07-28")
        ask(it.url)

    (_, modern, _), (_, legacy, _) = it.asked
    assert modern["mcp-method"] == "tools/call"
    assert modern["mcp-name"] == "=?base64?Z3LDtsOfZQ==?="
    assert modern["mcp-protocol-version"] == "2026-07-28"
    assert modern["x-mine"] == "yes"
    assert "mcp-method" not in legacy


@pytest.mark.parametrize("method", ["tasks/get", "tasks/update", "tasks/cancel"])
def test_the_tasks_extension_repeats_the_tasks_id(method):
    (frame,) = parse(request_bytes(1, method, b'{"taskId":"t-1"}'))
    with web(lambda h, m: h.answer(m, {})) as it:
        endpoint = Endpoint(it.url)
        endpoint.protocol_version = "2026-07-28"
        list(endpoint.post(frame))
        endpoint.close()

    ((_, headers, _),) = it.asked
    assert headers["mcp-name"] == "t-1"


def test_events_before_the_answer_are_given_too_and_a_big_one_passes():
    big = '{"jsonrpc":"2.0","id":7,"result":{"text":"%s"}}' % ("x" * 3_000_000)
    note = '{"jsonrpc":"2.0","method":"notifications/progress"}'
    with web(lambda h, _m: h.sse(f": hello\n\ndata: {note}\n\ndata: {big}\n\n")) as it:
        got = ask(it.url)

    assert [f.kind for f in got] == [Kind.NOTIFICATION, Kind.RESPONSE]
    assert len(got[1].raw) == len(big)


def test_a_closed_port_never_left():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]

    with pytest.raises(NeverLeft, match="ConnectError"):
        ask(f"http://127.0.0.1:{port}/mcp")


def test_an_address_that_is_none_never_left():
    with pytest.raises(NeverLeft):
        ask("ftp://127.0.0.1/mcp")


def test_a_connection_dropped_after_the_request_is_unknown_and_nothing_is_sent_again():
    def drop(handler, _message):
        handler.connection.shutdown(socket.SHUT_RDWR)
        handler.close_connection = True

    with web(drop) as it, pytest.raises(Unanswered) as caught:
        ask(it.url)

    assert caught.value.may_have_run
    assert len(it.asked) == 1


def test_silence_is_a_time_out_which_may_have_run():
    release = threading.Event()
    with web(lambda _h, _m: bool(release.wait(10))) as it:
        with pytest.raises(TimedOut):
            ask(it.url, timeout=0.1)
        release.set()

    assert len(it.asked) == 1


@pytest.mark.parametrize(
    ("status", "hint"), [(401, "bearer"), (404, "404"), (429, "429"), (503, "503")]
)
def test_a_status_without_a_message_is_refused_by_http_and_may_have_run(status, hint):
    with (
        web(lambda h, _m: h.json({"oops": 1}, status, retry_after="9")) as it,
        pytest.raises(HttpRefused) as caught,
    ):
        ask(it.url)

    assert caught.value.status == status
    assert caught.value.retry_after == "9"
    assert hint in str(caught.value)
    assert caught.value.may_have_run
    assert len(it.asked) == 1


def test_a_redirect_is_not_followed():
    with (
        web(lambda h, m: h.json({}, 307, location="http://127.0.0.1:1/other")) as it,
        pytest.raises(HttpRefused, match=r"redirects to http://127\.0\.0\.1:1/other"),
    ):
        ask(it.url)

    assert len(it.asked) == 1


@pytest.mark.parametrize("ident", [7, None])
def test_a_json_rpc_error_under_a_4xx_is_the_answer(ident):
    error = {"jsonrpc": "2.0", "id": ident, "error": {"code": -32602, "message": "no"}}
    with web(lambda h, _m: h.json(error, 400)) as it:
        (frame,) = ask(it.url)

    assert frame.kind is Kind.ERROR


@pytest.mark.parametrize(
    "body",
    [
        b"nonsense",
        b'{"jsonrpc":"2.0","id":8,"result":{}}',
        b'{"jsonrpc":"2.0","id":"7","result":{}}',
    ],
)
def test_an_answer_to_something_else_is_no_answer(body):
    with (
        web(lambda h, _m: h.json(body)) as it,
        pytest.raises(Unanswered, match="not to this request"),
    ):
        ask(it.url)


def test_a_broken_stream_with_an_event_id_is_resumed_and_never_posted_again():
    def script(handler, message):
        handler.sse(EVENT % 1 if message is None else "id: e1\ndata:\n\n")

    with web(script) as it:
        (frame,) = ask(it.url)

    assert frame.result == {"n": 1}
    assert [(verb, h.get("last-event-id")) for verb, h, _ in it.asked] == [
        ("POST", None),
        ("GET", "e1"),
    ]


@pytest.mark.parametrize(("version", "posts", "gets"), [("2025-11-25", 1, 2), ("2026-07-28", 1, 0)])
def test_a_stream_that_never_answers_is_unknown(version, posts, gets):
    with (
        web(lambda h, _m: h.sse("id: e1\ndata:\n\n")) as it,
        pytest.raises(Unanswered, match="without an answer"),
    ):
        ask(it.url, version=version)

    verbs = [verb for verb, _, _ in it.asked]
    assert (verbs.count("POST"), verbs.count("GET")) == (posts, gets)


def test_on_sent_is_called_before_the_answer():
    order: list[str] = []

    def script(handler, message):
        order.append("handled")
        handler.answer(message, {})

    with web(script) as it:
        endpoint = Endpoint(it.url)
        for frame in endpoint.post(CALL, on_sent=lambda: order.append("sent")):
            order.append(str(frame.kind))
        endpoint.close()

    assert sorted(order[:2]) == ["handled", "sent"]
    assert order[2:] == ["response"]


def test_secrets_come_from_the_environment_or_a_file(monkeypatch, tmp_path):
    monkeypatch.setenv("MY_TOKEN", "abc")
    path = tmp_path / "token"
    path.write_text("from-file\n")

    assert secret_headers({"X-Key": "$MY_TOKEN", "X-Plain": "p"}, bearer_file=path) == {
        "X-Key": "abc",
        "X-Plain": "p",
        "Authorization": "Bearer from-file",
    }
    assert secret_headers({}, bearer_env="MY_TOKEN")["Authorization"] == "Bearer abc"
    with pytest.raises(ValueError, match="NOT_THERE is not set"):
        secret_headers({}, bearer_env="NOT_THERE")
    with pytest.raises(ValueError, match="could not be read"):
        secret_headers({}, bearer_file=tmp_path / "absent")
