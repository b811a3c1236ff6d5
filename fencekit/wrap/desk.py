"""One gate of the reverse proxy, and the exchanges that go through it.

Each session of the handshake era has a desk of its own, because what its server lists may be its
own; clients without a session share one. The desk is what the pump knows as the server: requests
of the gate go out as the exchange they belong to, or, where the gate itself asks (its list of
tools, a reconciling read), in the name of the client that spoke last.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from fencekit.ledger import crash
from fencekit.wire import protocol
from fencekit.wire.errors import WireError
from fencekit.wire.frames import Frame, Kind, encode, id_key, parse
from fencekit.wire.hops import Headers
from fencekit.wire.http import Endpoint
from fencekit.wrap.actions import Action, Call, Moment
from fencekit.wrap.ask import asked_for
from fencekit.wrap.exchange import Exchange, Said
from fencekit.wrap.gate import Gate, is_modern
from fencekit.wrap.pump import Pump
from fencekit.wrap.record import Record
from fencekit.wrap.remote import ANSWER_TIMEOUT, repeated
from fencekit.wrap.reply import Reply
from fencekit.wrap.turn import Settings

if TYPE_CHECKING:
    import httpx2

    from fencekit.wrap.way import Way

KEPT = 32  # finished exchanges whose streams a client may still come back to
UNANSWERED = 1000  # plain requests whose answers may still come on another stream
CLOSE_GRACE = 1.0  # seconds


class Desk:
    """A gate, and the exchanges on both sides of it."""

    def __init__(self, settings: Settings, record: Record, way: Way, session: str | None) -> None:
        self.session = session
        self.url = way.url
        self.used = time.monotonic()
        self._way = way
        self._loop = asyncio.get_running_loop()
        self._names = (f"{settings.new_id()}-{n}" for n in itertools.count(1))
        self._exchanges: OrderedDict[str, Exchange] = OrderedDict()
        self._kept: OrderedDict[str, Reply] = OrderedDict()
        self._speaker: Headers = []
        self._collected: list[Frame] | None = None
        self.on_session: Callable[[str, Exchange], None] = lambda _session, _exchange: None
        self.on_lost: Callable[[], None] = lambda: None
        self.gate = Gate(settings)
        self.pump = Pump(self.gate, record, self._to_client)
        self.pump.upstream = self

    @property
    def busy(self) -> bool:
        """Whether a call is in flight, an outcome still owed, or a connection open.

        A plain request whose answer may come on another stream some day does not count.
        """
        calls, exchanges = self.gate.calls, self._exchanges.values()
        going = any(e.task is None or not e.task.done() for e in exchanges)
        return bool(calls.by_key or len(calls.owed) or going)

    # --- from the client ---

    def request(self, frame: Frame, headers: Headers) -> Exchange:
        """Put a request through the gate."""
        self._note(headers)
        exchange = Exchange(self, next(self._names), frame, headers)
        self._exchanges[exchange.ident] = exchange
        for old in list(self._exchanges.values())[: max(0, len(self._exchanges) - UNANSWERED)]:
            if old.resumable:
                self._give_up(old)
        self.turn(lambda at: self.gate.client(exchange.inner, at))
        return exchange

    def _give_up(self, exchange: Exchange) -> None:
        """Expect no answer to a plain request any more."""
        self.done(exchange)
        why = "its answer was not fetched"
        self.turn(lambda at: self.gate.refused(exchange.inner, why, at))

    def tell(self, frame: Frame, headers: Headers) -> list[Frame]:
        """Put a notification or an answer through the gate; returns what is to be sent on."""
        self._note(headers)
        cancelled = self._cancelled(frame)
        if cancelled is not None:
            return [frame] if self._cancel(cancelled) else []
        if frame.kind in (Kind.RESPONSE, Kind.ERROR):
            for exchange in self._exchanges.values():
                exchange.questions.pop(frame.key, None)
        return self._collect(frame)

    def _collect(self, frame: Frame) -> list[Frame]:
        collected: list[Frame] = []
        self._collected = collected
        try:
            self.turn(lambda at: self.gate.client(frame, at))
        finally:
            self._collected = None
        return collected

    def _note(self, headers: Headers) -> None:
        self.used, self._speaker = time.monotonic(), headers

    def _cancelled(self, frame: Frame) -> Exchange | None:
        """Return which exchange a client means; without a session its ids name nobody."""
        if frame.method != "notifications/cancelled" or self.session is None:
            return None
        key = id_key(frame.params.get("requestId"))
        return next((e for e in self._exchanges.values() if e.client.key == key), None)

    def _cancel(self, exchange: Exchange) -> bool:
        """Cancel for the gate; says whether the server must hear of it."""
        params = {"requestId": exchange.ident, "reason": "the client went away"}
        raw = encode({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params})
        forward = bool(self._collect(parse(raw)[0]))
        if not forward:
            exchange.reply.end()
        return forward

    def left(self, exchange: Exchange) -> None:
        """A client closed its connection: in the stateless era that cancels its request."""
        if exchange.reply.ended:
            return
        if exchange.call is not None or exchange.task is None:
            if exchange.modern:
                self._cancel(exchange)
        elif exchange.client.method != "tools/call" or self._cancel(exchange):
            exchange.drop()

    def resumed(self, event_id: str) -> Reply | None:
        """Return the stream of a fenced call that holds an event."""
        fenced = [e.reply for e in self._exchanges.values() if e.call is not None]
        return next((r for r in [*fenced, *self._kept.values()] if r.holds(event_id)), None)

    def asked_by(self, frame: Frame) -> Exchange | None:
        """Return the exchange that an answer on another stream belongs to."""
        if self.session is None or frame.kind not in (Kind.RESPONSE, Kind.ERROR):
            return None
        return next((e for e in self._exchanges.values() if e.client.key == frame.key), None)

    # --- what an exchange needs ---

    def client_for(self, *, fenced: bool) -> httpx2.AsyncClient:
        """Return the client whose connections serve plain requests, or one for each fenced call."""
        return self._way.fresh if fenced else self._way.pooled

    def turn(self, step: Callable[[Moment], list[Action]]) -> None:
        """Run one turn of the gate."""
        self.pump.turn(step)

    def hears(self, frame: Frame) -> None:
        """Give the gate a frame of the server."""
        crash.point("server answered")
        self.turn(lambda at: self.gate.server(frame, at))

    def began(self, session: str, exchange: Exchange) -> None:
        """Take the session that the server gave."""
        self.on_session(session, exchange)

    def lost(self) -> None:
        """The server does not know the session any more."""
        self.on_lost()

    def refusal_of(self, exchange: Exchange) -> tuple[int, bytes] | None:
        """Return why the server would refuse this request for its headers, if it would."""
        return self._way.refusal(exchange.client, exchange.headers, self.gate)

    def done(self, exchange: Exchange) -> None:
        """Forget an exchange that has ended; its stream stays for a while."""
        if self._exchanges.pop(exchange.ident, None) is not None and exchange.call is not None:
            self._kept[exchange.ident] = exchange.reply
            while len(self._kept) > KEPT:
                self._kept.popitem(last=False)

    def tell_server(self, raw: bytes, headers: Headers) -> None:
        """Send an answer or notification in the name of a client that is gone."""
        self._loop.create_task(self._way.tell(raw, headers))

    # --- what the pump does ---

    def send(self, frame: Frame, call: Call | None) -> None:
        """Take a frame for the server without waiting."""
        if frame.kind is not Kind.REQUEST and self._collected is not None:
            self._collected.append(frame)
        elif frame.kind is Kind.REQUEST:
            self._from_thread(self._forward, frame, call)

    def flush(self) -> None:
        """Do nothing: each frame goes its own way."""

    def _from_thread(self, step: Callable[..., object], *given: Any) -> None:
        with contextlib.suppress(RuntimeError):  # the loop has ended
            self._loop.call_soon_threadsafe(step, *given)

    def _forward(self, frame: Frame, call: Call | None) -> None:
        exchange = self._exchanges.get(str(frame.id))
        if exchange is not None:
            exchange.start(frame, call)
        else:
            threading.Thread(target=self._ask, args=(frame, self._speaker), daemon=True).start()

    def _ask(self, frame: Frame, speaker: Headers) -> None:
        """Send a request of the gate's own, with the credential and the session of the speaker."""
        given = dict(speaker)
        theirs = {n: v for n, v in given.items() if not n.startswith(("mcp-", "content-", "acc"))}
        headers = {name: value for name, value in theirs.items() if value.isascii()}
        endpoint = Endpoint(self.url, headers=headers, timeout=ANSWER_TIMEOUT)
        endpoint.session_id = self.session
        endpoint.protocol_version = given.get(protocol.HEADER_PROTOCOL_VERSION)
        if is_modern(frame):
            endpoint.protocol_version = frame.params["_meta"][protocol.META_PROTOCOL_VERSION]
        try:
            for got in endpoint.post(frame, extra=repeated(frame, self.gate)):
                self.turn(lambda at, f=got: self.gate.server(f, at))  # type: ignore[misc]
        except WireError as error:
            why = str(error)
            self.turn(lambda at: self.gate.refused(frame, why, at))
        finally:
            endpoint.close()

    def _to_client(self, raw: bytes) -> None:
        self._from_thread(self._deliver, raw)

    def _deliver(self, raw: bytes) -> None:
        if isinstance(raw, Said):
            raw.place()
            return
        frame = parse(raw)[0]
        if frame.kind in (Kind.RESPONSE, Kind.ERROR):
            if (exchange := self._exchanges.get(str(frame.id))) is not None:
                exchange.answer(frame)
            return
        token = frame.params.get("progressToken")
        of = self._exchanges.get(
            str(token)
            if token is not None
            else asked_for(frame.id) or asked_for(frame.params.get("requestId"))
        )
        if of is not None:
            of.tell(raw if token is None else of.progress(frame))

    # --- the end ---

    async def fade(self) -> None:
        """End once nothing is in flight: the session is over, its calls may still answer."""
        while self.busy:
            await asyncio.sleep(CLOSE_GRACE)
        self.pump.stop()

    async def close(self) -> None:
        """Let what is in flight end within bounds; what does not is unknown."""
        await asyncio.to_thread(self.pump.wait_until_idle, CLOSE_GRACE)
        why = "the proxy ended before the server answered"
        self.turn(lambda at: self.gate.server_gone(why, at, answer_all=False))
        await asyncio.to_thread(self.pump.wait_until_idle, CLOSE_GRACE)
        for exchange in list(self._exchanges.values()):
            exchange.drop()
        self.pump.stop()
