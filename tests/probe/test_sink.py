"""The sink: what it records, how it answers, and the failures it plays."""

from __future__ import annotations

import http.client
import json
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import urlsplit

import pytest

from fencekit.probe.sink import Reply, Sink, read_script


def ask(
    sink: Sink, method: str, path: str, body: bytes = b"{}", **headers: str
) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection(urlsplit(sink.url).netloc, timeout=10)
    try:
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        connection.request(method, path, body, sent)
        response = connection.getresponse()
        return response.status, response.read()
    finally:
        connection.close()


def test_it_listens_on_loopback_only():
    with Sink() as sink:
        assert sink.url.startswith("http://127.0.0.1:")


def test_every_write_without_a_key_is_an_effect_and_gets_a_new_id():
    with Sink() as sink:
        answers = {ask(sink, "POST", "/charges")[1] for _ in range(3)}
        reading = sink.reading()

    assert (reading.effects, reading.writes, reading.unkeyed) == (3, 3, 3)
    assert reading.minted == {json.loads(a)["id"] for a in answers}
    assert len(answers) == 3


@pytest.mark.parametrize(
    ("headers", "body"),
    [
        ({"Idempotency_Key": "k1"}, b"{}"),
        ({"x_idempotency_key": "k1"}, b"{}"),
        ({}, b'{"idempotency_key": "k1"}'),
    ],
)
def test_a_repeated_key_is_one_effect_and_gets_the_first_reply_again(headers, body):
    with Sink() as sink:
        one, two = (ask(sink, "POST", "/charges", body, **headers) for _ in range(2))
        reading = sink.reading()

    assert one == two
    assert (reading.effects, reading.writes, dict(reading.keys)) == (1, 2, {"k1": 2})
    assert reading.condition


def test_distinct_keys_are_distinct_effects():
    with Sink() as sink:
        for key in ("a", "b", "b"):
            ask(sink, "POST", "/charges", Idempotency_Key=key)
        reading = sink.reading()

    assert (reading.effects, reading.writes) == (2, 3)


def test_one_call_that_writes_to_several_targets_is_not_taken_for_several_effects():
    with Sink() as sink:
        for path in ("/customers", "/charges?expand=1", "/mails"):
            ask(sink, "POST", path)
        reading = sink.reading()

    assert reading.effects == 1
    assert len(reading.others) == 2


def test_reads_are_no_effects_and_the_same_put_again_is_conditional():
    with Sink() as sink:
        ask(sink, "GET", "/charges", b"")
        for _ in range(3):
            ask(sink, "PUT", "/scale/web", b'{"replicas": 3}')
        reading = sink.reading()
        assert (reading.reads, reading.effects, reading.condition) == (1, 1, "a repeated PUT")
        ask(sink, "PUT", "/scale/web", b'{"replicas": 4}')

        assert sink.reading().effects == 2


def test_a_pattern_says_which_requests_are_writes():
    with Sink(only="POST /charge*") as sink:
        ask(sink, "POST", "/oauth/token")
        ask(sink, "POST", "/oauth/token")
        ask(sink, "POST", "/charges")
        reading = sink.reading()

    assert (reading.effects, reading.target, reading.reads) == (1, "POST /charges", 2)


def test_readings_start_where_the_caller_says():
    with Sink() as sink:
        ask(sink, "POST", "/charges")
        since = sink.seen()
        ask(sink, "POST", "/charges")

        assert sink.reading(since).effects == 1
        assert sink.written() == 2


def test_the_script_answers_first_match_first():
    script = read_script(
        [{"method": "POST", "path": "/charges", "status": 201, "body": {"charge": "{id}", "n": 1}}]
    )
    with Sink(script) as sink:
        status, body = ask(sink, "POST", "/charges")
        other, _ = ask(sink, "POST", "/else")

    assert (status, json.loads(body)["n"], other) == (201, 1, 200)
    assert json.loads(body)["charge"].startswith("sink_")


@pytest.mark.parametrize(
    "script", [{}, [1], [{"verb": "GET"}], [{"status": "ok"}], [{"status": 99}]]
)
def test_a_script_that_is_wrong_is_told_where(script):
    with pytest.raises(ValueError, match="script"):
        read_script(script)


def test_after_effect_503_records_the_effect_and_fails_the_first_write_only():
    with Sink(fault="after-effect-503") as sink:
        statuses = [ask(sink, "GET", "/x", b"")[0]]
        statuses += [ask(sink, "POST", "/charges")[0] for _ in range(2)]
        reading = sink.reading()

    assert statuses == [200, 503, 200]
    assert (reading.effects, reading.faults) == (2, 1)


def test_close_records_the_effect_and_drops_the_connection():
    with Sink(fault="close") as sink:
        with pytest.raises((http.client.BadStatusLine, ConnectionError)):
            ask(sink, "POST", "/charges")
        assert ask(sink, "POST", "/charges")[0] == 200

        assert sink.reading().effects == 2


def test_hang_holds_the_answer_until_the_sink_is_closed():
    with ThreadPoolExecutor(1) as pool:
        with Sink(fault="hang") as sink:
            hanging = pool.submit(ask, sink, "POST", "/charges")
            while not sink.seen():
                pass
            assert ask(sink, "POST", "/charges")[0] == 200
            assert not hanging.done()
        with pytest.raises((http.client.BadStatusLine, ConnectionError)):
            hanging.result(10)


def test_chunked_bodies_are_read():
    with Sink() as sink:
        connection = http.client.HTTPConnection(urlsplit(sink.url).netloc, timeout=10)
        parts = iter([b'{"idempotency_key"', b': "k"}'])
        headers = {"Transfer-Encoding": "chunked"}
        connection.request("POST", "/charges", parts, headers, encode_chunked=True)
        assert connection.getresponse().status == 200
        connection.close()

        assert dict(sink.reading().keys) == {"k": 1}


def test_many_writes_at_once_are_all_recorded():
    with Sink() as sink, ThreadPoolExecutor(32) as pool:
        list(pool.map(lambda _: ask(sink, "POST", "/charges"), range(64)))

        assert sink.reading().effects == 64


def test_replies_have_sensible_defaults():
    assert Reply().status == 200
