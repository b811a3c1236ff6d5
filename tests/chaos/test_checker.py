"""The checker can fail: each broken promise is named, and a true history breaks none."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fencekit import Fence
from fencekit.core.messages import Committed, Replay
from fencekit.core.stats import FenceStats
from tests.chaos.checker import History, check
from tests.chaos.client import Client, held, look_at_all
from tests.chaos.linear import Outside
from tests.chaos.record import Recorder, effects, told


@pytest.fixture
def history(tmp_path):
    """A short true history, by the client's own recorder."""
    with Fence() as fence:
        client = Client(fence, Recorder(tmp_path, "a", shared=False))
        draw, numbers = fence.calls.draw, iter(range(100))

        def ask(command):
            number = str(next(numbers))
            client.recorder.ask(number, command)
            answer = fence.calls.call(command)
            client.recorder.hear(number, answer)
            return answer

        for intent in ("x", "y"):
            request = draw.request(intent, "pay", {"i": intent}, domain="d")
            ticket = ask(draw.prepare(request)).ticket
            client.recorder.effect(ticket)
            if intent == "x":
                commit = draw.commit(ticket, draw.result({"paid": 1}))
                assert ask(commit) == ask(commit)
                ask(draw.prepare(request))
            else:
                ask(draw.abort(ticket, "lost"))
                assert ask(draw.prepare(request)).cause == "aborted"
        client.recorder.say("stats", fence.stats())
        look_at_all(fence, client.recorder)
        final = held(fence)
    recorded = told(tmp_path)
    return History(recorded.operations, effects(tmp_path), final, Outside(True), recorded.stats)


def test_a_true_history_holds(history):
    assert check(history) == []
    assert len(history.operations) == 9


def _answers(history, kind, change):
    history.operations = [
        replace(op, answer=change(op.answer)) if isinstance(op.answer, kind) else op
        for op in history.operations
    ]


def _forged(answer):
    return replace(answer, sealed=replace(answer.sealed, hash="f" * 64))


def _of_another(answer):
    ticket = answer.sealed.ticket
    other = replace(ticket, request=replace(ticket.request, principal="alice"))
    return replace(answer, sealed=replace(answer.sealed, ticket=other))


def _event(history, name):
    return next(event for event in history.held.audit if event["event"] == name)


def _again(history, name, **changes):
    history.held.audit.append(_event(history, name) | changes)


def _second_answer_differs(history):
    last = [op for op in history.operations if isinstance(op.answer, Committed)][-1]
    sealed = last.answer.sealed
    other = Committed(replace(sealed, result=replace(sealed.result, text="2")))
    history.operations[history.operations.index(last)] = replace(last, answer=other)


SPOILS = {
    "1: the effect of attempt": lambda h: h.effects.append(h.effects[0]),
    "1: the effect of x": lambda h: h.effects.append(("another", "", "x")),
    "2: a heard that x is done": lambda h: h.held.records.clear(),
    "2: a heard that y is admitted": lambda h: h.held.audit.clear(),
    "3: a got a result of x": lambda h: _answers(h, Replay, _forged),
    "4: y was unknown": lambda h: _again(h, "admitted", intent="y", seq=3),
    "6: Commit of x": _second_answer_differs,
    "8: the certificate": lambda h: _answers(h, Replay, _forged),
    "8: intent": lambda h: h.held.problems.append("intent 'x': damaged"),
    "11: ": lambda h: _answers(h, Replay, _of_another),
    "d gave the sequence number 1 after 2": lambda h: _again(h, "admitted"),
    "d gave the sequence number 2 after 0": lambda h: h.held.audit.remove(_event(h, "admitted")),
    "d stands at 9 after 2": lambda h: h.held.heads.update(d=replace(h.held.heads["d"], seq=9)),
    "d gave number 1, and nobody": lambda h: h.held.audit.remove(_event(h, "admitted")),
    "a counted": lambda h: h.stats.update(a=FenceStats(admitted=7)),
    "x of '' is not linearizable": lambda h: h.operations.pop(0),
}  # fmt: skip


@pytest.mark.parametrize("words", SPOILS)
def test_each_broken_promise_is_named(history, words):
    SPOILS[words](history)

    assert [problem for problem in check(history) if problem.startswith(words)], check(history)
