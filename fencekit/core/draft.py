"""One decision while it is being made: what was read, what it will write, what it will tell.

A `View` holds the present state of the keys that a decision needs. A decision that needs a key
which is not there raises `NotLoaded`; the ledger loads that key and decides again, so a wrong guess
by `touches` costs time and never an answer.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from fencekit.core.messages import Answer
from fencekit.core.state import (
    NOTHING,
    OPEN,
    RETENTION_MS,
    DomainHead,
    Ended,
    Floor,
    IntentKey,
    IntentRecord,
    Liveness,
    Marker,
    Now,
    PreparedEffect,
    Remembered,
)

FLOOR = "floor"


class NotLoaded(LookupError):
    """The decision needs a key that the view does not hold: an intent, a domain or the floor."""

    def __init__(self, kind: str, key: IntentKey | str) -> None:
        super().__init__(kind, key)
        self.kind = kind
        self.key = key


@dataclass(slots=True)
class View:
    """The present state of some keys; None says that the ledger was asked and holds nothing."""

    intents: dict[IntentKey, IntentRecord | None] = field(default_factory=dict)
    domains: dict[str, DomainHead | None] = field(default_factory=dict)
    floor: Floor | None = None
    liveness: Mapping[IntentKey, Liveness] = field(default_factory=dict)
    marker: Marker = OPEN

    def apply(self, writes: Writes) -> None:
        """Take over what a decision wrote, for the next decision of the same batch."""
        self.intents.update(writes.intents)
        self.domains.update(writes.domains)
        if writes.floor is not None:
            self.floor = writes.floor
        if writes.marker is not None:
            self.marker = writes.marker


@dataclass(slots=True)
class Writes:
    """New values by key; None deletes."""

    intents: dict[IntentKey, IntentRecord | None] = field(default_factory=dict)
    domains: dict[str, DomainHead | None] = field(default_factory=dict)
    floor: Floor | None = None
    marker: Marker | None = None

    def __bool__(self) -> bool:
        return bool(
            self.intents or self.domains or self.floor is not None or self.marker is not None
        )


Event = dict[str, Any]


@dataclass(slots=True)
class Decision:
    """An answer, what must be durable before anybody hears it, and its lines for the audit."""

    answer: Answer
    writes: Writes = field(default_factory=Writes)
    audit: list[Event] = field(default_factory=list)


class Draft:
    """A decision in the making."""

    __slots__ = ("audit", "now", "view", "writes")

    def __init__(self, view: View, now: Now) -> None:
        self.view = view
        self.now = now
        self.writes = Writes()
        self.audit: list[Event] = []

    def record(self, key: IntentKey) -> IntentRecord:
        """Return the record of an intent; nothing remembered reads as an absent record."""
        try:
            return self.view.intents[key] or NOTHING
        except KeyError:
            raise NotLoaded("intent", key) from None

    def head(self, domain: str) -> DomainHead:
        """Return the head of a domain as it will be after this decision."""
        if domain in self.writes.domains:
            written = self.writes.domains[domain]
            if written is not None:
                return written
        else:
            try:
                held = self.view.domains[domain]
            except KeyError:
                raise NotLoaded("domain", domain) from None
            if held is not None:
                return held
        floor = self.floor()
        return DomainHead(seq=floor.seq, clock=floor.clock)

    def floor(self) -> Floor:
        """Return where absent domains start."""
        floor = self.writes.floor if self.writes.floor is not None else self.view.floor
        if floor is None:
            raise NotLoaded(FLOOR, FLOOR)
        return floor

    def liveness(self, key: IntentKey) -> Liveness:
        """Return what the ledger can tell about the process that holds an intent."""
        return self.view.liveness.get(key, Liveness.CANNOT_TELL)

    def note(self, event: str, ticket: PreparedEffect, **more: Any) -> None:
        """Add a line to the audit."""
        line: Event = {
            "event": event,
            "at_ms": self.now.wall_ms,
            "principal": ticket.request.principal,
            "intent": ticket.request.intent,
            "ticket": ticket.id,
            "generation": ticket.generation,
            "agent": ticket.request.agent,
        }
        if ticket.request.domain is not None:
            line["domain"] = ticket.request.domain
            line["seq"] = ticket.seq
        line.update(more)
        self.audit.append(line)

    def kept(self, ended: tuple[Ended, ...]) -> tuple[Ended, ...]:
        """Return the tombstones that are still within the retention."""
        if not ended:
            return ended
        since = self.now.wall_ms - RETENTION_MS
        return tuple(e for e in ended if e.at_ms >= since)

    def kept_answers(self, remembered: tuple[Remembered, ...]) -> tuple[Remembered, ...]:
        """Return the remembered answers that are still within the retention."""
        if not remembered:
            return remembered
        since = self.now.wall_ms - RETENTION_MS
        return tuple(r for r in remembered if r.at_ms >= since)

    def done(self, answer: Answer) -> Decision:
        """Return the decision."""
        return Decision(answer, self.writes, self.audit)
