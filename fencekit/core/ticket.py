"""A ticket as JSON, for tickets that travel through agents; altering a field is noticed.

The object carries a seal over its fields. It is no signature: whoever forges a ticket on purpose
can compute it too. It catches what really happens, a model that rewrites a field on the way.
"""

from __future__ import annotations

import json
from typing import Any

from fencekit.core.canonical import digest
from fencekit.core.certificate import ReadSetEntry
from fencekit.core.clock import VectorClock
from fencekit.core.errors import FenceError, InvalidRequest, TicketAltered
from fencekit.core.request import EffectRequest
from fencekit.core.state import PreparedEffect

# What travels beside the seal; the lease end moves with heartbeats and is not covered.
_UNSEALED = ("seal", "lease_end_ms")


def ticket_to_json(ticket: PreparedEffect) -> dict[str, Any]:
    """Return a ticket as a JSON object."""
    request = ticket.request
    fields: dict[str, Any] = {
        "id": ticket.id,
        "intent": request.intent,
        "tool": request.tool,
        "args": json.loads(request.args_json),
        "domain": request.domain,
        "agent": request.agent,
        "read_set": [entry.to_json() for entry in request.read_set],
        "parent": request.parent,
        "known_clock": request.known_clock.to_json(),
        "causal": request.causal,
        "principal": request.principal,
        "generation": ticket.generation,
        "seq": ticket.seq,
        "clock": ticket.clock.to_json(),
    }
    return {**fields, "lease_end_ms": ticket.lease_end_ms, "seal": digest(fields)[:16]}


def ticket_from_json(value: Any) -> PreparedEffect:
    """Read a ticket back. Raises `InvalidRequest` if it is none, `TicketAltered` if it changed."""
    if not isinstance(value, dict) or not isinstance(value.get("id"), str):
        raise InvalidRequest("prepared must be the object that prepare returned")
    sealed = {name: v for name, v in value.items() if name not in _UNSEALED}
    intent = value.get("intent")
    if digest(sealed)[:16] != value.get("seal"):
        raise TicketAltered(str(intent), "seal")
    try:
        request = EffectRequest.make(
            value["intent"],
            value["tool"],
            value["args"],
            domain=value["domain"],
            agent=value["agent"],
            read_set=[ReadSetEntry.from_json(entry) for entry in value["read_set"]],
            parent=value["parent"],
            known_clock=VectorClock.from_json(value["known_clock"]),
            causal=value["causal"],
            principal=value["principal"],
        )
        clock = VectorClock.from_json(value["clock"])
        generation, seq, lease_end = (value[k] for k in ("generation", "seq", "lease_end_ms"))
    except (KeyError, TypeError) as problem:
        raise InvalidRequest(f"prepared lacks or garbles a field: {problem}") from None
    except FenceError as problem:
        raise InvalidRequest(f"prepared is not a ticket: {problem}") from None
    if type(generation) is not int or type(lease_end) is not int:
        raise InvalidRequest("prepared: generation and lease_end_ms must be integers")
    if seq is not None and type(seq) is not int:
        raise InvalidRequest("prepared: seq must be an integer or null")
    return PreparedEffect(value["id"], request, generation, seq, clock, lease_end)
