"""One request of an HTTP client on its way through the reverse proxy to an HTTP server.

The gate knows it under an id of the proxy's own, so that clients without a session cannot meddle
with each other; on the wire it keeps the client's id, headers and bytes. What the server answers
goes through the gate and out as it came: status, headers, and the events with their ids.

A request that is not fenced lives as long as its client's connection, as without the proxy. A
fenced call has a connection of its own to the server and outlives its client: its stream is kept
for whoever comes back with `Last-Event-ID`, and is resumed where the server itself cuts it.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol

from fencekit.ledger import crash
from fencekit.wire import protocol
from fencekit.wire.errors import HttpRefused, NeverLeft, Unanswered, WireError
from fencekit.wire.events import Event, event_bytes, events
from fencekit.wire.frames import Frame, IdKey, Kind, encode, parse
from fencekit.wire.hops import Headers, downward, on_wire
from fencekit.wire.http import MAX_BODY, RESUME_ATTEMPTS, failure
from fencekit.wrap.actions import Action, Call, Moment, Stage
from fencekit.wrap.gate import Gate, is_modern
from fencekit.wrap.remote import in_front
from fencekit.wrap.reply import SSE, Reply
from fencekit.wrap.room import for_nobody

if TYPE_CHECKING:
    import httpx2

LONGEST_RETRY = 5.0  # seconds before a stream that the server cut is asked for again
COMES_BACK = 30.0  # seconds in which a client may come back to answer a question of the server
JSON: Headers = [("content-type", "application/json")]
_ANSWERS = (Kind.RESPONSE, Kind.ERROR)


class Said(bytes):
    """Bytes of the server as they came; `place` puts them where they go if the gate lets them."""

    place: Callable[[], None]


def said(frame: Frame, place: Callable[[], None], message: Any = None) -> Frame:
    """Return a frame for the gate, whose bytes know where they go when it hands them on."""
    raw = Said(frame.raw)
    raw.place = place
    return replace(frame, raw=raw, message=frame.message if message is None else message)


class Behind(Protocol):
    """What an exchange needs of the desk that it belongs to."""

    gate: Gate
    url: str
    session: str | None

    def client_for(self, *, fenced: bool) -> httpx2.AsyncClient:
        """Return the client whose connections serve plain requests, or one for each fenced call."""

    def turn(self, step: Callable[[Moment], list[Action]]) -> None:
        """Run one turn of the gate."""

    def hears(self, frame: Frame) -> None:
        """Give the gate a frame of the server."""

    def began(self, session: str, exchange: Exchange) -> None:
        """Take the session that the server gave."""

    def lost(self) -> None:
        """The server does not know the session any more."""

    def refusal_of(self, exchange: Exchange) -> tuple[int, bytes] | None:
        """Return why the server would refuse this request for its headers, if it would."""

    def done(self, exchange: Exchange) -> None:
        """Forget an exchange that has ended."""

    def tell_server(self, raw: bytes, headers: Headers) -> None:
        """Send an answer or notification in the name of a client that is gone."""


class Exchange:
    """One request: the client's frame, what the gate calls it, and the reply."""

    def __init__(self, desk: Behind, ident: str, frame: Frame, headers: Headers) -> None:
        self.desk = desk
        self.ident = ident
        self.client = frame
        self.headers = headers
        self.inner = renamed(frame, ident)
        self.modern = is_modern(frame)
        self.reply = Reply()
        self.call: Call | None = None
        self.task: asyncio.Task[None] | None = None
        self.resumable = False
        # What the server asked in a fenced call and nobody has answered yet.
        self.questions: dict[IdKey, Frame] = {}
        self.reply.on_left = self._left_alone
        self._token = _token_of(frame)
        self._refusal: tuple[int, Headers, bytes] | None = None
        self._unreachable = False

    # --- towards the server ---

    def start(self, frame: Frame, call: Call | None) -> None:
        """Send the request, as the gate lets it."""
        self.call = call
        body = frame.raw if frame.raw == self.inner.raw else self._outward(frame)
        self.task = asyncio.get_running_loop().create_task(self._carry(body))

    def _outward(self, frame: Frame) -> bytes:
        """Write a request that the gate wrote anew with the client's own id and token."""
        message = dict(renamed(frame, self.client.id).message)
        if self._token is not None:
            meta = {**frame.params["_meta"], "progressToken": self._token}
            message["params"] = {**frame.params, "_meta": meta}
        return encode(message)

    async def _carry(self, body: bytes) -> None:
        desk = self.desk
        loop = asyncio.get_running_loop()

        async def trace(name: str, _info: Any) -> None:
            if name == "http11.send_request_body.complete" and (call := self.call) is not None:
                crash.point("posted")
                loop.call_soon(desk.turn, lambda at: desk.gate.sent(call, at))

        client = desk.client_for(fenced=self.call is not None)
        more: Any = {
            "headers": on_wire(self.headers),
            "content": body,
            "extensions": {"trace": trace},
        }
        try:
            async with client.stream("POST", desk.url, **more) as response:
                await self._read(response)
        except asyncio.CancelledError:
            self._failed(Unanswered("the connection was given up"))
            raise
        except Exception as error:
            self._failed(failure(error, desk.url))

    async def _read(self, response: httpx2.Response) -> None:
        kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
        headers = downward(response.headers.raw)
        if response.status_code >= 300:
            await self._refused(response, headers)
            return
        given = response.headers.get(protocol.HEADER_SESSION)
        if self.client.method == "initialize" and given:
            self.desk.began(given, self)
        if kind == "application/json":
            self._body(response.status_code, headers, await _whole(response))
        elif kind == "text/event-stream":
            await self._stream(response, headers)
        else:
            status = response.status_code
            raise Unanswered(f"{self.desk.url} answered {status} with {kind or 'no content type'}")

    def _body(self, status: int, headers: Headers, body: bytes) -> None:
        frames = parse(body)
        if not any(self._answers(frame) for frame in frames):
            raise Unanswered(f"{self.desk.url} answered, but not to this request")
        for frame in frames:
            raw = body if len(frames) == 1 else frame.raw
            self._hears(frame, lambda raw=raw: self._whole(status, headers, raw))  # type: ignore[misc]

    async def _refused(self, response: httpx2.Response, headers: Headers) -> None:
        status, url = response.status_code, self.desk.url
        challenged = "www-authenticate" in response.headers
        if status < 400:  # following it would lead the client around the fence
            to = response.headers.get("location", "?")
            raise HttpRefused(status, f"{url} redirects to {to}: use that address with --url")
        refused = HttpRefused(status, f"{url} answered HTTP {status}", challenged=challenged)
        if self.call is not None and in_front(refused, self.desk.session):
            self.call.refused = str(refused)
        body = await _whole(response)
        got = parse(body)
        if len(got) == 1 and got[0].kind is Kind.ERROR and got[0].id in (None, self.client.id):
            message = {**got[0].message, "id": self.ident}
            self.desk.hears(said(got[0], lambda: self._whole(status, headers, body), message))
        else:
            self._refusal = (status, headers, body)
            self._failed(refused)
        if status == 404 and self.desk.session is not None:
            self.desk.lost()

    async def _stream(self, response: httpx2.Response, headers: Headers) -> None:
        self.reply.open(response.status_code, headers)
        last, fruitless = "", 0
        async with contextlib.AsyncExitStack() as opened:
            while True:
                heard, pause = False, 0.0
                try:
                    async for event in events(response.aiter_bytes(), MAX_BODY):
                        last, heard = event.id or last, True
                        pause = pause if event.retry is None else event.retry / 1000
                        if await self._event(event):
                            return
                except Exception as error:
                    if not self._may_resume(last):
                        raise failure(error, self.desk.url) from error
                fruitless = 0 if heard else fruitless + 1
                if not self._may_resume(last) or fruitless > RESUME_ATTEMPTS:
                    break
                self.reply.cut()
                await asyncio.sleep(min(pause, LONGEST_RETRY))
                response = await opened.enter_async_context(self._again(last))
                if response.status_code != 200:
                    break
        self.resumable = bool(last) and not self.modern
        raise Unanswered(f"{self.desk.url} ended the stream without an answer")

    def _may_resume(self, last: str) -> bool:
        """Whether the stream is ours to resume: a fenced call's, whoever else has gone away."""
        call = self.call
        return call is not None and call.stage is not Stage.OVER and bool(last) and not self.modern

    def _again(self, last: str) -> Any:
        kept = [(n, v) for n, v in self.headers if n not in ("content-type", "accept")]
        headers = [
            *kept,
            ("accept", "text/event-stream"),
            (protocol.HEADER_LAST_EVENT_ID, last),
        ]
        return self.desk.client_for(fenced=True).stream(
            "GET", self.desk.url, headers=on_wire(headers)
        )

    # --- from the server ---

    async def _event(self, event: Event) -> bool:
        """Hand on one event; says whether it was the answer."""
        frames = parse(event.data.encode()) if event.data and event.kind == "message" else []
        if not frames:
            self.reply.put(event.raw, event.id)
        answered = False
        for frame in frames:
            raw = event.raw if len(frames) == 1 else event_bytes(frame.raw)
            over = self._answers(frame)
            answered = answered or over
            self._hears(frame, lambda raw=raw, over=over: self._say(raw, event.id, over=over))  # type: ignore[misc]
            if frame.kind is Kind.REQUEST and self.call is not None:
                self.questions[frame.key] = frame
                if not self.reply.heard:
                    self._left_alone()
        await self.reply.room()
        return answered

    def _answers(self, frame: Frame) -> bool:
        return frame.kind in _ANSWERS and frame.key == self.client.key

    def _hears(self, frame: Frame, place: Callable[[], None]) -> None:
        message: Any = None
        if self._answers(frame):
            message = {**frame.message, "id": self.ident}
        elif self._token is not None and frame.params.get("progressToken") == self._token:
            params = {**frame.params, "progressToken": self.ident}
            message = {**frame.message, "params": params}
        self.desk.hears(said(frame, place, message))

    def _left_alone(self) -> None:
        """Answer for a client that does not come back, so that the server's call can end."""
        if self.questions:
            asyncio.get_running_loop().call_later(COMES_BACK, self._nobody)

    def _nobody(self) -> None:
        if self.reply.heard or self.reply.ended:
            return
        open_still, self.questions = self.questions, {}
        for frame in open_still.values():
            self.desk.tell_server(for_nobody(frame), self.headers)

    def _failed(self, error: WireError) -> None:
        """Say to the gate what became of a request that will not be answered."""
        desk, why, call = self.desk, str(error), self.call
        self._unreachable = not isinstance(error, HttpRefused) or error.status < 400
        if call is None:
            if self.reply.opened:  # a stream that broke off: it ends for the client as it did here
                self.reply.end()
            if not self.resumable:
                desk.turn(lambda at: desk.gate.refused(self.inner, why, at))
        elif isinstance(error, NeverLeft) or (
            isinstance(error, HttpRefused) and in_front(error, desk.session)
        ):
            desk.turn(lambda at: desk.gate.unsent(call, why, at))
        else:
            desk.turn(lambda at: desk.gate.broken(call, why, at))

    # --- towards the client ---

    def _say(self, raw: bytes, event_id: str | None = None, *, over: bool) -> None:
        self.reply.put(raw, event_id)
        if over:
            self._over()

    def _whole(self, status: int, headers: Headers, body: bytes) -> None:
        if self.reply.opened:  # something was said before: it is a stream
            self._say(event_bytes(body), over=True)
            return
        self.reply.whole(status, headers, body)
        self._over()

    def answer(self, frame: Frame) -> None:
        """Give the client an answer that is not the server's own bytes to this very request."""
        body = encode({**frame.message, "id": self.client.id})
        if self._refusal is not None and not self.reply.opened:
            self.reply.whole(*self._refusal)  # the first answer is the server's, unchanged
            self._over()
            return
        problem = None if self.task is not None else self.desk.refusal_of(self)
        status, body = problem or (200, body)
        if self.call is None and self._unreachable:
            status = 502
        self._whole(status, JSON, body)

    def progress(self, frame: Frame) -> bytes:
        """Write another caller's progress under the client's own token."""
        params = {**frame.params, "progressToken": self._token}
        return encode({**frame.message, "params": params})

    def tell(self, raw: bytes) -> None:
        """Give the client a frame of the fence's own, or another caller's progress."""
        self.reply.open(200, SSE)
        self.reply.put(event_bytes(raw))

    def _over(self) -> None:
        self.reply.end()
        self.desk.done(self)

    def drop(self) -> None:
        """Close the connection to the server, as the client closed its own."""
        self.reply.end()
        if self.task is not None:
            self.task.cancel()
        if not self.resumable:
            self.desk.done(self)


def renamed(frame: Frame, ident: object) -> Frame:
    """Return a request under another id, which also stands for its progress token."""
    message = {**frame.message, "id": ident}
    if _token_of(frame) is not None:
        meta = {**frame.params["_meta"], "progressToken": ident}
        message["params"] = {**frame.params, "_meta": meta}
    return replace(frame, message=message)


def _token_of(frame: Frame) -> object:
    meta = frame.params.get("_meta")
    return meta.get("progressToken") if isinstance(meta, dict) else None


async def _whole(response: httpx2.Response) -> bytes:
    body = bytearray()
    async for chunk in response.aiter_bytes():
        body += chunk
        if len(body) > MAX_BODY:
            raise Unanswered(f"{response.url} sent more than {MAX_BODY} bytes in one answer")
    return bytes(body)
