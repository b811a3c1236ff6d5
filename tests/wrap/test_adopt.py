"""Taking over what another scope left: a duplicate meets it, and nothing ever becomes runnable."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from fencekit import Fence
from fencekit.core.errors import IntentFailed, LedgerFull, Refused
from fencekit.core.messages import Abort
from fencekit.core.state import Absent, Done, InFlight, Unknown
from fencekit.fence.draw import new_id
from fencekit.ledger.memory import MemoryLedger
from fencekit.wrap.adopt import LEASE_MS, Act, Adoption, adopt, guess_of, judged
from fencekit.wrap.identity import Scope
from fencekit.wrap.rules import Rules, ToolKind, ToolRule
from fencekit.wrap.scope import scope_of
from tests.ledger.conformance import LEDGERS, TestClock

from .door import Door, outcome, text

OLD = scope_of(["npx", "pay"], "/old", {"API_TOKEN": "t"})
HERE = scope_of(["npx", "pay"], "/new", {"API_TOKEN": "t"})
NAMED = scope_of(["npx", "pay"], "/new", {}, name="pay")
ACT = Act(HERE, True, "anna", "the folder was renamed")
ROOT = Path(__file__).parents[2]


def taken_over(ledger, act: Act = ACT, old: Scope = OLD) -> list[Adoption]:
    return [adopt(ledger, one, act, new_id) for one in judged(ledger.intents(), old.name, "")]


def lost(ledger, scope: Scope = OLD, rules: Rules | None = None, **call) -> Door:
    door = Door(rules, ledger=ledger, scope=scope)
    door.call(1, **call)
    door.fail(1)
    return door


def states(ledger) -> dict[str, object]:
    return {shown.key.intent.partition("/")[0]: shown.record.state for shown in ledger.intents()}


@pytest.fixture(params=LEDGERS)
def ledger(request, tmp_path):
    it = LEDGERS[request.param](tmp_path, TestClock())
    yield it
    it.close()


def test_on_every_ledger_a_duplicate_under_the_new_scope_meets_the_old_outcome(ledger):
    lost(ledger)

    (done,) = taken_over(ledger)
    duplicate = Door(ledger=ledger, scope=HERE)
    duplicate.call(1)

    assert done.what == "adopted"
    assert duplicate.executed == 0
    assert outcome(duplicate.last)["state"] == "unknown"
    said = text(duplicate.last)
    assert "503 try again" in said
    assert f"adopted from {OLD.name} by anna: the folder was renamed" in said
    old, new = (states(ledger)[scope.name] for scope in (OLD, HERE))
    assert isinstance(old, Unknown)
    assert isinstance(new, Unknown)
    events = [event for _, event in ledger.audit() if event["intent"] == done.new.intent]
    assert [event["event"] for event in events] == ["admitted", "unknown"]
    assert "anna" in events[1]["reason"]


@pytest.mark.parametrize(
    ("rules", "call"),
    [
        (None, {}),
        (Rules({"create_payment": ToolRule(kind=ToolKind.APPEND, ignore=("ref",))}),
         {"arguments": {"order": "o1", "ref": "a"}}),
        (Rules({"create_payment": ToolRule(kind=ToolKind.APPEND, intent=("order",))}), {}),
        (Rules({"create_payment": ToolRule(kind=ToolKind.APPEND, domain="money")}), {}),
        (None, {"meta": {"fencekit/intent": "key-1"}}),
        (None, {"idempotencyKey": "key-1"}),
    ],
)  # fmt: skip
@pytest.mark.parametrize("scope", [HERE, NAMED])
def test_however_calls_are_told_apart_the_duplicate_is_met(rules, call, scope):
    ledger = MemoryLedger()
    lost(ledger, OLD, rules, **call)

    taken_over(ledger, Act(scope, scope is HERE, "anna", "moved"))
    duplicate = Door(rules, ledger=ledger, scope=scope)
    duplicate.call(1, **call)
    duplicate.call(2, arguments={"order": "another"})

    assert outcome(duplicate.to_client[0])["state"] == "unknown"
    assert duplicate.executed == 1  # the other order


def test_a_call_of_another_guessed_account_is_withheld_after_an_adoption_as_before():
    ledger = MemoryLedger()
    lost(ledger)
    taken_over(ledger)

    other = scope_of(["npx", "pay"], "/new", {"API_TOKEN": "another"})
    door = Door(ledger=ledger, scope=other)
    door.call(1)

    assert door.executed == 0
    assert outcome(door.last)["state"] == "other account"


@pytest.mark.parametrize("recorded", ["theirs", "", None])
def test_a_record_without_a_guess_gets_the_one_of_the_proxies_here(recorded):
    """What they recorded tells their guess; this process may see other variables."""
    ledger = MemoryLedger()
    lost(ledger, NAMED)
    here = HERE if recorded is None else replace(HERE, guess=recorded)
    if recorded is not None:
        lost(ledger, here, arguments={"order": "another"})

    act = replace(ACT, scope=replace(HERE, guess=guess_of(ledger.intents(), HERE)))
    assert [one.what for one in taken_over(ledger, act, NAMED)] == ["adopted"]
    duplicate = Door(ledger=ledger, scope=here)
    duplicate.call(1)

    assert outcome(duplicate.last)["state"] == "unknown"


def test_a_record_of_the_new_scope_is_never_overwritten():
    for end in ("done", "unknown", "in flight"):
        ledger = MemoryLedger()
        lost(ledger)
        here = Door(ledger=ledger, scope=HERE)
        here.call(1)
        if end != "in flight":
            here.answer(1) if end == "done" else here.fail(1, "of its own")
        before = states(ledger)

        (done,) = taken_over(ledger)

        assert done.what == "known"
        assert states(ledger) == before


def test_what_still_runs_is_left_unless_that_is_asked_for():
    ledger = MemoryLedger()
    running = Door(ledger=ledger, scope=OLD)
    running.call(1)

    assert [one.what for one in taken_over(ledger)] == ["running"]
    assert list(states(ledger)) == [OLD.name]
    wanted = Act(HERE, True, "anna", "moved", running=True)
    assert [one.what for one in taken_over(ledger, wanted)] == ["adopted"]

    running.answer(1)  # it ends where it began, and stays unknown here
    assert isinstance(states(ledger)[OLD.name], Done)
    assert isinstance(states(ledger)[HERE.name], Unknown)


def test_an_attempt_that_changed_since_it_was_judged_is_left_alone(tmp_path):
    """Settled, cleared, or cleared and tried again by somebody who was faster."""
    for change in ("settle", "clear", "again"):
        with Fence.open("memory:") as fence:
            ledger = fence.ledger
            lost(ledger)
            (one,) = judged(ledger.intents(), OLD.name, "")
            ticket = one.state.ticket.id
            if change == "settle":
                fence.settle(one.key.intent, ticket, one.revision, "ok", "seen")
            else:
                fence.clear(one.key.intent, ticket, one.revision, "n", even_if_alive=True)
            if change == "again":
                lost(ledger)

            done = adopt(ledger, one, ACT, new_id)

            assert done.what == "moved"
            assert HERE.name not in states(ledger)


def test_twice_is_once():
    ledger = MemoryLedger()
    lost(ledger)

    assert [one.what for one in taken_over(ledger)] == ["adopted"]
    assert [one.what for one in taken_over(ledger)] == ["known"]


def test_a_ledger_that_fails_before_the_end_is_told_and_the_lease_ends_as_unknown():
    clock = TestClock()
    ledger = LEDGERS["memory"](Path(), clock)
    lost(ledger)
    call = ledger.call
    ledger.call = lambda c: LedgerFull("no space") if isinstance(c, Abort) else call(c)

    with pytest.raises(LedgerFull):
        taken_over(ledger)

    ledger.call = call
    assert isinstance(states(ledger)[HERE.name], InFlight)
    clock.ms += LEASE_MS + 1
    assert isinstance(states(ledger)[HERE.name], Unknown)


WORKER = """
import sys
from fencekit.ledger.open import open_ledger
from tests.wrap.test_adopt import taken_over
taken_over(open_ledger(sys.argv[1]))
"""


@pytest.mark.parametrize("kind", ["sqlite", "jsonl"])
@pytest.mark.parametrize("point", ["admitted here", "judged again", "adopted"])
def test_killed_between_any_two_steps_nothing_is_runnable_that_was_not(tmp_path, kind, point):
    url = f"{kind}:{tmp_path / 'ledger'}"
    with Fence.open(url) as fence:
        lost(fence.ledger)
        lost(fence.ledger, arguments={"order": "o2"})

    ran = subprocess.run(
        [sys.executable, "-c", WORKER, url],
        cwd=ROOT,
        env={**os.environ, "FENCEKIT_CRASH_AT": point},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert ran.returncode == -signal.SIGKILL, ran.stderr
    with Fence.open(url) as fence:
        found = list(fence.intents())
        olds = [s for s in found if s.key.intent.startswith(OLD.name)]
        news = [s for s in found if s.key.intent.startswith(HERE.name)]
        assert [type(s.record.state) for s in olds] == [Unknown, Unknown]
        assert len(news) == 1
        assert not isinstance(news[0].record.state, Absent | Done)
        for shown in found:
            with pytest.raises(Refused):
                fence.prepare_request(shown.record.state.ticket.request)
        again = [one.what for one in taken_over(fence.ledger)]
        assert sorted(again) == ["adopted", "known"]
        for shown in judged(fence.intents(), HERE.name, ""):
            if isinstance(shown.state, Unknown):
                with pytest.raises(IntentFailed):
                    fence.prepare_request(shown.state.ticket.request)
