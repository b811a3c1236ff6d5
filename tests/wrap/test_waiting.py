"""Who waits for a call and who gives up: clocks that do not spin, cancellations, late progress."""

from __future__ import annotations

import pytest

from fencekit.wrap.rules import Rules, ToolKind, ToolRule
from tests.wrap.door import Door, outcome

FORWARD = Rules(
    {"create_payment": ToolRule(kind=ToolKind.APPEND, cancel="forward", call_deadline=100.0)}
)


def cancel(door: Door, ident: object, **more: object) -> None:
    params = {"requestId": ident, **more}
    door.client({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params})


def sent(door: Door) -> list[tuple[str | None, object]]:
    """What reached the server: the method, and which request it cancels."""
    return [(frame.method, frame.params.get("requestId")) for frame in door.to_server]


@pytest.mark.parametrize("observe", [False, True])
def test_nothing_is_due_that_a_tick_has_just_done(observe):
    """Else the clock's thread would run without a pause for as long as a slow call takes."""
    door = Door(observe=observe)
    door.call(1)
    door.answer(1)
    door.call(2, arguments={"order": "o2"})
    door.call(3)  # observed only: it runs without an admission of its own
    door.call(4, arguments={"order": "o2"})
    while door.mono < 1200:
        due = door.gate.due()
        if due is None:
            break
        assert due > door.mono
        door.pass_time(due - door.mono)


def test_the_first_caller_is_not_told_to_wait_and_its_twin_is():
    door = Door()
    door.call(1)
    door.pass_time(20)
    door.call(2)
    door.pass_time(44)
    assert door.to_client == []
    door.pass_time(2)

    assert [message["id"] for message in door.to_client] == [2]
    assert outcome(door.last)["state"] == "running"


def test_a_cancelled_request_that_the_server_does_not_answer_is_not_waited_for():
    door = Door()
    door.client({"jsonrpc": "2.0", "id": 1, "method": "resources/read", "params": {}})
    cancel(door, 1)

    assert sent(door)[-1] == ("notifications/cancelled", 1)
    assert not door.gate.busy
    door.server({"jsonrpc": "2.0", "id": 1, "result": {"late": True}})
    assert door.last["result"] == {"late": True}


def test_a_set_call_is_cancelled_when_the_last_of_its_twins_gives_up():
    door = Door()
    for ident in (1, 2, 3):
        door.call(ident, "scale")
    cancel(door, 2)
    cancel(door, 1)
    assert sent(door) == [("tools/call", None)]
    cancel(door, 3, reason="enough")

    assert sent(door)[-1] == ("notifications/cancelled", 1)
    assert door.to_server[-1].params["reason"] == "enough"
    assert not door.gate.busy
    door.call(4, "scale")
    assert door.executed == 2
    door.answer(4)
    assert [message["id"] for message in door.to_client] == [4]


def test_a_forwarded_cancel_leaves_the_call_unknown_and_a_late_answer_settles_it():
    door = Door(FORWARD)
    door.call(1)
    door.do(door.gate.sent(door.calls[0], door.at))
    cancel(door, 1)
    assert sent(door)[-1] == ("notifications/cancelled", 1)

    door.call(2)
    assert outcome(door.last)["state"] == "unknown"
    door.answer(1)
    door.call(3)

    assert outcome(door.last)["state"] == "done"
    assert door.executed == 1
    assert [message["id"] for message in door.to_client] == [2, 3]


def test_a_cancel_is_not_forwarded_while_a_twin_waits():
    door = Door(FORWARD)
    door.call(1)
    door.do(door.gate.sent(door.calls[0], door.at))
    door.call(2)
    cancel(door, 1)
    assert sent(door) == [("tools/call", None)]
    cancel(door, 2)

    assert sent(door)[-1] == ("notifications/cancelled", 1)


def test_progress_never_follows_the_answer():
    door = Door(FORWARD)
    door.call(1, meta={"progressToken": "a"})
    door.pass_time(101)
    assert outcome(door.last)["state"] == "unknown"
    params = {"progressToken": "a", "progress": 1}
    door.server({"jsonrpc": "2.0", "method": "notifications/progress", "params": params})

    assert len(door.to_client) == 1
