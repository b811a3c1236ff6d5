"""`--plan` proposes `definitive` patterns by evidence, never a doubtful one, and applies none."""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib

import pytest

from fencekit import Fence
from fencekit.core.state import Unknown
from fencekit.fence.draw import new_id
from fencekit.wrap.adopt import Act, adopt, judged
from fencekit.wrap.definitive import RECURS, Errors, Proposal, proposals
from fencekit.wrap.plan import as_json, config, proposed, treatments
from fencekit.wrap.rules import Rules, ToolKind, ToolRule
from fencekit.wrap.scope import scope_of

from .door import PAY, Door
from .test_stdio import WRAP

SCOPE = scope_of(["npx", "pay"], "/p", {})


class Desk:
    """A ledger with an operator who judges what failed."""

    def __init__(self) -> None:
        self.fence = Fence.open("memory:")
        self.orders = 0

    def fail(self, reason: str, then: str = "", scope=SCOPE, tool: str = "create_payment") -> None:
        door = Door(ledger=self.fence.ledger, scope=scope)
        door.gate.catalogue.whole([{"name": tool}])
        self.orders += 1
        door.call(1, tool, arguments={"order": f"o{self.orders}"})
        door.fail(1, reason)
        if then:
            (seen,) = (s for s in self.fence.intents() if s.key == door.calls[0].key)
            state = seen.record.state
            assert isinstance(state, Unknown)
            judged_ = (seen.key.intent, state.ticket.id, seen.record.revision)
            if then == "clear":
                self.fence.clear(*judged_, "n", even_if_alive=True)
            elif then == "settle":
                self.fence.settle(*judged_, {}, "n")
            else:
                self.fence.commit(state.ticket, {})

    def errors(self) -> Errors:
        errors = Errors("pay")
        for _, event in self.fence.ledger.audit():
            errors.take(event)
        return errors

    def proposed(self, tool=PAY, **more) -> list[Proposal]:
        return proposals(tool, self.errors().of("create_payment"), **more)


def test_an_error_whose_calls_were_cleared_is_proposed_with_the_count():
    desk = Desk()
    desk.fail("card_declined: no funds (req 8f3a)", "clear")
    desk.fail("card_declined: expired (req 77aa)", "clear")
    desk.fail("card_declined: no funds (req 1234)")

    assert desk.proposed() == [Proposal("card_declined", cleared=2, left_open=1)]


@pytest.mark.parametrize("how", ["settle", "late commit"])
def test_an_error_after_which_the_effect_was_there_is_never_proposed(how):
    desk = Desk()
    for _ in range(RECURS):
        desk.fail("card_declined: no funds", "clear")
    desk.fail("card_declined: no funds", how)

    assert desk.proposed() == []


@pytest.mark.parametrize(
    "reason",
    [
        "request_failed: upstream timed out",
        "gateway_error",
        "InternalServerError",
        "payment_failed: 503",
        "payment_failed, try again in a minute",
        "rate_limited",
        "connection_reset by peer",
        "the server ended (exit code 1) before it answered",
        "no answer within the time for it",
    ],
)
def test_words_that_say_that_nobody_knows_are_never_proposed_however_often_cleared(reason):
    desk = Desk()
    for _ in range(RECURS):
        desk.fail(reason, "clear")

    assert desk.proposed() == []


def test_what_only_comes_back_is_proposed_as_not_judged():
    desk = Desk()
    for _ in range(RECURS - 1):
        desk.fail("AccountFrozen for 7")
    assert desk.proposed() == []

    desk.fail("AccountFrozen for 9")

    (one,) = desk.proposed()
    assert one == Proposal("AccountFrozen", left_open=RECURS)
    assert "not judged" in one.words()


def test_plain_words_need_to_come_back_and_hold_no_name_number_or_secret():
    desk = Desk()
    desk.fail("no account for Anna Smith Miller is known here", "clear")
    assert desk.proposed() == []
    desk.fail('the order "A-17" does not exist for customer 12', "clear")
    desk.fail('the order "B-18" does not exist for customer 99', "clear")
    desk.fail("wrong key sk_live_abcdefghijkl in this_request", "clear")

    patterns = [one.pattern for one in desk.proposed()]

    assert "does not exist for customer" in patterns
    assert not any("sk_live" in p or "Anna" in p or "17" in p for p in patterns)


def test_what_a_declaration_names_is_proposed_and_says_so():
    tool = {
        **PAY,
        "description": "Pays. Takes an idem_key. Fails with insufficient_funds or gateway_timeout "
        "if order_id is bad. See create_payment.",
        "inputSchema": {"properties": {"order_id": {}}},
        "outputSchema": {
            "properties": {
                "error": {"anyOf": [{"enum": ["card_expired", "try_again_later", 7]}]},
                "status": {"enum": ["all_good"]},
            }
        },
    }

    assert Desk().proposed(tool) == [
        Proposal("card_expired", named="its outputSchema"),
        Proposal("insufficient_funds", named="the tool's description"),
    ]


def test_only_errors_of_this_program_and_tool_count():
    desk = Desk()
    desk.fail("card_declined", "clear", scope_of(["npx", "other"], "/p", {}))
    desk.fail("card_declined", "clear", tool="refund_payment")
    assert desk.proposed() == []

    desk.fail("card_declined", "clear", scope_of(["uvx", "pay"], "/q", {}, name="shop"))

    assert desk.proposed() == [Proposal("card_declined", cleared=1)]


def test_an_adopted_call_is_counted_once():
    desk = Desk()
    for _ in range(RECURS - 1):
        desk.fail("card_declined", scope=scope_of(["npx", "pay"], "/old", {}))
    for one in judged(desk.fence.intents(), scope_of(["npx", "pay"], "/old", {}).name, ""):
        adopt(desk.fence.ledger, one, Act(SCOPE, True, "anna", "moved_here"), new_id)

    assert desk.proposed() == []


def test_what_is_configured_already_is_not_proposed():
    desk = Desk()
    desk.fail("card_declined", "clear")

    assert desk.proposed(known=("declined",)) == []


def test_a_text_of_any_shape_is_read_quickly():
    desk = Desk()
    for _ in range(3):
        desk.fail("a " * 140 + "1")
    tool = {**PAY, "description": "error a_" * 5000, "outputSchema": {"anyOf": [{}] * 1000}}
    deep: dict = {}
    for _ in range(100):
        deep = {"properties": {"error": deep}}

    assert len(desk.proposed(tool)) == 2
    assert all(len(one.pattern) <= 80 for one in desk.proposed(tool))
    assert desk.proposed({**PAY, "outputSchema": deep, "description": 7, "inputSchema": []})


def test_the_configuration_holds_proposals_only_as_comments_and_stays_toml():
    desk = Desk()
    desk.fail("card_declined", "clear")
    hostile = {"name": 'pay\x1b[31m\n"] \u202e\U0001f600\nkind = "pass"', "inputSchema": {}}
    tools = [PAY, hostile]
    plan = treatments(tools, Rules())
    found = proposed(plan, tools, desk.errors())

    text = config(plan, tools, found)

    assert '#   "card_declined": 1 cleared as not having happened\n' in text
    assert '# definitive = ["card_declined"]\n' in text
    read = tomllib.loads(text)
    assert read["tools"] == {t["name"]: {"kind": "append"} for t in tools}
    assert "\x1b" not in text
    assert "\u202e" not in text
    uncommented = text.replace("# definitive", "definitive").replace('["text', '["x')
    assert tomllib.loads(uncommented)["tools"]["create_payment"]["definitive"] == ["card_declined"]
    (row,) = (r for r in as_json(plan, found) if r["tool"] == "create_payment")
    assert row["definitive"][0]["cleared"] == 1


def test_a_rule_that_names_it_keeps_the_plan_from_naming_it_again():
    desk = Desk()
    desk.fail("card_declined", "clear")
    rules = Rules({"create_payment": ToolRule(kind=ToolKind.APPEND, definitive=("card_declined",))})

    assert proposed(treatments([PAY], rules), [PAY], desk.errors()) == {"create_payment": []}


SERVER = """
import json, sys
for line in sys.stdin:
    m = json.loads(line)
    if "id" not in m:
        continue
    result = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
              "serverInfo": {"name": "s", "version": "1"}}
    if m["method"] == "tools/list":
        result = {"tools": [{"name": "create_payment", "inputSchema": {"type": "object"}}]}
    print(json.dumps({"jsonrpc": "2.0", "id": m["id"], "result": result}), flush=True)
"""


@pytest.mark.parametrize("kind", ["sqlite", "jsonl"])
def test_the_plan_reads_the_ledger_makes_none_and_applies_nothing(tmp_path, kind):
    server = tmp_path / "pay.py"
    server.write_text(SERVER)
    url = f"{kind}:{tmp_path / 'ledger'}"

    def plan() -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*WRAP, "--plan", "--json", "--ledger", url, "--", sys.executable, str(server)],
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
        )

    assert "definitive" not in plan().stdout
    assert not (tmp_path / "ledger").exists()

    with Fence.open(url) as fence:
        desk = Desk()
        desk.fence = fence
        desk.fail("card_declined", "clear", scope_of([sys.executable, str(server)], "/", {}))
        before = [event for _, event in fence.ledger.audit()]
        if kind == "jsonl":  # one process at a time
            ran = plan()
            assert "definitive" not in ran.stdout
            assert "no errors on record were looked at" in ran.stderr

    (row,) = json.loads(plan().stdout)
    assert [one["pattern"] for one in row["definitive"]] == ["card_declined"]
    with Fence.open(url) as fence:
        assert [event for _, event in fence.ledger.audit()] == before
