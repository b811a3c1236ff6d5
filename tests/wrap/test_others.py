"""At start the other scopes of the same program are told, cheaply, and nothing secret with them."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from dataclasses import replace

import pytest

from fencekit import Fence
from fencekit.core.config import FenceConfig
from fencekit.core.errors import LedgerUnavailable
from fencekit.ledger import conditional
from fencekit.ledger import unfinished as looking
from fencekit.ledger.memory import MemoryLedger
from fencekit.ledger.unfinished import unfinished
from fencekit.wrap import others
from fencekit.wrap.clients import Client, Guests
from fencekit.wrap.identity import Scope, guest_in, with_guest
from fencekit.wrap.others import Other, agent_of, look
from fencekit.wrap.record import Record
from fencekit.wrap.rules import Rules, ToolKind, ToolRule
from fencekit.wrap.scope import program_in, scope_of
from tests.ledger.conformance import LEDGERS, SHARED, TestClock

from .door import Door
from .test_stdio import WRAP

WITH_A_DOMAIN = Rules({"create_payment": ToolRule(kind=ToolKind.APPEND, domain="money")})
OLD = scope_of(["npx", "-y", "pay@1.2"], "/old", {})
HERE = scope_of(["npx", "-y", "pay@1.3"], "/new", {})


@pytest.fixture(params=LEDGERS)
def ledger(request, tmp_path):
    it = LEDGERS[request.param](tmp_path, TestClock())
    yield it
    it.close()


def left_unknown(ledger, scope: Scope, *orders: str) -> None:
    for order in orders:
        door = Door(ledger=ledger, scope=scope)
        door.call(1, arguments={"order": order})
        door.fail(1)


def found(ledger, scope: Scope = HERE) -> list[Other]:
    return others.others(unfinished(ledger, 100, 60.0).found, scope, ())


def test_every_ledger_tells_what_another_scope_left(ledger):
    left_unknown(ledger, OLD, "o1", "o2")
    Door(ledger=ledger, scope=OLD).call(1, arguments={"order": "o3"})
    done = Door(ledger=ledger, scope=OLD)
    done.call(1, arguments={"order": "o4"})
    done.answer(1)
    left_unknown(ledger, HERE, "o5")

    (line,) = look(ledger, HERE)

    assert found(ledger) == [Other(OLD.name, "", 2, 1)]
    assert "2 unknown, 1 in flight" in line
    assert f"fencekit ledger adopt {OLD.name} " in line


def test_what_this_scope_has_a_record_of_is_not_told(ledger):
    left_unknown(ledger, OLD, "o1", "o2")
    left_unknown(ledger, HERE, "o1")
    here = Door(ledger=ledger, scope=HERE)
    here.call(1, arguments={"order": "o2"})
    here.answer(1)

    assert look(ledger, HERE) == []


@pytest.mark.parametrize(
    ("other", "same"),
    [
        (scope_of(["uvx", "pay"], "/x", {}), True),
        (scope_of(["docker", "run", "--rm", "pay:2"], "/x", {}), True),
        (scope_of(["docker", "run", "--rm", "ship:2"], "/x", {}), False),
        (scope_of(["node", "/srv/pay.js"], "/x", {}), True),
        (scope_of(["npx", "-y", "pay@latest"], "/x", {}, name="shop"), True),
        (scope_of(["npx", "-y", "ship"], "/x", {}, name="shop"), False),
        (scope_of(["npx", "-y", "pay-more"], "/x", {}), False),
        (Scope("shop"), False),
    ],
)
def test_which_scopes_are_of_the_same_program(other, same):
    ledger = MemoryLedger()
    left_unknown(ledger, other, "o1")

    assert [one.scope for one in found(ledger)] == ([other.name] if same else [])
    # And the other way round: a scope with a name finds what was left before it had one.
    mine = scope_of(["npx", "pay"], "/p", {}, name="mine")
    assert bool(found(ledger, mine)) is same


def test_what_no_proxy_admitted_is_no_scope(tmp_path):
    with Fence.open("memory:", FenceConfig(agent="wrapper")) as fence:
        fence.abort(fence.prepare(f"{OLD.name}/create_payment/x", "create_payment").ticket)

        assert found(fence.ledger) == []


def test_accounts_that_are_both_named_are_not_told_of_each_other():
    ledger = MemoryLedger()
    left_unknown(ledger, Scope("pay@0123456789ab", "account:a"), "o1")

    def told(account: str) -> list[Other]:
        return found(ledger, Scope("pay@0123456789ab", account, program="pay"))

    assert told("account:a") == []
    assert told("account:b") == []
    assert told("") == [Other("pay@0123456789ab", "account:a", 1, 0)]
    (line,) = look(ledger, Scope("pay@0123456789ab", program="pay"))
    assert "--principal account:a" in line


@pytest.mark.parametrize("guest", ["group:a", "credential:0f", "group:a/credential:0f"])
def test_what_guests_of_the_front_left_is_theirs_in_every_scope(guest):
    ledger = MemoryLedger()
    left_unknown(ledger, replace(OLD, account=guest), "o1")

    assert found(ledger, OLD) == []
    assert found(ledger, replace(OLD, account="account:x")) == [Other(OLD.name, guest, 1, 0)]
    (line,) = look(ledger, HERE)
    assert f"--principal {guest}" in line
    left_unknown(ledger, replace(HERE, account=guest), "o1")
    assert look(ledger, HERE) == []


def test_the_guests_of_the_front_are_told_by_what_it_makes_of_them():
    client = Client("secret", "c", "a/b")
    for guests in (Guests((client,)), Guests(forward_auth=True), Guests((client,), True)):
        headers = {b"authorization": b"Bearer secret", b"fencekit-token": b"secret"}
        principal = guests.admit(headers)
        assert principal
        for account in ("", "account:0f"):
            assert guest_in(with_guest(account, principal)) == (account, principal)
    assert guest_in("account:0f") == ("account:0f", "")


@pytest.mark.parametrize(
    ("command", "url"),
    [
        (["npx", "-y", "pay", "--token", "hunter2"], ""),
        (["docker", "run", "-e", "API_KEY=hunter2", "pay"], ""),
        (["node", "--api-key", "hunter2", "pay.js"], ""),
        (["env", "PASSWORD=hunter2", "pay"], ""),
        (["python3", "-c", "hunter2 = 1"], ""),
        (["sh", "-c", "pay --password hunter2"], ""),
        ([], "https://user:hunter2@pay.example.com/hunter2/mcp?api_key=hunter2"),
    ],
)
def test_no_secret_of_a_command_line_is_in_a_scope_or_a_record(command, url):
    ledger = MemoryLedger()
    scope = scope_of(command, "/old", {}, url=url)
    left_unknown(ledger, scope, "o1")

    told = repr(scope) + repr(list(ledger.intents())) + repr(list(ledger.audit()))

    assert "hunter2" not in told
    assert scope.program
    assert program_in(scope.name) == scope.program
    assert agent_of(scope) == f"wrap:{scope.program}"


def test_the_look_is_bounded_in_number_and_in_time(monkeypatch):
    ledger = MemoryLedger()
    left_unknown(ledger, OLD, *(f"o{n}" for n in range(8)))

    assert unfinished(ledger, 8, 60.0).whole
    few = unfinished(ledger, 7, 60.0)
    assert (len(few.found), few.whole) == (7, False)
    monkeypatch.setattr(looking, "PAGE", 2)
    ticks = iter(range(100))
    slow = unfinished(ledger, 100, 3.0, lambda: float(next(ticks)))
    assert (len(slow.found), slow.whole) == (4, False)


def test_a_ledger_that_shows_the_unfinished_first_is_read_no_further(tmp_path):
    ledger = LEDGERS["sqlite"](tmp_path, TestClock())
    for n in range(30):
        door = Door(ledger=ledger, scope=OLD)
        door.call(1, arguments={"order": f"o{n}"})
        door.answer(1)
    left_unknown(ledger, OLD, "lost")

    seen = unfinished(ledger, 5, 60.0)

    assert (len(seen.found), seen.whole) == (1, True)
    ledger.close()


@pytest.mark.parametrize("name", SHARED)
def test_a_shared_ledger_sends_only_what_has_no_outcome_page_by_page(name, tmp_path, monkeypatch):
    monkeypatch.setattr(conditional, "UNFINISHED_ROWS", 4)
    ledger = LEDGERS[name](tmp_path, TestClock())
    assert list(ledger.unfinished()) == [[]]
    for n in range(7):
        door = Door(ledger=ledger, scope=OLD)
        door.call(1, arguments={"order": f"o{n}"})
        door.answer(1)
    Door(rules=WITH_A_DOMAIN, ledger=ledger, scope=OLD).call(1, arguments={"order": "running"})
    left_unknown(ledger, HERE, *(f"o{n}" for n in range(5)))
    ledger.records = lambda: pytest.fail("all records were read")

    pages = list(ledger.unfinished())
    found = [key for page in pages for key, _ in page]

    assert len(pages) == 4  # of 13 intents; the domain is none
    assert len(set(found)) == len(found) == 6
    assert unfinished(ledger, 100, 60.0).whole
    ledger.close()


def test_that_not_everything_was_looked_at_is_said(monkeypatch):
    ledger = MemoryLedger()
    left_unknown(ledger, OLD, "o1", "o2")
    monkeypatch.setattr(others, "MOST", 1)

    first, last = look(ledger, HERE)

    assert "1 unknown" in first
    assert "fencekit ledger list --state unknown" in last


def test_at_most_a_few_scopes_are_named():
    ledger = MemoryLedger()
    for n in range(9):
        left_unknown(ledger, scope_of(["npx", "pay"], f"/p{n}", {}), "o1")

    lines = look(ledger, HERE)

    assert len(lines) == others.TOLD + 1
    assert "4 scopes more" in lines[-1]


def test_a_ledger_that_fails_while_it_is_looked_at_is_no_fault(tmp_path):
    record = Record(f"sqlite:{tmp_path}/l.db", FenceConfig(), lambda: True)

    def fails(_ledger: object) -> object:
        raise LedgerUnavailable("gone")

    assert record.look(fails) is None
    said: list[str] = []
    record.close()
    others.tell(record, HERE, said.append).join(20)
    assert said == []


def test_an_intent_is_the_same_under_every_scope_but_for_its_front():
    """What `readdressed` rests on, for calls that were told apart in each of the three ways."""
    rule = Rules({"create_payment": ToolRule(kind=ToolKind.APPEND, intent=("order",))})
    for rules, more in ((Rules(), {}), (rule, {}), (Rules(), {"meta": {"fencekit/intent": "k"}})):
        intents = []
        for scope in (OLD, HERE):
            door = Door(rules, scope=scope)
            door.call(1, **more)
            intents.append(door.calls[0].key.intent)
        assert intents[0] != intents[1]
        assert intents[0].removeprefix(OLD.name) == intents[1].removeprefix(HERE.name)


FAILS = """
import json, sys
for line in sys.stdin:
    m = json.loads(line)
    result = {"isError": True, "content": [{"type": "text", "text": "503 try again"}]}
    if m["method"] != "tools/call":
        result = {"tools": [{"name": "charge_card"}]}
    print(json.dumps({"jsonrpc": "2.0", "id": m["id"], "result": result}), flush=True)
"""


def test_the_start_names_the_other_scope_and_shows_no_secret(tmp_path):
    server = tmp_path / "fails.py"
    server.write_text(FAILS)
    call = {"name": "charge_card", "arguments": {"order": "o1"}}
    asked = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call})
    listed = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/list"})

    def said(line: str, *command: str) -> str:
        ran = subprocess.run(
            [*WRAP, "--ledger", str(tmp_path / "l.db"), *command],
            input=f"{line}\n",
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
        )
        return ran.stderr

    first = said(asked, "--scope", "old", "--", sys.executable, str(server))
    second = said(listed, "--", sys.executable, str(server), "--token", "hunter2")

    assert "of the same program" not in first
    assert re.search(r"scope old of the same program .*\(1 unknown\).*ledger adopt old ", second)
    assert "hunter2" not in second
