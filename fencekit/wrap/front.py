"""The HTTP front: the SDK's Streamable HTTP application with one middleware in front of everything.

The SDK decides the era, keeps sessions, checks Host, Origin and headers, and bounds bodies; the
middleware takes every request before a typed handler sees it and hands raw values to a room. This
is the only module that touches what the SDK does not promise: `ctx.session._request_outbound`,
`ctx.session._connection` and its session manager's table (mcp 2.3, below 3).
"""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import socket
from collections import deque
from collections.abc import Callable, Mapping, MutableMapping
from dataclasses import dataclass, field
from typing import Any

import uvicorn
from mcp.server.lowlevel import Server
from mcp.server.streamable_http import EventCallback, EventMessage, EventStore
from mcp.server.transport_security import TransportSecuritySettings
from mcp.shared.exceptions import MCPError, NoBackChannelError

from fencekit import __version__
from fencekit.wire import protocol
from fencekit.wire.errors import WireError
from fencekit.wire.frames import Frame, Kind
from fencekit.wrap.pump import Pump, say
from fencekit.wrap.record import Record
from fencekit.wrap.room import Refusal, Room, Unheard
from fencekit.wrap.stdio import Closable
from fencekit.wrap.turn import Settings

MAX_BODY = 64 * 1024 * 1024
RETRY_MS = 500
EVENTS_KEPT = 2000
IDLE_END = 1800.0  # seconds
LOOPBACK = ("127.0.0.1", "localhost", "::1")

Connect = Callable[[Pump, Callable[[], None]], Closable]


@dataclass(frozen=True, slots=True)
class Listen:
    """Where the front listens, and whom it lets in."""

    host: str
    port: int
    token: str | None = None
    allowed_hosts: tuple[str, ...] = ()
    max_sessions: int = 32

    def check(self) -> None:
        """Raise ValueError for an address that may not be served like this."""
        if self.host not in LOOPBACK and not self.token:
            raise ValueError(
                f"--http {self.host} can be reached from other machines: give a token with "
                "--front-token-env or --front-token-file, or listen on 127.0.0.1"
            )

    def security(self) -> TransportSecuritySettings:
        """Return which Host and Origin headers are accepted."""
        names = [*LOOPBACK[:2], "[::1]"] if self.host in LOOPBACK else [self.host]
        names += self.allowed_hosts
        hosts = [f"{name}:*" for name in names] + names
        origins = [f"{scheme}://{host}" for host in hosts for scheme in ("http", "https")]
        return TransportSecuritySettings(
            enable_dns_rebinding_protection=True, allowed_hosts=hosts, allowed_origins=origins
        )


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
        self._shared: Room | None = None
        self._rooms: list[Room] = []
        self._dead: set[str] = set()
        self.app: Server[Any] = Server("fencekit", version=__version__, on_list_tools=_never)
        self.app.middleware.append(self._each)

    @property
    def busy(self) -> bool:
        """Whether any call is in flight."""
        return any(room.gate.busy for room in self._rooms)

    async def _each(self, ctx: Any, call_next: Any) -> Any:
        """Take one message of a client before any typed handler does."""
        room = await self._room(ctx)
        if ctx.request_id is None:
            if ctx.method != "notifications/cancelled":  # the SDK cancels the request itself
                room.notify(ctx.method, ctx.params)
            return await call_next(ctx)
        if room is self._shared and ctx.method == "initialize":
            raise MCPError(protocol.METHOD_NOT_FOUND, "Method not found", "initialize")
        channel = _Outbound(ctx.session._request_outbound)
        return _result(await room.request(ctx.request_id, ctx.method, ctx.params, channel))

    async def _room(self, ctx: Any) -> Room:
        connection = ctx.session._connection
        session = connection.session_id
        if session is None:
            if self._shared is None:
                self._shared = await self._open(self._forget_shared)
            return self._shared
        room: Room | None = connection.state.get("fencekit")
        if room is None:
            room = await self._open(lambda: self._dead.add(session))
            room.standalone = _Outbound(connection.outbound)
            connection.state["fencekit"] = room
            connection.exit_stack.push_async_callback(self._close, room)
        return room

    def _forget_shared(self) -> None:
        self._shared = None

    async def _open(self, died: Callable[[], None]) -> Room:
        try:
            room = Room(self._settings, self._record, self._connect, died)
        except WireError as error:
            say(str(error))
            text = f"the server cannot be started: {error}"
            raise MCPError(protocol.INTERNAL_ERROR, text) from None
        self._rooms.append(room)
        return room

    async def _close(self, room: Room) -> None:
        self._rooms.remove(room)
        await room.close()

    def gone(self, session: str | None) -> bool:
        """Whether a session's server has ended, so that its client must begin anew."""
        return session is not None and session in self._dead

    async def close(self) -> None:
        """End every server."""
        await asyncio.gather(*(room.close() for room in self._rooms))
        self._rooms.clear()

    def serve(self, listen: Listen, ready: Callable[[str], None]) -> None:
        """Serve until a signal comes; `ready` gets the address."""
        web = self.app.streamable_http_app(
            event_store=_Events(),
            retry_interval=RETRY_MS,
            max_request_body_size=MAX_BODY,
            session_idle_timeout=IDLE_END,
            max_sessions=listen.max_sessions,
            transport_security=listen.security(),
        )
        family = socket.AF_INET6 if ":" in listen.host else socket.AF_INET
        sock = socket.socket(family, socket.SOCK_STREAM)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            sock.bind((listen.host, listen.port))
            sock.listen(128)
        except OSError as error:
            sock.close()
            raise ValueError(f"--http {listen.host}:{listen.port}: {error.strerror}") from None
        shown = f"[{listen.host}]" if ":" in listen.host else listen.host
        door = _Door(web, self, listen.token)
        config = uvicorn.Config(
            door, log_level="warning", timeout_graceful_shutdown=2, lifespan="on"
        )
        ready(f"http://{shown}:{sock.getsockname()[1]}/mcp")
        with contextlib.suppress(KeyboardInterrupt):
            uvicorn.Server(config).run(sockets=[sock])


class _Door:
    """What stands before the SDK's application: health, the token, and sessions that ended."""

    def __init__(self, web: Any, front: Front, token: str | None) -> None:
        self._web = web
        self._front = front
        self._token = token

    async def __call__(self, scope: MutableMapping[str, Any], receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":
            await self._web(scope, receive, self._closing(send))
            return
        headers = {name.lower(): value for name, value in scope.get("headers", [])}
        session = headers.get(b"mcp-session-id", b"").decode("latin-1") or None
        if scope["path"] == "/health":
            await _say(send, 200, b'{"status":"ok"}')
        elif self._token is not None and not self._knows(headers.get(b"authorization", b"")):
            await _say(send, 401, b'{"detail":"unauthorized"}', (b"www-authenticate", b"Bearer"))
        elif self._front.gone(session):
            await _say(send, 404, b'{"detail":"the server of this session has ended"}')
        else:
            await self._web(scope, receive, send)

    def _knows(self, given: bytes) -> bool:
        assert self._token is not None
        return hmac.compare_digest(given, b"Bearer " + self._token.encode())

    def _closing(self, send: Any) -> Any:
        async def sent(message: Any) -> None:
            if message["type"] == "lifespan.shutdown.complete":
                await self._front.close()
            await send(message)

        return sent


async def _say(send: Any, status: int, body: bytes, *more: tuple[bytes, bytes]) -> None:
    headers = [(b"content-type", b"application/json"), *more]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


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
