"""Read-sets over every interleaving: what was read under an open reservation is never acted on.

A changes domain d under one intent; B reads d and then acts under another intent, citing what it
read. The ghost says whether A's effect may have run since B read, or was under way then.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from fencekit.core import decide as rules
from fencekit.core.draft import View
from fencekit.core.messages import (
    Abort,
    Commit,
    Committed,
    Current,
    Fresh,
    Head,
    Prepare,
    Release,
    Settle,
)
from fencekit.core.request import EffectRequest
from fencekit.core.result import Result
from fencekit.core.state import DomainHead, Floor, Holder, IntentKey, IntentRecord, Now, Unknown
from tests.core.exploration import Broken

NOW = Now(500, 500)
LEASE = TTL = 1000
A, B = IntentKey("", "a"), IntentKey("", "b")


@dataclass(frozen=True, slots=True)
class World:
    """The ledger and what is known outside: `moved` since B read, `open` while A has no outcome."""

    records: tuple[IntentRecord | None, IntentRecord | None] = (None, None)
    heads: tuple[DomainHead | None, DomainHead | None] = (None, None)
    a: str = "idle"
    a_ticket: Any = None
    b: str = "idle"
    b_ticket: Any = None
    read: int | None = None
    moved: bool = False
    open: bool = False


def explore() -> tuple[int, int]:
    """Visit every reachable state for a foreign and for an own domain."""
    states = transitions = 0
    for own in (False, True):
        seen = {World()}
        todo = deque(seen)
        while todo:
            for after in _next(todo.popleft(), own):
                transitions += 1
                if after not in seen:
                    seen.add(after)
                    todo.append(after)
        states += len(seen)
    return states, transitions


def _next(world: World, own: bool) -> Iterator[World]:
    yield from _a_acts(world)
    if world.b in ("idle", "read", "refused"):
        after, answer = _ask(world, Current("r", 500, "d"))
        assert isinstance(answer, Head)
        # What is read while A has no outcome may be half of A's effect.
        yield replace(after, b="read", read=answer.seq, moved=world.open)
    if world.b == "read":
        request = EffectRequest.make(
            "b", "act", {}, domain="d" if own else "e", read_set=[("d", world.read or 0)]
        )
        after, answer = _ask(world, Prepare("tb", 500, request, Holder("ticket"), LEASE))
        if isinstance(answer, Fresh):
            if world.moved or world.open:
                raise Broken("B was admitted on a read that A has moved or was moving")
            after = replace(after, b="admitted", b_ticket=answer.ticket)
        else:
            after = replace(after, b="refused")
        yield after
    if world.b == "admitted":
        commit = Commit.make("cb", 500, world.b_ticket, Result.of(1, 100), TTL)
        after, answer = _ask(world, commit)
        if isinstance(answer, Committed) and not own and (world.moved or world.open):
            raise Broken("B was committed on a read that A has moved")
        yield replace(after, b="over")


def _a_acts(world: World) -> Iterator[World]:
    request = EffectRequest.make("a", "act", {}, domain="d")
    if world.a == "idle":
        after, answer = _ask(world, Prepare("ta", 500, request, Holder("ticket"), LEASE))
        assert isinstance(answer, Fresh)
        yield replace(after, a="admitted", a_ticket=answer.ticket, open=True)
    if world.a == "admitted":
        yield replace(world, a="ran", moved=True)
        after, _ = _ask(world, Release("la", 500, world.a_ticket, ""))
        yield replace(after, a="over", open=False)
    if world.a in ("ran", "aborted"):
        commit = Commit.make("ca", 500, world.a_ticket, Result.of(1, 100), TTL)
        after, _ = _ask(world, commit)
        yield replace(after, a="over", open=False)
    if world.a == "ran":
        after, _ = _ask(world, Abort("xa", 500, world.a_ticket, ""))
        yield replace(after, a="aborted")
    if world.a == "aborted":
        record = world.records[0]
        assert record is not None
        assert isinstance(record.state, Unknown)
        settle = Settle("sa", 500, A, "ta", record.revision, Result.of(1, 9), TTL, "op", "n")
        after, _ = _ask(world, settle)
        yield replace(after, a="over", open=False)


def _ask(world: World, command: Any) -> tuple[World, Any]:
    view = View(
        dict(zip((A, B), world.records, strict=True)),
        dict(zip(("d", "e"), world.heads, strict=True)),
        Floor(),
    )
    decision = rules.decide(view, command, NOW)
    view.apply(decision.writes)
    records = (view.intents[A], view.intents[B])
    return replace(
        world, records=records, heads=(view.domains["d"], view.domains["e"])
    ), decision.answer
