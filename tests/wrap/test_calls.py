"""Fenced calls at the gate: once to the server, one answer to everybody, and nothing forgotten."""

from __future__ import annotations

import pytest

from fencekit.core.errors import LedgerFull
from fencekit.core.messages import Commit, Look, Seen
from fencekit.core.state import Done, Unknown
from fencekit.wrap.identity import Scope
from fencekit.wrap.rules import Reconcile, Rules, ToolKind, ToolRule

from .door import MODERN, Door, outcome, text


def rules(**fields) -> Rules:
    return Rules({"create_payment": ToolRule(kind=ToolKind.APPEND, **fields)})


def test_a_first_answer_is_handed_on_byte_for_byte():
    door = Door()
    door.call(1)
    raw = b'{"jsonrpc": "2.0","id":1, "result":{"content":[],"n":90071992547409931,"x":1.0}}'

    door.server(raw)

    assert door.raw == [raw]
    assert door.executed == 1


def test_twins_wait_for_the_one_answer_and_are_marked_as_replays():
    door = Door()
    for ident in (1, "1", 2):
        door.call(ident)
    assert door.to_client == []

    door.answer(1)

    assert door.executed == 1
    assert [a["id"] for a in door.to_client] == [1, "1", 2]
    assert [outcome(a) is not None for a in door.to_client] == [False, True, True]
    assert {text(a) for a in door.to_client} == {"paid"}
    assert door.counted == {"replayed": 2}


def test_a_later_repeat_gets_the_recorded_result_to_the_letter():
    door = Door()
    door.call(1)
    kept = '"structuredContent":{"n":123456789012345678901,"f":1.50,"é":null}'
    door.server(f'{{"jsonrpc":"2.0","id":1,"result":{{"content":[],{kept}}}}}'.encode())

    door.call(2)

    assert door.executed == 1
    assert kept.encode() in door.raw[-1]
    mark = outcome(door.last)
    assert mark["state"] == "done"
    assert mark["replayed"] is True
    assert len(mark["cert"]) == 64
    assert mark["operator"].startswith("fencekit ledger show s/create_payment/")


def test_another_gate_on_the_same_ledger_replays():
    first = Door()
    first.call(1)
    first.answer(1)
    second = Door(ledger=first.ledger)

    second.call(7)

    assert second.executed == 0
    assert text(second.last) == "paid"


@pytest.mark.parametrize(
    ("arguments", "same"),
    [
        ({"amount": 1, "order": "o1"}, True),
        ({"order": "o1", "amount": 1.0}, True),
        ({"order": "o1", "amount": "1"}, False),
        ({"order": "o1"}, False),
        ({"order": "o1", "amount": None}, False),
    ],
)
def test_identity_is_the_canonical_arguments(arguments, same):
    door = Door()
    door.call(1, arguments={"order": "o1", "amount": 1})
    door.answer(1)

    door.call(2, arguments=arguments)

    assert door.executed == (1 if same else 2)


@pytest.mark.parametrize("how", ["isError", "-32603", "-32602"])
def test_after_an_error_the_call_is_refused_and_the_error_quoted(how):
    """A tool can fire and then fail: no error text or code proves that it did not."""
    door = Door()
    door.call(1)
    if how == "isError":
        door.fail(1, "HTTP 429 slow down")
    else:
        door.error(1, int(how), "HTTP 429 slow down")
    first = door.last

    door.call(2)

    assert door.executed == 1
    assert outcome(first) is None if "result" in first else first["error"]["code"] == int(how)
    assert door.last["result"]["isError"] is True
    assert "HTTP 429 slow down" in text(door.last)
    assert text(door.last).count(". ") <= 2
    assert outcome(door.last)["state"] == "unknown"


@pytest.mark.parametrize("code", [-32700, -32600, -32601, -32020, -32022])
def test_an_error_of_the_protocol_itself_frees_the_call(code):
    door = Door()
    door.call(1)
    door.error(1, code)

    door.call(2)

    assert door.executed == 2


def test_arguments_that_break_the_schema_free_the_call_only_with_a_validation_error():
    door = Door()
    door.call(1, arguments={"amount": 1})
    door.error(1, -32602, "order is required")
    door.call(2, arguments={"amount": 1})
    assert door.executed == 2

    door.fail(2, "Input validation error: 'order' is a required property")
    door.call(3, arguments={"amount": 1})
    assert door.executed == 3

    door.fail(3, "card declined")
    door.call(4, arguments={"amount": 1})
    assert door.executed == 3


def test_a_text_that_imitates_validation_frees_nothing_when_the_arguments_fit():
    door = Door()
    door.call(1)
    door.fail(1, "Input validation error: Invalid arguments for tool create_payment")

    door.call(2)

    assert door.executed == 1


def test_an_error_that_the_configuration_calls_definitive_frees_the_call():
    door = Door(rules(definitive=("card_declined",)))
    door.call(1)
    door.fail(1, "card_declined: insufficient funds")

    door.call(2)

    assert door.executed == 2


def test_a_tool_that_is_not_in_the_complete_list_is_free_again():
    door = Door(Rules({"gone": ToolRule(kind=ToolKind.APPEND)}))
    door.call(1, "gone")
    door.fail(1, "unknown tool")

    door.call(2, "gone")

    assert door.executed == 2


def test_a_call_of_which_nothing_left_is_free_and_said_to_be():
    door = Door()
    door.call(1)
    door.do(door.gate.unsent(door.calls[0], "the pipe is closed", door.at))
    assert outcome(door.last)["state"] == "free"

    door.call(2)

    assert door.executed == 2


def test_a_server_that_dies_leaves_the_call_unknown_for_everybody():
    door = Door()
    door.call(1)
    door.call(2)
    door.do(door.gate.sent(door.calls[0], door.at))
    door.do(door.gate.server_gone("the server ended (exit code 1)", door.at, answer_all=False))
    assert [outcome(a)["state"] for a in door.to_client] == ["unknown", "unknown"]

    door.call(3)

    assert door.executed == 1
    assert "exit code 1" in text(door.last)


def test_an_answer_after_the_deadline_settles_the_call():
    door = Door(rules(call_deadline=10.0, lease=60.0))
    door.call(1)
    door.pass_time(11)
    assert outcome(door.last)["state"] == "unknown"

    door.answer(1)
    assert len(door.to_client) == 1
    door.call(2)

    assert door.executed == 1
    assert text(door.last) == "paid"


def test_a_waiter_is_told_after_its_wait_and_the_first_caller_is_not():
    door = Door(rules(wait=45.0))
    door.call(1)
    door.call(2)

    door.pass_time(46)

    assert [a["id"] for a in door.to_client] == [2]
    assert "running since" in text(door.last)
    door.answer(1)
    assert door.last["id"] == 1


def test_a_cancelled_call_goes_on_and_its_result_is_kept_for_the_retry():
    door = Door()
    door.call(1)
    door.client({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}})
    assert [f.method for f in door.to_server] == ["tools/call"]
    door.answer(1)
    assert door.to_client == []

    door.call(2)

    assert door.executed == 1
    assert text(door.last) == "paid"


def test_a_call_cancelled_before_it_left_never_runs():
    door = Door()
    door.hold = True
    door.call(1)
    door.client({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}})

    door.release()

    assert door.executed == 0
    door.call(2)
    assert door.executed == 1


def test_the_outcome_is_durable_before_anybody_hears_of_it():
    door = Door()
    door.call(1)
    door.hold = True
    door.answer(1)
    assert door.to_client == []
    assert isinstance(door.held[0].command, Commit)

    door.release()

    assert door.last["id"] == 1


def test_a_ledger_that_fails_refuses_fenced_calls_and_lets_reads_pass():
    door = Door()
    door.broken = LedgerFull("no space left on /var: free some")
    door.call(1)
    door.call(2, "list_payments", arguments={})

    assert [f.params["name"] for f in door.to_server] == ["list_payments"]
    assert outcome(door.last)["state"] == "ledger"
    assert "no space left" in text(door.last)


def test_a_true_answer_is_delivered_also_when_it_cannot_be_recorded_and_recorded_later():
    door = Door()
    door.call(1)
    door.broken = LedgerFull("no space left")
    door.answer(1)
    assert text(door.last) == "paid"

    door.broken = None
    door.pass_time(1.1)
    door.call(2)

    assert door.executed == 1
    assert text(door.last) == "paid"


def test_an_admission_that_is_heard_too_late_is_given_back_and_asked_anew():
    door = Door(rules(lease=30.0))
    door.hold = True
    door.call(1)
    door.mono += 11

    door.release()

    assert door.executed == 1
    events = [event["event"] for _, event in door.ledger.audit()]
    assert events == ["admitted", "released", "admitted"]


def test_heartbeats_move_the_lease_every_third():
    door = Door(rules(lease=30.0))
    door.call(1)
    beats = 0
    for _ in range(5):
        door.hold = True
        door.pass_time(10.1)
        beats += len(door.held)
        door.release()

    assert beats == 5


def test_an_idempotency_key_names_the_action_and_other_arguments_are_a_conflict():
    door = Door()
    door.call(1, idempotencyKey="k")
    door.answer(1)
    door.call(2, meta={"fencekit/intent": "k"})
    assert text(door.last) == "paid"

    door.call(3, arguments={"order": "o2"}, idempotencyKey="k")

    assert door.executed == 1
    assert outcome(door.last)["state"] == "conflict"


def test_the_fields_of_the_configuration_tell_calls_apart():
    door = Door(rules(intent=("order",)))
    door.call(1, arguments={"order": "o1", "reference": "a"})
    door.answer(1)

    door.call(2, arguments={"order": "o1", "reference": "b"})
    door.call(3, arguments={"reference": "c"})

    assert door.executed == 1
    assert "lacks 'order'" in door.last["error"]["message"]


def test_a_guessed_account_withholds_a_result_and_never_admits():
    first = Door(scope=Scope("s", "", "guess-a"))
    first.call(1)
    first.answer(1)
    second = Door(ledger=first.ledger, scope=Scope("s", "", "guess-b"))

    second.call(1)

    assert second.executed == 0
    assert "--account-env" in text(second.last)
    assert "paid" not in text(second.last)


def test_one_account_never_hears_the_result_of_another():
    first = Door(scope=Scope("s", "account:a"))
    first.call(1)
    first.answer(1)
    second = Door(ledger=first.ledger, scope=Scope("s", "account:b"))

    second.call(1)

    assert second.executed == 1


def test_a_late_repeat_says_that_nothing_ran_now():
    door = Door(rules(quiet_replay=120.0))
    door.call(1)
    door.answer(1)
    door.call(2)
    assert len(door.last["result"]["content"]) == 1

    door.wall_skew_ms = 121_000
    door.call(3)

    recorded, note = door.last["result"]["content"]
    assert recorded["text"] == "paid"
    assert "nothing ran now" in note["text"]


def test_a_result_is_replayed_into_the_other_era_in_its_shape():
    door = Door()
    door.call(1)
    door.answer(1)
    door.call(2, meta=MODERN)
    assert door.last["result"]["resultType"] == "complete"

    door.call(3, arguments={"order": "o2"}, meta=MODERN)
    door.answer(3, {"content": [], "resultType": "complete"})
    door.call(4, arguments={"order": "o2"})

    assert "resultType" not in door.last["result"]
    assert door.executed == 2


def test_a_multi_round_call_is_never_recorded_before_it_is_complete():
    door = Door()
    ask = {"resultType": "input_required", "inputRequests": {}, "requestState": "s1"}
    door.call(1, meta=MODERN)
    door.call(2, meta=MODERN)
    door.answer(1, ask)
    assert [a["id"] for a in door.to_client] == [1]
    assert door.executed == 2

    door.answer(2, {**ask, "requestState": "s2"})
    door.call(3, meta=MODERN, inputResponses={"a": 1}, requestState="s1")
    door.call(4, meta=MODERN)
    assert door.executed == 3

    done = {"content": [{"type": "text", "text": "paid"}], "resultType": "complete"}
    door.answer(3, done)

    assert door.executed == 3
    assert [a["id"] for a in door.to_client] == [1, 2, 3, 4]
    door.call(5, meta=MODERN, inputResponses={"a": 1}, requestState="s2")
    assert door.executed == 3
    assert text(door.last) == "paid"


def test_a_leg_that_fails_makes_the_whole_call_unknown():
    door = Door()
    door.call(1, meta=MODERN)
    door.answer(1, {"resultType": "input_required", "requestState": "s1"})
    door.call(2, meta=MODERN, inputResponses={}, requestState="s1")
    door.error(2, -32603, "gone")

    door.call(3, meta=MODERN)

    assert door.executed == 2
    assert outcome(door.last)["state"] == "unknown"


def test_a_twin_in_another_process_is_waited_for_and_its_result_replayed():
    first = Door()
    first.call(1)
    second = Door(ledger=first.ledger)
    second.call(1)
    assert second.to_client == []
    second.pass_time(0.01)
    second.pass_time(0.2)
    assert second.to_client == []

    first.answer(1)
    second.pass_time(0.2)

    assert second.executed == 0
    assert text(second.last) == "paid"


@pytest.mark.parametrize("waited", [0.0, 0.1, 1.0, 40.0])
def test_an_outcome_is_seen_in_another_process_soon_however_long_it_took(waited):
    """The next look is never further away than half of what is promised (300 ms)."""
    first = Door()
    first.call(1)
    second = Door(ledger=first.ledger)
    second.call(1)
    until = second.mono + waited
    while (due := second.gate.due()) is not None and due <= until:
        second.pass_time(due - second.mono)
    second.mono = until
    first.answer(1)

    due = second.gate.due()
    assert due is not None
    assert due - until <= 0.15
    second.pass_time(due - until)
    assert text(second.last) == "paid"


def test_observing_fences_nothing_and_says_what_would_have_been():
    door = Door(observe=True)
    door.call(1)
    door.answer(1)
    door.call(2)
    door.answer(2)

    assert door.executed == 2
    assert "result" in door.last
    assert outcome(door.last) is None
    assert any("would not have run again" in line for line in door.said)


def test_observing_lets_twins_pass_as_well():
    door = Door(observe=True)
    for ident in (1, 2, 3):
        door.call(ident)

    assert door.executed == 3


def test_an_answer_that_is_no_json_for_others_still_ends_the_call():
    door = Door()
    door.call(1)
    raw = b'{"jsonrpc":"2.0","id":1,"result":{"content":[],"structuredContent":{"x":NaN}}}'
    door.server(raw)
    assert door.raw == [raw]

    door.call(2)

    assert door.executed == 1
    assert "was not kept" in text(door.last)


def test_a_success_of_the_undoing_tool_ends_the_record():
    door = Door(
        Rules(
            {
                "create_payment": ToolRule(
                    kind=ToolKind.APPEND, intent=("order",), undone_by=("cancel_payment",)
                ),
                "cancel_payment": ToolRule(kind=ToolKind.PASS),
            }
        )
    )
    door.call(1)
    door.answer(1)
    door.call(2, "cancel_payment", arguments={"order": "o2"})
    door.answer(2)
    door.call(3)
    assert door.executed == 2

    door.call(4, "cancel_payment", arguments={"order": "o1"})
    door.hold = True
    door.answer(4)
    assert door.last["id"] == 3  # its success is handed on once the record has ended
    door.release()
    assert door.last["id"] == 4
    door.call(5)

    assert door.executed == 4


RECONCILE = Reconcile("find_payment", {"order": "$.order"}, "$.count")


@pytest.mark.parametrize(
    ("count", "executed", "state"),
    [(0, 2, None), (1, 1, "done"), (2, 1, "unknown"), (None, 1, "unknown")],
)
def test_reconciling_decides_by_what_the_server_itself_can_read(count, executed, state):
    door = Door(
        Rules(
            {
                "create_payment": ToolRule(kind=ToolKind.APPEND, reconcile=RECONCILE),
            }
        )
    )
    door.call(1)
    door.fail(1, "503")
    door.call(2)
    asked = door.to_server[-1]
    assert asked.params == {"name": "find_payment", "arguments": {"order": "o1"}}

    said = {"content": [{"type": "text", "text": f'{{"count": {count}}}'}]}
    door.answer(asked.id, said if count is not None else {"content": [], "isError": True})

    payments = [f for f in door.to_server if f.params["name"] == "create_payment"]
    assert len(payments) == executed
    if state is not None:
        assert outcome(door.last)["state"] == state
    assert any("DOUBLE-FIRE" in line for line in door.said) is (count == 2)


def test_a_call_that_may_still_run_is_not_cleared_by_an_early_read():
    """Absent now proves nothing about a call whose answer never came."""
    door = Door(
        Rules(
            {
                "create_payment": ToolRule(
                    kind=ToolKind.APPEND, reconcile=RECONCILE, call_deadline=10.0
                )
            }
        )
    )
    door.call(1)
    door.pass_time(11)
    door.call(2)
    asked = door.to_server[-1]

    door.answer(asked.id, {"structuredContent": {"count": 0}, "content": []})

    assert [f.params["name"] for f in door.to_server].count("create_payment") == 1
    assert outcome(door.last)["state"] == "unknown"


def test_progress_reaches_twins_under_their_own_tokens():
    door = Door()
    door.call(1, meta={"progressToken": "a"})
    door.call(2, meta={"progressToken": 7})
    door.call(3)
    head = b'{"jsonrpc":"2.0","method":"notifications/progress",'
    raw = head + b'"params":{"progressToken":"a","progress":1}}'

    door.server(raw)

    assert door.raw[0] == raw
    assert door.to_client[1]["params"] == {"progressToken": 7, "progress": 1}
    assert len(door.to_client) == 2


def test_what_the_ledger_holds_is_what_was_answered():
    door = Door()
    door.call(1)
    door.answer(1)
    door.call(2, arguments={"order": "o2"})
    door.fail(2)
    states = {}
    for shown in door.ledger.intents():
        looked = door.ledger.call(Look("look", door.at.wall_ms, shown.key))
        assert isinstance(looked, Seen)
        states[type(looked.record.state)] = looked.record.state

    done, unknown = states[Done], states[Unknown]
    assert done.ticket.request.args == {"order": "o1"}
    assert unknown.reason == "503 try again"


def test_ids_in_use_are_refused_before_anything_runs():
    door = Door()
    door.call(1)

    door.call(1, arguments={"order": "o2"})

    assert door.executed == 1
    assert "in use" in door.last["error"]["message"]
