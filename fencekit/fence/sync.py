"""`Fence`: the fence for synchronous callers, thin over the ledger's commands."""

from __future__ import annotations

import functools
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, ParamSpec, TypeVar

from fencekit.core.certificate import EffectCert, ReadSetEntry
from fencekit.core.clock import VectorClock
from fencekit.core.config import FenceConfig
from fencekit.core.errors import LedgerError
from fencekit.core.messages import Admission, Beaten, Committed, Fresh, Head, Ok, Replay, Reserved
from fencekit.core.request import EffectRequest
from fencekit.core.state import PreparedEffect
from fencekit.core.stats import FenceStats
from fencekit.fence.calls import Calls, expect, heard_too_late, too_late
from fencekit.fence.draw import HolderKind
from fencekit.fence.naming import Namer, Naming, function_name, run_args
from fencekit.fence.steps import Ask, AwaitTwin, Ran, Run, Step, run_steps
from fencekit.ledger.base import Ledger, Shown

P = ParamSpec("P")
T = TypeVar("T")

DEFAULT_WAIT = 45.0
"""How long, in seconds, a caller waits for a twin in flight."""


class Fence:
    """At most one attempt at an intent is ever between admission and outcome.

    `Fence()` remembers in memory; `Fence.open(url)` shares a ledger with other threads, processes
    or machines. Refusals are raised as the errors of `fencekit.core.errors`.
    """

    def __init__(self, config: FenceConfig | None = None, *, calls: Calls | None = None) -> None:
        self._calls = calls if calls is not None else Calls.open("memory:", config)

    @classmethod
    def open(cls, url: str | None = None, config: FenceConfig | None = None) -> Fence:
        """Open a ledger: `memory:`, `sqlite:PATH`, `jsonl:PATH`, `postgresql://…`, `redis://…`.

        None takes `FENCEKIT_LEDGER`, else the SQLite ledger in the user's state directory. Raises
        `LedgerError` where it cannot be used; it never falls back to running unfenced.
        """
        return cls(calls=Calls.open(url, config))

    @property
    def ledger(self) -> Ledger:
        """The ledger behind this fence."""
        return self._calls.ledger

    @property
    def calls(self) -> Calls:
        """Drawing and asking without waiting, for callers that bring their own loop."""
        return self._calls

    # --- one attempt -------------------------------------------------------------------------

    def prepare(  # noqa: PLR0913 - the fields of a request
        self,
        intent: str,
        tool: str = "",
        args: Mapping[str, Any] | None = None,
        *,
        domain: str | None = None,
        agent: str | None = None,
        read_set: Iterable[ReadSetEntry | tuple[str, int]] = (),
        parent: str | None = None,
        known_clock: VectorClock | Mapping[str, int] | None = None,
        causal: bool = False,
        attempt: str | None = None,
        holder: HolderKind = "ticket",
    ) -> Admission:
        """May this attempt run? `Fresh` carries the ticket to commit with; `Replay` the result.

        `attempt`: a ticket id that you drew, for asking again when the answer was lost; never share
        it between agents. `holder="process"` ties the attempt to this process, whose death then
        shows; a ticket may travel and only its lease counts. Raises `Refused`: do not run it.
        """
        request = self._calls.draw.request(
            intent,
            tool,
            args,
            domain=domain,
            agent=agent,
            read_set=read_set,
            parent=parent,
            known_clock=known_clock,
            causal=causal,
        )
        return self.prepare_request(request, attempt=attempt, holder=holder)

    def prepare_request(
        self,
        request: EffectRequest,
        *,
        attempt: str | None = None,
        holder: HolderKind = "ticket",
    ) -> Admission:
        """Like `prepare`, for a request that is already built."""
        command = self._calls.draw.prepare(request, holder, attempt)
        asked = time.monotonic()
        answer = self._calls.call(command)
        waited = time.monotonic() - asked
        if heard_too_late(self._calls.config, answer, waited):
            self.release(expect(answer, Fresh).ticket, "the admission was heard too late")
            raise too_late(waited)
        return answer if isinstance(answer, Replay) else expect(answer, Fresh)

    def commit(self, ticket: PreparedEffect, result: Any = None) -> EffectCert:
        """The effect ran, with this JSON result. Returns its certificate once it is durable.

        A result that is not JSON or too large is recorded by digest and size. Raises `StaleHolder`
        or `ReadSetStale` where the attempt is no longer the one (its result is kept as evidence).
        """
        draw = self._calls.draw
        answer = self._calls.call(draw.commit(ticket, draw.result(result)))
        return expect(answer, Committed).cert

    def abort(self, ticket: PreparedEffect, reason: str = "") -> None:
        """The attempt ended and nobody knows whether the effect happened: it stays fenced."""
        expect(self._calls.call(self._calls.draw.abort(ticket, reason)), Ok)

    def release(self, ticket: PreparedEffect, reason: str = "") -> None:
        """The effect is proven not to have happened: the intent is free again."""
        expect(self._calls.call(self._calls.draw.release(ticket, reason)), Ok)

    def heartbeat(self, ticket: PreparedEffect) -> int:
        """Believe the attempt for another lease; returns its end in the ledger's lease time, ms."""
        return expect(self._calls.call(self._calls.draw.heartbeat(ticket)), Beaten).lease_end_ms

    # --- running a function ------------------------------------------------------------------

    def run(  # noqa: PLR0913 - what is fenced, and how
        self,
        intent: str,
        fn: Callable[..., T],
        *args: Any,
        domain: str | None = None,
        agent: str | None = None,
        tool: str | None = None,
        kwargs: Mapping[str, Any] | None = None,
        wait: float = DEFAULT_WAIT,
        definite: tuple[type[BaseException], ...] = (),
    ) -> T:
        """Run `fn(*args)` once for this intent, ever; later calls return the recorded result.

        The lease is kept while it runs. A twin in flight, in any process, is waited for up to
        `wait` seconds. An exception leaves the intent unknown, unless `definite` lists it as proof
        that nothing happened. A replay returns the result as JSON has it. The arguments must be
        JSON: they tell this action from another one under the same name.
        """
        named = tool if tool is not None else function_name(fn)
        request = self._calls.draw.request(
            intent,
            named,
            run_args(args, kwargs),
            domain=domain,
            agent=agent,
        )
        bound = functools.partial(fn, *args, **(kwargs or {}))
        return self._drive(request, bound, wait, definite)  # type: ignore[no-any-return]

    def effect(
        self,
        intent: Namer,
        *,
        domain: Namer | None = None,
        wait: float = DEFAULT_WAIT,
        definite: tuple[type[BaseException], ...] = (),
    ) -> Callable[[Callable[P, T]], Callable[P, T]]:
        """Decorate a function that has an effect; `intent` names it, from its arguments.

        A text is a format over the arguments by name (`"charge:{order}"`); a function gets them.
        """

        def decorate(fn: Callable[P, T]) -> Callable[P, T]:
            naming = Naming(fn, intent, domain)

            @functools.wraps(fn)
            def fenced(*args: P.args, **kwargs: P.kwargs) -> T:
                name, scope, given = naming(args, kwargs)
                request = self._calls.draw.request(name, function_name(fn), given, domain=scope)
                bound = functools.partial(fn, *args, **kwargs)
                return self._drive(request, bound, wait, definite)  # type: ignore[no-any-return]

            return fenced

        return decorate

    def _drive(
        self,
        request: EffectRequest,
        bound: Callable[[], Any],
        wait: float,
        definite: tuple[type[BaseException], ...],
    ) -> Any:
        """Carry out the steps of `run_steps` in this thread."""
        steps = run_steps(self._calls.draw, request, definite)
        deadline = time.monotonic() + wait
        reply: Any = None
        while True:
            try:
                step: Step = steps.send(reply)
            except StopIteration as end:
                return end.value
            match step:
                case Ask():
                    reply = self._ask(step)
                case Run():
                    reply = self._run(step.ticket, bound)
                case AwaitTwin():
                    reply = self._await_twin(step, deadline)

    def _ask(self, step: Ask) -> Any:
        try:
            return self._calls.call(step.command)
        except LedgerError as problem:
            return problem

    def _run(self, ticket: PreparedEffect, bound: Callable[[], Any]) -> Ran:
        self._calls.beats.hold(ticket)
        try:
            return Ran(value=bound())
        except BaseException as error:
            return Ran(error=error)
        finally:
            self._calls.beats.drop(ticket)

    def _await_twin(self, step: AwaitTwin, deadline: float) -> bool:
        left = deadline - time.monotonic()
        if left <= 0:
            return False
        woken = threading.Event()
        stop = self._calls.twins.watch(step.key, step.revision, woken.set)
        try:
            return woken.wait(left)
        finally:
            stop()

    # --- operators ---------------------------------------------------------------------------

    def clear(
        self,
        intent: str,
        ticket: str,
        revision: int,
        note: str,
        operator: str | None = None,
        *,
        even_if_alive: bool = False,
    ) -> None:
        """It did not happen and cannot any more: free the attempt that was judged.

        What no ledger can repair: clearing while the holder may still run.
        """
        draw = self._calls.draw
        command = draw.clear(
            draw.key(intent), ticket, revision, note, operator, even_if_alive=even_if_alive
        )
        expect(self._calls.call(command), Ok)

    def settle(
        self,
        intent: str,
        ticket: str,
        revision: int,
        result: Any,
        note: str,
        operator: str | None = None,
    ) -> EffectCert:
        """It did happen, and this is its result: record the attempt that was judged as done."""
        draw = self._calls.draw
        command = draw.settle(
            draw.key(intent), ticket, revision, draw.result(result), note, operator
        )
        return expect(self._calls.call(command), Committed).cert

    def forget(self, intent: str, ticket: str, note: str, operator: str | None = None) -> None:
        """This finished intent may run again."""
        draw = self._calls.draw
        expect(self._calls.call(draw.forget(draw.key(intent), ticket, note, operator)), Ok)

    # --- domains -----------------------------------------------------------------------------

    def current(self, domain: str) -> Head:
        """What may be cited of a domain; what is being changed right now never can."""
        return expect(self._calls.call(self._calls.draw.current(domain)), Head)

    def reserve(self, domain: str, expected: int, agent: str | None = None) -> Reserved:
        """Take the next number of a domain if it is still at `expected`; else `DomainRace`."""
        command = self._calls.draw.reserve(domain, expected, agent)
        return expect(self._calls.call(command), Reserved)

    def evict_domain(self, domain: str) -> None:
        """Forget a domain that no open intent uses; its numbers never come again."""
        expect(self._calls.call(self._calls.draw.evict_domain(domain)), Ok)

    # --- the rest ----------------------------------------------------------------------------

    def sweep(self) -> int:
        """Delete what has expired; returns how many intents changed. Nobody can see it.

        Of the audit goes what is older than `FenceConfig.audit_ttl`.
        """
        return self._calls.sweep()

    def intents(self) -> Iterator[Shown]:
        """Every intent that is remembered, as it stands now."""
        return self._calls.ledger.intents()

    def stats(self) -> FenceStats:
        """What this fence answered since it was opened."""
        return self._calls.stats()

    def close(self) -> None:
        """Let go of the ledger."""
        self._calls.close()

    def __enter__(self) -> Fence:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
