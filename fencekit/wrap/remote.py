"""A server behind Streamable HTTP: one POST for each frame, nothing sent twice.

Notifications and answers keep their place before the requests that follow them. A fenced call goes
out on a connection of its own, so that "never left" can be told from "sent". What the HTTP layer
itself refuses before any handler frees the call; every other failure leaves it unknown.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Mapping

from fencekit.wire import protocol
from fencekit.wire.errors import HttpRefused, NeverLeft, WireError
from fencekit.wire.frames import Frame, Kind, error_bytes, id_key, parse
from fencekit.wire.http import Endpoint
from fencekit.wrap.actions import Call
from fencekit.wrap.gate import Gate, is_modern
from fencekit.wrap.pump import Pump

ANSWER_TIMEOUT = 900.0  # seconds of silence; the fence keeps its own, shorter clocks

# These statuses come from in front of every handler (RFC 9110), so nothing ran.
_BEFORE_HANDLERS = frozenset({405, 406, 413, 415, 421})


def in_front(refused: HttpRefused, session: str | None) -> bool:
    """Whether the HTTP layer refused a request of this session before any handler saw it."""
    lost_session = refused.status == 404 and session is not None
    asked_who = refused.status == 401 and refused.challenged
    return refused.status in _BEFORE_HANDLERS or lost_session or asked_who


def repeated(frame: Frame, gate: Gate) -> dict[str, str]:
    """Return the headers that repeat arguments of a stateless call (MCP 2026-07-28)."""
    if frame.method != "tools/call" or not is_modern(frame):
        return {}
    tool = gate.catalogue.declared.get(str(frame.params.get("name")), {})
    return protocol.param_headers(tool.get("inputSchema"), frame.params.get("arguments"))


class RemoteUpstream:
    """Sends the gate's frames to one endpoint and brings back what it answers."""

    def __init__(self, pump: Pump, url: str, headers: Mapping[str, str]) -> None:
        self._pump = pump
        self._endpoint = Endpoint(url, headers=headers, timeout=ANSWER_TIMEOUT)
        self._queue: queue.SimpleQueue[tuple[Frame, Call | None] | None] = queue.SimpleQueue()
        self._closed = False
        threading.Thread(target=self._run, name="fencekit-post", daemon=True).start()

    def send(self, frame: Frame, call: Call | None) -> None:
        """Queue a frame."""
        self._queue.put((frame, call))

    def flush(self) -> None:
        """Do nothing: each frame goes its own way."""

    def _run(self) -> None:
        while (item := self._queue.get()) is not None:
            frame, call = item
            if frame.kind is Kind.REQUEST:
                self._speak_as(frame)
                threading.Thread(target=self._post, args=(frame, call), daemon=True).start()
            elif not self._cut(frame):
                self._post(frame, None)
                if frame.method == "notifications/initialized":
                    self._listen()

    def _cut(self, frame: Frame) -> bool:
        """Cancel a request of the stateless era, where only the end of its connection does."""
        stateless = protocol.is_stateless(self._endpoint.protocol_version)
        if frame.method != "notifications/cancelled" or not stateless:
            return False
        return self._endpoint.cut(id_key(frame.params.get("requestId")))

    def _speak_as(self, frame: Frame) -> None:
        """Let the headers say the version that the body says."""
        if is_modern(frame):
            meta = frame.params["_meta"]
            self._endpoint.protocol_version = meta[protocol.META_PROTOCOL_VERSION]
        elif frame.method == "initialize":
            self._endpoint.protocol_version = None

    def _post(self, frame: Frame, call: Call | None) -> None:
        pump = self._pump

        def sent() -> None:
            if call is not None:
                pump.turn(lambda at: pump.gate.sent(call, at))

        def refused(error: HttpRefused) -> None:
            if call is not None and in_front(error, self._endpoint.session_id):
                call.refused = str(error)

        try:
            for got in self._endpoint.post(
                frame, extra=repeated(frame, pump.gate), on_sent=sent, on_refused=refused
            ):
                self._learn(frame, got)
                self._take(frame, got)
        except WireError as error:
            self._failed(frame, call, error)
        except Exception as error:  # a peer's nonsense must not leave a request without an answer
            self._failed(frame, call, WireError(f"{type(error).__name__}: {error}"))

    def _learn(self, asked: Frame, got: Frame) -> None:
        if asked.method == "initialize" and isinstance(got.result, dict):
            version = got.result.get("protocolVersion")
            self._endpoint.protocol_version = version if isinstance(version, str) else None

    def _take(self, asked: Frame, got: Frame) -> None:
        if got.kind is Kind.ERROR and got.id is None and asked.kind is Kind.REQUEST:
            # Refused before its id was read: the host must still find its own id on the answer.
            error = got.error
            code, text = error.get("code"), error.get("message")
            code = code if isinstance(code, int) else protocol.INTERNAL_ERROR
            raw = error_bytes(asked.id, code, str(text), error.get("data"))
            got = parse(raw)[0]
        self._pump.turn(lambda at: self._pump.gate.server(got, at))

    def _failed(self, frame: Frame, call: Call | None, error: WireError) -> None:
        pump, why = self._pump, str(error)
        if call is None:
            pump.turn(lambda at: pump.gate.refused(frame, why, at))
        elif isinstance(error, NeverLeft) or (
            isinstance(error, HttpRefused) and in_front(error, self._endpoint.session_id)
        ):
            pump.turn(lambda at: pump.gate.unsent(call, why, at))
        else:
            pump.turn(lambda at: pump.gate.broken(call, why, at))

    def _listen(self) -> None:
        if self._endpoint.session_id is not None:
            threading.Thread(target=self._hear, name="fencekit-listen", daemon=True).start()

    def _hear(self) -> None:
        """Bring back what the server says on its own stream, for as long as it offers one."""
        last = None
        while not self._closed:
            heard = False
            try:
                for event_id, frame in self._endpoint.listen(last):
                    last, heard = event_id or last, True
                    self._pump.turn(lambda at, f=frame: self._pump.gate.server(f, at))  # type: ignore[misc]
            except WireError:
                pass
            if not heard:
                return

    def close(self, grace: float) -> int:
        """End the session and drop every connection; `grace` is not needed for either."""
        self._closed = True
        self._queue.put(None)
        self._endpoint.end_session()
        self._endpoint.close()
        return 0
