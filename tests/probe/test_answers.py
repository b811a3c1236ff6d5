"""Comparing answers: what is volatile, what is words, what tells two executions apart."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fencekit.probe.answers import Lens, Nature, compare, is_volatile, normal


def text(*values: str) -> list[object]:
    return [{"content": [{"type": "text", "text": value}]} for value in values]


def data(*values: object) -> list[object]:
    return [{"structuredContent": value} for value in values]


@pytest.mark.parametrize(
    ("path", "values", "volatile"),
    [
        ("$.created_at", ["2026-12-01T10:00:00Z", "2026-12-01T10:00:01Z"], True),
        ("$.createdAt", [1764583200, 1764583201], True),
        ("$.duration", ["12 ms", "9 ms"], True),
        ("$.elapsed_ms", [1.5, 2.5], True),
        ("$.request_id", ["a", "b"], True),
        ("$.traceId", ["a", "b"], True),
        ("$.charge_id", [1764583200, 1764583201], False),  # looks like an epoch: an id
        ("$.charge_id", ["2026-12-01T10:00:00Z", "x"], False),
        ("$.created_at", ["ch_1", "ch_2"], False),  # named like a time, but no time
        ("$.updated_id", [1, 2], False),
        ("$.total", [1, 2], False),
    ],
)
def test_volatile_needs_the_name_and_the_value(path, values, volatile):
    assert is_volatile(path, values) is volatile


@pytest.mark.parametrize(
    ("answers", "executions"),
    [
        (data({"id": 1}, {"id": 2}), 2),
        (data({"id": 1}, {"id": 1}, {"id": 2}), 2),
        (data({"tags": ["a", "b"]}, {"tags": ["b", "a"]}), 1),
        (data({"at": 1}, {"at": 2}), 1),
        (data({"ok": True}, {"ok": False}), 1),
        (data({"note": None}, {"note": "there"}), 1),
        (data({"id": "ch_12345678", "hits": 1}, {"id": "ch_12345678", "hits": 2}), 1),
        (data({"id": "ch_12345678", "n": 1}, {"id": "ch_12345678", "n": 2}), 1),
        (data({"balance": 90}, {"balance": 80}), 2),
        (text("Created #101", "Created #102"), 2),
        (text("Created", "Exists already"), 1),
        (text("Sent at 10:00:01", "Sent at 10:00:02"), 1),
        (text("took 12 ms", "took 13 ms"), 1),
        (text('{"id": 1}', '{"id": 2}'), 2),
        (text("sent as msg_1a2b3c4d, try 1", "sent as msg_1a2b3c4d, try 2"), 1),
        (data([{"id": 1}], [{"id": 1}, {"id": 2}]), 1),
        (data({"id": 1}), 1),
        ([], 0),
    ],
)
def test_executions_that_the_answers_show(answers, executions):
    assert compare(answers).executions == executions


def test_meta_is_not_compared():
    one, two = ({"content": [], "_meta": {"n": n}} for n in (1, 2))

    assert compare([one, two]).distinct == 1


def test_text_that_repeats_the_structured_content_is_left_out():
    answer = {"structuredContent": {"a": 1}, "content": [{"type": "text", "text": '{"a": 1}'}]}
    more = {**answer, "content": [{"type": "text", "text": "id 77"}]}

    assert normal(answer) == {"a": 1}
    wrapped = {"structuredContent": {"result": '{"a": 1}'}, "content": answer["content"]}
    assert normal(wrapped) == {"a": 1}
    assert normal(more) == {"a": 1, "content": ["id 77"]}


def test_paths_are_named_with_their_counts():
    found = compare(data({"id": 1, "at": 5, "s": "new"}, {"id": 2, "at": 6, "s": "old"}))

    assert {(d.path, d.distinct, d.nature) for d in found.differences} == {
        ("$.id", 2, Nature.IDENTIFYING),
        ("$.at", 2, Nature.VOLATILE),
        ("$.s", 2, Nature.DESCRIPTIVE),
    }
    assert found.groups == (0, 1)


def test_the_user_may_ignore_a_path_and_promote_one():
    answers = data({"items": [{"id": 1, "at": 5}]}, {"items": [{"id": 2, "at": 6}]})

    assert compare(answers, Lens(ignore=("$.items[*].id",))).executions == 1
    assert compare(answers, Lens(ignore=("$.items",))).differences == ()
    promoted = Lens(ignore=("$.items[0].id",), ids=("$.items[*].at",))
    assert compare(answers, promoted).executions == 2


def test_what_the_caller_sent_is_an_echo_and_shows_no_agreement():
    answers = data({"order_id": "ord_12345678", "n": 1}, {"order_id": "ord_12345678", "n": 2})

    assert compare(answers).executions == 1
    assert compare(answers, Lens(echoed=frozenset({"ord_12345678"}))).executions == 2


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(min_size=1, max_size=4), inner, max_size=3)
    ),
    max_leaves=6,
)


@given(values, st.integers(min_value=2, max_value=5))
def test_equal_answers_never_show_two_executions(value, count):
    found = compare(data(*[value] * count))

    assert (found.executions, found.distinct, found.differences) == (1, 1, ())


@given(st.lists(values, min_size=1, max_size=5))
def test_no_more_executions_than_answers_and_the_order_does_not_matter(answers):
    one, other = compare(data(*answers)), compare(data(*reversed(answers)))

    assert 1 <= one.executions <= len(answers)
    assert one.executions == other.executions
    assert len(one.groups) == len(answers)
