"""Canonical JSON: RFC 8785's own samples, the reference package as oracle, and every refusal."""

from __future__ import annotations

import collections
import dataclasses
import datetime
import decimal
import enum
import hashlib
import json
import struct
import uuid
from typing import Any

import orjson
import pytest
import rfc8785
from hypothesis import given, settings
from hypothesis import strategies as st

from fencekit.core import canonical
from fencekit.core.canonical import (
    MAX_DEPTH,
    CanonicalError,
    canonical_bytes,
    digest,
    fingerprint,
    fingerprint_from_bytes,
    parse_json,
)
from tests.core.strategies import SAFE, reference_values, texts, values

# RFC 8785, appendix B: the bits of a double, and how it is written.
RFC_NUMBERS = [
    ("0000000000000000", "0"),
    ("8000000000000000", "0"),
    ("0000000000000001", "5e-324"),
    ("8000000000000001", "-5e-324"),
    ("7fefffffffffffff", "1.7976931348623157e+308"),
    ("ffefffffffffffff", "-1.7976931348623157e+308"),
    ("4340000000000000", "9007199254740992"),
    ("c340000000000000", "-9007199254740992"),
    ("4430000000000000", "295147905179352830000"),
    ("44b52d02c7e14af5", "9.999999999999997e+22"),
    ("44b52d02c7e14af6", "1e+23"),
    ("44b52d02c7e14af7", "1.0000000000000001e+23"),
    ("444b1ae4d6e2ef4e", "999999999999999700000"),
    ("444b1ae4d6e2ef4f", "999999999999999900000"),
    ("444b1ae4d6e2ef50", "1e+21"),
    ("3eb0c6f7a0b5ed8c", "9.999999999999997e-7"),
    ("3eb0c6f7a0b5ed8d", "0.000001"),
    ("41b3de4355555553", "333333333.3333332"),
    ("41b3de4355555554", "333333333.33333325"),
    ("41b3de4355555555", "333333333.3333333"),
    ("41b3de4355555556", "333333333.3333334"),
    ("41b3de4355555557", "333333333.33333343"),
    ("becbf647612f3696", "-0.0000033333333333333333"),
    ("43143ff3c1cb0959", "1424953923781206.2"),
]


@pytest.mark.parametrize(("bits", "text"), RFC_NUMBERS)
def test_numbers_of_the_rfc(bits, text):
    (number,) = struct.unpack(">d", bytes.fromhex(bits))
    assert canonical_bytes(number) == text.encode()
    assert canonical_bytes({"n": number}) == b'{"n":%b}' % text.encode()
    assert canonical_bytes([number]) == b"[%b]" % text.encode()


@pytest.mark.parametrize("bits", ["7fffffffffffffff", "7ff0000000000000", "fff0000000000000"])
def test_the_rfc_refuses_nan_and_infinity(bits):
    (number,) = struct.unpack(">d", bytes.fromhex(bits))
    for value, path in [(number, "$"), ({"a": [1, number]}, "$.a[1]"), ([None, number], "$[1]")]:
        with pytest.raises(CanonicalError, match="NaN and infinities") as caught:
            canonical_bytes(value)
        assert caught.value.path == path


def test_whole_sample_of_the_rfc():
    """Section 3.2.2 with its bytes from section 3.2.4."""
    source = (
        '{"numbers": [333333333.33333329, 1E30, 4.50, 2e-3, 0.000000000000000000000000001],'
        '"string": "\\u20ac$\\u000F\\u000aA\'\\u0042\\u0022\\u005c\\\\\\"\\/",'
        '"literals": [null, true, false]}'
    )
    expected = bytes.fromhex(
        "7b226c69746572616c73223a5b6e756c6c2c747275652c66616c73655d2c226e756d62657273223a"
        "5b3333333333333333332e333333333333332c31652b33302c342e352c302e3030322c31652d32375d"
        "2c22737472696e67223a22e282ac245c75303030665c6e412742"
        "5c225c5c5c5c5c222f227d"
    )
    assert canonical_bytes(json.loads(source)) == expected


def test_sorting_sample_of_the_rfc():
    """Section 3.2.3: keys sort by their UTF-16 code units, not by code point."""
    source = {
        "\u20ac": "Euro Sign",
        "\r": "Carriage Return",
        "\ufb33": "Hebrew Letter Dalet With Dagesh",
        "1": "One",
        "\U0001f600": "Emoji: Grinning Face",
        "\u0080": "Control",
        "\u00f6": "Latin Small Letter O With Diaeresis",
    }
    assert list(json.loads(canonical_bytes(source)).values()) == [
        "Carriage Return",
        "One",
        "Control",
        "Latin Small Letter O With Diaeresis",
        "Euro Sign",
        "Emoji: Grinning Face",
        "Hebrew Letter Dalet With Dagesh",
    ]


@settings(max_examples=600)
@given(reference_values)
def test_bytes_are_those_of_the_reference(value):
    assert canonical_bytes(value) == rfc8785.dumps(value)


@settings(max_examples=300)
@given(values)
def test_fast_and_exact_path_agree(value):
    assert canonical_bytes(value) == canonical._write(value)


@settings(max_examples=300)
@given(values)
def test_big_integers_keep_their_digits(value):
    """The extension, by the reference: each big integer goes in as a text and is unquoted after."""

    def mark(part):
        if isinstance(part, dict):
            return {key: mark(item) for key, item in part.items()}
        if isinstance(part, list):
            return [mark(item) for item in part]
        if type(part) is int and abs(part) > SAFE:
            seen.add(part)
            return f"<big {part}>"
        return part

    seen: set[int] = set()
    expected = rfc8785.dumps(mark(value))
    for number in seen:
        expected = expected.replace(b'"<big %d>"' % number, b"%d" % number)
    assert canonical_bytes(value) == expected


@settings(max_examples=300)
@given(values)
def test_what_was_written_reads_back(value):
    """By its bytes: a double beyond 2^53 comes back as the integer that its digits spell."""
    text = canonical_bytes(value)
    assert canonical_bytes(parse_json(text)) == text


def test_one_number_has_one_form():
    assert canonical_bytes([1, 1.0, 0, 0.0, -0.0, 10**20, 1e20]) == (
        b"[1,1,0,0,0,100000000000000000000,100000000000000000000]"
    )
    assert canonical_bytes({"a": 2**53 + 1}) == b'{"a":9007199254740993}'
    assert canonical_bytes({"a": -(2**64)}) == b'{"a":-18446744073709551616}'


def test_true_is_not_one():
    assert canonical_bytes([True, 1, False, 0]) == b"[true,1,false,0]"
    assert digest(True) != digest(1)


def test_tuples_count_as_arrays():
    assert canonical_bytes({"a": (1, (2.0, "x"))}) == canonical_bytes({"a": [1, [2, "x"]]})


class Colour(enum.Enum):
    RED = "red"


class Word(str, enum.Enum):  # noqa: UP042  (StrEnum would print as its value; this one does not)
    RED = "red"


class Level(enum.IntEnum):
    HIGH = 3


@dataclasses.dataclass
class Point:
    x: int = 1


def test_subclasses_of_json_types_are_what_they_extend():
    class Name(str):
        __slots__ = ()

        def __str__(self):
            return "something else"

    pair = collections.namedtuple("pair", "a b")
    value: Any = {
        "ordered": collections.OrderedDict(b=1, a=2),
        Name("key"): Name("text"),
        "enum": Word.RED,
        "level": Level.HIGH,
        "pair": pair(1, 2),
    }
    assert canonical_bytes(value) == rfc8785.dumps(value)
    assert b'"key":"text"' in canonical_bytes(value)


# Everything that orjson would write in a form of its own, and everything that nobody could.
UNSUPPORTED = [
    decimal.Decimal("1.5"),
    uuid.UUID(int=1),
    Colour.RED,
    Point(),
    datetime.datetime(2026, 1, 1, tzinfo=datetime.timezone.utc),  # noqa: UP017
    datetime.date(2026, 1, 1),
    orjson.Fragment(b"{}"),
    b"bytes",
    {1, 2},
    1j,
    object(),
]


@pytest.mark.parametrize("thing", UNSUPPORTED, ids=lambda thing: type(thing).__name__)
def test_types_that_json_does_not_have_are_refused_by_name_and_place(thing):
    for value, path in [
        (thing, "$"),
        ({"args": {"list": [0, thing]}}, "$.args.list[1]"),
        ([[], thing], "$[1]"),
        ({"a": (thing,)}, "$.a[0]"),
    ]:
        with pytest.raises(CanonicalError, match=f"{type(thing).__name__} is not JSON") as caught:
            canonical_bytes(value)
        assert caught.value.path == path
        assert str(caught.value).startswith(f"no canonical JSON for {path}: ")


@pytest.mark.parametrize("key", [1, None, True, 1.5, b"k", (1, 2), Colour.RED])
def test_keys_that_are_not_text_are_refused(key):
    with pytest.raises(CanonicalError, match="not text") as caught:
        canonical_bytes({"a": [{key: 1, "b": 2}]})
    assert caught.value.path == "$.a[0]"


@pytest.mark.parametrize("text", ["\ud800", "a\udfffb", "\udc00\ud800"])
def test_lone_surrogates_are_refused_in_texts_and_keys(text):
    for value, path in [(text, "$"), ({"a": text}, "$.a"), ([{text: 1}], "$[0]")]:
        with pytest.raises(CanonicalError, match="lone surrogate") as caught:
            canonical_bytes(value)
        assert caught.value.path == path
        str(caught.value).encode()


def nest(depth, kind):
    value: Any = 1
    for _ in range(depth):
        value = {"a": value} if kind == "object" else [value]
    return value


@pytest.mark.parametrize("kind", ["object", "array"])
def test_depth_limit_is_the_same_on_both_paths(kind):
    deepest = nest(MAX_DEPTH, kind)
    assert canonical_bytes(deepest) == canonical._write(deepest) == orjson.dumps(deepest)
    for write in (canonical_bytes, canonical._write):
        with pytest.raises(CanonicalError, match="deeper than 254") as caught:
            write(nest(MAX_DEPTH + 1, kind))
        assert len(caught.value.path) < 600
    with pytest.raises(CanonicalError):
        canonical_bytes(nest(100_000, kind))


def test_cycles_are_refused_and_shared_parts_are_not():
    ring: dict[str, object] = {}
    ring["a"] = [ring]
    with pytest.raises(CanonicalError, match="contains itself") as caught:
        canonical_bytes(ring)
    assert caught.value.path == "$.a[0]"
    shared = [1.0]
    assert canonical_bytes([shared, shared]) == b"[[1],[1]]"


def test_integers_beyond_what_python_prints_are_refused():
    with pytest.raises(CanonicalError, match="thousands of digits"):
        canonical_bytes({"a": 10**5000})


def test_an_exhausted_call_stack_is_a_refusal_not_a_crash():
    deep = nest(200, "array")
    deep.append(2**70)  # sends it to the exact path

    def descend():
        try:
            return descend()
        except RecursionError:
            return canonical_bytes(deep)

    with pytest.raises((CanonicalError, RecursionError)):
        descend()
    assert canonical_bytes(deep)


def test_paths_are_printable_whatever_the_keys_hold():
    value = {"\x1b[31m[bold]\n": {"é" * 500: [float("nan")]}}
    with pytest.raises(CanonicalError) as caught:
        canonical_bytes(value)
    assert str(caught.value).isascii()
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 300


def test_nan_hidden_beside_null_is_seen():
    with pytest.raises(CanonicalError):
        canonical_bytes({"a": None, "b": [None, {"c": float("nan")}]})


def test_digest_is_the_hash_of_the_bytes():
    assert digest({"b": 1, "a": [1.0]}) == hashlib.sha256(b'{"a":[1],"b":1}').hexdigest()


@given(texts, values)
def test_fingerprint_is_the_digest_of_tool_and_args(tool, args):
    expected = digest({"tool": tool, "args": args})
    assert fingerprint(tool, args) == expected
    assert fingerprint_from_bytes(tool, canonical_bytes(args)) == expected


@given(st.integers(-(10**40), 10**40))
def test_parse_keeps_every_digit(number):
    assert parse_json(f'{{"n":{number}}}') == {"n": number}


@pytest.mark.parametrize(
    "text",
    [
        "NaN",
        "[Infinity]",
        '{"a":1,}',
        "",
        "[NaN,1234567890123456789012]",
        "1e400",
        "[-1e400,1234567890123456789012]",
        "[" * 100_000 + "1234567890123456789012",
        b"\xff",
        b'["\xff",1234567890123456789012]',
    ],
)
def test_parse_refuses_what_is_not_json(text):
    with pytest.raises(ValueError):  # noqa: PT011  (json and orjson word it themselves)
        parse_json(text)
