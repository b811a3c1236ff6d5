"""Taking over what another scope left without an outcome, so that a duplicate here meets it.

The action is admitted under the new scope, as a call would be, and ended at once as unknown; that
is all. The core's own gates see to the rest: a record that the new scope has is never overwritten,
and killed between any two steps the action is in flight (then its lease ends) or unknown. The old
record stays as it is, because whoever still uses the old scope must not run it either.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal

from fencekit.core.errors import FenceError, LedgerError, Moved
from fencekit.core.messages import Abort, Command, Fresh, Look, Ok, Prepare, Release, Seen
from fencekit.core.state import Absent, Holder, InFlight, IntentKey, Unknown
from fencekit.ledger import crash
from fencekit.ledger.base import Ledger, Shown
from fencekit.wrap.identity import GUESS, Scope, readdressed, scope_in
from fencekit.wrap.others import State, is_wrapped

LEASE_MS = 60_000
"""How long an admission is believed that a killed take-over left behind; then it is unknown."""

ADOPTED = " (adopted from "
"""What stands in the reason of an adopted call between the old reason and who took it over."""

What = Literal["adopted", "known", "running", "moved"]


@dataclass(frozen=True, slots=True)
class Judged:
    """One attempt of the old scope, as it was shown to whoever decides."""

    key: IntentKey
    state: State
    revision: int


@dataclass(frozen=True, slots=True)
class Adoption:
    """What became of one attempt: taken over, known here already, still running, or changed."""

    old: IntentKey
    new: IntentKey
    what: What


@dataclass(frozen=True, slots=True)
class Act:
    """Into which scope is taken over, by whom, and why. `guesses`: whether guessed accounts count.

    With `running`, what is still in flight is taken over too.
    """

    scope: Scope
    guesses: bool
    operator: str
    note: str
    running: bool = False


def judged(shown: Iterable[Shown], scope: str, principal: str) -> list[Judged]:
    """Return what a scope has without an outcome under one account."""
    found = []
    for one in shown:
        state = one.record.state
        if (
            isinstance(state, InFlight | Unknown)
            and is_wrapped(state.ticket.request.agent)
            and (scope_in(one.key.intent), one.key.principal) == (scope, principal)
        ):
            found.append(Judged(one.key, state, one.record.revision))
    return found


def guess_of(shown: Iterable[Shown], scope: Scope) -> str:
    """Return the account that the proxies of a scope guess, by what they recorded.

    The guess of this process stands in where they recorded nothing: it may see other variables.
    """
    for one in shown:
        state = one.record.state
        if (
            not isinstance(state, Absent)
            and is_wrapped(state.ticket.request.agent)
            and (scope_in(one.key.intent), one.key.principal) == (scope.name, scope.account)
        ):
            return str(state.ticket.request.args.get(GUESS, ""))
    return scope.guess


def adopt(ledger: Ledger, one: Judged, act: Act, new_id: Callable[[], str]) -> Adoption:
    """Take one attempt over. Raises `LedgerError` where the ledger cannot do it.

    It is left alone where its state has changed since it was judged.
    """
    request = readdressed(one.state.ticket.request, act.scope, guesses=act.guesses)

    def made(what: What) -> Adoption:
        return Adoption(one.key, request.key, what)

    def now() -> int:
        return ledger.now().wall_ms

    if isinstance(one.state, InFlight) and not act.running:
        return made("running")
    said = _ask(ledger, Prepare(new_id(), now(), request, Holder("ticket"), LEASE_MS))
    if not isinstance(said, Fresh):
        return made("known")
    crash.point("admitted here")
    if _has_moved(_ask(ledger, Look(new_id(), now(), one.key)), one):
        why = f"not adopted: {Moved(one.key.intent)}"
        _ask(ledger, Release(new_id(), now(), said.ticket, why))
        return made("moved")
    crash.point("judged again")
    _ended(_ask(ledger, Abort(new_id(), now(), said.ticket, reason(one, act))))
    crash.point("adopted")
    return made("adopted")


def reason(one: Judged, act: Act) -> str:
    """Say why the call is unknown: as the old record does, then who took it over, and why."""
    before = "it was running" if isinstance(one.state, InFlight) else one.state.reason
    old = scope_in(one.key.intent)
    return f"{before[:200]}{ADOPTED}{old} by {act.operator}: {act.note})"


def adopted_from(intent: str, why: str) -> str:
    """Return the intent of the old scope that an adopted record was made from, else ""."""
    _, adopted, rest = why.rpartition(ADOPTED)
    old = rest.partition(" by ")[0]
    return f"{old}{intent.removeprefix(scope_in(intent))}" if adopted and old else ""


def _has_moved(said: object, one: Judged) -> bool:
    """Whether an attempt is another than was judged; a sign of life of a running one is no move."""
    if not isinstance(said, Seen):
        return True
    state, revision = said.record.state, said.record.revision
    if isinstance(state, InFlight) and isinstance(one.state, InFlight):
        return state.ticket.id != one.state.ticket.id
    return not isinstance(state, Unknown) or revision != one.revision


def _ask(ledger: Ledger, command: Command) -> object:
    """Ask; whatever keeps the ledger from answering is raised."""
    said = ledger.call(command)
    if isinstance(said, LedgerError):
        raise said
    return said


def _ended(said: object) -> None:
    """Raise what kept an end from being recorded."""
    if not isinstance(said, Ok) and isinstance(said, FenceError):
        raise said
