"""One session's (or all stateless clients') part of the HTTP front: a gate, a server, who waits.

Frames of the server arrive in its reader's thread; the event loop takes them up in their order. A
request gets an id of this room's own, so that clients may share one server; ids and progress tokens
are put back on the way out.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from fencekit.wire import protocol
from fencekit.wire.frames import Frame, Kind, encode, error_bytes, parse, result_bytes
from fencekit.wrap.ask import asked_for
from fencekit.wrap.gate import Gate
from fencekit.wrap.pump import Pump
from fencekit.wrap.record import Record
from fencekit.wrap.stdio import Closable
from fencekit.wrap.turn import Settings

CLOSE_GRACE = 1.0  # seconds


class Channel(Protocol):
    """A way back to one client."""

    async def notify(self, method: str, params: Mapping[str, Any] | None) -> None:
        """Send a notification."""

    async def ask(self, method: str, params: Mapping[str, Any] | None) -> dict[str, Any]:
        """Send a request of the server; raises `Unheard` where nobody can answer it."""


class Unheard(Exception):
    """The client is gone or cannot be asked."""


class Refusal(Exception):
    """The client answered a request of the server with this error."""

    def __init__(self, code: int, message: str, data: object = None) -> None:
        super().__init__(message)
        self.code, self.message, self.data = code, message, data


@dataclass(eq=False)
class _Waiting:
    client_id: object
    channel: Channel
    token: object
    answer: asyncio.Future[Frame] = field(default_factory=asyncio.Future)


class Room:
    """A gate between the HTTP front and a server of its own.

    `standalone` is the channel for what belongs to no request; `died` is called when the server
    ends on its own.
    """

    def __init__(
        self,
        settings: Settings,
        record: Record,
        connect: Callable[[Pump, Callable[[], None]], Closable],
        died: Callable[[], object] = lambda: None,
    ) -> None:
        self.standalone: Channel | None = None
        self.gate = Gate(settings)
        self._loop = asyncio.get_running_loop()
        self._numbers = itertools.count(1)
        self._waiting: dict[str, _Waiting] = {}
        self._frames: asyncio.Queue[bytes] = asyncio.Queue()
        self._tasks: set[asyncio.Task[None]] = set()
        self.pump = Pump(self.gate, record, self._arrived)
        self._upstream = connect(self.pump, lambda: self._from_thread(died))
        self.pump.upstream = self._upstream
        self._start(self._run())

    def _from_thread(self, step: Callable[[], object]) -> None:
        with contextlib.suppress(RuntimeError):  # the loop has ended
            self._loop.call_soon_threadsafe(step)

    def _arrived(self, raw: bytes) -> None:
        self._from_thread(lambda: self._frames.put_nowait(raw))

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    # --- from the client ---

    async def request(
        self, client_id: object, method: str, params: Mapping[str, Any] | None, channel: Channel
    ) -> Frame:
        """Send a request through the gate and return the frame that answers it.

        When the caller gives up, the gate hears a cancellation.
        """
        ident = f"h{next(self._numbers)}"
        meta = params.get("_meta") if params is not None else None
        token = meta.get("progressToken") if isinstance(meta, Mapping) else None
        if token is not None and params is not None and isinstance(meta, Mapping):
            params = {**params, "_meta": {**meta, "progressToken": ident}}
        waiting = self._waiting[ident] = _Waiting(client_id, channel, token)
        try:
            self.pump.from_client(_message(method, params, ident))
            return await waiting.answer
        except asyncio.CancelledError:
            gone = {"requestId": ident, "reason": "the client went away"}
            self.pump.from_client(_message("notifications/cancelled", gone))
            raise
        finally:
            self._waiting.pop(ident, None)

    def notify(self, method: str, params: Mapping[str, Any] | None) -> None:
        """Send a notification of the client through the gate."""
        self.pump.from_client(_message(method, params))

    # --- from the server ---

    async def _run(self) -> None:
        while True:
            for frame in parse(await self._frames.get()):
                try:
                    await self._take(frame)
                except (Unheard, Refusal):
                    continue  # a notification to somebody who is gone

    async def _take(self, frame: Frame) -> None:
        match frame.kind:
            case Kind.RESPONSE | Kind.ERROR:
                waiting = self._waiting.get(str(frame.id))
                if waiting is not None and not waiting.answer.done():
                    waiting.answer.set_result(self._put_back(frame, waiting))
            case Kind.NOTIFICATION:
                await self._notified(frame)
            case Kind.REQUEST:
                self._start(self._asked(frame))

    def _put_back(self, frame: Frame, waiting: _Waiting) -> Frame:
        """Give a subscription's end the id under which the client knows it."""
        result = frame.result
        meta = result.get("_meta") if isinstance(result, dict) else None
        if isinstance(meta, dict) and meta.get(protocol.META_SUBSCRIPTION_ID) == frame.id:
            meta = {**meta, protocol.META_SUBSCRIPTION_ID: waiting.client_id}
            return parse(result_bytes(frame.id, encode({**result, "_meta": meta})))[0]
        return frame

    async def _notified(self, frame: Frame) -> None:
        params: dict[str, Any] = dict(frame.params)
        meta = params.get("_meta")
        listening = meta.get(protocol.META_SUBSCRIPTION_ID) if isinstance(meta, dict) else None
        channel = self._related()
        if (waiting := self._waiting.get(str(params.get("progressToken")))) is not None:
            params["progressToken"] = waiting.token
            channel = waiting.channel
        elif listening is not None and (waiting := self._waiting.get(str(listening))) is not None:
            params["_meta"] = {**meta, protocol.META_SUBSCRIPTION_ID: waiting.client_id}  # type: ignore[dict-item]
            channel = waiting.channel
        if channel is not None and frame.method is not None:
            given = params if "params" in frame.message else None
            await channel.notify(frame.method, given)

    def _related(self) -> Channel | None:
        """Guess to whom a frame belongs: the one who waits, else whoever listens to all."""
        if len(self._waiting) == 1:
            return next(iter(self._waiting.values())).channel
        return self.standalone

    async def _asked(self, frame: Frame) -> None:
        of = self._waiting.get(asked_for(frame.id))
        channel = of.channel if of is not None else self._related() or self.standalone
        given = frame.params if "params" in frame.message else None
        try:
            if channel is None or frame.method is None:
                raise Unheard
            result = await channel.ask(frame.method, given)
            raw = result_bytes(frame.id, encode(result))
        except Refusal as refusal:
            raw = error_bytes(frame.id, refusal.code, refusal.message, refusal.data)
        except Unheard:
            raw = for_nobody(frame)
        self.pump.from_client(raw)

    async def close(self) -> None:
        """End the server; what is in flight becomes unknown within bounds."""
        for task in list(self._tasks):
            task.cancel()
        await asyncio.to_thread(self._close)

    def _close(self) -> None:
        pump = self.pump
        pump.turn(pump.gate.client_gone)
        pump.wait_until_idle(CLOSE_GRACE)
        why = "the session ended before the server answered"
        pump.turn(lambda at: pump.gate.server_gone(why, at, answer_all=False))
        pump.wait_until_idle(CLOSE_GRACE)
        self._upstream.close(CLOSE_GRACE)
        pump.stop()


def for_nobody(frame: Frame) -> bytes:
    """Answer a server's request whose session is gone: the call's outcome is still to come."""
    if frame.method == "elicitation/create":
        return result_bytes(frame.id, encode({"action": "cancel"}))
    return error_bytes(frame.id, protocol.INTERNAL_ERROR, "the client that started this is gone")


def _message(method: str, params: Mapping[str, Any] | None, ident: str | None = None) -> bytes:
    message: dict[str, Any] = {"jsonrpc": "2.0", "method": method}
    if ident is not None:
        message["id"] = ident
    if params is not None:
        message["params"] = dict(params)
    return encode(message)
