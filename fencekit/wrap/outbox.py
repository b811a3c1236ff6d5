"""Writing frames in their order without ever making the writer of the ledger wait.

Frames that surely fit into the pipe together are written at once, in one piece, by whoever flushes;
the rest goes through a thread that starts with the first of them.
"""

from __future__ import annotations

import select
import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from fencekit.wire.errors import NeverLeft
from fencekit.wrap.actions import Call

FITS = select.PIPE_BUF if hasattr(select, "PIPE_BUF") else 512
"""Bytes that a pipe takes whole once it reports that it is ready (POSIX: PIPE_BUF)."""

Report = Callable[["list[Call]", "Exception | None"], None]


@dataclass(slots=True)
class _Piece:
    """Frames that are written as one, and the calls among them."""

    frames: list[bytes] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)
    size: int = 0

    def add(self, raw: bytes, call: Call | None) -> None:
        self.frames.append(raw)
        self.size += len(raw) + 1
        if call is not None:
            self.calls.append(call)


class Outbox:
    """Frames on their way to one file descriptor.

    `write` hands over one line and may block; `report` is told of the calls that were written
    together, and of every failure. The caller holds one lock around `put` and `flush`.
    """

    def __init__(self, fd: int, write: Callable[[bytes], None], report: Report) -> None:
        self._write = write
        self._report = report
        self._kept: list[_Piece] = []
        self._queue: deque[_Piece] = deque()
        self._ready = threading.Condition()
        self._busy = False
        self._closed = False
        self._thread: threading.Thread | None = None
        self._room = select.poll()
        self._room.register(fd, select.POLLOUT)

    def put(self, raw: bytes, call: Call | None = None) -> None:
        """Keep a frame until `flush`."""
        kept = self._kept
        if not kept or kept[-1].size + len(raw) >= FITS:
            kept.append(_Piece())
        kept[-1].add(raw, call)

    def flush(self) -> None:
        """Write what was put, now or as soon as what came before is written."""
        kept, self._kept = self._kept, []
        for piece in kept:
            self._pass_on(piece)

    def _pass_on(self, piece: _Piece) -> None:
        with self._ready:
            if not self._closed:
                direct = not self._busy and piece.size <= FITS and self._has_room()
                if not direct:
                    self._queue.append(piece)
                    self._busy = True
                    self._start()
                    self._ready.notify()
                    return
            closed = self._closed
        if closed:
            self._report(piece.calls, NeverLeft("it has ended"))
        else:
            self._hand_over(piece)

    def _has_room(self) -> bool:
        return any(event & select.POLLOUT for _, event in self._room.poll(0))

    def _start(self) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="fencekit-write", daemon=True)
            self._thread.start()

    def _hand_over(self, piece: _Piece) -> None:
        problem: Exception | None = None
        try:
            self._write(b"\n".join(piece.frames))
        except Exception as error:
            problem = error
        if piece.calls or problem is not None:
            self._report(piece.calls, problem)

    def _run(self) -> None:
        while True:
            with self._ready:
                while not self._queue:
                    self._busy = False
                    self._ready.notify_all()
                    if self._closed:
                        return
                    self._ready.wait()
                self._busy = True
                piece = self._queue.popleft()
            self._hand_over(piece)

    def drop(self) -> list[Call]:
        """Forget what was not begun and take nothing more; returns the calls among it."""
        with self._ready:
            self._closed = True
            calls = [call for piece in self._queue for call in piece.calls]
            self._queue.clear()
            self._ready.notify_all()
        return calls

    def drain(self, timeout: float) -> None:
        """Wait until everything is written, at most `timeout` seconds."""
        with self._ready:
            self._ready.wait_for(lambda: not self._busy and not self._queue, timeout)
