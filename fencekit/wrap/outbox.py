"""Writing frames in their order without ever making the writer of the ledger wait.

A frame that surely fits into the pipe is written at once by whoever brings it; the rest goes
through a thread that starts with the first of them.
"""

from __future__ import annotations

import select
import threading
from collections import deque
from collections.abc import Callable

from fencekit.wire.errors import NeverLeft
from fencekit.wrap.actions import Call

FITS = select.PIPE_BUF if hasattr(select, "PIPE_BUF") else 512
"""Bytes that a pipe takes whole once it reports that it is ready (POSIX: PIPE_BUF)."""

Item = tuple[bytes, "Call | None"]
Report = Callable[["Call | None", "Exception | None"], None]


class Outbox:
    """Frames on their way to one file descriptor.

    `write` hands over one frame and may block; `report` is told of each frame that belongs to a
    call, and of every failure. The caller holds one lock around `put`.
    """

    def __init__(self, fd: int, write: Callable[[bytes], None], report: Report) -> None:
        self._write = write
        self._report = report
        self._queue: deque[Item] = deque()
        self._ready = threading.Condition()
        self._busy = False
        self._closed = False
        self._thread: threading.Thread | None = None
        self._room = select.poll()
        self._room.register(fd, select.POLLOUT)

    def put(self, raw: bytes, call: Call | None = None) -> None:
        """Write a frame, now or as soon as those before it are written."""
        with self._ready:
            if self._closed:
                if call is not None:
                    self._report(call, NeverLeft("it has ended"))
                return
            direct = not self._busy and len(raw) < FITS and self._has_room()
            if not direct:
                self._queue.append((raw, call))
                self._busy = True
                self._start()
                self._ready.notify()
                return
        self._hand_over(raw, call)

    def _has_room(self) -> bool:
        return any(event & select.POLLOUT for _, event in self._room.poll(0))

    def _start(self) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="fencekit-write", daemon=True)
            self._thread.start()

    def _hand_over(self, raw: bytes, call: Call | None) -> None:
        problem: Exception | None = None
        try:
            self._write(raw)
        except Exception as error:
            problem = error
        if call is not None or problem is not None:
            self._report(call, problem)

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
                raw, call = self._queue.popleft()
            self._hand_over(raw, call)

    def drop(self) -> list[Call]:
        """Forget what was not begun and take nothing more; returns the calls among it."""
        with self._ready:
            self._closed = True
            calls = [call for _, call in self._queue if call is not None]
            self._queue.clear()
            self._ready.notify_all()
        return calls

    def drain(self, timeout: float) -> None:
        """Wait until everything is written, at most `timeout` seconds."""
        with self._ready:
            self._ready.wait_for(lambda: not self._busy and not self._queue, timeout)
