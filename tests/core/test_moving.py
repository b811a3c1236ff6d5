"""The marker of a ledger that is moved: which steps there are, and what each place lets through."""

from __future__ import annotations

from itertools import product
from typing import get_args

import pytest

from fencekit.core.clock import VectorClock
from fencekit.core.decide import decide
from fencekit.core.draft import View
from fencekit.core.errors import AlreadyEnded, LedgerMoved, MoveRefused
from fencekit.core.messages import (
    Abort,
    Commit,
    Committed,
    Current,
    Fill,
    Fresh,
    Heartbeat,
    Look,
    Mark,
    Ok,
    Prepare,
    Release,
    Reserve,
    Seen,
)
from fencekit.core.moving import told
from fencekit.core.request import EffectRequest
from fencekit.core.result import Result
from fencekit.core.state import (
    OPEN,
    DomainHead,
    Floor,
    Holder,
    IntentKey,
    IntentRecord,
    Marker,
    Now,
    Phase,
)

PHASES = get_args(Phase)
NOW = Now(1_000, 1_000)
STEPS = {
    ("open", "draining"),
    ("draining", "sealed"),
    ("draining", "open"),
    ("sealed", "handed"),
    ("sealed", "reopening"),
    ("handed", "reopening"),
    ("reopening", "open"),
    ("open", "closed"),
    ("closed", "open"),
}


def ledger(marker=OPEN):
    view = View({}, {}, Floor(), marker=marker)

    def ask(command):
        view.intents.setdefault(IntentKey("", "pay"), None)
        view.intents.setdefault(IntentKey("", "other"), None)
        view.domains.setdefault("d", None)
        decision = decide(view, command, NOW)
        view.apply(decision.writes)
        return decision.answer

    return view, ask


def prepare(name="a", intent="pay"):
    request = EffectRequest.make(intent, "t", {}, domain="d")
    return Prepare(name * 32, 1_000, request, Holder("ticket"), 60_000)


def marked(phase, move="m", other="elsewhere"):
    return Marker(phase, other, move)


@pytest.mark.parametrize(("have", "wanted"), list(product(PHASES, PHASES)))
def test_only_the_steps_of_the_drawing_are_taken(have, wanted):
    view, ask = ledger(marked(have))
    answer = ask(Mark("1" * 32, 1_000, marked(have), marked(wanted)))

    taken = (have, wanted) in STEPS or have == wanted
    assert answer == (Ok("marked") if taken else MoveRefused(told(marked(have))))
    assert view.marker == marked(wanted if taken else have)


def test_a_step_of_another_move_is_refused():
    for have in ("draining", "closed"):
        view, ask = ledger(marked(have))
        for phase in PHASES:
            answer = ask(Mark("1" * 32, 1_000, marked(have), marked(phase, move="another")))
            assert isinstance(answer, MoveRefused)
        assert view.marker == marked(have)


def test_a_step_from_where_the_ledger_is_not_is_refused():
    _, ask = ledger(marked("draining", move="theirs"))

    assert isinstance(ask(Mark("1" * 32, 1_000, OPEN, marked("draining"))), MoveRefused)


def test_while_it_drains_what_was_admitted_ends_and_nothing_begins():
    view, ask = ledger()
    ticket = ask(prepare()).ticket
    other = ask(prepare("b", "other")).ticket
    ask(Mark("1" * 32, 1_000, OPEN, marked("draining")))
    before = dict(view.intents)

    assert isinstance(ask(prepare("c")), LedgerMoved)
    assert isinstance(ask(Reserve("2" * 32, 1_000, "d", 0, "me")), LedgerMoved)
    assert view.intents == before
    assert ask(prepare()) == Fresh(ticket, resent=True)
    assert ask(Heartbeat("3" * 32, 1_000, ticket, 90_000)).lease_end_ms == 91_000
    commit = Commit.make("4" * 32, 1_000, ticket, Result.of("ok", 100), 1_000)
    assert isinstance(ask(commit), Committed)
    assert ask(prepare()) == AlreadyEnded("pay", "a" * 32, "done")
    assert isinstance(ask(prepare("c")), LedgerMoved)
    assert ask(Abort("5" * 32, 1_000, other, "lost")) == Ok("aborted")
    assert ask(Release("6" * 32, 1_000, other, "never")).intent == "other"


@pytest.mark.parametrize("phase", ["sealed", "handed", "closed"])
def test_a_ledger_that_is_not_open_answers_only_who_looks(phase):
    view, ask = ledger(marked(phase))
    ticket = ledger()[1](prepare()).ticket
    for command in (
        prepare(),
        Commit.make("1" * 32, 1_000, ticket, Result.of("ok", 100), 1_000),
        Abort("2" * 32, 1_000, ticket, ""),
        Release("3" * 32, 1_000, ticket, ""),
        Heartbeat("4" * 32, 1_000, ticket, 60_000),
        Reserve("5" * 32, 1_000, "d", 0, "me"),
        Current("6" * 32, 1_000, "d"),
    ):
        assert isinstance(ask(command), LedgerMoved), command
    assert isinstance(ask(Look("7" * 32, 1_000, IntentKey("", "pay"))), Seen)
    assert not any(view.intents.values())


def test_only_a_ledger_that_is_closed_for_that_move_is_filled():
    key, record = IntentKey("", "pay"), IntentRecord(revision=7)
    head, floor = DomainHead(seq=3), Floor(2, VectorClock({"a": 1}))
    for marker in (OPEN, marked("open"), marked("closed", move="another")):
        view, ask = ledger(marker)
        answer = ask(Fill("1" * 32, 1_000, "m", ((key, record),)))
        assert isinstance(answer, MoveRefused)
        assert view.intents[key] is None
    for phase in ("sealed", "draining"):
        _, ask = ledger(marked(phase))
        assert isinstance(ask(Fill("1" * 32, 1_000, "m")), MoveRefused | LedgerMoved)
    view, ask = ledger(marked("closed"))
    for _ in range(2):
        assert ask(Fill("1" * 32, 1_000, "m", ((key, record),), (("d", head),), floor)) == Ok(
            "filled"
        )
    assert (view.intents[key], view.domains["d"], view.floor) == (record, head, floor)
