"""`--ask`: the human behind the host says whether a call of unknown outcome happened.

Pure. A question is asked at the next duplicate of such a call, where its client declared that it
can show one: in the handshake era by a request of ours, which the host's user answers while the
call waits; in the stateless era by an `input_required` answer, after which the client sends the
call again with the answer in it. The answer is an operator's act about the attempt and revision
that were asked about: whatever moved meanwhile, the ledger refuses it, and nothing runs by it.

Who asks first claims the question in the ledger, as an intent of its own beside the call's, so that
no two humans are asked about one call at the same time, in whatever process; a claim whose process
died is taken over where the ledger can tell, and else ends with its lease.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from fencekit.core.errors import IntentFailed
from fencekit.core.messages import Clear, Committed, Fresh, Ok, Prepare, Release, Replay, Settle
from fencekit.core.request import EffectRequest
from fencekit.core.result import Result
from fencekit.core.state import IntentKey, PreparedEffect
from fencekit.ledger.base import Outcome
from fencekit.wire.frames import (
    Frame,
    IdKey,
    encode,
    notification_bytes,
    parse,
    request_bytes,
    result_bytes,
)
from fencekit.wrap import form, outcome
from fencekit.wrap.actions import Call, Waiter
from fencekit.wrap.form import Answer
from fencekit.wrap.owed import Owed
from fencekit.wrap.turn import Settings, Turn

AGENT = "wrap-ask"
"""Who holds the claims; not the name of the proxy, so that they are nobody's calls."""
ROUND = 300.0  # seconds within which a stateless client must bring the answer
_SPARE = 30.0  # seconds by which a claim outlives its question
_ASKED = 1000  # ids of our own requests whose late answers are recognised
_ENTRY = "fencekit"
_FIELDS = ("inputResponses", "requestState")


@dataclass(eq=False, slots=True)
class Question:
    """One question that is being asked: about which attempt, of whom, until when."""

    call: Call
    failed: IntentFailed
    who: str
    claim: PreparedEffect
    until: float
    # What a later leg of a multi-round call brought of its own, for when it is sent again.
    fields: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer that a stateless client brought; without a question it came too late."""

    question: Question | None
    answer: Answer


@dataclass(frozen=True, slots=True)
class Ends:
    """How a call goes on after its question: `unknown` refuses it, for a further reason if any."""

    unknown: Callable[[Call, IntentFailed, str], None]
    refused: Callable[[Call, str], None]
    again: Callable[[Call], None]
    done: Callable[[Call, Replay], None]
    rounds: Callable[[Call, IntentFailed, Waiter, bytes], None]
    # Whether the server has answered an attempt, so that it cannot run any more; whether a tool
    # promises structured results, which a settled call cannot give.
    ended: Callable[[str], bool]
    structured: Callable[[str], bool]


class Questions:
    """The questions of one gate."""

    def __init__(self, settings: Settings, turn: Turn, owed: Owed, ends: Ends) -> None:
        self.settings = settings
        self.turn = turn
        self.owed = owed
        self.ends = ends
        self._able = False
        self._client: object = None
        self._shown: dict[IdKey, Question] = {}  # by the id of our request
        self._rounds: dict[str, Question] = {}  # by the state that the client brings back
        self._asked: deque[IdKey] = deque(maxlen=_ASKED)

    # --- who can be asked ---

    def introduced(self, params: Mapping[str, Any]) -> None:
        """Take what a client of the handshake era says of itself."""
        self._able = form.can_show(params.get("capabilities"))
        self._client = params.get("clientInfo")

    def welcomed(self, result: object) -> None:
        """Take the revision that the server chose: older ones have no questions."""
        version = result.get("protocolVersion") if isinstance(result, Mapping) else None
        if not isinstance(version, str) or version < form.FIRST_ELICITATION:
            self._able = False

    def _askable(self, call: Call) -> tuple[Waiter, str] | None:
        """Return the first of those who wait whose human can be asked, and the human's name."""
        for waiter in call.waiters:
            able, client = self._able, self._client
            if waiter.asker.modern:
                able, client = form.asks_in_rounds(waiter.frame.params)
            if able:
                return waiter, form.human_at(client)
        return None

    # --- asking ---

    def start(self, call: Call, failed: IntentFailed) -> bool:
        """Ask about an unknown call; says whether that is done. One of the ends follows then."""
        if not self.settings.ask or call.questioned or self._askable(call) is None:
            return False
        call.questioned = True
        self._claim(call, failed)
        return True

    def _claim(self, call: Call, failed: IntentFailed) -> None:
        key, s = call.key, self.settings
        request = EffectRequest.make(f"{key.intent}/ask", "", agent=AGENT, principal=key.principal)
        lease = max(ROUND, call.treatment.rule.wait) + _SPARE
        now = self.turn.at.wall_ms
        claim = Prepare(s.new_id(), now, request, s.holder(), int(lease * 1000), "reclaim")

        def claimed(said: Outcome) -> None:
            if isinstance(said, IntentFailed):
                self._take_over(call, failed, request.key, said)
            else:
                self._claimed(call, failed, said)

        self.turn.ask(claim, claimed)

    def _take_over(
        self, call: Call, failed: IntentFailed, key: IntentKey, claim: IntentFailed
    ) -> None:
        """Whoever asked has died: a question is no effect, so nothing is lost by asking anew."""

        def cleared(said: Outcome) -> None:
            if isinstance(said, Ok):
                self._claim(call, failed)
            else:
                self.ends.unknown(call, failed, "")

        ident, now = self.settings.new_id(), self.turn.at.wall_ms
        why = "whoever asked has died"
        self.turn.ask(Clear(ident, now, key, claim.ticket, claim.revision, AGENT, why), cleared)

    def _claimed(self, call: Call, failed: IntentFailed, said: Outcome) -> None:
        asked = self._askable(call)
        if not isinstance(said, Fresh):
            self.ends.unknown(call, failed, "")
        elif asked is None:  # whoever could be asked has given up
            self._release(said.ticket)
            self.ends.unknown(call, failed, "")
        elif asked[0].asker.modern:
            self._ask_in_rounds(call, failed, asked, said.ticket)
        else:
            self._show(call, failed, asked, said.ticket)

    def _show(
        self, call: Call, failed: IntentFailed, asked: tuple[Waiter, str], claim: PreparedEffect
    ) -> None:
        """Send a request of our own; its id says which call it belongs to."""
        waiter, who = asked
        ident = f"fencekit-ask-{self.settings.new_id()}:{str(waiter.frame.id)[:100]}"
        params = encode(form.form(call, failed))
        frame = parse(request_bytes(ident, "elicitation/create", params))[0]
        until = self.turn.at.mono + call.treatment.rule.wait
        self._shown[frame.key] = Question(call, failed, who, claim, until)
        self._asked.append(frame.key)
        self.turn.hurry = True
        self.turn.to_client(frame.raw)

    def _ask_in_rounds(
        self, call: Call, failed: IntentFailed, asked: tuple[Waiter, str], claim: PreparedEffect
    ) -> None:
        """Answer with a request for input; the others who wait hear that it is unknown."""
        waiter, who = asked
        state = f"{self._prefix}{self.settings.new_id()}"
        own = {n: call.frame.params[n] for n in _FIELDS if n in call.frame.params}
        until = self.turn.at.mono + ROUND
        self._rounds[state] = Question(call, failed, who, claim, until, own)
        request = {"method": "elicitation/create", "params": form.form(call, failed)}
        result = {
            "resultType": "input_required",
            "inputRequests": {_ENTRY: request},
            "requestState": state,
        }
        self.ends.rounds(call, failed, waiter, result_bytes(waiter.asker.id, encode(result)))

    @property
    def _prefix(self) -> str:
        """What our states begin with; another proxy behind or before this one has other scopes."""
        return f"fencekit-ask/{self.settings.scope.name}/"

    # --- answers ---

    def answered(self, frame: Frame) -> bool:
        """Take the answer to a request of ours; says whether it was one, late ones included."""
        question = self._shown.pop(frame.key, None)
        if question is not None:
            self._judge(question.call, question, form.read(frame.result))
        return question is not None or frame.key in self._asked

    def taken(self, frame: Frame) -> tuple[Frame, Reply | None]:
        """Return a call without an answer of ours that it brings, and that answer."""
        state = frame.params.get("requestState")
        if not isinstance(state, str) or not state.startswith(self._prefix):
            return frame, None
        question = self._rounds.pop(state, None)
        responses = frame.params.get("inputResponses")
        said = responses.get(_ENTRY) if isinstance(responses, Mapping) else None
        params = {name: value for name, value in frame.params.items() if name not in _FIELDS}
        params.update(question.fields if question is not None else {})
        bare = parse(encode({**frame.message, "params": params}))[0]
        return bare, Reply(question, form.read(said))

    def judge(self, call: Call, reply: Reply) -> None:
        """Carry out what a stateless client brought for a call."""
        question = reply.question
        if question is None:
            self.ends.refused(call, "it came too late")
        elif question.call.key != call.key:
            self._release(question.claim)
            self.ends.refused(call, "it was given about another call")
        else:
            call.questioned = True
            self._judge(call, question, reply.answer)

    def dropped(self, reply: Reply) -> None:
        """An answer is not needed any more: the same call runs already."""
        if reply.question is not None:
            self._release(reply.question.claim)

    def _judge(self, call: Call, question: Question, answer: Answer) -> None:
        def settled(said: Outcome) -> None:
            self._release(question.claim)
            self._settled(call, said)

        def cleared(said: Outcome) -> None:
            self._release(question.claim)
            self._cleared(call, question.failed, said)

        match answer.said:
            case "happened":
                self.turn.ask(self._settle(call, question, answer), settled)
            case "did not happen":
                self.turn.ask(self._clear(call, question, answer), cleared)
            case "unsure":
                self._release(question.claim)
                self.ends.unknown(call, question.failed, "")

    def _settle(self, call: Call, question: Question, answer: Answer) -> Settle:
        s, failed, now = self.settings, question.failed, self.turn.at.wall_ms
        text = outcome.confirmed(now)
        result: dict[str, Any] = {"content": [{"type": "text", "text": text}]}
        if self.ends.structured(call.treatment.tool):
            result["isError"] = True
        return Settle(
            s.new_id(),
            now,
            call.key,
            failed.ticket,
            failed.revision,
            Result.of(result, s.max_result),
            int(call.treatment.rule.replay_for * 1000),
            question.who,
            answer.note,
        )

    def _clear(self, call: Call, question: Question, answer: Answer) -> Clear:
        s, failed = self.settings, question.failed
        return Clear(
            s.new_id(),
            self.turn.at.wall_ms,
            call.key,
            failed.ticket,
            failed.revision,
            question.who,
            answer.note,
            even_if_alive=self.ends.ended(failed.ticket),
        )

    def _settled(self, call: Call, said: Outcome) -> None:
        if isinstance(said, Committed):
            self.ends.done(call, Replay(said.sealed, self.turn.at.wall_ms))
        else:
            self.ends.refused(call, str(said))

    def _cleared(self, call: Call, failed: IntentFailed, said: Outcome) -> None:
        if isinstance(said, Ok) and not said.still_unknown:
            self.ends.again(call)
        elif isinstance(said, Ok):
            self.ends.unknown(call, failed, "another attempt may have run")
        else:
            self.ends.refused(call, str(said))

    def _release(self, claim: PreparedEffect) -> None:
        now = self.turn.at.wall_ms
        self.owed.end(Release(self.settings.new_id(), now, claim, "the question is over"))

    # --- time ---

    def tick(self) -> None:
        """Give up on questions that nobody answered in time."""
        now = self.turn.at.mono
        for key, question in list(self._shown.items()):
            if now >= question.until:
                self._withdraw(key, "nobody answered in time")
        for state, question in list(self._rounds.items()):
            if now >= question.until:
                del self._rounds[state]
                self._release(question.claim)

    def due(self) -> list[float]:
        """Return when there is something to do."""
        return [q.until for q in (*self._shown.values(), *self._rounds.values())]

    def given_up(self, call: Call) -> None:
        """Nobody waits for a call any more: take its question back."""
        for key, question in list(self._shown.items()):
            if question.call is call:
                self._withdraw(key, "the call was cancelled")

    def left(self) -> None:
        """The client has gone: its human will answer nothing any more."""
        for key in list(self._shown):
            self._withdraw(key, "the host went away")
        for question in self._rounds.values():
            self._release(question.claim)
        self._rounds.clear()

    def _withdraw(self, key: IdKey, why: str) -> None:
        question = self._shown.pop(key)
        params = encode({"requestId": key[1], "reason": why})
        self.turn.to_client(notification_bytes("notifications/cancelled", params))
        self._release(question.claim)
        self.ends.unknown(question.call, question.failed, "")


def asked_for(ident: object) -> str:
    """Return the id of the client's request that a question of ours belongs to, else ""."""
    text = ident if isinstance(ident, str) else ""
    return text.partition(":")[2] if text.startswith("fencekit-ask-") else ""
