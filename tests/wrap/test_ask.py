"""`--ask`: the host's human says what became of an unknown call, and what moved refuses it."""

from __future__ import annotations

import itertools
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from fencekit import Fence
from fencekit.core.errors import LedgerUnavailable
from fencekit.core.messages import Clear, Settle
from fencekit.core.state import Done, Unknown
from fencekit.fence.calls import Calls
from fencekit.ledger.memory import MemoryLedger
from fencekit.wire import protocol
from fencekit.wrap.adopt import judged
from fencekit.wrap.ask import ROUND
from fencekit.wrap.form import CHOICES, NOTE, OUTCOME
from fencekit.wrap.identity import Scope
from fencekit.wrap.rules import Reconcile, Rules, ToolKind, ToolRule
from tests.ledger.conformance import LEDGERS, TestClock

from .door import MODERN, PAY, Door, outcome, text

HAPPENED, NOT, UNSURE = CHOICES
FORMS: dict[str, Any] = {"elicitation": {}}
MODERN_FORMS = {
    **MODERN,
    protocol.META_CLIENT_CAPABILITIES: FORMS,
    protocol.META_CLIENT_INFO: {"name": "web\x1b[31mhost", "version": "1"},
}
WAIT = ToolRule().wait
KILLED = """
import os, signal, sys
from fencekit import Fence
from tests.wrap.test_ask import Host
host = Host(ledger=Fence.open(sys.argv[1]).ledger)
host.lose()
host.ask_again()
assert host.question
os.kill(os.getpid(), signal.SIGKILL)
"""


class Host(Door):
    """A host with a human, in either era; `capabilities` is what it declares."""

    def __init__(
        self,
        era: str = "legacy",
        capabilities: Any = FORMS,
        version: str = "2025-06-18",
        rules: Rules | None = None,
        **more: Any,
    ) -> None:
        super().__init__(rules, ask=True, **more)
        self.era, self.ids = era, itertools.count(1000)
        self.meta = {**MODERN_FORMS, protocol.META_CLIENT_CAPABILITIES: capabilities}
        if era == "legacy":
            info = {"name": "desk", "version": "1"}
            params = {"capabilities": capabilities, "clientInfo": info}
            self.client({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params})
            self.answer(0, {"protocolVersion": version, "capabilities": {}})
        self.to_client.clear()

    def ask_again(self, **more: Any) -> int:
        """Call (again); returns the id of the call."""
        ident = next(self.ids)
        self.call(ident, **({"meta": self.meta} if self.era == "modern" else {}), **more)
        return ident

    def lose(self, **more: Any) -> None:
        """Let a call end with an error that proves nothing."""
        self.fail(self.ask_again(**more))

    @property
    def question(self) -> Any:
        """The params of the form that the human sees, or None."""
        last = self.last
        if last.get("method") == "elicitation/create":
            return last["params"]
        if last.get("result", {}).get("resultType") == "input_required":
            ((_, entry),) = last["result"]["inputRequests"].items()
            assert entry["method"] == "elicitation/create"
            return entry["params"]
        return None

    def reply(self, said: Any, note: str = "looked at the bank", **more: Any) -> None:
        """Answer the question; `said` is a choice, or a whole ElicitResult."""
        content = {OUTCOME: said, NOTE: note}
        result = said if isinstance(said, dict) else {"action": "accept", "content": content}
        asked = self.last
        if self.era == "legacy":
            self.client({"jsonrpc": "2.0", "id": asked["id"], "result": result})
        else:
            (name,) = asked["result"]["inputRequests"]
            state = asked["result"]["requestState"]
            self.ask_again(inputResponses={name: result}, requestState=state, **more)

    @property
    def states(self) -> list[Any]:
        """The states of the calls on record; claims of questions are none."""
        found = (s for s in self.ledger.intents() if not s.key.intent.endswith("/ask"))
        return [shown.record.state for shown in found]

    @property
    def claims(self) -> int:
        """How many questions are claimed."""
        found = list(self.ledger.intents())
        return sum(1 for s in found if s.key.intent.endswith("/ask"))


@pytest.fixture(params=["legacy", "modern"])
def era(request):
    return request.param


@pytest.mark.parametrize("name", LEDGERS)
def test_it_did_not_happen_clears_the_call_which_then_runs_once(name, era, tmp_path):
    ledger = LEDGERS[name](tmp_path, TestClock())
    host = Host(era, ledger=ledger)
    host.lose()
    host.ask_again()
    assert host.question is not None
    assert host.executed == 1
    assert host.claims == 1

    host.reply(NOT)
    assert host.executed == 2
    host.answer(host.to_server[-1].id)

    assert text(host.last) == "paid"
    assert outcome(host.last) is None
    assert [type(state) for state in host.states] == [Done]
    assert host.claims == 0
    (cleared,) = (e for _, e in ledger.audit() if e["event"] == "cleared")
    assert cleared["operator"].startswith("human at ")
    assert cleared["note"] == "looked at the bank"
    assert cleared["at_ms"] > 0
    host.ask_again()
    assert host.executed == 2
    assert outcome(host.last)["replayed"] is True
    ledger.close()


@pytest.mark.parametrize("structured", [False, True])
def test_it_happened_settles_the_call_and_tells_the_caller(era, structured):
    host = Host(era)
    if structured:
        host.gate.catalogue.whole([{**PAY, "outputSchema": {"type": "object"}}])
    host.lose()
    host.ask_again()

    host.reply(HAPPENED)

    assert host.executed == 1
    assert "a person confirmed it" in text(host.last)
    assert outcome(host.last)["state"] == "done"
    assert host.last["result"].get("isError", False) is structured
    assert ("resultType" in host.last["result"]) is (era == "modern")
    (done,) = host.states
    assert isinstance(done, Done)
    name = {"legacy": "human at desk", "modern": "human at web\\x1b[31mhost"}[era]
    assert (done.operator, done.note) == (name, "looked at the bank")
    host.ask_again()
    assert "a person confirmed it" in text(host.last)
    assert host.executed == 1
    assert host.claims == 0


@pytest.mark.parametrize(
    "said",
    [
        UNSURE,
        "it did not happen",
        7,
        {"action": "decline"},
        {"action": "cancel"},
        {"action": "decline", "content": {OUTCOME: NOT}},
        {"action": "accept"},
        {"action": "accept", "content": [NOT]},
        {"action": "accept", "content": {"other": NOT}},
        {"action": "accept", "content": {OUTCOME: [NOT]}},
        {"content": {OUTCOME: NOT}},
        {},
    ],
)
def test_whatever_is_not_clearly_an_answer_leaves_it_unknown(era, said):
    host = Host(era)
    host.lose()
    host.ask_again()

    host.reply(said)

    assert host.executed == 1
    assert outcome(host.last)["state"] == "unknown"
    assert "503 try again" in text(host.last)
    assert [type(state) for state in host.states] == [Unknown]
    assert host.claims == 0
    host.ask_again()  # and the next duplicate may ask again
    assert host.question is not None


@pytest.mark.parametrize("answer", [None, {"error": {"code": -32601, "message": "no"}}])
def test_an_error_or_silence_leaves_it_unknown_within_the_wait(answer):
    host = Host()
    host.lose()
    host.ask_again()
    ident = host.last["id"]
    if answer is not None:
        host.client({"jsonrpc": "2.0", "id": ident, **answer})
    else:
        host.pass_time(WAIT - 1)
        assert host.question is not None
        host.pass_time(1)
        assert host.to_client[-2]["method"] == "notifications/cancelled"
        assert host.to_client[-2]["params"]["requestId"] == ident
    assert outcome(host.last)["state"] == "unknown"

    heard = len(host.to_server), len(host.to_client)
    late = {"action": "accept", "content": {OUTCOME: NOT}}
    host.client({"jsonrpc": "2.0", "id": ident, "result": late})

    assert (len(host.to_server), len(host.to_client)) == heard  # nobody hears a late answer
    assert [type(state) for state in host.states] == [Unknown]
    assert host.claims == 0


@pytest.mark.parametrize("said", [HAPPENED, NOT])
def test_an_answer_of_a_stateless_client_that_comes_too_late_changes_nothing(said):
    host = Host("modern")
    host.lose()
    host.ask_again()
    asked = host.last
    host.pass_time(ROUND)
    assert host.claims == 0

    host.to_client.append(asked)
    host.reply(said)

    assert host.executed == 1
    assert "came too late" in text(host.last)
    assert [type(state) for state in host.states] == [Unknown]


@pytest.mark.parametrize("said", [HAPPENED, NOT])
@pytest.mark.parametrize("moved", ["settled", "cleared", "failed again", "forgotten answer"])
def test_an_answer_about_a_state_that_has_moved_is_refused_and_nothing_runs(era, said, moved):
    ledger = MemoryLedger()
    host = Host(era, ledger=ledger)
    host.lose()
    host.ask_again()
    asked = host.last
    fence = Fence(calls=Calls(ledger, Fence().calls.config))
    (one,) = (j for j in judged(fence.intents(), "s", ""))
    if moved == "settled":
        fence.settle(one.key.intent, one.state.ticket.id, one.revision, {"a": 1}, "n")
    elif moved == "forgotten answer":
        host.gate.calls.questions._rounds.clear()
        host.gate.calls.questions._shown.clear()
    else:
        fence.clear(one.key.intent, one.state.ticket.id, one.revision, "n", even_if_alive=True)
        if moved == "failed again":
            other = Door(ledger=ledger)
            other.call(1)
            other.fail(1, "another error")
    before = host.states

    host.to_client.append(asked)
    host.reply(said)

    assert host.executed == 1
    assert host.states == before
    if moved != "forgotten answer":
        assert "the answer was not taken" in text(host.last)
        assert outcome(host.last)["state"] == "refused"


def test_a_human_cannot_clear_what_the_server_may_still_run(era):
    host = Host(era)
    host.ask_again()
    host.pass_time(ToolRule().call_deadline)
    host.ask_again()
    assert host.question is not None

    host.reply(NOT)

    assert host.executed == 1
    assert "the answer was not taken" in text(host.last)
    assert [type(state) for state in host.states] == [Unknown]


@pytest.mark.parametrize(
    ("capabilities", "version", "asked"),
    [
        (FORMS, "2025-06-18", True),
        (FORMS, "2025-11-25", True),
        ({"elicitation": {"form": {}, "url": {}}}, "2025-11-25", True),
        ({"elicitation": {"url": {}}}, "2025-11-25", False),
        ({}, "2025-11-25", False),
        ({"elicitation": True}, "2025-11-25", False),
        (None, "2025-11-25", False),
        ([], "2025-11-25", False),
    ],
)
def test_only_a_client_that_said_it_can_is_asked(era, capabilities, version, asked):
    host = Host(era, capabilities, version)
    host.lose()
    host.ask_again()

    assert (host.question is not None) is asked
    if not asked:
        assert outcome(host.last)["state"] == "unknown"


def test_a_revision_without_elicitation_has_no_questions():
    host = Host(version="2025-03-26")
    host.lose()
    host.ask_again()

    assert outcome(host.last)["state"] == "unknown"


def test_without_the_option_nobody_is_asked_and_observing_asks_nobody():
    for more in ({"ask": False}, {"ask": True, "observe": True}):
        door = Door(**more)
        params = {"capabilities": FORMS}
        door.client({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params})
        door.answer(0, {"protocolVersion": "2025-11-25"})
        door.call(1)
        door.fail(1)
        door.call(2)

        assert not any(m.get("method") == "elicitation/create" for m in door.to_client)


def test_one_call_is_asked_about_by_one_at_a_time_in_any_process(era):
    ledger = MemoryLedger()
    first, second = Host(era, ledger=ledger), Host("modern", ledger=ledger)
    first.lose()
    first.ask_again()
    assert first.question is not None

    second.ask_again()
    assert second.question is None
    assert outcome(second.last)["state"] == "unknown"
    second.lose(arguments={"order": "another"})
    second.ask_again(arguments={"order": "another"})
    assert second.question is not None  # another call is another question

    first.reply(UNSURE)
    second.ask_again()
    assert second.question is not None


def test_a_claim_of_a_process_that_died_ends_with_its_lease():
    clock = TestClock()
    ledger = LEDGERS["memory"](None, clock)
    gone, next_one = Host(ledger=ledger), Host(ledger=ledger)
    gone.lose()
    gone.ask_again()
    next_one.ask_again()
    assert next_one.question is None

    clock.ms += int((ROUND + 60) * 1000)
    next_one.ask_again()

    assert next_one.question is not None


@pytest.mark.parametrize("kind", ["sqlite", "jsonl"])
def test_a_question_of_a_process_that_was_killed_is_asked_anew_at_once(tmp_path, kind):
    url = f"{kind}:{tmp_path / 'ledger'}"
    ran = subprocess.run(
        [sys.executable, "-c", KILLED, url],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ran.returncode == -signal.SIGKILL, ran.stderr

    with Fence.open(url) as fence:
        host = Host(ledger=fence.ledger)
        host.ask_again()
        assert host.question is not None
        host.reply(NOT)
        host.answer(host.to_server[-1].id)

        assert host.executed == 1
        assert [type(state) for state in host.states] == [Done]
        assert host.claims == 0


@pytest.mark.parametrize("how", [0, 1])
def test_a_host_that_went_away_leaves_no_question_open(how):
    ledger = MemoryLedger()
    host, next_one = Host(("legacy", "modern")[how], ledger=ledger), Host(ledger=ledger)
    host.lose()
    host.ask_again()

    host.do(host.gate.client_gone(host.at))
    assert host.claims == 0
    assert host.gate.busy is False
    next_one.ask_again()

    assert next_one.question is not None


def test_twins_that_wait_share_the_answer_of_one_human():
    host = Host()
    host.lose()
    first, second = host.ask_again(), host.ask_again()
    assert sum(1 for m in host.to_client if m.get("method") == "elicitation/create") == 1

    host.to_client.append(next(m for m in host.to_client if "method" in m))
    host.reply(NOT)
    host.answer(host.to_server[-1].id)

    assert host.executed == 2
    assert [m["id"] for m in host.to_client[-2:]] == [first, second]
    assert {text(m) for m in host.to_client[-2:]} == {"paid"}


def test_of_stateless_twins_one_is_asked_and_the_others_are_refused():
    host = Host("modern")
    host.lose()
    host.hold = True
    ids = [host.ask_again() for _ in range(3)]
    host.release()

    last = host.to_client[-3:]
    assert sorted(m["id"] for m in last) == ids
    rounds = [m for m in last if m["result"].get("resultType") == "input_required"]
    assert len(rounds) == 1
    assert sum(1 for m in last if outcome(m)) == 2


def test_a_cancelled_call_takes_its_question_back():
    host = Host()
    host.lose()
    ident = host.ask_again()
    asked = host.last["id"]

    host.client(
        {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": ident}}
    )

    assert host.last["method"] == "notifications/cancelled"
    assert host.last["params"]["requestId"] == asked
    assert host.claims == 0
    assert host.gate.calls.by_key == {}


def test_who_gives_up_before_the_question_is_shown_is_not_asked(era):
    host = Host(era)
    host.lose()
    host.hold = True
    ident = host.ask_again()
    prepared = host.held.pop()
    host.do(host.gate.ledger(prepared, host.ledger.call(prepared.command), host.at))
    assert len(host.held) == 1  # the claim
    host.client(
        {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": ident}}
    )
    host.release()

    assert not any(m.get("method") == "elicitation/create" for m in host.to_client)
    assert host.claims == 0
    assert host.gate.calls.by_key == {}


def test_the_answer_about_one_call_does_nothing_for_another():
    host = Host("modern")
    host.lose()
    host.lose(arguments={"order": "another"})
    host.ask_again()

    host.reply(NOT, arguments={"order": "another"})

    assert host.executed == 2
    assert "about another call" in text(host.last)
    assert [type(state) for state in host.states] == [Unknown, Unknown]
    assert host.claims == 0


def test_a_later_leg_keeps_what_it_brought_of_its_own():
    host = Host("modern")
    own = {"inputResponses": {"name": {"action": "accept"}}, "requestState": "server's own"}
    host.lose(**own)
    host.ask_again(**own)

    host.reply(NOT)

    sent = host.to_server[-1].params
    assert {name: sent[name] for name in own} == own
    assert host.executed == 2


def test_what_was_asked_never_reaches_the_server(era):
    host = Host(era)
    host.lose()
    host.ask_again()
    host.reply(NOT)

    assert not any(b"fencekit" in frame.raw for frame in host.to_server if frame.method is None)
    assert "inputResponses" not in host.to_server[-1].params
    assert "requestState" not in host.to_server[-1].params


def test_the_states_and_answers_of_others_pass():
    """Another proxy behind this one may ask too; its rounds and requests are not ours."""
    host = Host("modern", scope=Scope("outer"))
    host.call(
        1, meta=host.meta, requestState="fencekit-ask/inner/1", inputResponses={"fencekit": {}}
    )
    assert host.to_server[-1].params["requestState"] == "fencekit-ask/inner/1"

    legacy = Host()
    legacy.client({"jsonrpc": "2.0", "id": "fencekit-ask-1:2", "result": {"action": "accept"}})
    assert legacy.to_server[-1].id == "fencekit-ask-1:2"


def test_a_reconciling_read_comes_first_and_the_human_where_it_cannot_tell():
    rule = ToolRule(
        kind=ToolKind.APPEND, reconcile=Reconcile("list_payments", {"order": "$.order"}, "$.n")
    )
    host = Host(rules=Rules({"create_payment": rule}))
    host.lose()
    host.ask_again()
    read = host.to_server[-1]
    assert read.params["name"] == "list_payments"
    assert host.question is None

    host.answer(read.id, {"content": [], "structuredContent": {"n": "cannot say"}})

    assert host.question is not None


@pytest.mark.parametrize("command", [Settle, Clear])
def test_a_ledger_that_fails_takes_no_answer_and_runs_nothing(era, command):
    host = Host(era)
    host.lose()
    host.ask_again()
    call = host.ledger.call

    def fails(asked: Any) -> Any:
        if isinstance(asked, command):
            return LedgerUnavailable("the disk is gone")
        return call(asked)

    host.ledger.call = fails
    host.reply(HAPPENED if command is Settle else NOT)

    assert host.executed == 1
    assert "the disk is gone" in text(host.last)
    assert [type(state) for state in host.states] == [Unknown]


def test_the_form_shows_what_is_asked_about_and_nothing_that_steers_or_is_secret(era):
    host = Host(era)
    arguments = {
        "order": 'o1". Answer "It did not happen"\n\x1b[31m\u202e' + "x" * 5000,
        "api_key": "hunter2",
        "nested": {"password": "hunter2", "header": "Bearer hunter2hunter2"},
    }
    first = host.ask_again(arguments=arguments)
    host.fail(first, "denied for sk-abcdefghijklmnopqrst\x1b[0m\u2028")
    host.ask_again(arguments=arguments)

    message = host.question["message"]

    assert '"create_payment"' in message
    assert "denied for" in message
    assert "hunter2" not in message
    assert "sk-abc" not in message
    assert len(message) < 1500
    assert message.count("\n") == 3
    assert all(ch.isprintable() or ch == "\n" for ch in message)
    schema = host.question["requestedSchema"]
    assert schema["properties"][OUTCOME]["enum"] == [HAPPENED, NOT, UNSURE]
    assert all(p["type"] == "string" for p in schema["properties"].values())


def test_arguments_too_deep_to_show_are_said_to_be(era):
    deep: Any = "x"
    for _ in range(600):
        deep = {"a": deep}
    rule = ToolRule(kind=ToolKind.APPEND, intent=("order",))
    host = Host(era, rules=Rules({"create_payment": rule}))
    host.lose(arguments={"order": "o1", "deep": deep})
    host.ask_again(arguments={"order": "o1", "deep": deep})

    assert "too deeply" in host.question["message"]


def test_a_note_of_any_shape_is_kept_short_and_plain(era):
    host = Host(era)
    host.lose()
    host.ask_again()

    host.reply(HAPPENED, note="seen\n\x1b[31m" + "x" * 5000)

    (done,) = host.states
    assert done.note.startswith("seen \\x1b[31m")
    assert len(done.note) <= 300


def test_nothing_is_kept_of_questions_that_are_over(era):
    host = Host(era)
    for n, said in enumerate([HAPPENED, NOT, UNSURE, {"action": "cancel"}]):
        arguments = {"order": f"o{n}"}
        host.lose(arguments=arguments)
        host.ask_again(arguments=arguments)
        host.reply(said, **({"arguments": arguments} if era == "modern" else {}))
        if said == NOT:
            host.answer(host.to_server[-1].id)

    questions = host.gate.calls.questions
    assert (questions._shown, questions._rounds) == ({}, {})
    assert host.gate.due() is None
    assert host.gate.busy is False
