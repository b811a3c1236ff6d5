"""The HTTP front: the SDK's Streamable HTTP application with one middleware in front of everything.

The SDK decides the era, keeps sessions, checks Host, Origin and headers, and bounds bodies; the
middleware takes every request before a typed handler sees it and hands raw values to a room. This
is the only module that touches what the SDK does not promise: `ctx.session._request_outbound`,
`ctx.session._connection` and its session manager's table (mcp 2.3, below 3).
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from mcp.server.lowlevel import Server
from mcp.server.streamable_http import EventCallback, EventMessage, EventStore
from mcp.shared.exceptions import MCPError, NoBackChannelError

from fencekit import __version__
from fencekit.wire import protocol
from fencekit.wire.errors import WireError
from fencekit.wire.frames import Frame, Kind
from fencekit.wrap.door import IDLE_END, MAX_BODY, PRINCIPAL, Listen
from fencekit.wrap.pump import Pump, say
from fencekit.wrap.record import Record
from fencekit.wrap.room import Refusal, Room, Unheard
from fencekit.wrap.stdio import Closable
from fencekit.wrap.turn import Settings

RETRY_MS = 500
EVENTS_KEPT = 2000

Connect = Callable[[Pump, Callable[[], None]], Closable]


class _Outbound:
    """A channel over one of the SDK's."""

    def __init__(self, outbound: Any) -> None:
        self._outbound = outbound

    async def notify(self, method: str, params: Mapping[str, Any] | None) -> None:
        try:
            await self._outbound.notify(method, params)
        except Exception as error:  # whatever a closed stream raises: nobody listens any more
            raise Unheard from error

    async def ask(self, method: str, params: Mapping[str, Any] | None) -> dict[str, Any]:
        try:
            return dict(await self._outbound.send_raw_request(method, params, {}))
        except NoBackChannelError as error:
            raise Unheard from error
        except MCPError as error:
            raise Refusal(error.code, error.message, error.data) from error


@dataclass
class _Events(EventStore):
    """The last events of every stream, for clients that come back for them."""

    kept: deque[tuple[int, str, Any]] = field(default_factory=lambda: deque(maxlen=EVENTS_KEPT))
    last: int = 0

    async def store_event(self, stream_id: str, message: Any) -> str:
        self.last += 1
        self.kept.append((self.last, stream_id, message))
        return str(self.last)

    async def replay_events_after(
        self, last_event_id: str, send_callback: EventCallback
    ) -> str | None:
        after = int(last_event_id) if last_event_id.isdigit() else self.last
        stream = next((s for number, s, _ in self.kept if number == after), None)
        for number, stream_id, message in list(self.kept):
            if stream_id == stream and number > after and message is not None:
                await send_callback(EventMessage(message, str(number)))
        return stream


class Front:
    """Many clients, one fence: a shared room for stateless clients, one for each session."""

    def __init__(self, settings: Settings, record: Record, connect: Connect) -> None:
        self._settings = settings
        self._record = record
        self._connect = connect
        self._shared: dict[str, Room] = {}
        self._rooms: list[Room] = []
        self._dead: set[str] = set()
        self.app: Server[Any] = Server("fencekit", version=__version__, on_list_tools=_never)
        self.app.middleware.append(self._each)

    @property
    def busy(self) -> bool:
        """Whether an admitted call runs."""
        return any(room.gate.holding for room in list(self._rooms))

    async def _each(self, ctx: Any, call_next: Any) -> Any:
        """Take one message of a client before any typed handler does."""
        room = await self._room(ctx)
        if ctx.request_id is None:
            if ctx.method != "notifications/cancelled":  # the SDK cancels the request itself
                room.notify(ctx.method, ctx.params)
            return await call_next(ctx)
        if room in self._shared.values() and ctx.method == "initialize":
            raise MCPError(protocol.METHOD_NOT_FOUND, "Method not found", "initialize")
        channel = _Outbound(ctx.session._request_outbound)
        return _result(await room.request(ctx.request_id, ctx.method, ctx.params, channel))

    async def _room(self, ctx: Any) -> Room:
        connection = ctx.session._connection
        session = connection.session_id
        principal: str = ctx.request.scope[PRINCIPAL]
        if session is None:
            shared = self._shared.get(principal)
            if shared is None:
                shared = await self._open(principal, lambda: self._shared.pop(principal, None))
                self._shared[principal] = shared
            return shared
        room: Room | None = connection.state.get("fencekit")
        if room is None:
            room = await self._open(principal, lambda: self._dead.add(session))
            room.standalone = _Outbound(connection.outbound)
            connection.state["fencekit"] = room
            connection.exit_stack.push_async_callback(self._close, room)
        return room

    async def _open(self, principal: str, died: Callable[[], object]) -> Room:
        try:
            room = Room(self._settings.acting_as(principal), self._record, self._connect, died)
        except WireError as error:
            say(str(error))
            text = f"the server cannot be started: {error}"
            raise MCPError(protocol.INTERNAL_ERROR, text) from None
        self._rooms.append(room)
        return room

    async def _close(self, room: Room) -> None:
        self._rooms.remove(room)
        await room.close()

    def sessions(self, listen: Listen) -> str:
        """Say whose the sessions are, for the line at start."""
        return "one session at a time" if listen.max_sessions == 1 else "a server for each session"

    def gone(self, session: str | None) -> bool:
        """Whether a session's server has ended, so that its client must begin anew."""
        return session is not None and session in self._dead

    async def close(self) -> None:
        """End every server."""
        await asyncio.gather(*(room.close() for room in self._rooms))
        self._rooms.clear()

    def web(self, listen: Listen) -> Any:
        """Return the ASGI application to serve."""
        return self.app.streamable_http_app(
            event_store=_Events(),
            retry_interval=RETRY_MS,
            max_request_body_size=MAX_BODY,
            session_idle_timeout=IDLE_END,
            max_sessions=listen.max_sessions,
            transport_security=listen.security(),
        )


def _result(answer: Frame) -> dict[str, Any]:
    if answer.kind is Kind.ERROR:
        error = answer.error
        code = error.get("code")
        raise MCPError(
            code if isinstance(code, int) else protocol.INTERNAL_ERROR,
            str(error.get("message", "")),
            error.get("data"),
        )
    result = answer.result
    return result if isinstance(result, dict) else {}


async def _never(_ctx: Any, _params: Any) -> Any:
    """Stand for the server's own list, which the middleware answers (see `Front`)."""
    raise MCPError(protocol.INTERNAL_ERROR, "not reached: the middleware answers every request")
