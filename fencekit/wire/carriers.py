"""What moves a client's requests: frames over a child's streams, or over Streamable HTTP."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from fencekit.wire.errors import TimedOut, Unanswered, WireError
from fencekit.wire.frames import Frame, IdKey, Kind, parse, polite_answer
from fencekit.wire.http import Endpoint
from fencekit.wire.stdio import Child

MAX_LINE = 256 * 1024 * 1024  # bytes; a hostile child must not fill the memory
_ANSWERS = (Kind.RESPONSE, Kind.ERROR)


@dataclass(eq=False)
class Pending:
    """One request on its way. Times are `time.monotonic` seconds.

    `sent_at` is when its last byte left, None until then; `answer` and `answered_at`, or `failure`,
    are set when `done` is.
    """

    frame: Frame
    headers: Mapping[str, str] = field(default_factory=dict)
    done: threading.Event = field(default_factory=threading.Event)
    started_at: float | None = None
    sent_at: float | None = None
    answered_at: float | None = None
    answer: Frame | None = None
    failure: WireError | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def resolve(
        self, answer: Frame | None, failure: WireError | None = None, at: float | None = None
    ) -> None:
        """Record the outcome, which came at `at` (default: now); the first one counts."""
        with self._lock:
            if not self.done.is_set():
                self.answered_at = time.monotonic() if at is None else at
                self.answer, self.failure = answer, failure
                self.done.set()

    def wait(self, timeout: float) -> Frame:
        """Return the answer within `timeout` seconds of now, or raise what went wrong."""
        if not self.done.wait(timeout):
            raise TimedOut(f"no answer to {self.frame.method} within {timeout:g} s")
        if self.failure is not None:
            raise self.failure
        assert self.answer is not None
        return self.answer


class Carrier(Protocol):
    """What moves frames for a client."""

    protocol_version: str | None

    def send(self, pending: Pending) -> None:
        """Send a request; may return before or after its answer. Failures resolve `pending`."""

    def tell(self, raw: bytes) -> None:
        """Send a notification or an answer."""

    def close(self, *, kill: bool = False) -> None:
        """Let go of the peer."""

    def describe(self) -> str:
        """Say what is known of a peer that went silent (its exit code, its last words)."""


class StdioCarrier:
    """Frames over a child's standard streams; a reader thread resolves what is pending."""

    protocol_version: str | None = None

    def __init__(self, child: Child, write_timeout: float) -> None:
        self.child = child
        self._timeout = write_timeout
        self._pending: dict[IdKey, Pending] = {}
        self._lock = threading.Lock()
        self._ended = False
        self._reader = threading.Thread(target=self._read, name="fencekit-read", daemon=True)
        self._reader.start()

    def send(self, pending: Pending) -> None:
        """Write the request and return; the reader resolves it."""
        with self._lock:
            if not self._ended:
                self._pending[pending.frame.key] = pending
        pending.started_at = time.monotonic()
        try:
            self.child.write(pending.frame.raw, timeout=self._timeout)
            pending.sent_at = time.monotonic()
        except WireError as error:
            with self._lock:
                self._pending.pop(pending.frame.key, None)
            pending.resolve(None, error)
        if self._ended:
            pending.resolve(None, self._lost())

    def tell(self, raw: bytes) -> None:
        """Write one frame that expects no answer."""
        self.child.write(raw, timeout=self._timeout)

    def _lost(self) -> Unanswered:
        return Unanswered(f"the server closed the connection before answering{self.describe()}")

    def _read(self) -> None:
        for line in self.child.lines(max_line=MAX_LINE):
            arrived = time.monotonic()
            if not line.strip():
                continue
            for frame in parse(line):
                self._take(frame, arrived)
        with self._lock:
            self._ended = True
            waiting, self._pending = list(self._pending.values()), {}
        for pending in waiting:
            pending.resolve(None, self._lost())

    def _take(self, frame: Frame, arrived: float) -> None:
        if frame.kind in _ANSWERS:
            with self._lock:
                pending = self._pending.pop(frame.key, None)
            if pending is not None:
                pending.resolve(frame, at=arrived)
        elif frame.kind is Kind.REQUEST:
            try:
                self.tell(polite_answer(frame))
            except WireError:
                return  # it asked and went away; its own end is noticed by the reader

    def close(self, *, kill: bool = False) -> None:
        """End the child, politely or as a crash would, and wait for the reader."""
        if kill:
            self.child.kill()
        else:
            self.child.close()
        self._reader.join(2.0)

    def describe(self) -> str:
        """Say how the child ended and what it last wrote to stderr."""
        try:
            self.child.process.wait(0.3)
        except Exception:
            return ""
        code = self.child.returncode
        how = "" if code is None else f" (exit code {code})" if code >= 0 else f" (signal {-code})"
        tail = self.child.stderr_tail().strip().splitlines()
        return how + (f": {tail[-1][:300]}" if tail else "")


class HttpCarrier:
    """Frames over Streamable HTTP; `send` blocks until the answer has come."""

    def __init__(self, endpoint: Endpoint) -> None:
        self.endpoint = endpoint

    @property
    def protocol_version(self) -> str | None:
        """The version that the MCP-Protocol-Version header says."""
        return self.endpoint.protocol_version

    @protocol_version.setter
    def protocol_version(self, version: str | None) -> None:
        self.endpoint.protocol_version = version

    def send(self, pending: Pending) -> None:
        """POST the request and read until it is answered."""
        pending.started_at = time.monotonic()

        def sent() -> None:
            if pending.sent_at is None:
                pending.sent_at = time.monotonic()

        try:
            for frame in self.endpoint.post(pending.frame, extra=pending.headers, on_sent=sent):
                if frame.kind in _ANSWERS:
                    pending.resolve(frame)
                elif frame.kind is Kind.REQUEST:
                    self.tell(polite_answer(frame))
        except WireError as error:
            pending.resolve(None, error)

    def tell(self, raw: bytes) -> None:
        """POST one frame that expects no answer."""
        for _ in self.endpoint.post(parse(raw)[0]):
            pass

    def close(self, *, kill: bool = False) -> None:
        """End the session (unless this plays a crash) and drop every connection."""
        if not kill:
            self.endpoint.end_session()
        self.endpoint.close()

    def describe(self) -> str:
        """Nothing more is known of a remote peer."""
        return ""
