"""Every interleaving of a small scope, explored over the real functions until nothing is new.

Two or three holders (the first a process, the others tickets that travel) try the same intent in
one domain; operators act on what they last saw; every command may be delivered any number of times
at any later time, and its answer may be lost. Time does not run: that a lease or a retention ended
is an event of its own, which moves the recorded end into the past. What is counted outside the
ledger (the ghost) is what the promises speak about.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from fencekit.core import decide as rules
from fencekit.core import sweep as sweeping
from fencekit.core.draft import View
from fencekit.core.errors import AlreadyEnded, FenceError, IntentFailed, Refused, StaleHolder
from fencekit.core.messages import (
    Abort,
    Clear,
    Commit,
    Committed,
    Forget,
    Fresh,
    Heartbeat,
    Look,
    Ok,
    Prepare,
    Release,
    Replay,
    Settle,
)
from fencekit.core.request import EffectRequest
from fencekit.core.result import Result
from fencekit.core.state import (
    NOTHING,
    Absent,
    DomainHead,
    Done,
    Floor,
    Holder,
    InFlight,
    IntentKey,
    IntentRecord,
    LeaseExpiry,
    Liveness,
    Now,
    PreparedEffect,
    Unknown,
)

KEY = IntentKey("", "pay")
NOW = Now(wall_ms=500, lease_ms=500)
LEASE, TTL = 1000, 1000
HEAD = DomainHead()
REQUEST = EffectRequest.make("pay", "charge", {"amount": 1}, domain="d")
HOLDERS = (Holder("process", "P"), Holder("ticket"), Holder("ticket"))


class Broken(AssertionError):
    """A promise does not hold; the message says which, and the trace how."""


@dataclass(frozen=True, slots=True)
class Client:
    """One attempt. `phase`: idle, asked, refused, admitted, ran, gone."""

    phase: str = "idle"
    ticket: PreparedEffect | None = None
    ran: bool = False
    sent: frozenset[str] = frozenset()
    # What the ledger made of the attempt, seen from outside: "", open, done, free.
    fate: str = ""


@dataclass(frozen=True, slots=True)
class Operator:
    """What an operator saw, whether the record is still the same, and what was sent."""

    saw: IntentRecord | None = None
    current: bool = False
    sent: str = ""


@dataclass(frozen=True, slots=True)
class World:
    """A reachable state: the ledger's, the callers', and what is known outside."""

    record: IntentRecord = NOTHING
    head: DomainHead = HEAD
    clients: tuple[Client, ...] = (Client(), Client())
    operators: tuple[Operator, ...] = (Operator(), Operator())
    dead: bool = False
    acknowledged: str | None = None
    answers: frozenset[tuple[str, Any]] = frozenset()
    # What every holder asked for: may its lapsed attempt be taken over?
    lease_expiry: LeaseExpiry = "fence"


def explore(
    operators: int = 2,
    tickets: int = 2,
    lease_expiry: LeaseExpiry = "fence",
    limit: int = 10_000_000,
    visit: Callable[[World], None] = lambda world: None,
) -> tuple[int, int]:
    """Visit every reachable state; returns states and transitions, raises `Broken`."""
    first = World(
        clients=(Client(),) * tickets,
        operators=(Operator(),) * operators,
        lease_expiry=lease_expiry,
    )
    seen = {_key(first)}
    todo = deque([first])
    transitions = 0
    while todo:
        world = todo.popleft()
        visit(world)
        for after in _next(world):
            transitions += 1
            key = _key(after)
            if key not in seen:
                if len(seen) >= limit:
                    return len(seen), transitions
                seen.add(key)
                todo.append(after)
    return len(seen), transitions


def _key(world: World) -> int:
    """What makes a state new: revisions count only as far as somebody compares them."""
    record = replace(world.record, revision=0)
    head = replace(world.head, revision=0)
    operators = tuple(map(_operator_key, world.operators))
    return hash(
        (record, head, world.clients, operators, world.dead, world.acknowledged, world.answers)
    )


def _operator_key(operator: Operator) -> Any:
    """What an operator may still do. A look that is current saw the record; a stale one is only
    good for a forget, and for being refused, which does not depend on what it saw.
    """
    if operator.current:
        return ("current", operator.sent)
    if operator.saw is None or isinstance(operator.saw.state, Absent):
        return ("", operator.sent)
    return ("stale", operator.sent, operator.saw.state.ticket.id)


def _next(world: World) -> Iterator[World]:
    for i in range(len(world.clients)):
        yield from _client_acts(world, i)
    for j in range(len(world.operators)):
        yield from _operator_acts(world, j)
    yield from _time(world)
    if not world.dead and world.clients[0].phase != "idle":
        gone = replace(world.clients[0], phase="gone")
        yield replace(world, dead=True, clients=(gone, *world.clients[1:]))


# --- callers ------------------------------------------------------------------------------------


def _client_acts(world: World, i: int) -> Iterator[World]:
    client = world.clients[i]
    alive = client.phase != "gone"
    if client.phase == "idle":
        yield _with(world, i, replace(client, phase="asked", sent=frozenset({"prepare"})))
    if alive and client.phase == "admitted":
        yield _with(world, i, replace(client, phase="ran", ran=True))
        for verb in ("abort", "release", "heartbeat"):
            yield from _send(world, i, verb)
    if alive and client.phase == "ran":
        for verb in ("commit", "abort", "heartbeat"):
            yield from _send(world, i, verb)
    for verb in client.sent:
        yield from _deliver(world, i, verb)


def _send(world: World, i: int, verb: str) -> Iterator[World]:
    client = world.clients[i]
    if verb in client.sent or (verb != "heartbeat" and client.sent & {"abort", "release"}):
        return
    phase = "over" if verb == "release" else client.phase
    yield _with(world, i, replace(client, sent=client.sent | {verb}, phase=phase))


def _deliver(world: World, i: int, verb: str) -> Iterator[World]:
    client = world.clients[i]
    ticket = client.ticket
    if verb == "prepare":
        yield from _prepare(world, i)
        return
    assert ticket is not None
    name = f"{verb}{i}"
    command: Commit | Abort | Release | Heartbeat
    if verb == "commit":
        command = Commit.make(name, 500, ticket, _result(i), TTL)
    elif verb == "abort":
        command = Abort(name, 500, ticket, "lost")
    elif verb == "release":
        command = Release(name, 500, ticket, "not run")
    else:
        command = Heartbeat(name, 500, ticket, LEASE)
    after, answer = _ask(world, command)
    heard = any(key == name for key, _ in world.answers)
    if isinstance(answer, Committed) and not heard:
        if client.fate not in ("open", "done"):
            raise Broken(f"5: {name} was recorded although the attempt was ended")
        after = _fate(replace(after, acknowledged=answer.sealed.hash), i, "done")
    if isinstance(answer, Ok) and answer.what == "released":
        after = _fate(after, i, "free")
    if isinstance(answer, StaleHolder) and isinstance(after.record.state, Absent) and not heard:
        raise Broken(f"5: {name} was refused and the intent is free")
    yield after


def _prepare(world: World, i: int) -> Iterator[World]:
    command = Prepare(f"t{i}", 500, REQUEST, HOLDERS[i], LEASE, world.lease_expiry)
    after, answer = _ask(world, command)
    if isinstance(answer, Fresh):
        if not answer.resent:
            for j, other in enumerate(world.clients):
                if j != i and other.fate == "open":
                    if not _may_be_taken_over(world, j):
                        raise Broken(f"1: t{i} was admitted while t{j} has no outcome")
                    after = _fate(after, j, "superseded")
                if j != i and other.fate == "done" and _stands(world):
                    raise Broken(f"3: t{i} was admitted although the intent is done")
            if world.clients[i].fate:
                raise Broken(f"6: t{i} was admitted twice")
            after = _fate(after, i, "open")
        # The answer is lost, or heard by a caller that still listens.
        yield after
        client = after.clients[i]
        if client.phase == "asked":
            yield _with(after, i, replace(client, phase="admitted", ticket=answer.ticket))
        return
    if isinstance(answer, Replay) and answer.sealed.hash != world.acknowledged:
        raise Broken(f"3: t{i} got another result than was recorded")
    yield after
    client = after.clients[i]
    if client.phase == "asked":
        # Whoever hears a refusal never sends that id again; copies under way still arrive.
        yield _with(after, i, replace(client, phase="refused"))


def _may_be_taken_over(world: World, j: int) -> bool:
    """Whether a holder that asked for it has let its lease lapse: nothing else gives it up."""
    state = world.record.state
    if not isinstance(state, InFlight) or state.ticket.id != f"t{j}":
        return False
    return state.lease_expiry == "reclaim" and state.lease_end_ms <= NOW.lease_ms


def _stands(world: World) -> bool:
    state = world.record.state
    return isinstance(state, Done) and state.expires_at_ms > NOW.wall_ms


def _result(i: int) -> Result:
    return Result.of({"by": i}, 1000)


# --- operators ----------------------------------------------------------------------------------


def _operator_acts(world: World, j: int) -> Iterator[World]:
    operator = world.operators[j]
    if not operator.sent:
        after, seen = _ask(world, Look("look", 500, KEY))
        looked = replace(operator, saw=seen.record, current=True)
        if operator.saw is None or not operator.current:
            yield _op(after, j, looked)
    saw = operator.saw
    if saw is None or isinstance(saw.state, Absent):
        return
    if not operator.sent:
        for verb in ("clear", "settle", "forget"):
            yield from _operate(_op(world, j, replace(operator, sent=verb)), j, verb)
    else:
        yield from _operate(world, j, operator.sent)


def _operate(world: World, j: int, verb: str) -> Iterator[World]:
    operator = world.operators[j]
    yield world  # not delivered yet
    saw = operator.saw
    assert saw is not None
    assert not isinstance(saw.state, Absent)
    ticket = saw.state.ticket.id
    i = int(ticket[1])
    name = f"{verb}-by-{j}"
    command: Clear | Settle | Forget
    # A stale look is told by a revision that is not the record's any more.
    revision = world.record.revision if operator.current else -1
    if verb == "clear":
        command = Clear(name, 500, KEY, ticket, revision, "op", "note")
    elif verb == "settle":
        command = Settle(name, 500, KEY, ticket, revision, _result(7 + j), TTL, "op", "note")
    else:
        command = Forget(name, 500, KEY, ticket, "op", "note")
    kept = any(key == name for key, _ in world.answers)
    after, answer = _ask(world, command)
    if isinstance(answer, Ok) and not kept:
        if verb == "clear" and not operator.current:
            raise Broken("4: an operator freed what he did not look at")
        after = _fate(after, i, "free")
    if isinstance(answer, Committed) and not kept:
        if not operator.current:
            raise Broken("4: an operator settled what he did not look at")
        after = _fate(replace(after, acknowledged=answer.sealed.hash), i, "done")
    yield after


# --- time, sweep --------------------------------------------------------------------------------


def _time(world: World) -> Iterator[World]:
    state = world.record.state
    if isinstance(state, InFlight) and state.lease_end_ms > NOW.lease_ms:
        lapsed = replace(state, lease_end_ms=0)
        yield _same_revision(world, replace(world.record, state=lapsed))
    if isinstance(state, Done) and state.expires_at_ms > NOW.wall_ms:
        old = replace(state, expires_at_ms=0)
        yield _same_revision(world, replace(world.record, state=old))
    swept = sweeping.sweep(world.record, NOW)
    if swept is not world.record:
        if isinstance(state, InFlight | Unknown):
            raise Broken("4: sweep deleted what has no outcome")
        yield _same_revision(world, NOTHING if swept is None else swept)


def _same_revision(world: World, record: IntentRecord) -> World:
    return replace(world, record=record)


# --- asking the real functions ------------------------------------------------------------------


def _ask(world: World, command: Any) -> tuple[World, Any]:
    view = View({KEY: world.record}, {"d": world.head}, Floor())
    if world.dead:
        view.liveness = {KEY: Liveness.DEAD}
    elif isinstance(world.record.state, InFlight | Unknown):
        held_by_process = world.record.state.holder.kind == "process"
        view.liveness = {KEY: Liveness.ALIVE if held_by_process else Liveness.CANNOT_TELL}
    decision = rules.decide(view, command, NOW)
    record = decision.writes.intents.get(KEY, world.record) or NOTHING
    head = decision.writes.domains.get("d", world.head) or DomainHead()
    _check(world, command, decision.answer, record, head)
    after = replace(world, record=record, head=head)
    if record.revision != world.record.revision:
        stale = tuple(replace(o, current=False) for o in world.operators)
        after = replace(after, operators=stale)
    if decision.writes and not isinstance(command, Prepare | Heartbeat | Look):
        key = (command.id, _comparable(decision.answer))
        after = replace(after, answers=after.answers | {key})
    return after, decision.answer


def _check(world: World, command: Any, answer: Any, record: IntentRecord, head: DomainHead) -> None:
    before = world.record.state
    asked = isinstance(command, Prepare | Heartbeat | Look)
    if isinstance(before, Unknown) and asked and record.state != before:
        raise Broken("4: asking ended an unknown")
    if isinstance(before, Unknown) and isinstance(record.state, InFlight):
        raise Broken("4: an unknown became runnable")
    if isinstance(before, Unknown) and isinstance(record.state, Absent):
        named = command.ticket if isinstance(command, Clear) else command.ticket.id
        if not isinstance(command, Clear | Release) or named != before.ticket.id:
            raise Broken(f"4: {command.id} freed an unknown that is not its own")
    if isinstance(command, Prepare) and isinstance(answer, Refused):
        noted = isinstance(answer, IntentFailed) and isinstance(before, InFlight)
        if record != world.record and not noted:
            raise Broken(f"7: refusing {command.id} left a trace")
    if isinstance(command, Look) and record != world.record:
        raise Broken("7: looking left a trace")
    if head.seq < world.head.seq:
        raise Broken("a sequence number went back")
    if isinstance(answer, Fresh) and not answer.resent and head.seq != world.head.seq + 1:
        raise Broken("a sequence number was given twice or left out")
    for key, first in world.answers:
        if key == command.id and first != _comparable(answer):
            raise Broken(f"6: {command.id} answered {first} and then {_comparable(answer)}")


def _comparable(answer: Any) -> Any:
    if isinstance(answer, Committed):
        return ("committed", answer.sealed.hash)
    if isinstance(answer, FenceError):
        return (type(answer).__name__, answer.how if isinstance(answer, AlreadyEnded) else "")
    return answer


def _fate(world: World, i: int, fate: str) -> World:
    return _with(world, i, replace(world.clients[i], fate=fate))


def _with(world: World, i: int, client: Client) -> World:
    clients = (*world.clients[:i], client, *world.clients[i + 1 :])
    return replace(world, clients=clients)


def _op(world: World, j: int, operator: Operator) -> World:
    ops = list(world.operators)
    ops[j] = operator
    return replace(world, operators=tuple(ops))
