"""`AsyncFence`: the same fence for asynchronous callers; it never blocks the event loop."""

from __future__ import annotations

import asyncio
import functools
import time
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, ParamSpec, TypeVar

from fencekit.core.certificate import EffectCert, ReadSetEntry
from fencekit.core.clock import VectorClock
from fencekit.core.config import FenceConfig
from fencekit.core.errors import LedgerError
from fencekit.core.messages import (
    Admission,
    Answer,
    Beaten,
    Command,
    Committed,
    Fresh,
    Head,
    Ok,
    Replay,
    Reserved,
)
from fencekit.core.request import EffectRequest
from fencekit.core.state import PreparedEffect
from fencekit.core.stats import FenceStats
from fencekit.fence.calls import Calls, expect, heard_too_late, too_late
from fencekit.fence.draw import HolderKind
from fencekit.fence.naming import Namer, Naming, function_name, run_args
from fencekit.fence.steps import Ask, AwaitTwin, Ran, Run, Step, run_steps
from fencekit.fence.sync import DEFAULT_WAIT
from fencekit.ledger.base import After, Ledger, Outcome, Shown, is_answer

P = ParamSpec("P")
T = TypeVar("T")


class _Mailbox:
    """Carries answers from the writer's thread to one event loop, waking it once a batch."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self._arrived: deque[tuple[asyncio.Future[Answer], Outcome]] = deque()
        self._scheduled = False

    def put(self, future: asyncio.Future[Answer], outcome: Outcome) -> After:
        self._arrived.append((future, outcome))
        return self._wake

    def _wake(self) -> None:
        # Each waking is a system call at which the loop's thread would start to run.
        if not self._scheduled:
            self._scheduled = True
            try:
                self.loop.call_soon_threadsafe(self._deliver)
            except RuntimeError:
                # The loop is closed: nobody is left to hear, and the outcome is recorded anyway.
                self._arrived.clear()

    def _deliver(self) -> None:
        self._scheduled = False
        while self._arrived:
            future, outcome = self._arrived.popleft()
            if future.done():
                continue
            if is_answer(outcome):
                future.set_result(outcome)
            else:
                assert isinstance(outcome, BaseException)
                future.set_exception(outcome)


class AsyncFence:
    """`Fence` with the same verbs, awaited. Open it anywhere; use it from any event loop."""

    def __init__(self, config: FenceConfig | None = None, *, calls: Calls | None = None) -> None:
        self._calls = calls if calls is not None else Calls.open("memory:", config)
        self._mailbox: _Mailbox | None = None

    @classmethod
    def open(cls, url: str | None = None, config: FenceConfig | None = None) -> AsyncFence:
        """Open a ledger, as `Fence.open` does; opening reads a file and may block for a moment."""
        return cls(calls=Calls.open(url, config))

    @property
    def ledger(self) -> Ledger:
        """The ledger behind this fence."""
        return self._calls.ledger

    @property
    def calls(self) -> Calls:
        """Drawing and asking without waiting, for callers that bring their own loop."""
        return self._calls

    def _ask(self, command: Command) -> asyncio.Future[Answer]:
        loop = asyncio.get_running_loop()
        mailbox = self._mailbox
        if mailbox is None or mailbox.loop is not loop:
            mailbox = self._mailbox = _Mailbox(loop)
        future: asyncio.Future[Answer] = loop.create_future()
        try:
            self._calls.enqueue(command, functools.partial(mailbox.put, future))
        except LedgerError as problem:
            future.set_exception(problem)
        return future

    # --- one attempt -------------------------------------------------------------------------

    async def prepare(  # noqa: PLR0913 - the fields of a request
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
        """May this attempt run? See `Fence.prepare`."""
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
        return await self.prepare_request(request, attempt=attempt, holder=holder)

    async def prepare_request(
        self, request: EffectRequest, *, attempt: str | None = None, holder: HolderKind = "ticket"
    ) -> Admission:
        """Like `prepare`, for a request that is already built."""
        command = self._calls.draw.prepare(request, holder, attempt)
        asked = time.monotonic()
        answer = await self._ask(command)
        waited = time.monotonic() - asked
        if heard_too_late(self._calls.config, answer, waited):
            await self.release(expect(answer, Fresh).ticket, "the admission was heard too late")
            raise too_late(waited)
        return answer if isinstance(answer, Replay) else expect(answer, Fresh)

    async def commit(self, ticket: PreparedEffect, result: Any = None) -> EffectCert:
        """The effect ran, with this JSON result. See `Fence.commit`."""
        draw = self._calls.draw
        return expect(await self._ask(draw.commit(ticket, draw.result(result))), Committed).cert

    async def abort(self, ticket: PreparedEffect, reason: str = "") -> None:
        """Nobody knows whether the effect happened: it stays fenced."""
        expect(await self._ask(self._calls.draw.abort(ticket, reason)), Ok)

    async def release(self, ticket: PreparedEffect, reason: str = "") -> None:
        """The effect is proven not to have happened: the intent is free again."""
        expect(await self._ask(self._calls.draw.release(ticket, reason)), Ok)

    async def heartbeat(self, ticket: PreparedEffect) -> int:
        """Believe the attempt for another lease; returns its end in the ledger's lease time, ms."""
        return expect(await self._ask(self._calls.draw.heartbeat(ticket)), Beaten).lease_end_ms

    # --- running a coroutine -----------------------------------------------------------------

    async def run(  # noqa: PLR0913 - what is fenced, and how
        self,
        intent: str,
        fn: Callable[..., Awaitable[T]],
        *args: Any,
        domain: str | None = None,
        agent: str | None = None,
        tool: str | None = None,
        kwargs: Mapping[str, Any] | None = None,
        wait: float = DEFAULT_WAIT,
        definite: tuple[type[BaseException], ...] = (),
    ) -> T:
        """Await `fn(*args)` once for this intent, ever. See `Fence.run`.

        Cancelling the caller while the function runs cancels it and leaves the intent unknown.
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
        return await self._drive(request, bound, wait, definite)  # type: ignore[no-any-return]

    def effect(
        self,
        intent: Namer,
        *,
        domain: Namer | None = None,
        wait: float = DEFAULT_WAIT,
        definite: tuple[type[BaseException], ...] = (),
    ) -> Callable[[Callable[P, Awaitable[T]]], Callable[P, Awaitable[T]]]:
        """Decorate a coroutine function that has an effect. See `Fence.effect`."""

        def decorate(fn: Callable[P, Awaitable[T]]) -> Callable[P, Awaitable[T]]:
            naming = Naming(fn, intent, domain)

            @functools.wraps(fn)
            async def fenced(*args: P.args, **kwargs: P.kwargs) -> T:
                name, scope, given = naming(args, kwargs)
                request = self._calls.draw.request(name, function_name(fn), given, domain=scope)
                bound = functools.partial(fn, *args, **kwargs)
                return await self._drive(  # type: ignore[no-any-return]
                    request, bound, wait, definite
                )

            return fenced

        return decorate

    async def _drive(
        self,
        request: EffectRequest,
        bound: Callable[[], Awaitable[Any]],
        wait: float,
        definite: tuple[type[BaseException], ...],
    ) -> Any:
        """Carry out the steps of `run_steps` on this loop."""
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
                    reply = await self._ask_whatever_happens(step.command)
                case Run():
                    reply = await self._run(step.ticket, bound)
                case AwaitTwin():
                    reply = await self._await_twin(step, deadline)

    async def _ask_whatever_happens(self, command: Command) -> Any:
        """Ask, and hear the answer even if the caller is cancelled meanwhile."""
        asked = self._ask(command)
        cancelled: asyncio.CancelledError | None = None
        while not asked.done():
            try:
                await asyncio.shield(asked)
            except asyncio.CancelledError as error:
                cancelled = error
            except LedgerError:
                break
        if cancelled is not None:
            return await self._cancelled(command, asked, cancelled)
        problem = asked.exception()
        return problem if problem is not None else asked.result()

    async def _cancelled(
        self, command: Command, asked: asyncio.Future[Answer], cancelled: asyncio.CancelledError
    ) -> Any:
        """The caller left while the ledger answered: an admission is given back unused."""
        if asked.exception() is None:
            answer = asked.result()
            if isinstance(answer, Fresh):
                await asyncio.shield(
                    self._ask(self._calls.draw.release(answer.ticket, "the caller was cancelled"))
                )
        raise cancelled

    async def _run(self, ticket: PreparedEffect, bound: Callable[[], Awaitable[Any]]) -> Ran:
        self._calls.beats.hold(ticket)
        try:
            return Ran(value=await bound())
        except BaseException as error:
            return Ran(error=error)
        finally:
            self._calls.beats.drop(ticket)

    async def _await_twin(self, step: AwaitTwin, deadline: float) -> bool:
        left = deadline - time.monotonic()
        if left <= 0:
            return False
        loop = asyncio.get_running_loop()
        woken = asyncio.Event()

        def wake() -> None:
            loop.call_soon_threadsafe(woken.set)

        stop = self._calls.twins.watch(step.key, step.revision, wake)
        try:
            await asyncio.wait_for(woken.wait(), left)
        except TimeoutError:
            return False
        finally:
            stop()
        return True

    # --- operators ---------------------------------------------------------------------------

    async def clear(
        self,
        intent: str,
        ticket: str,
        revision: int,
        note: str,
        operator: str | None = None,
        *,
        even_if_alive: bool = False,
    ) -> None:
        """It did not happen and cannot any more. See `Fence.clear`."""
        draw = self._calls.draw
        command = draw.clear(
            draw.key(intent), ticket, revision, note, operator, even_if_alive=even_if_alive
        )
        expect(await self._ask(command), Ok)

    async def settle(
        self,
        intent: str,
        ticket: str,
        revision: int,
        result: Any,
        note: str,
        operator: str | None = None,
    ) -> EffectCert:
        """It did happen, and this is its result. See `Fence.settle`."""
        draw = self._calls.draw
        command = draw.settle(
            draw.key(intent), ticket, revision, draw.result(result), note, operator
        )
        return expect(await self._ask(command), Committed).cert

    async def forget(
        self, intent: str, ticket: str, note: str, operator: str | None = None
    ) -> None:
        """This finished intent may run again."""
        draw = self._calls.draw
        expect(await self._ask(draw.forget(draw.key(intent), ticket, note, operator)), Ok)

    # --- domains -----------------------------------------------------------------------------

    async def current(self, domain: str) -> Head:
        """What may be cited of a domain."""
        return expect(await self._ask(self._calls.draw.current(domain)), Head)

    async def reserve(self, domain: str, expected: int, agent: str | None = None) -> Reserved:
        """Take the next number of a domain if it is still at `expected`."""
        command = self._calls.draw.reserve(domain, expected, agent)
        return expect(await self._ask(command), Reserved)

    async def evict_domain(self, domain: str) -> None:
        """Forget a domain that no open intent uses."""
        expect(await self._ask(self._calls.draw.evict_domain(domain)), Ok)

    # --- the rest ----------------------------------------------------------------------------

    async def sweep(self) -> int:
        """Delete what has expired, in a thread; returns how many intents changed."""
        return await asyncio.to_thread(self._calls.sweep)

    async def intents(self) -> list[Shown]:
        """Every intent that is remembered, as it stands now, read in a thread."""
        return await asyncio.to_thread(lambda: list(self._calls.ledger.intents()))

    def stats(self) -> FenceStats:
        """What this fence answered since it was opened."""
        return self._calls.stats()

    async def close(self) -> None:
        """Let go of the ledger."""
        await asyncio.to_thread(self._calls.close)

    async def __aenter__(self) -> AsyncFence:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()
