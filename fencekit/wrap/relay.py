"""The reverse proxy in front of a server that itself speaks Streamable HTTP.

Everything but a fenced `tools/call` passes as HTTP: status, headers, streams with their event ids,
`Last-Event-ID`, session ids, DELETE. Sessions are the server's own. The proxy checks Host and
Origin, bounds bodies, and never hands its own token on.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Mapping
from typing import Any

import httpx2
from mcp.server.transport_security import TransportSecurityMiddleware
from starlette.requests import Request

from fencekit.wire import protocol
from fencekit.wire.errors import WireError
from fencekit.wire.events import event_bytes, events
from fencekit.wire.frames import Frame, Kind, encode, error_bytes, parse
from fencekit.wire.hops import Headers, downward, on_wire, upward
from fencekit.wire.http import MAX_BODY as MAX_ANSWER
from fencekit.wire.http import failure
from fencekit.wrap.desk import Desk
from fencekit.wrap.door import IDLE_END, MAX_BODY, PRINCIPAL, Listen, Scope, say_status
from fencekit.wrap.exchange import JSON, Exchange, said
from fencekit.wrap.pump import say
from fencekit.wrap.record import Record
from fencekit.wrap.reply import SSE, Reply
from fencekit.wrap.turn import Settings
from fencekit.wrap.way import Way

MAX_DESKS = 256  # sessions and principals with a gate of their own; the one unused longest goes
PATH = "/mcp"


_Key = tuple[str, str | None]


class Relay:
    """Many clients, one HTTP server, one fence: a desk for each session, one for the rest."""

    def __init__(
        self,
        settings: Settings,
        record: Record,
        server: tuple[str, Mapping[str, str]],
        *,
        forward_auth: bool = False,
    ) -> None:
        self._settings = settings
        self._record = record
        self._url, self._own = server
        self._forward_auth = forward_auth
        self._way: Way | None = None
        self._desks: dict[_Key, Desk] = {}
        self._opening: set[Desk] = set()
        self._security: TransportSecurityMiddleware | None = None

    @property
    def busy(self) -> bool:
        """Whether an admitted call runs."""
        return any(desk.gate.holding for desk in [*self._desks.values(), *self._opening])

    def web(self, listen: Listen) -> Any:
        """Return the ASGI application to serve."""
        self._security = TransportSecurityMiddleware(listen.security())
        return self

    def sessions(self, listen: Listen) -> str:
        """Say whose the sessions are, for the line at start."""
        return "sessions are the server's own"

    def gone(self, session: str | None) -> bool:
        """Sessions are the server's, which says itself what it does not know."""
        return False

    async def close(self) -> None:
        """End every desk within bounds."""
        desks = [*self._desks.values(), *self._opening]
        await asyncio.gather(*(desk.close() for desk in desks))
        if self._way is not None:
            await self._way.close()

    # --- desks ---

    def _desk(self, principal: str, session: str | None) -> Desk:
        key = (principal, session)
        desk = self._desks.get(key)
        if desk is None:
            desk = self._desks[key] = self._new(principal, session)
            self._tidy()
        return desk

    def _new(self, principal: str, session: str | None) -> Desk:
        assert self._way is not None
        desk = Desk(self._settings.acting_as(principal), self._record, self._way, session)
        desk.on_lost = lambda: self._forget(desk)
        return desk

    def _first(self, principal: str) -> Desk:
        """Return a desk for a client that asks for a session; the server may give one."""
        desk = self._new(principal, None)
        self._opening.add(desk)

        def opened(session: str, _of: Exchange) -> None:
            self._opening.discard(desk)
            desk.session = session
            self._desks[principal, session] = desk

        desk.on_session = opened
        return desk

    def _forget(self, desk: Desk) -> None:
        """Let go of a desk once its calls have ended; a session that comes again gets a new one."""
        for key in [key for key, one in self._desks.items() if one is desk]:
            del self._desks[key]
        self._opening.discard(desk)
        task = asyncio.get_running_loop().create_task(desk.fade())
        task.add_done_callback(lambda _task: None)

    def _tidy(self) -> None:
        now = time.monotonic()
        idle = sorted(
            (d for key, d in self._desks.items() if key != ("", None) and not d.busy),
            key=lambda d: d.used,
        )
        over = len(self._desks) - MAX_DESKS
        for number, desk in enumerate(idle):
            if number < over or now - desk.used > IDLE_END:
                self._forget(desk)

    # --- requests ---

    async def __call__(self, scope: Scope, receive: Any, send: Any) -> None:
        """Take one request."""
        if scope["type"] == "lifespan":
            await _lifespan(receive, send)
            return
        if self._way is None:
            self._way = Way(self._url, self._own)
        assert self._security is not None
        posted = scope["method"] == "POST"
        refused = await self._security.validate_request(Request(scope), is_post=posted)
        if refused is not None:
            await refused(scope, receive, send)
        elif scope["path"].rstrip("/") != PATH:
            await say_status(send, 404, b'{"detail":"the endpoint is /mcp"}')
        else:
            with contextlib.suppress(ConnectionResetError):
                await (self._post if posted else self._other)(scope, receive, send)

    def _headers(self, scope: Scope) -> Headers:
        """Return the headers for the server, with the client's credential where it speaks."""
        own = dict(self._own)
        if self._forward_auth:
            given = {name.lower(): value for name, value in scope["headers"]}
            if b"authorization" in given:
                own["authorization"] = given[b"authorization"].decode("latin-1")
        return upward(scope["headers"], own)

    async def _post(self, scope: Scope, receive: Any, send: Any) -> None:
        body = await _body(receive)
        if body is None:
            await say_status(send, 413, b'{"detail":"the request is too large"}')
            return
        headers = self._headers(scope)
        principal, session = scope[PRINCIPAL], dict(headers).get(protocol.HEADER_SESSION)
        frames = parse(body)
        first = frames[0]
        if len(frames) > 1:
            await self._batch(frames, self._desk(principal, session), headers, (receive, send))
        elif first.kind is Kind.INVALID:
            said_of = error_bytes(None, protocol.PARSE_ERROR, f"not handed on: {first.fault[:200]}")
            await say_status(send, 400, said_of)
        elif first.kind is not Kind.REQUEST:
            await self._tell(first, self._desk(principal, session), headers, send)
        else:
            opens = first.method == "initialize" and session is None
            desk = self._first(principal) if opens else self._desk(principal, session)
            exchange = desk.request(first, headers)
            if not await connected(exchange.reply.send_to(send), receive):
                desk.left(exchange)
            if desk in self._opening:
                self._forget(desk)

    async def _tell(self, frame: Frame, desk: Desk, headers: Headers, send: Any) -> None:
        """Send on what needs no answer, and answer as the server does."""
        assert self._way is not None
        status, given, body = 202, [], b""
        for one in desk.tell(frame, headers):
            try:
                got = await self._way.pooled.post(
                    self._url, headers=on_wire(headers), content=one.raw
                )
            except httpx2.HTTPError as error:
                await _unreachable(send, failure(error, self._url))
                return
            status, given, body = got.status_code, downward(got.headers.raw), got.content
        reply = Reply()
        reply.whole(status, given, body)
        await reply.send_to(send)

    async def _batch(
        self, frames: list[Frame], desk: Desk, headers: Headers, ends: tuple[Any, Any]
    ) -> None:
        """Send each message of a batch alone, and give all their answers as one stream."""
        receive, send = ends
        made = Reply()
        exchanges = [desk.request(f, headers) for f in frames if f.kind is Kind.REQUEST]
        for frame in frames:
            if frame.kind is not Kind.REQUEST:
                for one in desk.tell(frame, headers):
                    desk.tell_server(one.raw, headers)
        if not exchanges:
            made.whole(202, [], b"")
        made.open(200, SSE)

        async def gather(exchange: Exchange) -> None:
            await exchange.reply.send_to(_as_events(exchange, made))

        async def all_of_them() -> None:
            await asyncio.gather(*(gather(exchange) for exchange in exchanges))
            made.end()

        work = asyncio.get_running_loop().create_task(all_of_them())
        if not await connected(made.send_to(send), receive):
            work.cancel()
            for exchange in exchanges:
                desk.left(exchange)

    async def _other(self, scope: Scope, receive: Any, send: Any) -> None:
        """Hand on a GET (the server's own stream, or one that is resumed), DELETE or OPTIONS."""
        assert self._way is not None
        headers = self._headers(scope)
        given = dict(headers)
        session = given.get(protocol.HEADER_SESSION)
        desk = self._desk(scope[PRINCIPAL], session)
        last = given.get(protocol.HEADER_LAST_EVENT_ID)
        if scope["method"] == "GET" and last and (kept := desk.resumed(last)) is not None:
            await connected(kept.send_to(send, last), receive)
            return
        body = await _body(receive)
        reply = Reply()
        carry = self._carry(scope["method"], desk, (headers, body or b""), reply)
        task = asyncio.get_running_loop().create_task(carry)
        await connected(reply.send_to(send), receive)
        task.cancel()
        if scope["method"] == "DELETE" and session and reply.status < 300:
            self._forget(desk)

    async def _carry(
        self, method: str, desk: Desk, asked: tuple[Headers, bytes], reply: Reply
    ) -> None:
        assert self._way is not None
        headers, body = asked
        more: Any = {"headers": on_wire(headers), "content": body}
        try:
            async with self._way.pooled.stream(method, self._url, **more) as response:
                reply.open(response.status_code, downward(response.headers.raw))
                if "text/event-stream" in response.headers.get("content-type", ""):
                    await _relay_events(response, desk, reply)
                else:
                    async for chunk in response.aiter_bytes():
                        reply.put(chunk)
                        await reply.room()
        except httpx2.HTTPError as error:
            text = str(failure(error, self._url))
            reply.open(502, JSON)
            reply.put(encode({"detail": text}))
        except WireError as error:
            say(str(error))
        finally:
            reply.end()


async def _relay_events(response: httpx2.Response, desk: Desk, reply: Reply) -> None:
    """Hand on a stream of the server, of which the gate sees every message."""
    async for event in events(response.aiter_bytes(), MAX_ANSWER):
        frames = parse(event.data.encode()) if event.data and event.kind == "message" else []
        if not frames:
            reply.put(event.raw, event.id)
        for frame in frames:
            raw = event.raw if len(frames) == 1 else event_bytes(frame.raw)
            of = desk.asked_by(frame)
            message = None if of is None else {**frame.message, "id": of.ident}

            def place(
                raw: bytes = raw, ident: str | None = event.id, of: Exchange | None = of
            ) -> None:
                reply.put(raw, ident)
                if of is not None:
                    desk.done(of)

            desk.hears(said(frame, place, message))
        await reply.room()


async def connected(work: Any, receive: Callable[[], Any]) -> bool:
    """Do the work while the client is there; says whether it was until the end."""
    loop = asyncio.get_running_loop()
    task = loop.create_task(work)
    gone = loop.create_task(_until_gone(receive))
    await asyncio.wait({task, gone}, return_when=asyncio.FIRST_COMPLETED)
    stayed = task.done()
    for one in (task, gone):
        one.cancel()
    await asyncio.gather(task, gone, return_exceptions=True)
    return stayed


async def _until_gone(receive: Callable[[], Any]) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def _body(receive: Callable[[], Any]) -> bytes | None:
    """Read a request's body; None for one that is too large.

    Raises ConnectionResetError where the client went away before the end: half a body is none.
    """
    body = bytearray()
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ConnectionResetError("the client went away")
        body += message.get("body", b"")
        if len(body) > MAX_BODY:
            return None
        if not message.get("more_body", False):
            return bytes(body)


def _as_events(exchange: Exchange, made: Reply) -> Callable[[Any], Any]:
    """Return what takes one exchange's answer and puts it into a stream of events."""
    body = bytearray()

    async def send(message: Any) -> None:
        streamed = dict(exchange.reply.headers).get("content-type", "").startswith(SSE[0][1])
        body.extend(message.get("body", b""))
        if streamed and body:
            made.put(bytes(body))
            body.clear()
        elif message["type"] == "http.response.body" and not message.get("more_body") and body:
            whole = parse(bytes(body))[0]
            made.put(event_bytes(encode(whole.message) if whole.message else b"{}"))

    return send


async def _unreachable(send: Any, error: WireError) -> None:
    await say_status(send, 502, encode({"detail": str(error)}))


async def _lifespan(receive: Any, send: Any) -> None:
    while True:
        kind = (await receive())["type"]
        await send({"type": f"{kind}.complete"})
        if kind == "lifespan.shutdown":
            return
