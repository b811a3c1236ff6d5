"""What is written comes back as it was; what is damaged never comes back as something else."""

from __future__ import annotations

import pytest

from fencekit.core import errors
from fencekit.core.clock import VectorClock
from fencekit.core.errors import LedgerDamaged
from fencekit.core.messages import Committed, Ok, Reserved
from fencekit.core.request import EffectRequest
from fencekit.core.result import Result
from fencekit.core.state import (
    Absent,
    DomainHead,
    Done,
    Floor,
    IntentKey,
    IntentRecord,
    OpenReservation,
    PreparedEffect,
    Remembered,
    Sealed,
)
from fencekit.ledger import codec
from tests.core.exploration import explore


def sealed():
    request = EffectRequest.make(
        "pay",
        "charge",
        {"n": 2**70, "s": "\u2028ä", "f": 1.5},
        domain="d",
        read_set=[("e", 2)],
        known_clock={"b": 3},
        parent="p",
        causal=True,
        principal="me",
    )
    ticket = PreparedEffect("t", request, 3, 9, VectorClock({"b": 3, "a": 1}), 77)
    return Sealed.make(ticket, Result.of_text('{"x" : 123456789012345678901234567890}', 1000))


def test_every_reachable_record_comes_back_equal():
    records, heads = set(), set()
    explore(operators=1, limit=15_000, visit=lambda w: (records.add(w.record), heads.add(w.head)))

    assert len(records) > 100
    for record in records:
        assert codec.decode_intent(codec.encode_intent(record)) == record
    for head in heads:
        assert codec.decode_domain(codec.encode_domain(head)) == head


def test_texts_come_back_to_the_letter():
    done = Done(sealed(), 5, 6, "c", "op", "note")
    back = codec.decode_intent(codec.encode_intent(IntentRecord(done, 4, 3))).state

    assert back == done
    assert back.sealed.result.text == '{"x" : 123456789012345678901234567890}'
    assert back.sealed.cert.verify()
    assert back.ticket.lease_end_ms == 77


ANSWERS = [
    Committed(sealed()),
    Ok("cleared", True),
    Reserved(4, VectorClock({"a": 1})),
    errors.StaleHolder("i", "t", "cleared"),
    errors.ResultDiffers("i", sealed()),
    errors.ReadSetStale("d", 1, 2, True),
    errors.NotAdmitted("i", "t"),
    errors.AlreadyEnded("i", "t", "done"),
]


@pytest.mark.parametrize("answer", ANSWERS, ids=lambda a: type(a).__name__)
def test_remembered_answers_come_back_equal(answer):
    record = IntentRecord(Absent(), 1, 1, remembered=(Remembered("c", 5, answer),))

    assert codec.decode_intent(codec.encode_intent(record)) == record


def test_domains_and_the_floor_come_back_equal():
    open_ = OpenReservation(IntentKey("p", "i"), 5, 4, VectorClock({"a": 2}))
    kept = (Remembered("c", 5, Reserved(5, VectorClock({"a": 2}))),)
    head = DomainHead(5, VectorClock({"a": 3}), (open_,), (IntentKey("", "j"),), 8, kept)
    floor = Floor(7, VectorClock({"z": 1}), (Remembered("e", 1, Ok("evicted")),))

    assert codec.decode_domain(codec.encode_domain(head)) == head
    assert codec.decode_floor(codec.encode_floor(floor)) == floor


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b"7",
        b'{"a":1}',
        b"[1]",
        b"[1,2,3]",
        b"\xff",
        b'[1,["x"],1,1,[],[],[]]',
    ],
)
def test_damage_is_told(text):
    for decode in (codec.decode_intent, codec.decode_domain, codec.decode_floor):
        with pytest.raises(LedgerDamaged):
            decode(text)


def test_cutting_or_changing_a_record_is_told_or_changes_nothing():
    """Short of a checksum, damage may only be told; it never raises anything else."""
    text = codec.encode_intent(IntentRecord(Done(sealed(), 5, 6, "c"), 4, 3))
    for at in range(len(text)):
        for damaged in (text[:at], text[:at] + b"\x00" + text[at + 1 :]):
            with pytest.raises(LedgerDamaged):
                codec.decode_intent(damaged)


def test_a_newer_version_is_told():
    with pytest.raises(LedgerDamaged, match="version 2"):
        codec.decode_intent(b"[2,null,1,1,[],[],[]]")
