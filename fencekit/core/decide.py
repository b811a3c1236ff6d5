"""Every rule of the fence: `decide(view, command, now)` gives the answer and what to write.

`touches(command)` names the keys that a decision almost always needs. Both are pure: no I/O, no
clock, no randomness; every ledger runs them inside its own atomic section, so all ledgers mean the
same thing and one exhaustive check covers them all. The situations and what follows from them are
the table in `table`; `prepare`, `endings` and `operators` carry its cells out. Before the table
stands the marker of a ledger that is being moved (`moving`).
"""

from __future__ import annotations

from typing import NamedTuple, assert_never

from fencekit.core.domains import decide_domain
from fencekit.core.draft import Decision, Draft, View
from fencekit.core.endings import abort, commit, heartbeat, release
from fencekit.core.errors import Expired, FenceError
from fencekit.core.messages import (
    Abort,
    Answer,
    Clear,
    Command,
    Commit,
    Committed,
    Current,
    EvictDomain,
    Fill,
    Forget,
    Heartbeat,
    IntentCommand,
    Look,
    Mark,
    Prepare,
    Release,
    Reserve,
    Seen,
    Settle,
)
from fencekit.core.moving import fill, mark, turned_away
from fencekit.core.operators import clear, forget, settle
from fencekit.core.prepare import prepare
from fencekit.core.situation import as_of
from fencekit.core.state import OPEN, RETENTION_MS, Done, IntentKey, IntentRecord, Now


class Touches(NamedTuple):
    """The keys that a command needs; with any domain, the floor too."""

    intents: tuple[IntentKey, ...] = ()
    domains: tuple[str, ...] = ()


def touches(command: Command) -> Touches:
    """Name the keys that a command needs; a decision may still ask for more (`NotLoaded`)."""
    match command:
        case Prepare():
            request = command.request
        case Commit() | Abort() | Release():
            request = command.ticket.request
        case Heartbeat() | Clear() | Settle() | Forget() | Look():
            return Touches((command.key,))
        case Reserve() | EvictDomain() | Current():
            return Touches((), (command.domain,))
        case Mark():
            return Touches()
        case Fill():
            return Touches(
                tuple(key for key, _ in command.intents), tuple(name for name, _ in command.domains)
            )
        case _:
            assert_never(command)
    if request.domain is None and not request.read_set:
        return Touches((command.key,))
    names = {entry.domain for entry in request.read_set}
    if request.domain is not None:
        names.add(request.domain)
    return Touches((command.key,), tuple(sorted(names)))


def decide(view: View, command: Command, now: Now) -> Decision:
    """Decide one command.

    Raises `NotLoaded` where the view lacks a key; nothing else, whatever the state.
    """
    if command.drawn_ms + RETENTION_MS < now.wall_ms:
        return Decision(Expired(command.id))
    draft = Draft(view, now)
    if view.marker is not OPEN:
        moved = turned_away(draft, command)
        if moved is not None:
            return Decision(moved)
    match command:
        case Current() | Reserve() | EvictDomain():
            return decide_domain(draft, command)
        case Look():
            record = draft.record(command.key)
            seen = as_of(record, now, draft.liveness(command.key))
            return draft.done(Seen(command.key, seen))
        case Mark():
            return mark(draft, command)
        case Fill():
            return fill(draft, command)
        case _:
            return _decide_intent(draft, command)


def _decide_intent(draft: Draft, command: IntentCommand) -> Decision:
    record = draft.record(command.key)
    if not isinstance(command, Prepare | Heartbeat):
        kept = _kept_answer(draft, record, command)
        if kept is not None:
            return draft.done(kept)
    match command:
        case Prepare():
            return prepare(draft, command, record)
        case Commit():
            return commit(draft, command, record)
        case Abort():
            return abort(draft, command, record)
        case Release():
            return release(draft, command, record)
        case Heartbeat():
            return heartbeat(draft, command, record)
        case Clear():
            return clear(draft, command, record)
        case Settle():
            return settle(draft, command, record)
        case Forget():
            return forget(draft, command, record)
        case _:
            assert_never(command)


def _kept_answer(draft: Draft, record: IntentRecord, command: IntentCommand) -> Answer | None:
    """Return the answer that this command id already got, if it is kept."""
    for kept in draft.kept_answers(record.remembered):
        if kept.command == command.id:
            answer: Answer = kept.answer
            return answer.fresh() if isinstance(answer, FenceError) else answer
    if isinstance(command, Commit):
        if isinstance(record.state, Done) and record.state.commit == command.id:
            return Committed(record.state.sealed)
        for ended in draft.kept(record.ended):
            if ended.commit == command.id and ended.sealed is not None:
                return Committed(ended.sealed)
    return None
