"""Other scopes of the same program: what they left without an outcome, told when the proxy starts.

A call that is made again in another folder, with another word in the command line or under another
name of the scope is another action to the fence. So whoever starts a server is told of calls of the
same program whose outcome nobody knows, and how to take them over (`fencekit ledger adopt`).

What a record knows of its program: the agent that admitted it (`agent_of`), else the readable part
of a scope that was made from a command line. No other word of a command line is kept or shown.
"""

from __future__ import annotations

import shlex
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from fencekit.core.state import InFlight, IntentKey, Unknown
from fencekit.ledger.base import Ledger
from fencekit.ledger.unfinished import unfinished
from fencekit.wrap.identity import Scope, guest_in, readdressed, scope_in
from fencekit.wrap.record import Record
from fencekit.wrap.scope import program_in

MOST = 500  # calls without an outcome
SECONDS = 2.0
TOLD = 5  # scopes that are named
_AGENT = "wrap"

State = InFlight | Unknown


@dataclass(frozen=True, slots=True)
class Other:
    """Another scope (or the same one under another account), and how much of it has no outcome."""

    scope: str
    account: str
    unknown: int
    in_flight: int


def agent_of(scope: Scope) -> str:
    """Return the name under which the proxy admits attempts: what it is, and what it runs."""
    return f"{_AGENT}:{scope.program}" if scope.program else _AGENT


def is_wrapped(agent: str) -> bool:
    """Whether a proxy admits under this name, so that its intents begin with a scope."""
    return agent.partition(":")[0] == _AGENT


def is_of(agent: str, intent: str, program: str) -> bool:
    """Whether an attempt was admitted by a proxy in front of this program."""
    if not program or not is_wrapped(agent):
        return False
    return program in (agent.partition(":")[2], program_in(scope_in(intent)))


def others(
    found: Iterable[tuple[IntentKey, State]], scope: Scope, known: Iterable[IntentKey]
) -> list[Other]:
    """Return the other scopes of a scope's program, those with the most first.

    `known` are intents of the scope itself: what it has a record of already is left out.
    """
    have = frozenset(known)
    counts: dict[tuple[str, str], list[int]] = {}
    for key, state in found:
        if not is_another(key, state, scope) or here(state, scope) in have:
            continue
        count = counts.setdefault((scope_in(key.intent), key.principal), [0, 0])
        count[isinstance(state, InFlight)] += 1
    made = [Other(name, account, *count) for (name, account), count in counts.items()]
    return sorted(made, key=lambda one: (-one.unknown - one.in_flight, one.scope, one.account))


def is_another(key: IntentKey, state: State, scope: Scope) -> bool:
    """Whether an attempt belongs to another scope of the same program.

    Two accounts that are both named are kept apart on purpose; a guest of the HTTP front is the
    same under every scope.
    """
    account, _ = guest_in(key.principal)
    if (scope_in(key.intent), account) == (scope.name, scope.account):
        return False
    apart = account and scope.account and account != scope.account
    return not apart and is_of(state.ticket.request.agent, key.intent, scope.program)


def here(state: State, scope: Scope) -> IntentKey:
    """Return the key under which a scope would know the action of another one."""
    return readdressed(state.ticket.request, scope, guesses=True).key


def tell(record: Record, scope: Scope, say: Callable[[str], None]) -> threading.Thread:
    """Look in a thread of its own and say what is found; a ledger that fails is told elsewhere."""

    def run() -> None:
        for line in record.look(lambda ledger: look(ledger, scope)) or ():
            say(line)

    thread = threading.Thread(target=run, name="fencekit-others", daemon=True)
    thread.start()
    return thread


def look(ledger: Ledger, scope: Scope) -> list[str]:
    """Return what to tell about other scopes, a line each. Raises `LedgerError`."""
    until = time.monotonic() + SECONDS
    seen = unfinished(ledger, MOST, SECONDS)
    wanted = {here(s, scope) for key, s in seen.found if is_another(key, s, scope)}
    known = {key for key, _ in seen.found} & wanted
    # What time does not allow to look up is told, though it may be known here.
    known |= {key for key in wanted - known if time.monotonic() < until and ledger.peek(key)}
    lines = words(others(seen.found, scope, known), scope)
    if not seen.whole:
        lines.append(
            "not all of the ledger was looked at for what other scopes of this program left open: "
            "see `fencekit ledger list --state unknown`"
        )
    return lines


def words(found: list[Other], scope: Scope) -> list[str]:
    """Say which scopes there are, and how to take over what they left."""
    lines = []
    for one in found[:TOLD]:
        counts = [
            f"{count} {what}"
            for count, what in ((one.unknown, "unknown"), (one.in_flight, "in flight"))
            if count
        ]
        whose = "" if one.account == scope.account else f" under {one.account or 'no account'}"
        principal = "" if not whose else f" --principal {shlex.quote(one.account)}"
        lines.append(
            f"scope {one.scope} of the same program{whose} has calls without an outcome that are "
            f"not fenced here ({', '.join(counts)}); to fence them here too: fencekit ledger adopt "
            f"{shlex.quote(one.scope)}{principal} --note WHY -- CMD..."
        )
    if len(found) > TOLD:
        lines.append(f"and {len(found) - TOLD} scopes more: see `fencekit ledger list`")
    return lines
