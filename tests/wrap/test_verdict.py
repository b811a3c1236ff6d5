"""What an answer proves about a call: quoted words prove nothing, codes count where codes stand."""

from __future__ import annotations

import pytest

from fencekit.wire.frames import Frame, encode, parse
from fencekit.wire.protocol import is_stateless
from fencekit.wrap.rules import Rules, ToolKind, ToolRule
from fencekit.wrap.verdict import Proof, judge
from tests.wrap.door import PAY, Door


def failed(text: str) -> Frame:
    result = {"content": [{"type": "text", "text": text}], "isError": True}
    return parse(encode({"jsonrpc": "2.0", "id": 1, "result": result}))[0]


def error(code: int, message: str) -> Frame:
    said = {"code": code, "message": message}
    return parse(encode({"jsonrpc": "2.0", "id": 1, "error": said}))[0]


@pytest.mark.parametrize(
    ("pattern", "answer", "proof"),
    [
        ("-32602", error(-32602, "no"), Proof.REJECTED),
        ("-32602", failed("charged; then MCP error -32602: no"), Proof.NOTHING),
        ("-32602", error(-32603, "charged; then -32602"), Proof.NOTHING),
        ("card_declined", failed("x" * 5000 + " card_declined"), Proof.REJECTED),
        ("card_declined", error(-32603, "x" * 5000 + " card_declined"), Proof.REJECTED),
        ("card_declined", failed("card_\ndeclined"), Proof.NOTHING),
        ("card declined", failed("card\n declined"), Proof.REJECTED),
    ],
)
def test_definitive_patterns(pattern, answer, proof):
    rule = ToolRule(kind=ToolKind.APPEND, definitive=(pattern,))

    said = judge(answer, rule, {"order": "o1"}, PAY, list_is_complete=True)

    assert said.proof is proof
    assert len(said.reason) < 400


@pytest.mark.parametrize(
    ("version", "stateless"),
    [
        ("2024-10-07", False),
        ("2025-11-25", False),
        ("2026-07-28", True),
        ("2027-03-03", True),
        (None, False),
        (7, False),
    ],
)
def test_versions_that_nobody_knows_yet_belong_to_an_era(version, stateless):
    assert is_stateless(version) is stateless


def test_a_pattern_of_the_configuration_ends_records_of_the_tools_that_it_matches():
    rule = ToolRule(kind=ToolKind.APPEND, intent=("order",), undone_by=("cancel_payment",))
    door = Door(Rules({"create_*": rule}))
    cancel = {"name": "cancel_payment", "annotations": {"idempotentHint": True}}
    door.gate.catalogue.whole([PAY, cancel])
    door.call(1)
    door.answer(1)
    door.call(2, "cancel_payment")
    door.answer(2)

    door.call(3)

    assert door.executed == 3
