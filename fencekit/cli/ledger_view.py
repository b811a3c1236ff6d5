"""What a ledger holds, as the JSON that `fencekit ledger` prints and the words that it shows."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from fencekit.core.state import (
    Done,
    InFlight,
    Liveness,
    Now,
    State,
    Unknown,
)
from fencekit.ledger.base import Shown

STATES = ("in flight", "unknown", "done")


def state_name(state: State) -> str:
    """Return the word for a state."""
    match state:
        case InFlight():
            return "in flight"
        case Unknown():
            return "unknown"
        case Done():
            return "done"
        case _:
            return "absent"


def since_ms(state: State) -> int:
    """Return since when an intent is in its state, wall time in milliseconds."""
    match state:
        case InFlight() | Unknown():
            return state.since_ms
        case Done():
            return state.at_ms
        case _:
            return 0


def holder_words(shown: Shown) -> str:
    """Say who holds an attempt, as far as can be told."""
    state = shown.record.state
    if not isinstance(state, InFlight | Unknown):
        return ""
    if state.holder.kind == "ticket":
        return "a ticket"
    words = {
        Liveness.ALIVE: "a process, alive",
        Liveness.DEAD: "a process, dead",
        Liveness.CANNOT_TELL: "a process, cannot tell",
    }
    return words[shown.liveness]


def summary(shown: Shown, now: Now) -> dict[str, Any]:
    """Return one intent as a row: what `list` prints."""
    state = shown.record.state
    row: dict[str, Any] = {
        "intent": shown.key.intent,
        "principal": shown.key.principal,
        "state": state_name(state),
        "since": iso(since_ms(state)),
        "age_s": max(0, (now.wall_ms - since_ms(state)) // 1000),
        "holder": holder_words(shown),
        "revision": shown.record.revision,
    }
    if isinstance(state, InFlight | Unknown | Done):
        row |= {
            "ticket": state.ticket.id,
            "tool": state.ticket.request.tool,
            "agent": state.ticket.request.agent,
        }
    if isinstance(state, Unknown):
        row |= {"cause": state.cause, "reason": state.reason}
    return row


def detail(shown: Shown, now: Now) -> dict[str, Any]:
    """Return everything that is recorded of one intent: what `show` prints."""
    state, record = shown.record.state, shown.record
    whole = summary(shown, now)
    if isinstance(state, InFlight | Unknown | Done):
        request = state.ticket.request
        whole |= {
            "generation": state.ticket.generation,
            "fingerprint": request.fingerprint,
            "args": request.args,
            "domain": request.domain,
            "seq": state.ticket.seq,
            "read_set": [entry.to_json() for entry in request.read_set],
            "parent": request.parent,
        }
    if isinstance(state, InFlight):
        same_boot = state.boot == now.boot
        whole["lease_left_s"] = (state.lease_end_ms - now.lease_ms) / 1000 if same_boot else 0
    if isinstance(state, Done):
        whole |= {
            "certificate": state.sealed.cert.to_json(),
            "verifies": state.sealed.cert.verify(),
            "expires": iso(state.expires_at_ms),
            "operator": state.operator,
            "note": state.note,
        }
    if isinstance(state, Unknown):
        whole["late_commit"] = state.late_commit
        if state.reported is not None:
            whole["reported"] = state.reported.value
    whole["doubts"] = [
        {"ticket": d.ticket.id, "kind": d.kind, "at": iso(d.at_ms)} for d in record.doubts
    ]
    whole["ended"] = [{"ticket": e.ticket, "how": e.how, "at": iso(e.at_ms)} for e in record.ended]
    return whole


def find(shown: list[Shown], intent: str, principal: str | None) -> list[Shown]:
    """Return the intents of that name; several only where principals share a name."""
    return [
        one for one in shown if one.key.intent == intent and principal in (None, one.key.principal)
    ]


def iso(ms: int) -> str:
    """Return a wall time as ISO 8601 in UTC."""
    return datetime.fromtimestamp(ms / 1000, UTC).isoformat(timespec="milliseconds")


def age(seconds: int) -> str:
    """Return an age in one unit: 45 s, 12 min, 3 h, 8 d."""
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds // size} {unit}"
    return f"{seconds} s"
