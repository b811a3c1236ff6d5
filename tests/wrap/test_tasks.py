"""Calls that the server accepts as tasks: one handle for all, and the outcome that passes by."""

from __future__ import annotations

import itertools
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from fencekit.core.errors import LedgerFull
from fencekit.core.messages import Clear, Look, Seen
from fencekit.core.state import Absent, Done, InFlight, State, Unknown
from fencekit.ledger.clocks import Clocks
from fencekit.ledger.memory import MemoryLedger
from fencekit.wrap.rules import Rules, ToolKind, ToolRule
from fencekit.wrap.tasks import NOTE
from tests.wrap.door import MODERN, PAY, TASKS, Door, outcome, text
from tests.wrap.test_stdio import WRAP, Host

FIELDS = {"status": "working", "createdAt": "2026-12-01T10:00:00Z", "lastUpdatedAt": "2026-12-01"}
PAID = {
    "content": [{"type": "text", "text": "paid"}],
    "structuredContent": {"n": 12345678901234567890},
}
NUMBERS = itertools.count(1000)


def new(ident: str = "t1", ttl: float | None = 600_000, status: str = "working") -> Any:
    """A handle as the extension of 2026-07-28 has it."""
    return {"resultType": "task", "taskId": ident, "ttlMs": ttl, **FIELDS, "status": status}


def old(ident: str = "t1", ttl: float | None = 600_000) -> Any:
    """A handle as 2025-11-25 has it."""
    return {"task": {"taskId": ident, "ttl": ttl, "pollInterval": 5, **FIELDS}}


def ask(door: Door, method: str, said: Any, task: str = "t1", *, error: bool = False) -> None:
    """Let the client ask about a task, and the server answer."""
    ident = next(NUMBERS)
    params = {} if method == "tasks/list" else {"taskId": task}
    door.client({"jsonrpc": "2.0", "id": ident, "method": method, "params": params})
    assert door.to_server[-1].id == ident
    door.server({"jsonrpc": "2.0", "id": ident, "error" if error else "result": said})
    assert door.last == {"jsonrpc": "2.0", "id": ident, "error" if error else "result": said}


def again(door: Door, ident: int, /, **more: Any) -> Any:
    """Repeat the call; what another attempt has in flight is looked at a moment later."""
    door.call(ident, **more)
    if not door.to_client or door.last.get("id") != ident:
        door.pass_time(0.01)
    assert door.last["id"] == ident
    return door.last


def state(door: Door) -> State:
    """Return how the one call of the tool stands."""
    keys = {shown.key for shown in door.ledger.intents() if NOTE not in shown.key.intent}
    assert len(keys) <= 1
    for key in keys:
        seen = door.ledger.call(Look("look", door.at.wall_ms, key))
        assert isinstance(seen, Seen)
        return seen.record.state
    return Absent()


@pytest.fixture
def door():
    made = Door()
    made.call(1, meta=TASKS)
    made.answer(1, new())
    assert made.last["result"] == new()
    return made


def test_a_duplicate_gets_the_same_handle_while_the_outcome_is_pending(door):
    said = again(door, 2, meta=TASKS)

    mark = said["result"].pop("_meta")
    assert said["result"] == new()
    assert mark["fencekit/outcome"]["state"] == "running"
    assert mark["fencekit/outcome"]["replayed"] is True
    assert door.executed == 1
    assert isinstance(state(door), InFlight)


def test_twins_that_wait_get_the_handle_too():
    door = Door()
    door.call(1, meta=TASKS)
    door.call(2, meta=TASKS)
    door.call(3, meta=MODERN)
    door.answer(1, new())

    answers = {m["id"]: m["result"] for m in door.to_client}
    assert answers[1] == new()
    assert answers[2]["taskId"] == "t1"
    assert answers[3]["isError"] is True
    assert door.executed == 1


def test_who_cannot_read_handles_is_told_to_wait(door):
    for ident, meta in ((2, MODERN), (3, None)):
        said = again(door, ident, meta=meta)
        assert "as a task" in text(said)
        assert outcome(said)["state"] == "running"
    assert door.executed == 1


def test_a_handle_is_given_in_the_form_of_the_askers_era(door):
    older = again(door, 2, task={"ttl": 600_000})["result"]
    older.pop("_meta")

    assert older == {"task": {"taskId": "t1", "ttl": 600_000, **FIELDS}}

    other = Door()
    other.call(1, task={"ttl": 600_000})
    other.answer(1, {**old(), "_meta": {"x": 1.50}})
    newer = again(other, 2, meta=TASKS)["result"]
    assert newer.pop("_meta")["x"] == 1.5
    assert newer == {**new(), "pollIntervalMs": 5}


def test_the_outcome_is_the_result_in_the_answer_to_tasks_get(door):
    ask(door, "tasks/get", {**new(), "resultType": "complete"})
    assert isinstance(state(door), InFlight)
    ask(door, "tasks/get", {**new(status="completed"), "resultType": "complete", "result": PAID})

    done = state(door)
    assert isinstance(done, Done)
    assert json.loads(done.sealed.result.text) == PAID
    said = again(door, 2, meta=TASKS)["result"]
    assert said["content"] == PAID["content"]
    assert said["structuredContent"] == PAID["structuredContent"]
    assert said["resultType"] == "complete"
    assert door.executed == 1


def test_the_outcome_is_the_answer_to_tasks_result_in_the_older_form():
    door = Door()
    door.call(1, task={})
    door.answer(1, old())
    ask(door, "tasks/get", {"taskId": "t1", **FIELDS, "status": "completed", "ttl": 600_000})
    assert isinstance(state(door), InFlight)
    related = {"io.modelcontextprotocol/related-task": {"taskId": "t1"}}
    ask(door, "tasks/result", {**PAID, "_meta": related})

    assert isinstance(state(door), Done)
    plain = again(door, 2)["result"]
    assert plain["content"] == PAID["content"]
    # A client that asked for a task reads nothing but a handle, while the server has the task.
    assert again(door, 3, task={})["result"]["task"]["taskId"] == "t1"
    assert door.executed == 1


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("notifications/tasks", {**new(status="completed"), "result": PAID}),
        ("notifications/tasks/status", {**new(status="completed"), "result": PAID}),
    ],
)
def test_a_notification_tells_the_outcome_too(door, method, params):
    raw = json.dumps({"jsonrpc": "2.0", "method": method, "params": params}).encode()
    door.server(raw)

    assert door.raw[-1] == raw
    assert isinstance(state(door), Done)


CANCELLED = {**new(status="cancelled"), "statusMessage": "the user left"}
FAILED = {**new(status="failed"), "error": {"code": -32601, "message": "gateway down"}}
FAILED_OLD = {**new(status="failed"), "statusMessage": "gateway down"}


@pytest.mark.parametrize(
    ("method", "said", "error", "quoted"),
    [
        ("tasks/get", CANCELLED, False, "the user left"),
        ("tasks/cancel", CANCELLED, False, "the user left"),
        ("tasks/list", {"tasks": [{"taskId": "other"}, CANCELLED]}, False, "the user left"),
        ("tasks/get", FAILED, False, "gateway down"),
        ("tasks/get", FAILED_OLD, False, "gateway down"),
        ("tasks/get", {"code": -32602, "message": "no such task"}, True, "no such task"),
        ("tasks/result", {"code": -32601, "message": "went wrong"}, True, "went wrong"),
        (
            "tasks/get",
            {**new(status="completed"), "result": {**PAID, "isError": True}},
            False,
            "paid",
        ),
    ],
)
def test_every_other_end_leaves_the_call_unknown_and_quotes_why(door, method, said, error, quoted):
    ask(door, method, said, error=error)

    now = state(door)
    assert isinstance(now, Unknown)
    assert quoted in now.reason
    refused = again(door, 2, meta=TASKS)
    assert quoted in text(refused)
    assert outcome(refused)["state"] == "unknown"
    assert door.executed == 1


@pytest.mark.parametrize(
    ("method", "said", "error"),
    [
        ("tasks/get", {"code": -32603, "message": "busy"}, True),
        ("tasks/get", {"code": -32000, "message": "connection closed"}, True),
        ("tasks/result", {"code": -32000, "message": "connection closed"}, True),
        ("tasks/cancel", {"code": -32602, "message": "already over"}, True),
        ("tasks/cancel", {"resultType": "complete"}, False),
        ("tasks/update", {"resultType": "complete"}, False),
        ("tasks/get", {**new(status="input_required"), "inputRequests": {}}, False),
        ("tasks/get", {**new(status="cancelled"), "taskId": "another"}, False),
        ("tasks/get", {"status": "completed"}, False),
        ("tasks/get", {**new(status="completed"), "result": 7}, False),
        ("tasks/list", {"tasks": "none"}, False),
    ],
)
def test_what_tells_no_end_changes_nothing(door, method, said, error):
    ask(door, method, said, error=error)

    assert isinstance(state(door), InFlight)
    assert again(door, 2, meta=TASKS)["result"]["taskId"] == "t1"


def test_a_result_after_a_doubtful_end_settles_it(door):
    ask(door, "tasks/get", {"code": -32602, "message": "no such task"}, error=True)
    ask(door, "tasks/get", {**new(status="completed"), "result": PAID})

    assert isinstance(state(door), Done)


def test_only_what_the_configuration_calls_definitive_frees_a_failed_task():
    rule = ToolRule(kind=ToolKind.APPEND, definitive=("card_declined", "-32050"))
    for error in ({"code": -32603, "message": "card_declined"}, {"code": -32050, "message": "x"}):
        door = Door(Rules({"create_payment": rule}))
        door.call(1, meta=TASKS)
        door.answer(1, new())
        ask(door, "tasks/get", {**new(status="failed"), "error": error})

        assert isinstance(state(door), Absent)
    # The same code as an answer to the question says nothing of the call.
    door = Door(Rules({"create_payment": rule}))
    door.call(1, task={})
    door.answer(1, old())
    ask(door, "tasks/result", {"code": -32050, "message": "card_declined"}, error=True)
    assert isinstance(state(door), Unknown)


@pytest.mark.parametrize(
    ("ttl", "kept"), [(120_000, 120), (None, 30 * 86_400), (1, 60), (True, 30 * 86_400)]
)
def test_a_task_that_nobody_asks_about_is_unknown_when_its_time_is_over(ttl, kept):
    passed: dict[str, int] = {"ms": 0}

    def now() -> int:
        return 1_800_000_000_000 + passed["ms"]

    door = Door(ledger=MemoryLedger(Clocks(now, now, "boot")))
    door.call(1, meta=TASKS)
    door.answer(1, new(ttl=ttl))

    passed["ms"] = kept * 1000 - 1000
    assert again(door, 2, meta=TASKS)["result"]["taskId"] == "t1"
    passed["ms"] += 2000

    assert outcome(again(door, 3, meta=TASKS))["state"] == "unknown"
    passed["ms"] += 1000 * 86_400_000
    assert outcome(again(door, 4, meta=TASKS))["state"] == "unknown"
    assert door.executed == 1


def test_an_answer_after_the_time_is_over_still_settles_it():
    passed: dict[str, int] = {"ms": 0}

    def now() -> int:
        return 1_800_000_000_000 + passed["ms"]

    door = Door(ledger=MemoryLedger(Clocks(now, now, "boot")))
    door.call(1, meta=TASKS)
    door.answer(1, new(ttl=120_000))
    passed["ms"] = 10 * 3_600_000

    ask(door, "tasks/get", {**new(status="completed"), "result": PAID})

    assert isinstance(state(door), Done)
    # Long after: the record and the tombstone are gone, the note may still be there.
    passed["ms"] += 26 * 3_600_000
    door.ledger.sweep()
    ask(door, "tasks/get", {**new(status="completed"), "result": PAID})
    assert isinstance(state(door), Absent)


def test_another_process_and_a_restart_give_the_handle_and_follow_it(door):
    other = Door(ledger=door.ledger)
    said = again(other, 7, meta=TASKS)
    assert said["result"]["taskId"] == "t1"
    assert other.executed == 0

    ask(other, "tasks/get", {**new(status="completed"), "result": PAID})

    assert again(door, 2, meta=TASKS)["result"]["content"] == PAID["content"]
    assert door.executed == 1


def test_a_waiter_in_another_process_gets_the_handle_as_soon_as_it_is_there():
    door = Door()
    other = Door(ledger=door.ledger)
    door.call(1, meta=TASKS)
    other.call(7, meta=TASKS)
    other.pass_time(0.01)
    assert other.to_client == []

    door.answer(1, new())
    other.pass_time(0.2)

    assert other.last["result"]["taskId"] == "t1"


def test_a_task_id_that_is_given_twice_belongs_to_the_later_call(door):
    door.call(2, meta=TASKS, arguments={"order": "o2"})
    door.answer(2, new())
    ask(door, "tasks/get", {**new(status="completed"), "result": PAID})

    second = again(door, 3, meta=TASKS, arguments={"order": "o2"})
    assert second["result"]["content"] == PAID["content"]
    door.call(4, meta=TASKS)
    door.pass_time(0.01)
    door.pass_time(50)
    assert outcome(door.last)["state"] == "running"
    assert "isError" in door.last["result"]
    assert door.executed == 2


def test_a_call_that_an_operator_freed_is_fenced_again_by_its_late_result(door):
    ask(door, "tasks/get", CANCELLED)
    now = state(door)
    assert isinstance(now, Unknown)
    seen = door.ledger.call(Look("l", door.at.wall_ms, now.ticket.key))
    assert isinstance(seen, Seen)
    door.ledger.call(
        Clear(
            "c", door.at.wall_ms, now.ticket.key, now.ticket.id, seen.record.revision, "me", "",
            even_if_alive=True,
        )
    )  # fmt: skip
    assert isinstance(state(door), Absent)

    ask(door, "tasks/get", {**new(status="completed"), "result": PAID})

    assert isinstance(state(door), Unknown)


def test_asking_again_after_the_end_writes_nothing(door):
    done = {**new(status="completed"), "result": PAID}
    ask(door, "tasks/get", done)
    before = [(one.key, door.ledger.peek(one.key)) for one in door.ledger.intents()]
    ask(door, "tasks/get", done)
    ask(door, "tasks/get", {**new(status="completed"), "result": {"content": []}})

    assert [(one.key, door.ledger.peek(one.key)) for one in door.ledger.intents()] == before


def test_a_task_of_a_tool_that_is_not_fenced_passes():
    door = Door()
    door.call(1, "list_payments", meta=TASKS)
    door.answer(1, new("t9"))
    ask(door, "tasks/get", {**new("t9", status="completed"), "result": PAID}, "t9")

    assert list(door.ledger.intents()) == []


def test_a_ledger_that_fails_keeps_nobody_from_handle_or_outcome(door):
    door.broken = LedgerFull("no space")
    ask(door, "tasks/get", {**new(status="completed"), "result": PAID})
    door.call(5, meta=TASKS, arguments={"order": "o5"})
    assert outcome(door.last)["state"] == "ledger"
    door.broken = None

    other = Door()
    other.call(1, meta=TASKS)
    other.broken = LedgerFull("no space")
    other.answer(1, new())
    assert other.last["result"] == new()
    other.broken = None
    assert isinstance(state(other), InFlight)


def test_a_task_without_an_id_is_no_success():
    door = Door()
    door.call(1, meta=TASKS)
    door.answer(1, {"resultType": "task", **FIELDS})

    assert isinstance(state(door), Unknown)


def test_a_handle_undoes_nothing_and_its_result_does():
    rules = Rules({"create_payment": ToolRule(kind=ToolKind.APPEND, undone_by=("cancel_payment",))})
    door = Door(rules)
    cancel = {"name": "cancel_payment", "inputSchema": {"type": "object"}}
    door.gate.catalogue.whole([PAY, cancel])
    door.call(1)
    door.answer(1)
    door.call(2, "cancel_payment", task={})
    door.answer(2, old("t7"))
    assert again(door, 3)["result"]["_meta"]["fencekit/outcome"]["replayed"] is True

    ask(door, "tasks/result", PAID, "t7")
    door.call(4)

    assert [f.params["name"] for f in door.to_server if f.method == "tools/call"] == [
        "create_payment",
        "cancel_payment",
        "create_payment",
    ]


def test_a_handle_that_comes_after_the_deadline_still_lets_the_outcome_be_followed():
    rules = Rules({"create_payment": ToolRule(kind=ToolKind.APPEND, call_deadline=10.0)})
    door = Door(rules)
    door.call(1, meta=TASKS)
    door.pass_time(11)
    door.answer(1, new())
    assert outcome(again(door, 2, meta=TASKS))["state"] == "unknown"

    ask(door, "tasks/get", {**new(status="completed"), "result": PAID})

    assert again(door, 3, meta=TASKS)["result"]["content"] == PAID["content"]
    assert door.executed == 1


SERVER = """
import json, pathlib, sys
home = pathlib.Path(sys.argv[1])

def answer(message):
    method, params = message["method"], message.get("params", {})
    if method == "initialize":
        return {"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": {}}
    if method == "tools/list":
        return {"tools": [{"name": "charge", "inputSchema": {"type": "object"}}]}
    if method == "tools/call":
        with (home / "effects").open("a") as effects:
            effects.write("x")
        return {"task": {"taskId": "t1", "status": "working", "ttl": None}}
    if method == "tasks/result":
        return {"content": [{"type": "text", "text": "charged"}]}
    return {"taskId": "t1", "status": "working", "ttl": None}

for line in sys.stdin:
    message = json.loads(line)
    if "id" in message:
        said = {"jsonrpc": "2.0", "id": message["id"], "result": answer(message)}
        print(json.dumps(said), flush=True)
"""


@pytest.mark.parametrize("killed", [False, True])
def test_a_task_outlives_its_proxy(tmp_path, killed):
    ledger = ["--ledger", str(tmp_path / "ledger.db"), "--scope", "t"]
    command = [*WRAP, *ledger, "--", sys.executable, "-c", SERVER, str(tmp_path)]
    asked = iter(range(1, 100))

    def request(host: Host, method: str, **params: Any) -> Any:
        ident = next(asked)
        host.send({"jsonrpc": "2.0", "id": ident, "method": method, "params": params})
        said = json.loads(host.read())
        assert said["id"] == ident
        return said["result"]

    def charge(host: Host) -> Any:
        return request(host, "tools/call", name="charge", arguments={"n": 1}, task={})

    first = Host(command, {})
    first.open()
    assert charge(first)["task"]["taskId"] == "t1"
    if killed:
        first.process.kill()
        first.process.wait(10)
    first.end()
    second = Host(command, {})
    second.open()
    assert charge(second)["task"]["taskId"] == "t1"
    assert request(second, "tasks/get", taskId="t1")["status"] == "working"
    assert request(second, "tasks/result", taskId="t1")["content"][0]["text"] == "charged"
    second.end()
    third = Host(command, {})
    third.open()
    done = request(third, "tools/call", name="charge", arguments={"n": 1})
    third.end()

    assert done["content"][0]["text"] == "charged"
    assert done["_meta"]["fencekit/outcome"]["replayed"] is True
    assert Path(tmp_path / "effects").read_text() == "x"
