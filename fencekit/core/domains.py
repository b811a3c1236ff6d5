"""Domains: reservations, citations and the gates that guard them.

A reservation takes the next number and stays open while its effect is in flight or unknown. What is
read under an open reservation can never be cited: a citation is refused while any reservation of
another intent is open, and afterwards the number has moved.
"""

from __future__ import annotations

from dataclasses import replace
from typing import assert_never

from fencekit.core.clock import VectorClock
from fencekit.core.draft import Decision, Draft
from fencekit.core.errors import CausalConflict, DomainInUse, DomainRace, ReadSetStale
from fencekit.core.messages import Current, EvictDomain, Head, Ok, Reserve, Reserved
from fencekit.core.request import EffectRequest
from fencekit.core.state import (
    DomainHead,
    Floor,
    IntentKey,
    OpenReservation,
    PreparedEffect,
    Remembered,
)


def stale_read(draft: Draft, request: EffectRequest, key: IntentKey) -> ReadSetStale | None:
    """Check the foreign entries of a read-set, and that no cited domain is being changed.

    At commit the own domain is left out: its reservation was the check.
    """
    for entry in request.read_set:
        if entry.domain == request.domain:
            continue
        problem = _moved(draft, entry.domain, entry.seq, key)
        if problem is not None:
            return problem
    return None


def gates(
    draft: Draft, request: EffectRequest, key: IntentKey
) -> ReadSetStale | DomainRace | CausalConflict | None:
    """Return why the request may not be admitted, or None; in the order of the design."""
    own = next((e for e in request.read_set if e.domain == request.domain), None)
    problem = stale_read(draft, request, key)
    if problem is not None:
        return problem
    if request.domain is None:
        return None
    head = draft.head(request.domain)
    if own is not None:
        if _pending(head, key):
            return ReadSetStale(own.domain, own.seq, head.seq, pending=True)
        if head.seq != own.seq:
            return DomainRace(own.domain, own.seq, head.seq)
    if request.causal and not head.clock <= request.known_clock:
        if request.known_clock <= head.clock:
            return ReadSetStale(request.domain, own.seq if own else 0, head.seq)
        return CausalConflict(request.domain, request.known_clock.to_json(), head.clock.to_json())
    return None


def open_reservation(
    draft: Draft, request: EffectRequest, key: IntentKey
) -> tuple[int | None, VectorClock]:
    """Reserve the next number of the request's domain and cite its foreign read-set.

    Returns the number (None without a domain) and the effect's vector clock.
    """
    for entry in request.read_set:
        if entry.domain != request.domain:
            head = draft.head(entry.domain)
            if key not in head.cited_by:
                _write(draft, entry.domain, replace(head, cited_by=(*head.cited_by, key)))
    if request.domain is None:
        return None, request.known_clock.tick(request.agent)
    head = draft.head(request.domain)
    clock = head.clock.merge(request.known_clock).tick(request.agent)
    seq = head.seq + 1
    before = next((o for o in head.open if o.key == key), None)
    mine = OpenReservation(
        key,
        seq,
        before.before_seq if before else head.seq,
        before.before_clock if before else head.clock,
    )
    others = tuple(o for o in head.open if o.key != key)
    _write(draft, request.domain, replace(head, seq=seq, clock=clock, open=(*others, mine)))
    return seq, clock


def reopen(draft: Draft, ticket: PreparedEffect) -> None:
    """Open a reservation for an attempt that may have run outside the fence; the domain moves."""
    domain = ticket.request.domain
    if domain is None:
        return
    head = draft.head(domain)
    others = tuple(o for o in head.open if o.key != ticket.key)
    mine = OpenReservation(ticket.key, head.seq + 1, head.seq, head.clock)
    clock = head.clock.merge(ticket.clock)
    _write(draft, domain, replace(head, seq=head.seq + 1, clock=clock, open=(*others, mine)))


def close_reservation(draft: Draft, ticket: PreparedEffect) -> None:
    """Close the reservation of an intent that became done or free, and drop its citations."""
    request, key = ticket.request, ticket.key
    for entry in request.read_set:
        head = draft.head(entry.domain)
        if key in head.cited_by:
            left = tuple(k for k in head.cited_by if k != key)
            _write(draft, entry.domain, replace(head, cited_by=left))
    if request.domain is not None:
        head = draft.head(request.domain)
        left_open = tuple(o for o in head.open if o.key != key)
        if len(left_open) != len(head.open):
            _write(draft, request.domain, replace(head, open=left_open))


def move(draft: Draft, ticket: PreparedEffect) -> None:
    """Move the domain of an effect that may have run outside the fence."""
    domain = ticket.request.domain
    if domain is not None:
        head = draft.head(domain)
        clock = head.clock.merge(ticket.clock)
        _write(draft, domain, replace(head, seq=head.seq + 1, clock=clock))


def current(draft: Draft, command: Current) -> Decision:
    """Answer what may be cited: with open reservations, the head from before the oldest."""
    head = draft.head(command.domain)
    oldest = min(head.open, key=lambda o: o.before_seq, default=None)
    seq = head.seq if oldest is None else oldest.before_seq
    clock = head.clock if oldest is None else oldest.before_clock
    return draft.done(Head(command.domain, seq, clock, tuple(o.key for o in head.open)))


def reserve(draft: Draft, command: Reserve) -> Decision:
    """Take the next number if the head is where the caller saw it; opens no reservation."""
    head = draft.head(command.domain)
    remembered = draft.kept_answers(head.remembered)
    for kept in remembered:
        if kept.command == command.id:
            return draft.done(kept.answer)
    if head.seq != command.expected:
        return draft.done(DomainRace(command.domain, command.expected, head.seq))
    clock = head.clock.tick(command.agent)
    answer = Reserved(head.seq + 1, clock)
    kept_now = Remembered(command.id, draft.now.wall_ms, answer)
    _write(
        draft,
        command.domain,
        replace(head, seq=head.seq + 1, clock=clock, remembered=(*remembered, kept_now)),
    )
    draft.audit.append(
        {
            "event": "reserved",
            "at_ms": draft.now.wall_ms,
            "domain": command.domain,
            "seq": head.seq + 1,
            "agent": command.agent,
        }
    )
    return draft.done(answer)


def evict(draft: Draft, command: EvictDomain) -> Decision:
    """Forget a domain that no open intent uses; the floor rises so that no number comes twice."""
    floor = draft.floor()
    remembered = draft.kept_answers(floor.remembered)
    for kept in remembered:
        if kept.command == command.id:
            return draft.done(kept.answer)
    head = draft.head(command.domain)
    if head.open or head.cited_by:
        return draft.done(DomainInUse(command.domain))
    answer = Ok("evicted")
    kept_now = Remembered(command.id, draft.now.wall_ms, answer)
    draft.writes.floor = Floor(
        max(floor.seq, head.seq), floor.clock.merge(head.clock), (*remembered, kept_now)
    )
    draft.writes.domains[command.domain] = None
    draft.audit.append(
        {
            "event": "evicted",
            "at_ms": draft.now.wall_ms,
            "domain": command.domain,
            "seq": head.seq,
        }
    )
    return draft.done(answer)


def decide_domain(draft: Draft, command: Reserve | EvictDomain | Current) -> Decision:
    """Decide a command about a domain."""
    match command:
        case Current():
            return current(draft, command)
        case Reserve():
            return reserve(draft, command)
        case EvictDomain():
            return evict(draft, command)
        case _:
            assert_never(command)


def _moved(draft: Draft, domain: str, cited: int, key: IntentKey) -> ReadSetStale | None:
    head = draft.head(domain)
    if _pending(head, key):
        return ReadSetStale(domain, cited, head.seq, pending=True)
    if head.seq != cited:
        return ReadSetStale(domain, cited, head.seq)
    return None


def _pending(head: DomainHead, key: IntentKey) -> bool:
    return any(o.key != key for o in head.open)


def _write(draft: Draft, domain: str, head: DomainHead) -> None:
    draft.writes.domains[domain] = replace(head, revision=head.revision + 1)
