"""Everything that is not a fenced call passes as if the proxy were not there."""

from __future__ import annotations

import json

import pytest

from fencekit.wrap.rules import Rules, ToolKind, ToolRule

from .door import LIST, MODERN, PAY, TOOLS, Door

PLAIN = [
    b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"x":1.0,"big":9007199254740993}}',
    b'{ "jsonrpc": "2.0", "id": "7", "method": "no/such", "params": null, "extra": [ ] }',
    b'{"jsonrpc":"2.0","method":"notifications/unknown","params":{}}',
    b'{"jsonrpc":"2.0","id":3,"result":{"roots":[]}}',
    b'{"jsonrpc":"2.0","id":4,"error":{"code":-1,"message":"no","data":{"a":1},"more":2}}',
    b'{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"list_payments"}}',
]


@pytest.mark.parametrize("raw", PLAIN)
def test_frames_of_the_client_pass_as_bytes(raw):
    door = Door()

    door.client(raw)

    assert [frame.raw for frame in door.to_server] == [raw]
    assert door.to_client == []


@pytest.mark.parametrize(
    "raw",
    [
        b'{"jsonrpc":"2.0","id":1,"result":{"unknown":[1.0,9007199254740993],"a":null}}',
        b'{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info"}}',
        b'{"jsonrpc": "2.0", "id": "s1", "method": "sampling/createMessage", "params": {}}',
        b'{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1}}',
        b'{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"x"}}',
        b'{"a":1,"a":2}',
        b"[]",
    ],
)
def test_frames_of_the_server_pass_as_bytes(raw):
    door = Door()

    door.server(raw)

    assert door.raw == [raw]


@pytest.mark.parametrize("spelt", ["tools\\/call", "tools\\u002fcall", "\\u0074ools/call"])
def test_an_escaped_method_name_does_not_slip_past(spelt):
    raw = f'{{"id":%d,"method":"{spelt}","params":{{"name":"create_payment"}}}}'
    door = Door()
    door.client((raw % 1).encode())
    door.answer(1)

    door.client((raw % 2).encode())

    assert door.executed == 1
    assert door.last["id"] == 2


def test_duplicate_keys_are_handed_on_as_they_were_understood():
    door = Door()
    door.client(
        b'{"id":1,"method":"ping","method":"tools/call","params":{"name":"create_payment"}}'
    )
    door.client(b'{"id":2,"method":"tools/call","method":"ping"}')
    door.client(
        b'{"id":3,"method":"tools/call","params":{"name":"create_payment",'
        b'"arguments":{"order":"o1","order":"o2"}}}'
    )

    assert [json.loads(f.raw)["method"] for f in door.to_server] == [
        "tools/call",
        "ping",
        "tools/call",
    ]
    assert all(f.raw.count(b'"method"') == 1 for f in door.to_server)
    assert door.to_server[2].raw.count(b'"order"') == 1


def test_a_batch_is_split_and_its_calls_are_fenced():
    one = '{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"create_payment"}}'
    door = Door()

    door.client(f"[{one % 1},{one % 2}]".encode())

    assert door.executed == 1


@pytest.mark.parametrize(
    ("raw", "code"),
    [
        (b"{not json", -32700),
        (b'{"id":1,"method":7}', -32600),
        (b'{"id":{},"method":"tools/call","params":{"name":"create_payment"}}', -32600),
        (b'{"id":1,"method":"tools/call","params":{"name":["create_payment"]}}', -32602),
        (b'{"id":1,"method":"tools/call","params":["create_payment"]}', -32602),
        ((b'{"id":1,"method":"tools/call","params":{"name":"create_payment",'
         b'"arguments":{"a":1e999}}}'), -32602),
    ],
)  # fmt: skip
def test_what_could_be_read_in_two_ways_never_reaches_the_server(raw, code):
    door = Door()

    door.client(raw)

    assert door.to_server == []
    assert door.last["error"]["code"] == code


def test_a_call_without_an_id_is_dropped():
    door = Door()

    door.client(b'{"jsonrpc":"2.0","method":"tools/call","params":{"name":"create_payment"}}')

    assert door.to_server == []
    assert "without an id" in door.said[0]


def test_the_gate_lists_the_tools_itself_before_the_first_call_of_an_unseen_one():
    door = Door(listed=False)
    door.client({"id": 1, "method": "initialize"})
    door.call(2)
    assert [f.method for f in door.to_server] == ["initialize"]

    door.answer(1, {})
    listing = door.to_server[-1]
    assert listing.method == "tools/list"
    door.answer(listing.id, {"tools": [PAY], "nextCursor": "p2"})
    listing = door.to_server[-1]
    assert listing.params == {"cursor": "p2"}
    door.answer(listing.id, {"tools": [LIST]})

    assert door.to_server[-1].method == "tools/call"
    assert [m.get("id") for m in door.to_client] == [1]
    assert any("1 of 2 tools are fenced" in line for line in door.said)
    door.call(3, "list_payments", arguments={})
    assert door.to_server[-1].id == 3


def test_the_gates_own_list_speaks_the_callers_era():
    door = Door(listed=False)

    door.call(1, meta={**MODERN, "progressToken": 3, "own": 1})

    assert door.to_server[0].method == "tools/list"
    assert door.to_server[0].params == {"_meta": MODERN}


def test_a_list_that_fails_or_never_comes_fences_what_is_unknown():
    door = Door(listed=False)
    door.call(1, "list_payments", arguments={})
    door.pass_time(31)
    assert door.to_server[-1].method == "tools/call"
    door.answer(1)

    door.call(2, "list_payments", arguments={})
    door.error(door.to_server[-1].id, -32601)

    assert door.executed == 1
    assert door.last["id"] == 2


def test_a_list_that_the_client_asks_for_is_read_and_passes():
    door = Door(listed=False)
    door.client({"id": 1, "method": "tools/list"})
    raw = json.dumps({"id": 1, "result": {"tools": TOOLS}}).encode()
    door.server(raw)
    assert door.raw == [raw]

    door.call(2)

    assert door.to_server[-1].method == "tools/call"


def test_a_later_list_may_tighten_a_kind_but_not_loosen_it():
    door = Door()
    loose = {**PAY, "annotations": {"readOnlyHint": True}, "name": "payment"}
    tight = {**loose, "annotations": {"readOnlyHint": False}}
    door.gate.catalogue.page([loose])
    assert door.gate.catalogue.treatment("payment").kind is ToolKind.READ
    door.gate.catalogue.page([tight])
    assert door.gate.catalogue.treatment("payment").kind is ToolKind.APPEND

    door.gate.catalogue.page([loose])

    assert door.gate.catalogue.treatment("payment").kind is ToolKind.APPEND


def test_set_tools_share_an_answer_only_while_nothing_else_was_admitted():
    door = Door()
    door.call(1, "scale", arguments={"n": 3})
    door.call(2, "scale", arguments={"n": 3})
    assert door.executed == 1
    door.answer(1)
    assert [a["id"] for a in door.to_client] == [1, 2]

    for ident, n in enumerate((3, 5, 3), start=3):
        door.call(ident, "scale", arguments={"n": n})

    assert door.executed == 4


def test_a_set_call_may_repeat_after_an_unknown_outcome():
    door = Door()
    door.call(1, "scale", arguments={"n": 3})
    door.fail(1)

    door.call(2, "scale", arguments={"n": 3})

    assert door.executed == 2


def test_passing_tools_always_reach_the_server():
    door = Door(Rules({"click": ToolRule(kind=ToolKind.PASS)}))
    for ident in (1, 2, 3):
        door.call(ident, "click", arguments={})

    assert door.executed == 3


def test_a_cancel_of_anything_else_is_handed_on():
    door = Door()
    raw = b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":9}}'

    door.client(raw)

    assert [f.raw for f in door.to_server] == [raw]


def test_a_modern_server_that_ends_answers_every_request_with_its_end():
    door = Door()
    door.client({"id": 1, "method": "resources/list", "params": {"_meta": MODERN}})
    door.call(2, meta=MODERN)

    door.do(door.gate.server_gone("the server ended", door.at, answer_all=True))

    assert {a["id"] for a in door.to_client} == {1, 2}


def test_nothing_is_kept_of_calls_that_are_over():
    """Whatever a call leaves behind would make the memory grow with every call."""
    door = Door()
    for n in range(30):
        first, twin = f"a{n}", f"b{n}"
        door.call(first, arguments={"order": first})
        door.call(twin, arguments={"order": first})
        if n % 3 == 0:
            door.answer(first)
        elif n % 3 == 1:
            door.fail(first)
        else:
            door.client({"method": "notifications/cancelled", "params": {"requestId": twin}})
            door.error(first, -32601)
        door.call(f"s{n}", "scale", arguments={"to": n})
        door.answer(f"s{n}")
        door.call(f"r{n}", "list_payments", arguments={"n": n})
        door.answer(f"r{n}")

    gate, calls = door.gate, door.gate.calls
    for kept in (calls.by_key, calls.by_server_id, calls.by_client_id, gate._plain, gate._held):
        assert len(kept) == 0
    assert len(calls.owed) == 0
    assert (gate.sets._by_key, gate.sets._by_id) == ({}, {})
    assert not gate.busy
