"""Arguments as hosts really send them."""

from __future__ import annotations

import pytest

from fencekit.core.errors import InvalidRequest
from fencekit.serve.arguments import read_arguments
from fencekit.serve.schemas import COMMIT, OBSERVE, PREPARE

GOOD = {"intent": "i", "domain": "", "tool": "t", "args": {}, "agent": "a"}


def test_objects_and_arrays_inside_a_text_are_read():
    given = {**GOOD, "args": '{"n": 1}', "read_set": '[{"domain": "d", "seq": 2}]'}

    read = read_arguments(PREPARE.input, given)

    assert read["args"] == {"n": 1}
    assert read["read_set"] == [{"domain": "d", "seq": 2}]


def test_a_null_is_left_out():
    assert "parent" not in read_arguments(PREPARE.input, {**GOOD, "parent": None})


@pytest.mark.parametrize("result", ['{"a": 1}', "null", None, 3, [1, None], True, "text"])
def test_a_result_is_kept_to_the_letter(result):
    read = read_arguments(COMMIT.input, {"prepared": {"id": "x"}, "result": result})

    assert read["result"] == result
    assert type(read["result"]) is type(result)


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"intent": 3}, "intent"),
        ({"intent": ""}, "intent"),
        ({"intent": "x" * 1025}, "intent"),
        ({"args": "no object"}, "args"),
        ({"read_set": [{"domain": "d", "seq": -1}]}, "read_set[0].seq"),
        ({"read_set": [{"domain": "d", "seq": 1.5}]}, "read_set[0].seq"),
        ({"read_set": [{"domain": "d"}]}, "read_set[0]"),
        ({"known_clock": {"a": True}}, "known_clock"),
        ({"causal": "yes"}, "causal"),
        ({"unheard_of": 1}, "unheard_of"),
    ],
)
def test_what_is_wrong_is_refused_by_name(change, named):
    with pytest.raises(InvalidRequest, match=named.replace("[", r"\[").replace("]", r"\]")):
        read_arguments(PREPARE.input, {**GOOD, **change})


def test_a_missing_argument_is_named():
    with pytest.raises(InvalidRequest, match="domain"):
        read_arguments(OBSERVE.input, None)
    with pytest.raises(InvalidRequest, match="result"):
        read_arguments(COMMIT.input, {"prepared": {}})


def test_a_complaint_about_something_huge_is_short():
    with pytest.raises(InvalidRequest) as refused:
        read_arguments(PREPARE.input, {**GOOD, "intent": ["x" * 100_000]})

    assert len(str(refused.value)) < 300
