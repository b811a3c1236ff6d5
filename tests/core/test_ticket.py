"""A ticket travels through agents as JSON and comes back as it was, or not at all."""

from __future__ import annotations

import json

import pytest

from fencekit.core.clock import VectorClock
from fencekit.core.errors import InvalidRequest, TicketAltered
from fencekit.core.request import EffectRequest
from fencekit.core.state import PreparedEffect
from fencekit.core.ticket import ticket_from_json, ticket_to_json


@pytest.fixture
def ticket():
    request = EffectRequest.make(
        "pay:1",
        "charge",
        {"amount": 2**60, "note": "ä\u2028"},
        domain="order:1",
        agent="alice",
        read_set=[("stock", 3)],
        known_clock={"bob": 2},
        causal=True,
    )
    return PreparedEffect("a" * 32, request, 2, 7, VectorClock({"alice": 1, "bob": 2}), 99)


def test_comes_back_equal(ticket):
    travelled = json.loads(json.dumps(ticket_to_json(ticket)))

    assert ticket_from_json(travelled) == ticket


def test_key_order_and_number_form_are_no_alteration(ticket):
    travelled = json.loads(json.dumps(ticket_to_json(ticket)))
    travelled["args"]["amount"] = travelled["args"].pop("amount")
    travelled["generation"] = 2

    assert ticket_from_json(dict(reversed(travelled.items()))) == ticket


def test_any_altered_field_is_refused(ticket):
    fields = ticket_to_json(ticket)
    for name in fields:
        if name == "lease_end_ms":
            continue
        altered = {**fields, name: "x" if fields[name] != "x" else "y"}
        with pytest.raises((TicketAltered, InvalidRequest)):
            ticket_from_json(altered)


def test_a_missing_field_is_refused(ticket):
    fields = ticket_to_json(ticket)
    for name in fields:
        left = {k: v for k, v in fields.items() if k != name}
        with pytest.raises((TicketAltered, InvalidRequest)):
            ticket_from_json(left)


@pytest.mark.parametrize("value", [None, 3, "t", [], {}, {"id": 3}])
def test_what_is_no_ticket_is_refused(value):
    with pytest.raises(InvalidRequest):
        ticket_from_json(value)
