"""Help for models that plan anew: near duplicates are told, and a second run can be named."""

from __future__ import annotations

import pytest

from fencekit.wrap.rules import Rules, ToolRule

from .door import TOOLS, Door, text

WARN = Rules(default=ToolRule(near_duplicates="warn"))


@pytest.mark.parametrize(
    ("first", "second", "near"),
    [
        ({"amount": 5, "reference": "a"}, {"amount": 5, "reference": "b"}, True),
        ({"amount": 5, "to": "o-1"}, {"amount": 5, "to": "o-2"}, False),
        ({"amount": 5, "x": "2026-01-01"}, {"amount": 5, "x": "2026-01-02T10:00:00Z"}, True),
        ({"amount": 5, "x": "pay_8c2f91aa03"}, {"amount": 5, "x": "pay_1d44e07b6c"}, True),
        ({"amount": 5, "noteText": "a"}, {"amount": 5, "noteText": "b"}, True),
        ({"amount": 5, "reference": "a"}, {"amount": 6, "reference": "b"}, False),
        ({"amount": 5, "reference": "a"}, {"amount": 5, "reference": "a"}, False),
    ],
)
def test_a_call_that_looks_like_a_recent_one_runs_and_is_told(first, second, near):
    door = Door(WARN)
    door.call(1, arguments=first)
    door.answer(1)

    door.call(2, arguments=second)

    assert any("near duplicate" in line for line in door.said) is near
    assert door.executed == (1 if first == second else 2)


def test_near_duplicates_are_not_told_unless_asked_for_or_after_an_hour():
    for rules, wait in ((Rules(), 0), (WARN, 3601)):
        door = Door(rules)
        door.call(1, arguments={"reference": "a"})
        door.answer(1)
        door.mono += wait
        door.call(2, arguments={"reference": "b"})

        assert door.said == []


def test_the_exposed_argument_names_the_action_and_never_reaches_the_server():
    door = Door(expose_intent=True)
    for ident, value in ((1, "first"), (2, "first"), (3, "second"), (4, "")):
        door.call(ident, arguments={"order": "o1", "fencekit_intent": value})
        if ident != 2:
            door.answer(ident)

    assert door.executed == 3
    assert all(f.params["arguments"] == {"order": "o1"} for f in door.to_server)
    assert text(door.to_client[1]) == "paid"
    door.call(5)
    assert door.executed == 3


def test_only_fenced_tools_gain_the_argument_and_only_where_it_is_asked_for():
    for exposes in (True, False):
        door = Door(expose_intent=exposes)
        door.client({"id": 1, "method": "tools/list"})
        door.answer(1, {"tools": TOOLS, "extra": 1})

        pay, scale, listing = door.last["result"]["tools"]
        assert ("fencekit_intent" in pay["inputSchema"]["properties"]) is exposes
        assert pay["inputSchema"]["required"] == ["order"]
        assert (scale, listing) == (TOOLS[1], TOOLS[2])
        assert door.last["result"]["extra"] == 1
