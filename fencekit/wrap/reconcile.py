"""Asking the server itself, by a tool that only reads, whether an unknown call happened.

Pure. Found once settles the call, authoritatively absent clears it, more than once is a double-fire
that stays unknown and is told, and "could not determine" stays unknown.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from fencekit.core.errors import IntentFailed
from fencekit.core.messages import Clear, Ok, Settle
from fencekit.core.result import Result
from fencekit.ledger.base import Outcome
from fencekit.wire import protocol
from fencekit.wire.frames import Frame, IdKey, Kind, encode, parse, request_bytes
from fencekit.wrap.actions import Call
from fencekit.wrap.identity import look_up
from fencekit.wrap.turn import Settings, Turn

_ENDED_KEPT = 10_000
_TIMEOUT = 30.0  # seconds for the reading call
_MISSING = object()


@dataclass(frozen=True, slots=True)
class _Question:
    call: Call
    failed: IntentFailed
    again: Callable[[], None]
    until: float


class Reconciler:
    """Runs the configured reads; `again` asks the ledger anew once a read has been judged."""

    def __init__(self, settings: Settings, turn: Turn) -> None:
        self.settings = settings
        self.turn = turn
        self._asked: dict[IdKey, _Question] = {}
        # Attempts of this process that the server has answered: they cannot run any more.
        self._ended: deque[str] = deque(maxlen=_ENDED_KEPT)

    def ended(self, ticket: str) -> None:
        """Note that an attempt of this process ended with an answer of the server."""
        self._ended.append(ticket)

    def has_ended(self, ticket: str) -> bool:
        """Whether an attempt of this process is known to have ended with an answer."""
        return ticket in self._ended

    def start(self, call: Call, failed: IntentFailed, again: Callable[[], None]) -> None:
        """Ask the server about an unknown call."""
        rule = call.treatment.rule.reconcile
        assert rule is not None
        arguments = call.frame.params.get("arguments") or {}
        filled = {
            name: look_up(arguments, place, None)
            if isinstance(place, str) and is_path(place)
            else place
            for name, place in rule.args.items()
        }
        params: dict[str, Any] = {"name": rule.tool, "arguments": filled}
        meta = envelope(call.frame)
        if meta:
            params["_meta"] = meta
        ident = f"fencekit-reconcile-{self.settings.new_id()}"
        frame = parse(request_bytes(ident, "tools/call", encode(params)))[0]
        self._asked[frame.key] = _Question(call, failed, again, self.turn.at.mono + _TIMEOUT)
        self.turn.to_server(frame)

    def answered(self, answer: Frame) -> bool:
        """Take the answer to a reading call; says whether it was one."""
        question = self._asked.pop(answer.key, None)
        if question is None:
            return False
        self._decide(question, _count(answer, question), answer)
        return True

    def tick(self) -> None:
        """Give up on reads that were not answered in time."""
        for key, question in list(self._asked.items()):
            if self.turn.at.mono >= question.until:
                del self._asked[key]
                question.again()

    def due(self) -> list[float]:
        """Return when there is something to do."""
        return [question.until for question in self._asked.values()]

    def server_gone(self) -> None:
        """No read will be answered any more."""
        questions, self._asked = list(self._asked.values()), {}
        for question in questions:
            question.again()

    def _decide(self, question: _Question, count: int | None, answer: Frame) -> None:
        failed, call, s = question.failed, question.call, self.settings
        rule = call.treatment.rule.reconcile
        assert rule is not None
        who, now = f"reconcile:{rule.tool}", self.turn.at.wall_ms

        def told(said: Outcome) -> None:
            if not isinstance(said, Ok) and isinstance(said, Exception):
                self.turn.say(f"{call.treatment.tool}: {said}")
            question.again()

        gone = self.has_ended(failed.ticket)
        if count == 0 and not gone and self._may_still_run(failed, call):
            self.turn.say(
                f"{call.treatment.tool}: {rule.tool} does not find it yet, but a server behind a "
                "URL may still be at work on it; asked again at the next repeat"
            )
            question.again()
        elif count == 0:
            note = f"{rule.tool} says that it is not there"
            self.turn.ask(
                Clear(
                    s.new_id(), now, call.key, failed.ticket, failed.revision, who, note,
                    even_if_alive=gone,
                ),
                told,
            )  # fmt: skip
        elif count == 1:
            note = f"{rule.tool} found it"
            ttl = int(call.treatment.rule.replay_for * 1000)
            result = Result.of(_settled(answer, rule.tool), s.max_result)
            self.turn.ask(
                Settle(
                    s.new_id(),
                    now,
                    call.key,
                    failed.ticket,
                    failed.revision,
                    result,
                    ttl,
                    who,
                    note,
                ),
                told,
            )
        else:
            if count is not None:
                self.turn.say(
                    f"DOUBLE-FIRE: {rule.tool} found {count} for one call of "
                    f"{call.treatment.tool} (intent {call.key.intent}); it stays fenced"
                )
            question.again()

    def _may_still_run(self, failed: IntentFailed, call: Call) -> bool:
        """Whether absent may only mean "not yet": a server that nobody here could have ended."""
        unknown_for = self.turn.at.wall_ms - failed.since_ms
        return self.settings.remote and unknown_for < call.treatment.rule.call_deadline * 1000


def is_path(place: str) -> bool:
    """Whether a text names a place in a value."""
    return place.startswith(("$.", "/"))


def envelope(frame: Frame) -> dict[str, Any]:
    """Return the part of a request's `_meta` that says how the caller speaks."""
    meta = frame.params.get("_meta")
    own = (
        protocol.META_PROTOCOL_VERSION,
        protocol.META_CLIENT_CAPABILITIES,
        protocol.META_CLIENT_INFO,
    )
    return {name: meta[name] for name in own if name in meta} if isinstance(meta, dict) else {}


def _count(answer: Frame, question: _Question) -> int | None:
    """Return how often the call was found, or None where the answer does not say."""
    rule = question.call.treatment.rule.reconcile
    result = answer.result
    if answer.kind is not Kind.RESPONSE or not isinstance(result, Mapping) or rule is None:
        return None
    if result.get("isError") is True or result.get("resultType", "complete") != "complete":
        return None
    found = look_up(_said(result), rule.found, _MISSING)
    if isinstance(found, bool):
        return int(found)
    if isinstance(found, int) and found >= 0:
        return found
    return len(found) if isinstance(found, list) else None


def _said(result: Mapping[str, Any]) -> Any:
    """Return the structured content of a result, or its first text read as JSON."""
    structured = result.get("structuredContent")
    if structured is not None:
        return structured
    content = result.get("content")
    for block in content if isinstance(content, list) else []:
        if isinstance(block, Mapping) and isinstance(block.get("text"), str):
            try:
                return json.loads(block["text"])
            except (ValueError, RecursionError):
                return None
    return None


def _settled(answer: Frame, tool: str) -> dict[str, Any]:
    """Return the result that replays of a settled call give: what the reading tool said."""
    result = dict(answer.result)
    for name in ("_meta", "resultType", "structuredContent"):
        result.pop(name, None)
    content = result.get("content")
    note = f"The first answer was lost; {tool} shows that this call took effect once. It says:"
    blocks = content if isinstance(content, list) else []
    return {**result, "content": [{"type": "text", "text": note}, *blocks]}
