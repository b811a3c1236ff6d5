"""The observer: where the number is, when it stands still, and when it cannot count."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from fencekit.probe.observer import CannotCount, CommandCounter, Observer, number_at


@pytest.mark.parametrize(
    ("value", "path", "number"),
    [
        ([1, 2, 3], "$", 3),
        ([1, 2, 3], "$.length", 3),
        ({"items": [{}, {}]}, "$.items.length", 2),
        ({"items": [{"n": 7}]}, "$.items[0].n", 7),
        ({"length": 9}, "$.length", 9),
        ({"a": 1, "b": 2}, "$.length", 2),
        (5, "$", 5),
        ("12", "$", 12),
    ],
)
def test_a_path_leads_to_a_number(value, path, number):
    assert number_at(value, path) == number


@pytest.mark.parametrize(
    ("value", "path"),
    [
        ([1], "$[3]"),
        ({"a": 1}, "$.b"),
        ("many", "$"),
        (True, "$"),
        (1.5, "$"),
        (3, "$.length"),
        ([], "items"),
    ],
)
def test_a_path_that_leads_to_no_number_says_so(value, path):
    with pytest.raises(CannotCount, match=r"path|leads|no length|not in the answer"):
        number_at(value, path)


def test_a_command_prints_the_number():
    assert CommandCounter("echo there are 42").read(None) == 42


@pytest.mark.parametrize("command", ["echo none", "echo 3; exit 1", "no-such-command-here"])
def test_a_command_without_a_number_cannot_count(command):
    with pytest.raises(CannotCount, match="no number"):
        CommandCounter(command).read(None)


class Script:
    """A counter that reads out a list; an exception in it is raised."""

    name = "script"

    def __init__(self, *reads: int | Exception) -> None:
        self._reads: Iterator[int | Exception] = iter(reads)
        self._last: int | Exception = 0

    def read(self, client: object) -> int:
        self._last = next(self._reads, self._last)
        if isinstance(self._last, Exception):
            raise self._last
        return self._last


def observer(*reads: int | Exception, settle: float = 1.0) -> Observer:
    return Observer(Script(*reads), settle=settle, sleep=lambda _seconds: None)


def test_it_waits_until_the_count_stands_still():
    it = observer(3, 3, 4, 5, 6, 6, 6)
    it.sample_quiet(None)
    seen = it.after(it.before(None), None)

    assert (seen.before, seen.after, seen.delta, seen.drift, seen.settled) == (4, 6, 2, 0, True)


def test_a_count_that_moves_on_its_own_is_a_drift():
    it = observer(3, 5, 5)
    it.sample_quiet(None)

    assert it.before(None).drift == 2


def test_a_count_that_never_stands_still_is_not_settled():
    it = observer(0, *range(1, 40))
    seen = it.after(it.before(None), None)

    assert not seen.settled


def test_a_counter_that_fails_afterwards_is_a_fault_and_no_number():
    it = observer(1, CannotCount("gone"))
    seen = it.after(it.before(None), None)

    assert (seen.fault, seen.delta) == ("gone", None)
    assert it.after(seen, None) is seen
