"""The life of fenced calls: asked, sent once, recorded, and answered to everybody who waits.

Pure: it takes what happened and puts actions into the turn. One intent has at most one `Call` here;
identical requests that come while it runs wait for its one answer.

Over 400 lines: every way in which one call can end is here, to be read beside the others.
"""

from __future__ import annotations

from collections.abc import Callable

from fencekit.core import errors
from fencekit.core.messages import (
    Abort,
    Answer,
    Commit,
    Committed,
    Fresh,
    Heartbeat,
    Look,
    Prepare,
    Release,
    Replay,
    Seen,
)
from fencekit.core.result import Result
from fencekit.core.state import InFlight, IntentKey
from fencekit.ledger.base import Outcome
from fencekit.wire.frames import Frame, IdKey, encode, id_key, member, result_bytes
from fencekit.wrap import outcome
from fencekit.wrap.actions import Call, Count, Peek, Stage, Waiter
from fencekit.wrap.ask import Ends, Questions
from fencekit.wrap.handles import handle_of
from fencekit.wrap.owed import Owed
from fencekit.wrap.reconcile import Reconciler
from fencekit.wrap.tasks import Tasks
from fencekit.wrap.tools import Catalogue
from fencekit.wrap.turn import Settings, Turn
from fencekit.wrap.undo import Undo
from fencekit.wrap.verdict import Proof, Verdict, judge

FIRST_PAUSE, LAST_PAUSE = 0.005, 0.15  # seconds between two peeks at another process's call
LOOK_EVERY = 1.0  # seconds; a death or a lapse changes no record, so it must be looked for
MAX_TRIES = 5  # admissions that were heard too late, or ids that had ended

Answers = Callable[[Waiter], bytes]


class Calls:
    """All fenced calls of one gate."""

    def __init__(self, settings: Settings, turn: Turn, catalogue: Catalogue, undo: Undo) -> None:
        self.settings = settings
        self.turn = turn
        self.catalogue = catalogue
        self.by_key: dict[IntentKey, Call] = {}
        self.by_server_id: dict[IdKey, Call] = {}
        self.by_client_id: dict[IdKey, tuple[Call, Waiter]] = {}
        self.owed = Owed(turn)
        self.reconciler = Reconciler(settings, turn)
        self.questions = Questions(settings, turn, self.owed, self._ends())
        self.tasks = Tasks(settings, turn, catalogue, self.owed, undo)
        # Called when a fenced call is about to leave, and with each call that must start anew.
        self.on_send: Callable[[], None] = lambda: None
        self.on_again: Callable[[Frame], None] = lambda _frame: None

    def _ends(self) -> Ends:
        """How calls go on after a human was asked about them."""
        return Ends(
            self._unknown,
            lambda call, why: self._refuse(
                call, "refused", outcome.not_taken(why, call.key.intent)
            ),
            self._prepare,
            lambda call, said: self.finish(call, self._replays(call, said), None),
            self._in_rounds,
            self.reconciler.has_ended,
            lambda tool: "outputSchema" in self.catalogue.declared.get(tool, {}),
        )

    # --- a request comes in ---

    def take(self, call: Call, waiter: Waiter) -> bool:
        """Fence one request: join the call that runs already, or ask the ledger.

        False while only observing and where it would not have run: then it must pass.
        """
        running = self.by_key.get(call.key)
        if running is not None and self.settings.observe:
            self.turn.say(f"observed: {call.treatment.tool} would have waited for its twin")
            return False
        self.by_client_id[waiter.frame.key] = (call, waiter)
        if running is None:
            waiter.first = True
            call.waiters.append(waiter)
            self.by_key[call.key] = call
            if call.reply is None:
                self._prepare(call)
            else:
                self.questions.judge(call, call.reply)
        elif running.identity.request.fingerprint != call.identity.request.fingerprint:
            self._answer(waiter, self._refused(call, "conflict", outcome.other_action()))
        else:
            self.by_client_id[waiter.frame.key] = (running, waiter)
            running.waiters.append(waiter)
        if running is not None and call.reply is not None:
            self.questions.dropped(call.reply)
        return True

    def cancel(self, key: IdKey) -> bool:
        """Detach the waiter whose request was cancelled; says whether it was one of ours."""
        found = self.by_client_id.pop(key, None)
        if found is None:
            return False
        call, waiter = found
        call.waiters.remove(waiter)
        if call.stage is Stage.WAITING and not call.waiters:
            self._over(call)
        if call.questioned and not call.waiters:
            self.questions.given_up(call)
        return True

    def is_left(self, call: Call) -> bool:
        """Whether a call that runs may be cancelled at the server: nobody waits for it any more."""
        forward = call.treatment.rule.cancel == "forward"
        return forward and call.stage is Stage.RUNNING and not call.waiters

    # --- what the ledger says ---

    def _prepare(self, call: Call) -> None:
        s, rule = self.settings, call.treatment.rule
        call.stage, call.ticket_id, call.asked_at = Stage.ASKING, s.new_id(), self.turn.at.mono
        command = Prepare(
            call.ticket_id,
            self.turn.at.wall_ms,
            call.identity.request,
            s.holder(),
            int(rule.lease * 1000),
        )
        call.asked = command
        self.turn.ask(command, lambda said: self._prepared(call, command, said))

    def _prepared(self, call: Call, asked: Prepare, said: Outcome) -> None:
        if self.settings.observe and not isinstance(said, Fresh):
            self._observed(call, said)
            return
        match said:
            case Fresh():
                self._admitted(call, said)
            case Replay():
                self._count_twins(call, said)
                self._replay(call, said)
            case errors.IntentInFlight():
                self._wait(call, said.since_ms)
            case errors.IntentFailed():
                self._failed(call, said)
            case errors.IntentMismatch():
                self._mismatch(call)
            case errors.AlreadyEnded() | errors.Expired() if call.tries < MAX_TRIES:
                call.tries += 1
                self._prepare(call)
            case errors.LedgerError():
                self.turn.say(f"the ledger is unusable, so calls are refused: {said}")
                self.owed.later(asked)
                self._refuse(call, "ledger", outcome.ledger_unusable(str(said)))
            case _:
                self._refuse(call, "refused", str(said))

    def _admitted(self, call: Call, said: Fresh) -> None:
        call.ticket = said.ticket
        waited = self.turn.at.mono - call.asked_at
        lease = call.treatment.rule.lease
        if waited > lease / 3:
            call.tries += 1
            self.owed.end(self._release(call, "the admission was heard too late to run"))
            if call.tries < MAX_TRIES:
                self._prepare(call)
            else:
                why = "the ledger answers too slowly for the lease"
                self._refuse(call, "ledger", outcome.ledger_unusable(why))
        elif not call.waiters:
            self.owed.end(self._release(call, "nobody waits for it any more"))
            self._over(call)
        else:
            self._send(call)

    def _send(self, call: Call) -> None:
        rule, now = call.treatment.rule, self.turn.at
        call.stage, call.running_since_ms = Stage.SENDING, now.wall_ms
        call.next_beat, call.deadline = now.mono + rule.lease / 3, now.mono + rule.call_deadline
        self.by_server_id[call.server_id] = call
        self.on_send()
        self.turn.to_server(call.frame, call)

    def _observed(self, call: Call, said: Outcome) -> None:
        """Send it although the fence would have answered otherwise, and say so."""
        call.observed = "replayed" if isinstance(said, Replay) else str(said)
        self.turn.say(
            f"observed: {call.treatment.tool} would not have run again: {call.observed} "
            f"(intent {call.key.intent})"
        )
        self._send(call)

    def _wait(self, call: Call, since_ms: int) -> None:
        """Another process (or a forgotten attempt of this one) has it in flight."""
        now = self.turn.at.mono
        if not call.waiters:
            self._over(call)
            return
        call.stage, call.running_since_ms = Stage.WAITING, since_ms
        call.pause, call.poll_at = FIRST_PAUSE, now + FIRST_PAUSE
        call.look_by, call.peeked = now + LOOK_EVERY, None
        self.turn.hurry = True

    def peeked(self, call: Call, number: int) -> None:
        """Take the number of the record that another process writes."""
        if call.stage is not Stage.WAITING:
            return
        first, changed = call.peeked is None, number != call.peeked
        call.peeked = number
        if changed or first or self.turn.at.mono >= call.look_by:
            call.look_by = self.turn.at.mono + LOOK_EVERY
            look = Look(self.settings.new_id(), self.turn.at.wall_ms, call.key)
            self.turn.ask(look, lambda said: self._looked(call, said))

    def _looked(self, call: Call, said: Outcome) -> None:
        if call.stage is not Stage.WAITING:
            return
        state = said.record.state if isinstance(said, Seen) else None
        if not isinstance(state, InFlight):
            self._prepare(call)
            return

        def found(text: str | None) -> None:
            if text is not None and call.stage is Stage.WAITING:
                self.finish(call, self._handles(call, text, state.since_ms), None)

        self.tasks.kept(state.ticket.id, found)

    def _replay(self, call: Call, said: Replay) -> None:
        """Answer with the recorded result, or with the task's handle who must be given one."""
        results = self._replays(call, said)
        if not any(waiter.asker.tasks and not waiter.asker.modern for waiter in call.waiters):
            self.finish(call, results, None)
            return

        def found(text: str | None) -> None:
            handles = self._handles(call, text, said.at_ms) if text is not None else results

            def answers(waiter: Waiter) -> bytes:
                old = waiter.asker.tasks and not waiter.asker.modern
                return handles(waiter) if old else results(waiter)

            self.finish(call, answers, None)

        self.tasks.kept(said.sealed.ticket.id, found)

    def _failed(self, call: Call, said: errors.IntentFailed) -> None:
        """Answer for an attempt that ended unknown, unless it is a task that goes on without us."""
        if said.cause != "died":
            self._doubted(call, said)
            return

        def found(text: str | None) -> None:
            if text is None:
                self._doubted(call, said)
            else:
                self.finish(call, self._handles(call, text, said.since_ms), None)

        self.tasks.kept(said.ticket, found)

    def _doubted(self, call: Call, said: errors.IntentFailed) -> None:
        """Ask the server, then a human, where they can be asked; else refuse."""
        if call.treatment.rule.reconcile is not None and not call.reconciled:
            call.reconciled = True
            self.reconciler.start(call, said, lambda: self._prepare(call))
        elif not self.questions.start(call, said):
            self._unknown(call, said)

    def _unknown(self, call: Call, said: errors.IntentFailed, why: str = "") -> None:
        self._count_twins(call, said)
        self.finish(call, self._withheld(call, said, why), None)

    def _withheld(self, call: Call, said: errors.IntentFailed, why: str = "") -> Answers:
        text = outcome.may_have_happened(why or said.reason or said.cause, call.key.intent)
        return self._refused(call, "unknown", text, said.since_ms)

    def _in_rounds(
        self, call: Call, said: errors.IntentFailed, asked: Waiter, request: bytes
    ) -> None:
        """Let one of those who wait ask its human; the others are refused."""
        others = self._withheld(call, said)
        self.finish(call, lambda waiter: request if waiter is asked else others(waiter), None)

    def _mismatch(self, call: Call) -> None:
        """Find out whether the arguments differ or only what was guessed of the account."""
        if not self.settings.scope.guess or call.identity.by == "key":
            self._refuse(call, "conflict", outcome.other_action())
        else:
            self._refuse(call, "other account", outcome.other_account())

    # --- what the server's side says ---

    def sent(self, call: Call) -> None:
        """At least one byte of the call left."""
        if call.stage is Stage.SENDING:
            call.stage = Stage.RUNNING

    def unsent(self, call: Call, why: str) -> None:
        """No byte of the call left: free it, and say so to everybody."""
        self.by_server_id.pop(call.server_id, None)
        text = outcome.never_left(why)
        self._record(call, self._release(call, why), self._refused(call, "free", text))

    def broken(self, call: Call, why: str) -> None:
        """Bytes left and no answer will come (or the time for it is over)."""
        if call.stage not in (Stage.SENDING, Stage.RUNNING):
            return
        text = outcome.lost(why, call.key.intent)
        answers = self._refused(call, "unknown", text, self.turn.at.wall_ms)
        self._record(call, self._abort(call, why), answers)

    def answered(self, answer: Frame) -> bool:
        """Take the server's answer to a fenced call; says whether it was one."""
        call = self.by_server_id.pop(answer.key, None)
        if call is None:
            return False
        verdict = self._judge(call, answer)
        if call.stage in (Stage.LATE, Stage.ENDING):
            self._late(call, answer, verdict)
            return True
        first, again = answer.raw, self._shared(call, answer)
        match verdict.proof:
            case Proof.DONE:
                command = self._commit(call, answer)
                self._record(call, command, self._sharing(call, answer, command), first)
            case Proof.ACCEPTED:
                self._accepted(call, answer)
            case Proof.INTERIM:
                self._record(call, self._release(call, "awaiting input"), None, first)
            case Proof.REJECTED:
                self._record(call, self._release(call, verdict.reason), again, first)
            case Proof.NOTHING:
                text = outcome.may_have_happened(verdict.reason, call.key.intent)
                others = self._refused(call, "unknown", text, self.turn.at.wall_ms)
                self.reconciler.ended(call.ticket_id)
                self._record(call, self._abort(call, verdict.reason), others, first)
        return True

    def _accepted(self, call: Call, answer: Frame) -> None:
        """Keep the handle, with the attempt in flight; then everybody gets it."""
        call.stage = Stage.ENDING
        text = (member(answer.raw, "result") or b"{}").decode()
        now = self.turn.at.wall_ms
        handles = self._handles(call, text, now)
        request = call.identity.request
        self._count_twins(call, errors.IntentInFlight(request.intent, request.agent, now, 0))
        handle = handle_of(answer.result)
        if handle is None or call.ticket is None:
            self.finish(call, handles, answer.raw)
            return
        self.tasks.accepted(
            call.ticket, handle, text, lambda: self.finish(call, handles, answer.raw)
        )

    def _judge(self, call: Call, answer: Frame) -> Verdict:
        if call.refused:
            return Verdict(Proof.REJECTED, call.refused)
        tool = call.treatment.tool
        return judge(
            answer,
            call.treatment.rule,
            call.frame.params.get("arguments"),
            self.catalogue.declared.get(tool),
            list_is_complete=self.catalogue.complete,
        )

    def _late(self, call: Call, answer: Frame, verdict: Verdict) -> None:
        """An answer after the deadline: nobody waits for it, but it settles the outcome."""
        call.stage = Stage.OVER
        if verdict.proof is Proof.DONE and call.ticket is not None:
            self.owed.end(self._commit(call, answer))
        elif verdict.proof is Proof.ACCEPTED:
            self._accepted(call, answer)

    def server_gone(self, why: str) -> None:
        """The server ended: what had left is unknown, what had not is free."""
        for call in list(self.by_key.values()):
            self.broken(call, why)
        self.by_server_id.clear()

    # --- recording and answering ---

    def _record(
        self,
        call: Call,
        command: Commit | Abort | Release | None,
        others: Answers | None,
        first: bytes | None = None,
    ) -> None:
        """Record how a call ended, then answer; `others` None starts the others anew."""
        call.stage = Stage.ENDING
        if command is None:  # only observed, and another attempt holds the record
            self.finish(call, others, first)
            return

        def recorded(said: Outcome) -> None:
            if isinstance(said, Committed):
                self._count_twins(call, Replay(said.sealed, self.turn.at.wall_ms))
            if isinstance(said, errors.FenceError):
                self.turn.say(f"{call.treatment.tool}: {said}")
                if isinstance(said, errors.LedgerError):
                    self.owed.later(command)
            self.finish(call, others, first)

        self.turn.ask(command, recorded)

    def _count_twins(self, call: Call, answer: Answer) -> None:
        """Count those who wait besides the one that asked, as if each had asked."""
        if call.asked is not None:
            for _ in call.waiters[1:]:
                self.turn.out.append(Count(call.asked, answer))

    def finish(self, call: Call, others: Answers | None, first: bytes | None) -> None:
        """Answer everybody who waits, and let go of the call."""
        waiters = list(call.waiters)
        self._over(call)
        for waiter in waiters:
            if waiter.first and first is not None:
                self._answer(waiter, lambda _w: first)
            elif others is not None:
                self._answer(waiter, others)
            else:
                self.by_client_id.pop(waiter.frame.key, None)
                self.on_again(waiter.frame)

    def _over(self, call: Call) -> None:
        call.waiters.clear()
        if self.by_key.get(call.key) is call:
            del self.by_key[call.key]
        # A call that was only given up may still be answered.
        call.stage = Stage.LATE if call.server_id in self.by_server_id else Stage.OVER

    def _answer(self, waiter: Waiter, answers: Answers) -> None:
        self.by_client_id.pop(waiter.frame.key, None)
        self.turn.to_client(answers(waiter))

    def _refuse(self, call: Call, state: str, text: str, since_ms: int | None = None) -> None:
        self.finish(call, self._refused(call, state, text, since_ms), None)

    def _refused(self, call: Call, state: str, text: str, since_ms: int | None = None) -> Answers:
        made = outcome.mark(state, call.key.intent, since_ms)
        return lambda waiter: outcome.refusal(waiter.asker, text, made)

    def _replays(self, call: Call, said: Replay) -> Answers:
        intent, quiet = call.key.intent, call.treatment.rule.quiet_replay
        made = outcome.mark("done", intent, said.at_ms, said.sealed.hash, replayed=True)
        result = said.sealed.result
        if not result.kept:
            text = outcome.not_kept(*outcome.kept_digest(result.text))
            return lambda waiter: outcome.refusal(waiter.asker, text, made)
        late = self.turn.at.wall_ms - said.at_ms > quiet * 1000
        note = outcome.already_ran(said.at_ms, intent) if late else ""
        return lambda waiter: outcome.replay(waiter.asker, result.text, made, note)

    def _handles(self, call: Call, text: str, since_ms: int) -> Answers:
        """Give the task's handle to those who can read one, and tell the others to wait."""
        intent = call.key.intent
        made = outcome.mark("running", intent, since_ms, replayed=True)
        waiting = outcome.mark("running", intent, since_ms)

        def give(waiter: Waiter) -> bytes:
            if waiter.asker.tasks:
                return outcome.handle(waiter.asker, text, made)
            return outcome.refusal(waiter.asker, outcome.accepted(since_ms), waiting)

        return give

    def _sharing(self, call: Call, answer: Frame, command: Commit | None) -> Answers:
        """Give the others the one result, marked as theirs only by replay."""
        intent, at_ms = call.key.intent, self.turn.at.wall_ms

        def share(waiter: Waiter) -> bytes:
            cert = command.sealed.hash if command is not None else ""
            made = outcome.mark("done", intent, at_ms, cert, replayed=True)
            text = (member(answer.raw, "result") or b"{}").decode()
            return outcome.replay(waiter.asker, text, made)

        return share

    def _shared(self, call: Call, answer: Frame) -> Answers:
        """Give the others a proven rejection as it is, under their own ids."""

        def share(waiter: Waiter) -> bytes:
            body = member(answer.raw, "error")
            if body is None:
                return result_bytes(waiter.asker.id, member(answer.raw, "result") or b"{}")
            return b'{"jsonrpc":"2.0","id":%b,"error":%b}' % (encode(waiter.asker.id), body)

        return share

    # --- commands ---

    def _commit(self, call: Call, answer: Frame) -> Commit | None:
        if call.ticket is None:
            return None
        text = (member(answer.raw, "result") or b"null").decode()
        s = self.settings
        return Commit.make(
            s.new_id(),
            self.turn.at.wall_ms,
            call.ticket,
            Result.of_text(text, s.max_result),
            int(call.treatment.rule.replay_for * 1000),
        )

    def _abort(self, call: Call, why: str) -> Abort | None:
        if call.ticket is None:
            return None
        return Abort(self.settings.new_id(), self.turn.at.wall_ms, call.ticket, why)

    def _release(self, call: Call, why: str) -> Release | None:
        if call.ticket is None:
            return None
        return Release(self.settings.new_id(), self.turn.at.wall_ms, call.ticket, why)

    # --- time ---

    def tick(self) -> None:
        """Do what is due: heartbeats, waits that are over, deadlines, looks at other processes."""
        now = self.turn.at.mono
        self.owed.tick()
        self.questions.tick()
        for call in list(self.by_key.values()):
            if call.stage in (Stage.SENDING, Stage.RUNNING):
                if now >= call.next_beat and call.ticket is not None:
                    self._beat(call)
                if now >= call.deadline:
                    limit = call.treatment.rule.call_deadline
                    self.broken(call, f"no answer within {limit:g} s")
                    continue
            elif call.stage is Stage.WAITING and now >= call.poll_at:
                call.pause = min(call.pause * 1.5, LAST_PAUSE)
                call.poll_at = now + call.pause
                self.turn.out.append(Peek(call))
            self._end_waits(call)

    def _beat(self, call: Call) -> None:
        assert call.ticket is not None
        lease = call.treatment.rule.lease
        call.next_beat = self.turn.at.mono + lease / 3
        beat = Heartbeat(
            self.settings.new_id(), self.turn.at.wall_ms, call.ticket, int(lease * 1000)
        )
        self.turn.ask(beat, lambda _said: None)

    def _end_waits(self, call: Call) -> None:
        """Tell those who waited long enough that it still runs."""
        over = self.turn.at.mono - call.treatment.rule.wait
        for waiter in _impatient(call):
            if waiter.since <= over:
                call.waiters.remove(waiter)
                since = call.running_since_ms
                text = outcome.still_running(since)
                self._answer(waiter, self._refused(call, "running", text, since))
        if call.stage is Stage.WAITING and not call.waiters:
            self._over(call)

    def due(self) -> float | None:
        """Return when `tick` has something to do next, or None."""
        times: list[float] = [*self.owed.due(), *self.questions.due()]
        for call in self.by_key.values():
            if call.stage is Stage.WAITING:
                times.append(call.poll_at)
            elif call.stage in (Stage.SENDING, Stage.RUNNING):
                beat = [call.next_beat] if call.ticket is not None else []
                times.append(min([*beat, call.deadline]))
            times += [waiter.since + call.treatment.rule.wait for waiter in _impatient(call)[:1]]
        return min(times) if times else None

    def progress(self, frame: Frame) -> bool:
        """Pass progress on to everybody who waits; says whether the frame was for a fenced call."""
        token = frame.params.get("progressToken")
        if token is None:
            return False
        for call in {*self.by_key.values(), *self.by_server_id.values()}:
            meta = call.frame.params.get("_meta")
            sent = meta.get("progressToken") if isinstance(meta, dict) else None
            if sent is not None and id_key(sent) == id_key(token):
                self._spread(call, frame)
                return True
        return False

    def _spread(self, call: Call, frame: Frame) -> None:
        if call.stage not in (Stage.SENDING, Stage.RUNNING):
            return
        for waiter in call.waiters:
            if waiter.first:
                self.turn.to_client(frame.raw)
            elif waiter.token is not None:
                params = {**frame.params, "progressToken": waiter.token}
                self.turn.to_client(encode({**frame.message, "params": params}))


def _impatient(call: Call) -> list[Waiter]:
    """Return who is to be told after a while that the call still runs, longest waiting first.

    Not the caller whose request runs, and nobody while the ledger is about to answer.
    """
    if call.stage in (Stage.ASKING, Stage.ENDING):
        return []
    return [w for w in call.waiters if not (w.first and call.stage is not Stage.WAITING)]
