"""Records as compact JSON text and back; one version number in front of each.

Values are arrays in a fixed order, so that a record costs little to write and to read. Results and
arguments stay JSON inside a string: their text comes back to the letter, integers above 2^53
included. Whatever does not read back as it was written raises `LedgerDamaged`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, assert_never, get_args

import orjson

from fencekit.core import errors
from fencekit.core.certificate import ReadSetEntry
from fencekit.core.clock import NO_CLOCK, VectorClock
from fencekit.core.errors import FenceError, LedgerDamaged
from fencekit.core.messages import Answer, Committed, Ok, Reserved
from fencekit.core.request import EffectRequest
from fencekit.core.result import Result
from fencekit.core.state import (
    Absent,
    DomainHead,
    Done,
    Doubt,
    Ended,
    Floor,
    Holder,
    InFlight,
    IntentKey,
    IntentRecord,
    Marker,
    OpenReservation,
    Phase,
    PreparedEffect,
    Remembered,
    Sealed,
    State,
    Unknown,
)

VERSION = 1

Json = Any
T = TypeVar("T")


def encode_intent(record: IntentRecord) -> bytes:
    """Return a record as JSON text."""
    return orjson.dumps(
        [
            VERSION,
            _state(record.state),
            record.revision,
            record.generation,
            [_doubt(d) for d in record.doubts],
            [_ended(e) for e in record.ended],
            [_remembered(r) for r in record.remembered],
        ]
    )


def decode_intent(text: bytes | str | list[Json]) -> IntentRecord:
    """Read what `encode_intent` wrote, as text or parsed."""
    return _read(text, _intent_of)


def encode_domain(head: DomainHead) -> bytes:
    """Return the head of a domain as JSON text."""
    return orjson.dumps(
        [
            VERSION,
            head.seq,
            head.clock.to_json(),
            [[*o.key, o.seq, o.before_seq, o.before_clock.to_json()] for o in head.open],
            [list(key) for key in head.cited_by],
            head.revision,
            [_remembered(r) for r in head.remembered],
        ]
    )


def decode_domain(text: bytes | str | list[Json]) -> DomainHead:
    """Read what `encode_domain` wrote."""
    return _read(text, _domain_of)


def encode_floor(floor: Floor) -> bytes:
    """Return the floor of absent domains as JSON text."""
    return orjson.dumps(
        [VERSION, floor.seq, floor.clock.to_json(), [_remembered(r) for r in floor.remembered]]
    )


def decode_floor(text: bytes | str | list[Json]) -> Floor:
    """Read what `encode_floor` wrote."""
    return _read(text, _floor_of)


def encode_marker(marker: Marker) -> bytes:
    """Return the marker of a ledger as JSON text."""
    return orjson.dumps([VERSION, marker.phase, marker.other, marker.move])


def decode_marker(text: bytes | str | list[Json]) -> Marker:
    """Read what `encode_marker` wrote."""
    return _read(text, _marker_of)


def encode_answer(answer: Answer) -> Json:
    """Return an answer that a command id is remembered by, as a JSON value."""
    match answer:
        case Committed():
            return ["committed", _sealed(answer.sealed)]
        case Ok():
            return ["ok", answer.what, answer.still_unknown]
        case Reserved():
            return ["reserved", answer.seq, answer.clock.to_json()]
        case errors.ResultDiffers():
            return ["ResultDiffers", answer.intent, _sealed(answer.sealed)]
        case FenceError():
            return [type(answer).__name__, vars(answer)]
        case _:
            raise TypeError(f"{type(answer).__name__} is never remembered")


def decode_answer(value: Json) -> Answer:
    """Read what `encode_answer` wrote."""
    kind = value[0]
    match kind:
        case "committed":
            return Committed(_sealed_of(value[1]))
        case "ok":
            return Ok(value[1], value[2])
        case "reserved":
            return Reserved(value[1], VectorClock(value[2]))
        case "ResultDiffers":
            return errors.ResultDiffers(value[1], _sealed_of(value[2]))
        case _:
            return _ERRORS[kind](**value[1])


# Which refusals may be remembered: everything that has plain fields.
_ERRORS: dict[str, Callable[..., FenceError]] = {
    name: kind
    for name, kind in vars(errors).items()
    if isinstance(kind, type) and issubclass(kind, FenceError)
}


def _read(text: bytes | str | list[Json], build: Callable[[Json], T]) -> T:
    try:
        # A journal's line is parsed as a whole; its records come here as values.
        value = orjson.loads(text) if isinstance(text, bytes | str) else text
        if value[0] != VERSION:
            raise LedgerDamaged(
                f"a record has version {value[0]!r}, this fencekit reads {VERSION}: "
                "use the fencekit that wrote it"
            )
        return build(value)
    except LedgerDamaged:
        raise
    except Exception as problem:
        # Damage has many faces (ValueError, KeyError, a wrong type, our own checks): one answer.
        raise LedgerDamaged(
            f"a record cannot be read ({type(problem).__name__}: {str(problem)[:80]}): "
            "run `fencekit ledger verify`"
        ) from None


def _clock(clock: VectorClock) -> dict[str, int]:
    return clock.to_json() if clock is not NO_CLOCK else {}


def _clock_of(value: Json) -> VectorClock:
    return VectorClock(value) if value else NO_CLOCK


def _request(request: EffectRequest) -> Json:
    return [
        request.intent,
        request.tool,
        request.args_json,
        request.fingerprint,
        request.domain,
        request.agent,
        [[entry.domain, entry.seq] for entry in request.read_set],
        request.parent,
        _clock(request.known_clock),
        request.causal,
        request.principal,
    ]


def _request_of(value: Json) -> EffectRequest:
    intent, tool, args, print_, domain, agent, reads, parent, clock, causal, principal = value
    read_set = tuple(ReadSetEntry(d, s) for d, s in reads) if reads else ()
    return EffectRequest(
        intent,
        tool,
        args,
        print_,
        domain,
        agent,
        read_set,
        parent,
        _clock_of(clock),
        causal,
        principal,
    )


def _ticket(ticket: PreparedEffect) -> Json:
    return [
        ticket.id,
        _request(ticket.request),
        ticket.generation,
        ticket.seq,
        _clock(ticket.clock),
        ticket.lease_end_ms,
    ]


def _ticket_of(value: Json) -> PreparedEffect:
    name, request, generation, seq, clock, lease_end = value
    return PreparedEffect(name, _request_of(request), generation, seq, _clock_of(clock), lease_end)


def _result(result: Result) -> Json:
    return [result.text, result.kept]


def _result_of(value: Json) -> Result:
    text, kept = value
    return Result(text, kept)


def _result_or_none(result: Result | None) -> Json:
    return None if result is None else _result(result)


def _sealed(sealed: Sealed) -> Json:
    return [_ticket(sealed.ticket), _result(sealed.result), sealed.hash]


def _sealed_of(value: Json) -> Sealed:
    ticket, result, digest = value
    return Sealed(_ticket_of(ticket), _result_of(result), digest)


def _state(state: State) -> Json:
    match state:
        case Absent():
            return None
        case InFlight():
            return [
                "f",
                _ticket(state.ticket),
                [state.holder.kind, state.holder.process],
                state.lease_end_ms,
                state.boot,
                state.since_ms,
                state.lease_expiry,
            ]
        case Done():
            return [
                "d",
                _sealed(state.sealed),
                state.at_ms,
                state.expires_at_ms,
                state.commit,
                state.operator,
                state.note,
            ]
        case Unknown():
            return [
                "u",
                _ticket(state.ticket),
                [state.holder.kind, state.holder.process],
                state.boot,
                state.cause,
                state.reason,
                state.since_ms,
                state.late_commit,
                _result_or_none(state.reported),
                None if state.stale is None else encode_answer(state.stale),
            ]
        case _:
            assert_never(state)


def _state_of(value: Json) -> State:
    if value is None:
        return Absent()
    match value:
        case ["f", ticket, holder, lease_end, boot, since, expiry]:
            return InFlight(_ticket_of(ticket), Holder(*holder), lease_end, boot, since, expiry)
        case ["d", sealed, at, expires, commit, operator, note]:
            return Done(_sealed_of(sealed), at, expires, commit, operator, note)
        case ["u", ticket, holder, boot, cause, reason, since, late, reported, stale]:
            return Unknown(
                _ticket_of(ticket),
                Holder(*holder),
                boot,
                cause,
                reason,
                since,
                late,
                None if reported is None else _result_of(reported),
                None if stale is None else decode_answer(stale),
            )
        case _:
            raise ValueError("no state has this shape")


def _doubt(doubt: Doubt) -> Json:
    return [_ticket(doubt.ticket), doubt.kind, _result_or_none(doubt.result), doubt.at_ms]


def _doubt_of(value: Json) -> Doubt:
    ticket, kind, result, at = value
    return Doubt(_ticket_of(ticket), kind, None if result is None else _result_of(result), at)


def _ended(ended: Ended) -> Json:
    sealed = None if ended.sealed is None else _sealed(ended.sealed)
    return [ended.ticket, ended.how, ended.at_ms, sealed, ended.commit]


def _ended_of(value: Json) -> Ended:
    ticket, how, at, sealed, commit = value
    return Ended(ticket, how, at, None if sealed is None else _sealed_of(sealed), commit)


def _remembered(kept: Remembered) -> Json:
    return [kept.command, kept.at_ms, encode_answer(kept.answer)]


def _remembered_of(value: Json) -> Remembered:
    command, at, answer = value
    return Remembered(command, at, decode_answer(answer))


def _intent_of(value: Json) -> IntentRecord:
    _, state, revision, generation, doubts, ended, remembered = value
    return IntentRecord(
        _state_of(state),
        revision,
        generation,
        tuple(map(_doubt_of, doubts)),
        tuple(map(_ended_of, ended)),
        tuple(map(_remembered_of, remembered)),
    )


def _domain_of(value: Json) -> DomainHead:
    _, seq, clock, reservations, cited_by, revision, remembered = value
    return DomainHead(
        seq,
        _clock_of(clock),
        tuple(
            OpenReservation(IntentKey(principal, intent), number, before, _clock_of(before_clock))
            for principal, intent, number, before, before_clock in reservations
        ),
        tuple(IntentKey(*key) for key in cited_by),
        revision,
        tuple(map(_remembered_of, remembered)),
    )


def _floor_of(value: Json) -> Floor:
    _, seq, clock, remembered = value
    return Floor(seq, _clock_of(clock), tuple(map(_remembered_of, remembered)))


def _marker_of(value: Json) -> Marker:
    _, phase, other, move = value
    if phase not in get_args(Phase):
        raise ValueError(f"no ledger is {phase!r}")
    return Marker(phase, other, move)
