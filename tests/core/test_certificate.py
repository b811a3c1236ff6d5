"""EffectCert: its hash covers every field, both ways to make one agree, and reading is strict."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import pickle
from typing import Any

import pytest
import rfc8785
from hypothesis import given, settings
from hypothesis import strategies as st

from fencekit.core.canonical import CanonicalError, canonical_bytes, parse_json
from fencekit.core.certificate import (
    FIELDS,
    NOT_KEPT,
    CertFields,
    CertificateError,
    EffectCert,
    ReadSetEntry,
    is_not_kept,
    not_kept,
)
from fencekit.core.clock import VectorClock
from fencekit.core.result import Result
from tests.core.strategies import objects, texts, values

FIELD_VALUES = CertFields(
    intent="charge:order-123",
    parent=None,
    domain="order:123",
    seq=4,
    tool="charge_card",
    args={"amount": 4999, "currency": "EUR"},
    result={"id": "ch_1"},
    vector_clock=VectorClock({"a": 2}),
    read_set=(ReadSetEntry("order:123", 3), ReadSetEntry("stock:9", 0)),
    agent="a",
)

# For each field a value that differs from the one above.
OTHER = CertFields(
    intent="charge:order-124",
    parent="0" * 64,
    domain="order:124",
    seq=5,
    tool="refund",
    args={"amount": 4999.5, "currency": "EUR"},
    result=None,
    vector_clock=VectorClock({"a": 3}),
    read_set=(),
    agent="b",
)


def made(**changes: Any) -> EffectCert:
    """Seal the fields above with some of them changed."""
    return EffectCert.make(**{**FIELD_VALUES, **changes})


@st.composite
def fields(draw):
    domain = draw(st.none() | texts)
    return CertFields(
        intent=draw(texts),
        parent=draw(st.none() | st.binary(min_size=32, max_size=32).map(bytes.hex)),
        domain=domain,
        seq=None if domain is None else draw(st.integers(0, 2**53 - 1)),
        tool=draw(texts),
        args=draw(objects),
        result=draw(values),
        vector_clock=VectorClock(draw(st.dictionaries(texts.filter(bool), st.integers(0, 9)))),
        read_set=tuple(
            ReadSetEntry(domain, seq)
            for domain, seq in draw(
                st.lists(st.tuples(texts.filter(bool), st.integers(0, 9)), max_size=3)
            )
        ),
        agent=draw(texts),
    )


def test_hash_is_that_of_the_reference_bytes():
    """Spelled out with the reference package and the standard library, none of the code's own."""
    document: Any = {
        **FIELD_VALUES,
        "vector_clock": {"a": 2},
        "read_set": [{"domain": "order:123", "seq": 3}, {"domain": "stock:9", "seq": 0}],
    }
    expected = rfc8785.dumps(document)
    cert = made()
    assert cert.canonical() == expected
    assert cert.hash == hashlib.sha256(expected).hexdigest()
    assert cert.verify()


@pytest.mark.parametrize("name", FIELDS)
def test_every_field_is_under_the_hash(name):
    cert = made()
    other = dict(OTHER)[name]
    changes: Any = {name: other}
    assert not dataclasses.replace(cert, **changes).verify()
    assert made(**{name: other}).hash != cert.hash


def test_a_forged_hash_does_not_verify():
    cert = made()
    assert not dataclasses.replace(cert, hash="0" * 64).verify()
    assert not dataclasses.replace(cert, hash=cert.hash.upper()).verify()


def test_a_certificate_changed_in_place_does_not_verify():
    args: dict[str, Any] = {"amount": 1}
    cert = made(args=args)
    assert cert.verify()
    args["amount"] = 2
    assert not cert.verify()
    args["amount"] = float("nan")
    assert not cert.verify()


@settings(max_examples=300)
@given(fields())
def test_both_ways_to_hash_one_give_the_same(given_fields):
    whole = EffectCert.make(**given_fields)
    spliced = EffectCert.hash_of_parts(
        canonical_bytes(given_fields["args"]), canonical_bytes(given_fields["result"]), given_fields
    )
    assert spliced == whole.hash


@settings(max_examples=300)
@given(fields())
def test_a_certificate_survives_text(given_fields):
    cert = EffectCert.make(**given_fields)
    for text in (json.dumps(cert.to_json()).encode(), canonical_bytes(cert.to_json())):
        again = EffectCert.from_json(parse_json(text))
        assert again.verify()
        assert again.canonical() == cert.canonical()
        assert hash(again) == hash(cert)
    assert pickle.loads(pickle.dumps(cert)) == cert


@pytest.mark.parametrize(
    ("name", "bad"),
    [
        ("intent", 1),
        ("intent", None),
        ("parent", ""),
        ("parent", "0" * 63),
        ("parent", "G" * 64),
        ("parent", "0" * 64 + "\n"),
        ("domain", 1),
        ("seq", -1),
        ("seq", 1.0),
        ("seq", True),
        ("seq", None),
        ("domain", None),
        ("tool", ["x"]),
        ("args", []),
        ("args", None),
        ("vector_clock", [1]),
        ("vector_clock", {"a": -1}),
        ("read_set", {}),
        ("read_set", [1]),
        ("read_set", [{"domain": "d"}]),
        ("read_set", [{"domain": "d", "seq": 1, "more": 1}]),
        ("read_set", [{"domain": "", "seq": 1}]),
        ("read_set", [{"domain": "d", "seq": "1"}]),
        ("agent", None),
        ("hash", "A" * 64),
        ("hash", None),
    ],
)
def test_a_malformed_field_is_named(name, bad):
    document = made().to_json()
    document[name] = bad
    # domain and seq come together: the one left alone is told by seq's name
    wanted = "seq" if name == "domain" and bad is None else name
    with pytest.raises(CertificateError, match=f"^{wanted}: "):
        EffectCert.from_json(document)


@pytest.mark.parametrize("name", [*FIELDS, "hash"])
def test_a_missing_field_is_named(name):
    document = made().to_json()
    del document[name]
    with pytest.raises(CertificateError, match=f"^{name}: missing"):
        EffectCert.from_json(document)


@pytest.mark.parametrize("value", [None, [], "{}", 1])
def test_only_an_object_is_a_certificate(value):
    with pytest.raises(CertificateError, match="object"):
        EffectCert.from_json(value)


def test_an_unknown_field_is_refused_and_shown_harmless():
    document = made().to_json()
    document["\x1b[2J" + "x" * 999] = 1
    with pytest.raises(CertificateError, match="not a certificate's field") as caught:
        EffectCert.from_json(document)
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 120


@pytest.mark.parametrize("name", ["args", "result"])
def test_what_has_no_canonical_form_is_refused_by_place(name):
    with pytest.raises(CanonicalError) as caught:
        made(**{name: {"n": float("inf")}})
    assert caught.value.path == f"$.{name}.n"


@pytest.mark.parametrize(
    ("domain", "seq"), [("", 1), (None, 1), ("d", -1), ("d", True), ("d", 1.0)]
)
def test_a_read_set_entry_is_a_name_and_a_number(domain, seq):
    with pytest.raises(CertificateError, match=r"^read_set: "):
        ReadSetEntry(domain, seq)


def test_a_result_that_was_not_kept_leaves_its_digest_and_size():
    text = b"x" * 1000
    stand_in = not_kept(text, "over the limit of 999 bytes")
    assert stand_in == {
        NOT_KEPT: {
            "digest": hashlib.sha256(text).hexdigest(),
            "size": 1000,
            "why": "over the limit of 999 bytes",
        }
    }
    cert = made(result=stand_in)
    assert cert.verify()
    assert not cert.result_kept
    assert not EffectCert.from_json(cert.to_json()).result_kept
    assert made().result_kept


@pytest.mark.parametrize(
    "result",
    [
        {NOT_KEPT: {}},
        {NOT_KEPT: None},
        {NOT_KEPT: {"digest": "0" * 64, "size": 1}},
        {NOT_KEPT: {"digest": "0" * 64, "size": 1, "why": "", "more": 1}},
        {NOT_KEPT: {"digest": "short", "size": 1, "why": ""}},
        {NOT_KEPT: {"digest": "0" * 64, "size": "1", "why": ""}},
        {NOT_KEPT: {"digest": "0" * 64, "size": 1, "why": None}},
        {NOT_KEPT: {"digest": "0" * 64, "size": 1, "why": ""}, "more": 1},
        [NOT_KEPT],
        NOT_KEPT,
    ],
)
def test_only_the_exact_stand_in_counts_as_not_kept(result):
    assert not is_not_kept(result)


@pytest.mark.parametrize("why", ["", "x" * 10_000, "\ud800 lone", "\x00"])
def test_no_reason_stands_in_the_way_of_the_record(why):
    stand_in = not_kept(b"", why)
    assert is_not_kept(stand_in)
    assert made(result=stand_in).verify()
    assert len(canonical_bytes(stand_in)) < 1000


@pytest.mark.parametrize("value", [float("nan"), object(), "x" * 100])
def test_a_recorded_result_says_whether_it_was_kept(value):
    """What `Result` records and what a certificate recognises are one form."""
    lost = Result.of(value, max_bytes=50)
    assert not lost.kept
    assert not made(result=lost.value).result_kept
    assert made(result=Result.of({"a": 1}, max_bytes=50).value).result_kept
