"""The search for a linearization tells histories that the rules allow from those they do not."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fencekit.core.decide import decide
from fencekit.core.draft import View
from fencekit.core.errors import IntentFailed, IntentInFlight
from fencekit.core.messages import Abort, Clear, Commit, Fresh, Heartbeat, Look, Prepare
from fencekit.core.request import EffectRequest
from fencekit.core.result import Result
from fencekit.core.state import DomainHead, Floor, Holder, IntentKey, Liveness, Now
from tests.chaos.linear import FOREVER, WALL_MS, Death, Operation, Outside, Undecided, linearizable

LEASE = 10_000
REQUEST = EffectRequest.make("pay", "charge", {"n": 1})
KEY = IntentKey("", "pay")


class Story:
    """Operations whose answers the real rules gave, one after another; tests then bend them."""

    def __init__(self):
        self.view = View({KEY: None}, {"d": DomainHead()}, Floor())
        self.ops = []
        self.ms = 1_000

    def ask(self, command, liveness=Liveness.CANNOT_TELL, by=100):
        self.ms += by
        self.view.liveness = {KEY: liveness}
        decision = decide(self.view, command, Now(WALL_MS, self.ms))
        self.view.apply(decision.writes)
        self.add(command, decision.answer)
        return decision.answer

    def add(self, command, answer, start=None, end=None):
        at = self.ms * 1_000
        start, end = at if start is None else start, at if end is None else end
        heard = FOREVER if end == FOREVER else end // 1_000
        self.ops.append(Operation("c", command, answer, start, end, start // 1_000, heard))

    def holds(self, outside=None):
        return linearizable(self.ops, outside or Outside())


def prepare(ticket, holder=None):
    return Prepare(ticket, WALL_MS, REQUEST, holder or Holder("ticket"), LEASE)


def commit(name, ticket, value=1):
    return Commit.make(name, WALL_MS, ticket, Result.of(value, 100), 86_400_000)


def finished():
    story = Story()
    ticket = story.ask(prepare("a")).ticket
    story.ask(prepare("b"))
    story.ask(commit("ca", ticket))
    story.ask(prepare("c"))
    return story, ticket


def test_what_the_rules_answered_in_order_holds():
    story, _ = finished()
    assert story.holds()


def test_answers_in_another_order_than_real_time_do_not():
    story, _ = finished()
    # The replay was heard before anybody had committed.
    last = story.ops.pop()
    story.ops.append(replace(last, start=0, end=1, asked_ms=0, heard_ms=1_500))
    assert not story.holds()


def test_overlapping_operations_may_take_effect_in_either_order():
    story, _ = finished()
    last = story.ops.pop()
    story.ops.append(replace(last, start=0, asked_ms=0))
    assert story.holds()


def test_two_admissions_of_one_intent_do_not():
    story, ticket = finished()
    second = Fresh(replace(ticket, id="z", generation=2, lease_end_ms=story.ms + LEASE))
    story.ops[1] = replace(story.ops[1], command=prepare("z"), answer=second)
    assert not story.holds()


def test_an_unheard_operation_may_have_taken_effect():
    story, _ = finished()
    story.ops[2] = replace(story.ops[2], answer=None, end=FOREVER, heard_ms=FOREVER)
    assert story.holds()


def test_an_unheard_operation_need_not_have_taken_effect():
    story, ticket = finished()
    story.ops[2:] = []
    story.add(commit("lost", ticket), None, end=FOREVER)
    story.ms += 100
    story.ask(prepare("d"))  # answered after the commit above was decided by nobody
    story.ops[-1] = replace(story.ops[-1], answer=story.ops[1].answer)
    assert story.holds()


def test_an_unheard_operation_cannot_act_before_it_was_asked():
    story, _ = finished()
    late = story.ops[3].end + 1
    story.ops[2] = replace(story.ops[2], answer=None, start=late, end=FOREVER, heard_ms=FOREVER)
    assert not story.holds()


def test_a_lease_that_was_over_too_early_does_not():
    story = Story()
    story.ask(prepare("a"))
    story.ask(prepare("b"), by=LEASE + 1)
    assert isinstance(story.ops[-1].answer, IntentFailed)
    assert story.holds()

    early = replace(story.ops[-1], start=2_000_000, end=2_000_001, asked_ms=2_000, heard_ms=2_001)
    story.ops[-1] = early
    assert not story.holds()


def test_a_lease_that_was_never_over_does_not():
    story = Story()
    story.ask(prepare("a"))
    still = story.ask(prepare("b"))
    assert isinstance(still, IntentInFlight)
    late = (story.ms + 2 * LEASE) * 1_000
    story.ops[-1] = replace(
        story.ops[-1], start=late, end=late, asked_ms=late // 1_000, heard_ms=late // 1_000
    )
    assert not story.holds()


def test_a_heartbeat_keeps_what_would_have_lapsed():
    story = Story()
    ticket = story.ask(prepare("a")).ticket
    story.ask(Heartbeat("h", WALL_MS, ticket, LEASE), by=LEASE - 100)
    story.ask(prepare("b"), by=1_000)
    assert story.holds()
    del story.ops[1]
    assert not story.holds()


@pytest.mark.parametrize(("dead_from", "holds"), [(1_150, True), (FOREVER, False)])
def test_a_holder_is_dead_only_once_it_was_killed(dead_from, holds):
    story = Story()
    story.ask(prepare("a", Holder("process", "P")), Liveness.ALIVE)
    story.ask(prepare("b"), Liveness.DEAD)
    deaths = {"P": Death(dead_from, dead_from)}
    assert story.holds(Outside(True, deaths)) is holds


def test_an_unknown_that_became_runnable_does_not():
    story = Story()
    ticket = story.ask(prepare("a")).ticket
    story.ask(Abort("x", WALL_MS, ticket, "lost"))
    again = Fresh(replace(ticket, id="b", generation=2, lease_end_ms=story.ms + LEASE))
    story.add(prepare("b"), again)
    assert not story.holds()


def test_a_clear_between_makes_it_runnable():
    story = Story()
    ticket = story.ask(prepare("a")).ticket
    story.ask(Abort("x", WALL_MS, ticket, "lost"))
    seen = story.ask(Look("l", WALL_MS, KEY))
    story.ask(Clear("k", WALL_MS, KEY, "a", seen.record.revision, "op", "note"))
    assert isinstance(story.ask(prepare("b")), Fresh)
    assert story.holds()
    del story.ops[3]
    assert not story.holds()


def test_a_commit_accepted_without_its_ticket_does_not():
    story = Story()
    ticket = story.ask(prepare("a")).ticket
    other = replace(ticket, id="z")
    accepted = story.ask(commit("ca", ticket))
    story.ops[-1] = replace(story.ops[-1], command=commit("cz", other), answer=accepted)
    assert not story.holds()


def test_an_admission_that_the_ledger_asked_for_twice_itself_may_be_called_resent():
    story, ticket = finished()
    story.ops[0] = replace(story.ops[0], answer=Fresh(ticket, resent=True))
    assert not story.holds()
    assert story.holds(Outside(asks_again=True))
    # But not if that was before it was asked at all.
    story.ops.insert(0, replace(story.ops[1], start=0, end=1, asked_ms=0, heard_ms=1))
    assert not story.holds(Outside(asks_again=True))


def test_the_search_is_bounded():
    story = Story()
    for n in range(12):
        story.add(prepare(f"t{n}"), None, start=0, end=FOREVER)
    story.add(prepare("x"), IntentFailed("pay", "aborted", "", 0, "nobody", 99), start=0)
    with pytest.raises(Undecided):
        linearizable(story.ops, Outside(), limit=10)
