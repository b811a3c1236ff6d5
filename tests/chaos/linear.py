"""Is the history of one intent linearizable against the core's own transition function? Pure.

Every operation took effect at one instant between asking and hearing, or, where nobody heard, at
any later instant or not at all: the search of Wing and Gong with the memoisation of Lowe, as
porcupine has it. The sequential specification is `decide` itself. What cannot be known outside is
left open, and only as far as it is open: the ledger's clock lies between asking and hearing (give
or take `SLACK_MS`), a holder is dead from its kill on, and a cited domain may or may not have moved
(numbers of domains are shared by intents and are checked over the whole history).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from fencekit.core.certificate import ReadSetEntry
from fencekit.core.clock import NO_CLOCK
from fencekit.core.decide import decide
from fencekit.core.draft import View
from fencekit.core.errors import (
    AlreadyEnded,
    CausalConflict,
    DomainRace,
    Expired,
    IntentFailed,
    IntentInFlight,
    IntentMismatch,
    OperatorRefused,
    ReadSetStale,
    ResultDiffers,
    StaleHolder,
)
from fencekit.core.messages import (
    Abort,
    Beaten,
    Commit,
    Committed,
    Fresh,
    Heartbeat,
    Ok,
    Prepare,
    Release,
    Replay,
    Seen,
)
from fencekit.core.request import EffectRequest
from fencekit.core.state import (
    NOTHING,
    DomainHead,
    Done,
    Floor,
    InFlight,
    IntentKey,
    IntentRecord,
    Liveness,
    Now,
    PreparedEffect,
    Sealed,
    Unknown,
)

FOREVER = 1 << 62
# A shared ledger may decide by a guess of the server's clock that is half a second off.
SLACK_MS = 600
LIMIT = 300_000
"""How many configurations a search visits before it gives up."""

CITED = "cited"
WALL_MS = 1_800_000_000_000
# These answers never go with a write, so taking them as early as possible loses nothing.
QUIET = (AlreadyEnded, Expired, IntentInFlight, IntentMismatch, OperatorRefused, Replay, Seen)


@dataclass(frozen=True, slots=True)
class Operation:
    """One command, and the answer that was heard (None: nobody did).

    `start` and `end` order operations of all clients (nanoseconds of one clock); `asked_ms` and
    `heard_ms` say the same in the ledger's lease time.
    """

    client: str
    command: Any
    answer: Any
    start: int
    end: int
    asked_ms: int
    heard_ms: int


@dataclass(frozen=True, slots=True)
class Death:
    """A holder was alive until `alive_until_ms` and is dead since `dead_from_ms`, in lease time."""

    alive_until_ms: int
    dead_from_ms: int


@dataclass(frozen=True, slots=True)
class Outside:
    """What the specification may assume: can the ledger see processes, and which ones died when."""

    sees_processes: bool = False
    deaths: Mapping[str, Death] = field(default_factory=dict)
    # A ledger over a network asks its server again itself, with the same command, when an answer
    # is lost: each operation may also have taken effect once more before its answer.
    asks_again: bool = False


class Undecided(AssertionError):
    """The search gave up; nothing is said about the history."""


def linearizable(operations: Iterable[Operation], outside: Outside, limit: int = LIMIT) -> bool:
    """Whether some order of the operations explains every answer. Raises `Undecided`."""
    ops = list(operations)
    if _search(ops, outside, limit):
        return True
    # Rarely needed, and costly: what holds without it holds with it.
    lost = [replace(op, answer=None) for op in ops if op.answer is not None]
    return outside.asks_again and _search(ops + lost, outside, limit)


def _search(operations: list[Operation], outside: Outside, limit: int) -> bool:
    ops = sorted(operations, key=lambda op: (op.start, op.end))
    heard = sum(1 << i for i, op in enumerate(ops) if op.answer is not None)
    todo: list[tuple[int, IntentRecord]] = [(0, NOTHING)]
    seen = set(todo)
    while todo:
        done, state = todo.pop()
        if done & heard == heard:
            return True
        for after in _following(ops, done, state, outside):
            if after not in seen:
                if len(seen) >= limit:
                    raise Undecided(f"gave up after {limit} configurations")
                seen.add(after)
                todo.append(after)
    return False


def _following(
    ops: list[Operation], done: int, state: IntentRecord, outside: Outside
) -> list[tuple[int, IntentRecord]]:
    """Return the configurations after one more operation; the likeliest last, to be tried first."""
    found = []
    for i in _candidates(ops, done):
        op = ops[i]
        for after in set(explained(state, op, outside)):
            if op.answer is None and after == state:
                continue  # as good as not at all
            step = (done | 1 << i, after)
            if after == state and isinstance(op.answer, QUIET):
                return [step]
            found.append((op.answer is None, op.end, step))
    found.sort(key=lambda item: item[:2], reverse=True)
    return [step for _, _, step in found]


def _candidates(ops: list[Operation], done: int) -> list[int]:
    """Return the operations before which no other one must come: none left has ended earlier."""
    first_end, found = FOREVER, []
    latest = ops[done.bit_length() - 1].start if done else 0
    for i, op in enumerate(ops):
        if done >> i & 1:
            continue
        if op.start > first_end:
            break
        if op.answer is not None:
            first_end = min(first_end, op.end)
        if op.answer is not None or op.end >= latest:
            found.append(i)
    return [i for i in found if ops[i].start <= first_end]


# --- the specification --------------------------------------------------------------------------


def explained(state: IntentRecord, op: Operation, outside: Outside) -> Iterator[IntentRecord]:
    """Yield every state in which the operation may leave the intent, given the answer heard."""
    if isinstance(op.answer, Expired):
        yield state
        return
    command = bare(op.command)
    for shown, now_ms in _moments(state, op):
        for liveness in _livenesses(shown, op, outside):
            for moved in _cited_moved(op.command):
                view = View(
                    {command.key: shown},
                    {CITED: DomainHead(seq=moved)},
                    Floor(),
                    {command.key: liveness},
                )
                decision = decide(view, command, Now(WALL_MS, now_ms))
                if op.answer is None or same(decision.answer, op.answer):
                    after = decision.writes.intents.get(command.key, shown) or NOTHING
                    yield _lease_as_known(state, shown, after, op)


def _moments(state: IntentRecord, op: Operation) -> Iterator[tuple[IntentRecord, int]]:
    """Yield what the ledger may have seen: the record with a lease end, and its clock.

    A lease end that nobody heard is kept as minus the earliest it can be.
    """
    low, high = op.asked_ms - SLACK_MS, op.heard_ms + SLACK_MS
    exact = _clock_told(op)
    flight = state.state
    if not isinstance(flight, InFlight) or flight.lease_end_ms >= 0:
        if exact is not None and low <= exact <= high:
            yield state, exact
        if exact is None or isinstance(op.command, Heartbeat):
            yield state, low
            yield state, high
        return
    alive = replace(state, state=replace(flight, lease_end_ms=FOREVER))
    over = replace(state, state=replace(flight, lease_end_ms=0))
    if not isinstance(op.command, Heartbeat):
        yield alive, low
    if exact is not None and low <= exact <= high:
        yield over, exact
    elif high >= -flight.lease_end_ms or isinstance(op.command, Heartbeat):
        yield over, high


def _clock_told(op: Operation) -> int | None:
    """Return the ledger's clock where the answer tells it."""
    if isinstance(op.answer, Fresh) and not op.answer.resent:
        return int(op.answer.ticket.lease_end_ms - op.command.lease_ms)
    if isinstance(op.answer, Beaten):
        return int(op.answer.lease_end_ms - op.command.lease_ms)
    return None


def _lease_as_known(
    state: IntentRecord, shown: IntentRecord, after: IntentRecord, op: Operation
) -> IntentRecord:
    """Return the state with its lease end as far as anybody outside can know it."""
    flight, before = after.state, shown.state
    if not isinstance(flight, InFlight):
        return after
    moved = not isinstance(before, InFlight) or flight.lease_end_ms != before.lease_end_ms
    if op.answer is None and moved:
        earliest = op.asked_ms - SLACK_MS + op.command.lease_ms
        return replace(after, state=replace(flight, lease_end_ms=-earliest))
    if isinstance(op.answer, Fresh) and op.answer.resent:
        return replace(after, state=replace(flight, lease_end_ms=op.answer.ticket.lease_end_ms))
    if not moved and isinstance(state.state, InFlight):
        return replace(after, state=replace(flight, lease_end_ms=state.state.lease_end_ms))
    return after


def _livenesses(state: IntentRecord, op: Operation, outside: Outside) -> tuple[Liveness, ...]:
    held = state.state
    if not isinstance(held, InFlight | Unknown) or held.holder.kind != "process":
        return (Liveness.CANNOT_TELL,)
    if not outside.sees_processes:
        return (Liveness.CANNOT_TELL,)
    death = outside.deaths.get(held.holder.process)
    if death is None or op.heard_ms < death.alive_until_ms:
        return (Liveness.ALIVE,)
    if op.asked_ms > death.dead_from_ms:
        return (Liveness.DEAD,)
    return (Liveness.ALIVE, Liveness.DEAD)


def _cited_moved(command: Any) -> tuple[int, ...]:
    if isinstance(command, Prepare) and (command.request.read_set or command.request.causal):
        return (0, 1)
    if isinstance(command, Commit):
        request = command.ticket.request
        if any(entry.domain != request.domain for entry in request.read_set):
            return (0, 1)
    return (0,)


def bare(command: Any) -> Any:
    """Return a command as the specification of one intent takes it: without numbers of domains."""
    changes: dict[str, Any] = {"drawn_ms": WALL_MS}
    if isinstance(command, Prepare):
        changes["request"] = _bare_request(command.request)
    if isinstance(command, Commit | Abort | Release | Heartbeat):
        changes["ticket"] = _bare_ticket(command.ticket)
    if isinstance(command, Commit):
        changes["sealed"] = Sealed(changes["ticket"], command.sealed.result, command.sealed.hash)
    return replace(command, **changes)


def _bare_request(request: EffectRequest) -> EffectRequest:
    # What a clock refuses is refused as by a number: by the one domain that may have moved.
    cites = (ReadSetEntry(CITED, 0),) if request.read_set or request.causal else ()
    return replace(request, domain=None, read_set=cites, known_clock=NO_CLOCK, causal=False)


def _bare_ticket(ticket: PreparedEffect) -> PreparedEffect:
    request = _bare_request(ticket.request)
    clock = NO_CLOCK.tick(request.agent)
    return replace(ticket, request=request, seq=None, clock=clock)


def same(told: Any, heard: Any) -> bool:
    """Whether two answers are the same in all that does not depend on other intents or on time."""
    stale = (ReadSetStale, DomainRace, CausalConflict)
    if isinstance(told, stale) and isinstance(heard, stale):
        return True
    return type(told) is type(heard) and _essence(told) == _essence(heard)


def _essence(answer: Any) -> Any:
    match answer:
        case Fresh():
            ticket = answer.ticket
            return answer.resent, ticket.id, ticket.generation, ticket.request.fingerprint
        case Replay() | Committed() | ResultDiffers():
            sealed = answer.sealed
            return sealed.ticket.id, sealed.ticket.generation, sealed.result.text
        case Ok() | Beaten():
            return answer
        case Seen():
            return _essence_of(answer.record)
        case IntentInFlight():
            return answer.revision
        case IntentFailed():
            return answer.cause, answer.ticket, answer.revision
        case AlreadyEnded() | StaleHolder():
            return answer.ticket, answer.how
        case _:
            return None


def _essence_of(record: IntentRecord) -> Any:
    state = record.state
    ticket = state.ticket.id if isinstance(state, InFlight | Done | Unknown) else ""
    return type(state), ticket, record.revision, record.generation


def by_intent(operations: Iterable[Operation]) -> dict[IntentKey, list[Operation]]:
    """Return the operations of each intent."""
    found: dict[IntentKey, list[Operation]] = {}
    for op in operations:
        if hasattr(op.command, "key"):
            found.setdefault(op.command.key, []).append(op)
    return found
