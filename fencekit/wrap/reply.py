"""The HTTP answer to one request, written once and read by whoever is connected.

A client of the handshake era may lose its connection and come back for the rest with
`Last-Event-ID`; the events of a fenced call are therefore kept here, within bounds, while it runs
and for a while after. Belongs to one event loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from fencekit.wire.hops import Headers, on_wire

MAX_UNREAD = 1024 * 1024  # bytes ahead of a connected client; the server waits then
MAX_KEPT = 4 * 1024 * 1024  # bytes kept for a client that may come back
SSE: Headers = [("content-type", "text/event-stream"), ("cache-control", "no-cache, no-transform")]

_CUT = b""


class Reply:
    """Status, headers, and the pieces of the body so far."""

    def __init__(self) -> None:
        self.status = 0
        self.headers: Headers = []
        self.ended = False
        self._pieces: list[bytes] = []
        self._dropped = 0
        self._ids: dict[str, int] = {}
        self._kept = self._put = self._read = 0
        self._readers = 0
        self._news = asyncio.Event()
        # Called when nobody is connected any more although more may come.
        self.on_left: Callable[[], None] = lambda: None

    def _changed(self) -> None:
        news, self._news = self._news, asyncio.Event()
        news.set()

    @property
    def opened(self) -> bool:
        """Whether status and headers are known."""
        return self.status != 0

    @property
    def heard(self) -> bool:
        """Whether somebody is connected."""
        return self._readers > 0

    def open(self, status: int, headers: Headers) -> None:
        """Say status and headers; the first time counts."""
        if not self.opened:
            self.status, self.headers = status, headers
            self._changed()

    def put(self, raw: bytes, event_id: str | None = None) -> None:
        """Add a piece; `event_id` is where a client may come back to."""
        if self.ended or not raw:
            return
        self._pieces.append(raw)
        self._kept += len(raw)
        self._put += len(raw)
        if event_id:
            self._ids[event_id] = self._dropped + len(self._pieces)
        while self._kept > MAX_KEPT and len(self._pieces) > 1 and self._may_drop():
            self._kept -= len(self._pieces.pop(0))
            self._dropped += 1
        while self._ids and self._ids[first := next(iter(self._ids))] < self._dropped:
            del self._ids[first]
        self._changed()

    def _may_drop(self) -> bool:
        """Whether nobody connected still has to read the oldest piece."""
        return not self.heard or self._put - self._kept + len(self._pieces[0]) <= self._read

    def whole(self, status: int, headers: Headers, body: bytes) -> None:
        """Say a whole answer at once."""
        self.open(status, [*headers, ("content-length", str(len(body)))])
        self.put(body)
        self.end()

    def cut(self) -> None:
        """End the connections; the stream goes on for whoever comes back."""
        self._pieces.append(_CUT)
        self._changed()

    def end(self) -> None:
        """Say that nothing more comes; what ends unsaid is an empty stream."""
        self.open(200, SSE)
        self.ended = True
        self._changed()

    def holds(self, event_id: str) -> bool:
        """Whether a client may come back to this event."""
        return event_id in self._ids

    async def room(self) -> None:
        """Wait while a connected client is far behind."""
        while self.heard and not self.ended and self._put - self._read > MAX_UNREAD:
            await self._news.wait()

    async def send_to(self, send: Any, after: str | None = None) -> None:
        """Send what there is and what comes, after an event or from the start."""
        self._readers += 1
        try:
            while not self.opened:
                await self._news.wait()
            raw = on_wire(self.headers)
            await send({"type": "http.response.start", "status": self.status, "headers": raw})
            start = 0 if after is None else self._ids[after]
            await self._pieces_to(send, start, back=after is not None)
            await send({"type": "http.response.body", "body": b""})
        finally:
            self._readers -= 1
            if not self.heard and not self.ended:
                self.on_left()
            self._changed()

    async def _pieces_to(self, send: Any, at: int, *, back: bool) -> None:
        ahead = self._pieces[max(0, at - self._dropped) :]
        sent = self._put - sum(map(len, ahead))
        while back and ahead and ahead[0] is _CUT:  # it came back to where it was cut off
            at, ahead = at + 1, ahead[1:]
        while True:
            at = max(at, self._dropped)
            while at - self._dropped < len(self._pieces):
                piece = self._pieces[at - self._dropped]
                if piece is _CUT:
                    return
                at, sent = at + 1, sent + len(piece)
                await send({"type": "http.response.body", "body": piece, "more_body": True})
                self._read = max(self._read, sent)
                self._changed()
            if self.ended:
                return
            await self._news.wait()
