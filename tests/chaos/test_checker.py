"""The checker can fail: each planted history is caught, and a true one is not."""

from __future__ import annotations

import pytest

from tests.chaos.checker import Heard, History, check


def true_history():
    heard = [
        Heard("a", "prepare", "x", "fresh", 1, 1),
        Heard("b", "prepare", "x", "refused"),
        Heard("a", "commit", "x", "done", hash="h"),
        Heard("b", "prepare", "x", "replay", hash="h"),
        Heard("b", "prepare", "y", "fresh", 1, 2),
    ]
    states, hashes = {"x": "done", "y": "unknown"}, {"x": "h"}
    return History(heard, [("x", 1), ("y", 1)], states, hashes)


def test_a_true_history_holds():
    assert check(true_history()) == []


@pytest.mark.parametrize(
    ("words", "spoil"),
    [
        ("1: the effect", lambda h: h.effects.append(("x", 2))),
        ("1: generation", lambda h: h.heard.append(Heard("c", "prepare", "x", "fresh", 1, 9))),
        ("2: ", lambda h: setattr(h, "hashes", {})),
        ("4: y", lambda h: setattr(h, "states", {"x": "done"})),
        ("3: ", lambda h: h.heard.append(Heard("c", "prepare", "x", "replay", hash="other"))),
        ("sequence", lambda h: h.heard.append(Heard("c", "prepare", "z", "fresh", 1, 2))),
        ("8: ", lambda h: setattr(h, "verifies", False)),
    ],
)
def test_each_broken_promise_is_named(words, spoil):
    history = true_history()
    spoil(history)
    assert any(problem.startswith((words, f"the {words}")) for problem in check(history))
