"""Calls that a server accepted as tasks: their handle is kept, and their outcome followed.

Pure. A handle is no outcome: the call's attempt stays in flight, for as long as the server keeps
the task. Two notes in the ledger outlive this process: under the attempt's id the handle, for
duplicates; under the task's id the attempt's ticket, for the answer that tells the outcome, whoever
asked for it. A task id given twice belongs to the later attempt. What is never asked about
lapses and is then unknown, like every attempt that nobody heard of again.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

from fencekit.core.errors import FenceError, LedgerError
from fencekit.core.messages import (
    Abort,
    Commit,
    Forget,
    Fresh,
    Heartbeat,
    Look,
    Ok,
    Prepare,
    Release,
    Replay,
    Seen,
)
from fencekit.core.request import EffectRequest
from fencekit.core.result import Result
from fencekit.core.state import (
    Done,
    Holder,
    InFlight,
    IntentKey,
    IntentRecord,
    PreparedEffect,
    Unknown,
)
from fencekit.core.ticket import ticket_from_json, ticket_to_json
from fencekit.ledger.base import Outcome
from fencekit.wire.frames import Frame, Kind, member
from fencekit.wrap.handles import Ending, Handle, endings, told
from fencekit.wrap.identity import GUESS
from fencekit.wrap.owed import Owed
from fencekit.wrap.rules import ToolRule
from fencekit.wrap.tools import Catalogue
from fencekit.wrap.turn import Settings, Turn
from fencekit.wrap.undo import Undo
from fencekit.wrap.verdict import (
    QUOTED,
    Proof,
    Verdict,
    by_configuration,
    clean,
    error_text,
    judge,
)

NOTE = "fencekit/task"
AGENT = "wrap-task"
"""Who writes the notes; not the name of the proxy, so that they are nobody's calls."""
_NOTE_LEASE_MS = 10_000  # a note that was begun and not written may be begun again after this

Then = Callable[[], None]


class Tasks:
    """The tasks of one gate's server, all of them in the ledger."""

    def __init__(
        self, settings: Settings, turn: Turn, catalogue: Catalogue, owed: Owed, undo: Undo
    ) -> None:
        self.settings = settings
        self.turn = turn
        self.catalogue = catalogue
        self.owed = owed
        self.undo = undo

    # --- a handle comes ---

    def accepted(self, ticket: PreparedEffect, handle: Handle, text: str, then: Then) -> None:
        """Keep the handle that came as the result `text`, then go on."""
        rule = self._rule(ticket)
        kept = max(handle.ttl_ms, int(rule.lease * 1000))

        def believed() -> None:
            s, now = self.settings, self.turn.at.wall_ms
            self.turn.ask(Heartbeat(s.new_id(), now, ticket, kept), lambda _said: then())

        def noted() -> None:
            longer = kept + int(rule.replay_for * 1000)
            value = {"ticket": ticket_to_json(ticket)}
            self._note(self._by_task(handle.task), value, longer, believed)

        value = {"task": handle.task, "answer": text}
        self._note(self._by_ticket(ticket.id), value, kept, noted)

    def _note(self, intent: str, value: dict[str, Any], ttl_ms: int, then: Then) -> None:
        """Write a note over what stood there; what cannot be written leaves the call in flight."""
        s = self.settings

        def written(said: Outcome) -> None:
            if isinstance(said, Exception):
                self.turn.say(f"a task could not be noted: {said}")
            then()

        def begun(said: Outcome) -> None:
            now = self.turn.at.wall_ms
            if isinstance(said, Fresh):
                result = Result.of(value, s.max_result)
                self.turn.ask(Commit.make(s.new_id(), now, said.ticket, result, ttl_ms), written)
            elif isinstance(said, Replay):
                key, old = said.sealed.ticket.key, said.sealed.ticket.id
                forget = Forget(s.new_id(), now, key, old, "task", "its id was given anew")
                self.turn.ask(
                    forget, lambda said: begin() if isinstance(said, Ok) else written(said)
                )
            else:
                written(said)

        def begin() -> None:
            request = EffectRequest.make(intent, NOTE, principal=s.scope.account, agent=AGENT)
            self.turn.ask(
                Prepare(
                    s.new_id(),
                    self.turn.at.wall_ms,
                    request,
                    Holder("ticket"),
                    _NOTE_LEASE_MS,
                    "reclaim",
                ),
                begun,
            )

        try:
            begin()
        except FenceError as problem:  # a scope so long that no name can be put after it
            written(problem)

    # --- a duplicate comes ---

    def kept(self, ticket_id: str, then: Callable[[str | None], None]) -> None:
        """Find the handle of an attempt: the text of the result that carried it, or None."""

        def found(note: dict[str, Any]) -> None:
            text, task = note.get("answer"), note.get("task")
            if not isinstance(text, str) or not isinstance(task, str):
                then(None)
                return

            def still_its(other: dict[str, Any]) -> None:
                ticket = other.get("ticket")
                own = isinstance(ticket, dict) and ticket.get("id") == ticket_id
                then(text if own else None)

            self._read(self._by_task(task), still_its)

        self._read(self._by_ticket(ticket_id), found)

    def _read(self, intent: str, then: Callable[[dict[str, Any]], None]) -> None:
        """Read a note; an empty one where there is none or the ledger cannot say."""

        def looked(said: Outcome) -> None:
            state = said.record.state if isinstance(said, Seen) else None
            kept = isinstance(state, Done) and state.sealed.result.kept
            value = state.sealed.result.value if isinstance(state, Done) and kept else {}
            then(value if isinstance(value, dict) else {})

        key = IntentKey(self.settings.scope.account, intent)
        self.turn.ask(Look(self.settings.new_id(), self.turn.at.wall_ms, key), looked)

    # --- the outcome passes by ---

    def answered(self, request: Frame, answer: Frame, then: Then) -> None:
        """Record what the answer to a `tasks/…` request says of calls, then go on."""
        self._record(endings(request, answer), then)

    def notified(self, notification: Frame) -> None:
        """Record what a notification says of a call."""
        self._record(told(notification), lambda: None)

    def _record(self, found: list[Ending], then: Then) -> None:
        left = len(found)
        if not left:
            then()

        def one_less() -> None:
            nonlocal left
            left -= 1
            if left == 0:
                then()

        for ending in found:
            self._end(ending, one_less)

    def _end(self, ending: Ending, then: Then) -> None:
        def found(note: dict[str, Any]) -> None:
            try:
                ticket = ticket_from_json(note["ticket"])
            except (KeyError, FenceError):  # no fenced call is known by this task
                then()
                return

            def looked(said: Outcome) -> None:
                if isinstance(said, Seen) and not _open(said.record, ticket.id):
                    then()
                else:
                    self._settle(ticket, ending, then)

            look = Look(self.settings.new_id(), self.turn.at.wall_ms, ticket.key)
            self.turn.ask(look, looked)

        self._read(self._by_task(ending.task), found)

    def _settle(self, ticket: PreparedEffect, ending: Ending, then: Then) -> None:
        verdict, s, now = self._judge(ticket, ending), self.settings, self.turn.at.wall_ms
        why = f"accepted as a task; {verdict.reason}"
        command: Commit | Abort | Release
        match verdict.proof:
            case Proof.DONE if ending.answer is not None:
                text = (member(ending.answer.raw, "result") or b"null").decode()
                result = Result.of_text(text, s.max_result)
                ttl_ms = int(self._rule(ticket).replay_for * 1000)
                command = Commit.make(s.new_id(), now, ticket, result, ttl_ms)
            case Proof.REJECTED:
                command = Release(s.new_id(), now, ticket, why)
            case _:
                command = Abort(s.new_id(), now, ticket, why)

        def recorded(said: Outcome) -> None:
            if isinstance(said, LedgerError):
                self.turn.say(f"{ticket.request.tool}: {said}")
                self.owed.later(command)
            done = verdict.proof is Proof.DONE
            if not (done and self.undo.done(ticket.request.tool, _arguments(ticket), then)):
                then()

        self.turn.ask(command, recorded)

    def _judge(self, ticket: PreparedEffect, ending: Ending) -> Verdict:
        """Judge the ending of a task as its call's answer.

        An error's code proves nothing here: the server had already taken the call on.
        """
        answer, tool = ending.answer, ticket.request.tool
        if answer is None:
            return Verdict(Proof.NOTHING, clean(ending.why, QUOTED))
        if answer.kind is Kind.ERROR:
            nothing = Verdict(Proof.NOTHING, f"{ending.why}: {error_text(answer)}")
            return by_configuration(answer, self._rule(ticket)) or nothing
        return judge(
            answer,
            self._rule(ticket),
            _arguments(ticket),
            self.catalogue.declared.get(tool),
            list_is_complete=self.catalogue.complete,
        )

    # --- names ---

    def _rule(self, ticket: PreparedEffect) -> ToolRule:
        return self.catalogue.treatment(ticket.request.tool).rule

    def _by_ticket(self, ticket_id: str) -> str:
        return self._named("attempt", ticket_id)

    def _by_task(self, task: str) -> str:
        return self._named("task", task)

    def _named(self, what: str, name: str) -> str:
        """Name a note; ids come from servers, so they are not taken into names as they are."""
        hashed = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()
        return f"{self.settings.scope.name}/{NOTE}/{what}/{hashed[:32]}"


def _open(record: IntentRecord, ticket_id: str) -> bool:
    """Whether an attempt's outcome is still to be told, or was told by somebody who guessed."""
    state = record.state
    if isinstance(state, InFlight | Unknown) and state.ticket.id == ticket_id:
        return True
    return any(one.ticket == ticket_id and one.how != "done" for one in record.ended)


def _arguments(ticket: PreparedEffect) -> dict[str, Any]:
    """Return the recorded arguments of a call: those by which it was told apart."""
    return {name: value for name, value in ticket.request.args.items() if name != GUESS}
