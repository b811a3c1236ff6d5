"""Frames keep their bytes and are read the same way however they are spelled."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fencekit.wire import frames
from fencekit.wire.frames import Kind, parse


def only(raw: bytes) -> frames.Frame:
    (frame,) = parse(raw)
    return frame


@pytest.mark.parametrize(
    ("raw", "kind"),
    [
        (b'{"jsonrpc":"2.0","id":1,"method":"ping"}', Kind.REQUEST),
        (b'{"jsonrpc":"2.0","id":null,"method":"ping"}', Kind.REQUEST),
        (b'{"jsonrpc":"2.0","method":"notifications/initialized"}', Kind.NOTIFICATION),
        (b'{"jsonrpc":"2.0","id":1,"result":{}}', Kind.RESPONSE),
        (b'{"jsonrpc":"2.0","id":1,"result":null}', Kind.RESPONSE),
        (b'{"jsonrpc":"2.0","id":1,"error":{"code":-1,"message":"x"}}', Kind.ERROR),
        (b'{"jsonrpc":"2.0","id":1,"error":{},"result":{}}', Kind.ERROR),
        (b'{"id":1,"method":7}', Kind.INVALID),
        (b'{"id":[1],"method":"ping"}', Kind.INVALID),
        (b'{"id":true,"method":"ping"}', Kind.INVALID),
        (b"{}", Kind.INVALID),
        (b"7", Kind.INVALID),
        (b"garbage", Kind.INVALID),
        (b"", Kind.INVALID),
        (b"\xff\xfe", Kind.INVALID),
        (b'{"id":1,"result":NaN}', Kind.INVALID),
        (b'{"id":1,"result":1} {"id":2,"result":2}', Kind.INVALID),
        (b"[" * 100_000, Kind.INVALID),
        (b'{"id":1,"result":' + b"9" * 5000 + b"}", Kind.INVALID),
    ],
)
def test_every_line_has_one_kind_and_nothing_raises(raw, kind):
    frame = only(raw)

    assert frame.kind is kind
    assert frame.raw == raw
    assert bool(frame.fault) == (kind is Kind.INVALID)


@pytest.mark.parametrize("spelling", [r"tools\/call", r"tools\u002fcall", r"\u0074ools/call"])
def test_an_escaped_method_is_the_same_method(spelling):
    assert only(b'{"id":1,"method":"%s"}' % spelling.encode()).method == "tools/call"


def test_duplicate_keys_are_told_at_any_depth():
    raw = b'{"id":1,"method":"ping","method":"tools/call","params":{"a":{"b":1,"b":2}}}'

    assert set(only(raw).duplicates) == {"method", "b"}
    assert only(b'{"id":1,"method":"a","params":{"x":{"id":2}}}').duplicates == ()


def test_a_batch_is_split_and_each_piece_keeps_its_own_bytes():
    raw = b' [ {"id":1, "method":"a"} ,{"id":"1","method":"tools\\/call"}, 7 ]\n'

    got = parse(raw)

    assert [f.raw for f in got] == [
        b'{"id":1, "method":"a"}',
        rb'{"id":"1","method":"tools\/call"}',
        b"7",
    ]
    assert [f.kind for f in got] == [Kind.REQUEST, Kind.REQUEST, Kind.INVALID]
    assert all(f.batched for f in got)


@pytest.mark.parametrize(
    "raw", [b"[]", b'[{"id":1,"method":"a"},]', b'[{"id":1,"method":"a"}', b"[1 2]", b"[1] x"]
)
def test_a_broken_batch_is_one_invalid_frame(raw):
    assert only(raw).kind is Kind.INVALID


def test_ids_of_different_types_are_different_keys():
    keys = {
        only(b'{"id":%s,"result":1}' % i).key for i in (b"7", b'"7"', b"7.0", b"null", b'"None"')
    }

    assert len(keys) == 5


def test_big_integers_and_floats_survive():
    params = only(b'{"id":1,"method":"m","params":{"n":9007199254740993,"f":1.0,"i":1}}').params

    assert params["n"] == 9007199254740993
    assert isinstance(params["f"], float)
    assert isinstance(params["i"], int)


def test_member_returns_the_exact_bytes_of_the_last_of_that_name():
    raw = b'{ "result": {"a": 1.0,  "b":"\\u00e9"} , "id" : 7, "result":[1, 2 ] }'

    assert frames.member(raw, "result") == b"[1, 2 ]"
    assert frames.member(raw, "id") == b"7"
    assert frames.member(raw, "absent") is None
    with pytest.raises(ValueError, match="object"):
        frames.member(b"[1]", "id")
    with pytest.raises(ValueError, match=r"end|value|char"):
        frames.member(b'{"id":1', "id")


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(st.integers() | st.text(), st.dictionaries(st.text(), json_values, max_size=4))
def test_what_is_built_is_read_back(ident, params):
    raw = frames.request_bytes(ident, "tools/call", frames.encode(params))

    frame = only(raw)

    assert (frame.kind, frame.method, frame.id, frame.params) == (
        Kind.REQUEST,
        "tools/call",
        ident,
        params,
    )
    assert frames.member(raw, "params") == frames.encode(params)
    assert b"\n" not in raw


@given(st.binary(max_size=60))
def test_any_bytes_give_frames_and_never_an_exception(raw):
    assert parse(raw)


def test_lone_surrogates_are_escaped_and_infinities_refused():
    assert json.loads(frames.encode({"a": "\ud800"})) == {"a": "\ud800"}
    with pytest.raises(ValueError, match="JSON"):
        frames.encode(float("inf"))


def test_a_server_that_asks_is_answered_politely():
    ping, ask, sample = (
        only(b'{"id":"s1","method":"%s"}' % m)
        for m in (b"ping", b"elicitation/create", b"sampling/createMessage")
    )

    assert json.loads(frames.polite_answer(ping)) == {"jsonrpc": "2.0", "id": "s1", "result": {}}
    assert json.loads(frames.polite_answer(ask))["result"] == {"action": "decline"}
    assert json.loads(frames.polite_answer(sample))["error"]["code"] == -32601


# What a fast reader could get wrong: keys that are one key, marks inside texts, long numbers.
_KEYS = st.sampled_from(
    ['"a"', '"\\u0061"', '"a\\":"', '":"', '"method"', '"id"', '"result"', '""']
)
_SPACE = st.sampled_from(["", "", "", " ", "\t\n"])
_LEAVES = st.sampled_from(
    ["1", "-0", "1.0", "1e400", "NaN", "123456789012345678901", "18446744073709551616", "null",
     '"x"', '"\\":"', '":"', '"\\ud800"', '"\u00e9"', '"tools\\/call"', "tru", ""]
)  # fmt: skip


def _objects(values):
    pair = st.tuples(_KEYS, _SPACE, _SPACE, values).map(lambda p: f"{p[0]}{p[1]}:{p[2]}{p[3]}")
    return st.lists(pair, max_size=4).map(lambda pairs: "{" + ",".join(pairs) + "}")


def _arrays(values):
    return st.lists(values, max_size=3).map(lambda items: "[" + ",".join(items) + "]")


_TEXTS = st.recursive(_LEAVES, lambda inner: _objects(inner) | _arrays(inner), max_leaves=12)


@settings(max_examples=500)
@given(_objects(_TEXTS), _SPACE)
def test_the_quick_way_reads_exactly_what_the_careful_one_does(text, after):
    raw = (text + after).encode()
    quick, careful = parse(raw), frames._carefully(raw.rstrip(b"\r\n"))
    assert repr(quick) == repr(careful)  # 1 is not 1.0, and NaN equals nothing


@settings(max_examples=500)
@given(_objects(_TEXTS))
def test_the_last_member_is_found_quickly_only_where_it_is_that(text):
    raw = text.encode()
    found = frames._last_member(raw, "result")
    if found is not None:
        assert [value for name, value in frames.members(raw) if name == "result"][-1] == found


def test_what_servers_write_goes_the_quick_way():
    for raw in (
        b'{"jsonrpc": "2.0", "id": 7, "result": {"content": [{"type": "text", "text": "ok"}]}}',
        b'{"jsonrpc":"2.0","id":"x","method":"tools/call","params":{"name":"t","arguments":{}}}',
    ):
        assert frames._quickly(raw) is not None
    assert frames._last_member(b'{"id":7,"result": {"a":[1]} }', "result") == b'{"a":[1]}'


@pytest.mark.parametrize(
    "raw",
    [
        b'{"method":"ping","method":"tools/call"}',
        b'{"method":"ping","method" :"tools/call"}',
        b'{"method":"ping","\\u006dethod":"tools/call"}',
        b'{"method":"ping","params":{"a":1,"a":2}}',
        b'{"x":{"a":1},"y":[{"a":1,"a":1}],"z":"\\":"}',
    ],
)
def test_a_key_that_occurs_twice_never_goes_the_quick_way(raw):
    assert frames._quickly(raw) is None
    assert parse(raw)[0].duplicates
