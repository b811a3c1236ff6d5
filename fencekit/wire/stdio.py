"""A child process that speaks newline-delimited frames on its standard streams.

Blocking and thread-friendly: one thread reads `lines()`, any thread may `write`. The child gets a
process group of its own, so that a signal meant for us does not end it in the middle of an effect
and so that everything it started can be ended with it.
"""

from __future__ import annotations

import contextlib
import os
import select
import shutil
import signal
import subprocess
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import IO, Literal

from fencekit.wire.errors import NeverLeft, TimedOut, Unanswered
from fencekit.wire.guard import GUARD

STDERR_TAIL = 16_384
READ_AT_ONCE = 65_536
_POSIX = os.name == "posix"


class Child:
    """A started child. `command` is its argument list; `env` is added to our own environment.

    `stderr` is `inherit` (the host shows it), `capture` (the last 16 KiB are kept for
    `stderr_tail`) or `null`. A `guarded` child and its group are ended too when we are killed
    (SIGKILL). Raises NeverLeft if the program cannot be started.
    """

    def __init__(
        self,
        command: Sequence[str],
        *,
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
        stderr: Literal["inherit", "capture", "null"] = "inherit",
        guarded: bool = False,
    ) -> None:
        self.command = tuple(command)
        full = {**os.environ, **(env or {})}
        program = shutil.which(command[0], path=full.get("PATH"))
        if program is None:
            raise NeverLeft(f"{command[0]}: no such program on PATH; check the command after --")
        sink = {"inherit": None, "capture": subprocess.PIPE, "null": subprocess.DEVNULL}[stderr]
        try:
            self.process = subprocess.Popen(
                [program, *command[1:]],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=sink,
                env=full,
                cwd=cwd,
                bufsize=0,
                start_new_session=_POSIX,
            )
        except OSError as error:
            raise NeverLeft(f"{command[0]} could not be started: {error}") from error
        self._guard = GUARD if guarded else None
        if self._guard is not None:
            self._guard.keep(self.process.pid)
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self._stdin = self.process.stdin
        self._stdout = self.process.stdout
        self._lock = threading.Lock()
        self._closing = threading.Event()
        self._closed = False
        self._tail: deque[bytes] = deque()
        self._drain: threading.Thread | None = None
        if _POSIX:
            os.set_blocking(self._stdin.fileno(), False)
        if self.process.stderr is not None:
            self._drain = threading.Thread(
                target=self._keep_tail, args=(self.process.stderr,), daemon=True
            )
            self._drain.start()

    @property
    def pid(self) -> int:
        """The process id of the child, which is also its process group on POSIX."""
        return self.process.pid

    @property
    def returncode(self) -> int | None:
        """How the child ended (negative: the signal), or None while it runs."""
        return self.process.poll()

    @property
    def input_fd(self) -> int:
        """The file descriptor of the child's stdin, for asking whether it has room."""
        return self._stdin.fileno()

    def _keep_tail(self, stream: IO[bytes]) -> None:
        kept = 0
        with contextlib.suppress(OSError, ValueError):
            while chunk := stream.read(4096):
                self._tail.append(chunk)
                kept += len(chunk)
                while kept - len(self._tail[0]) >= STDERR_TAIL:
                    kept -= len(self._tail.popleft())

    def stderr_tail(self) -> str:
        """Return the end of what the child wrote to stderr, if that was captured."""
        if self._drain is not None and self.returncode is not None:
            self._drain.join(0.5)
        return b"".join(self._tail)[-STDERR_TAIL:].decode("utf-8", "replace")

    def write(self, raw: bytes, *, timeout: float | None = None) -> None:
        """Hand one frame to the child, whole, followed by a line end.

        `timeout` is in seconds; None waits until the child reads or is closed. Raises NeverLeft
        if not one byte was handed over, Unanswered (TimedOut) if some were: the child may then
        have read a whole frame, or a half one it will never act on, and nobody can tell which.
        """
        deadline = None if timeout is None else time.monotonic() + timeout
        data = memoryview(raw + b"\n")
        left = 0
        with self._lock:
            if self._closing.is_set() or self._stdin.closed or self.returncode is not None:
                raise NeverLeft(f"{self.command[0]} has ended{self._how()}; nothing was sent")
            while left < len(data):
                try:
                    left += os.write(self._stdin.fileno(), data[left:])
                except BlockingIOError:
                    self._await_room(left, deadline)
                except OSError as error:
                    if left == 0:
                        raise NeverLeft(f"{self.command[0]} reads no more: {error}") from error
                    raise Unanswered(
                        f"{self.command[0]} stopped reading after {left} bytes: {error}"
                    ) from error

    def _await_room(self, left: int, deadline: float | None) -> None:
        # Waits in slices, so that `close` from another thread is noticed.
        now = time.monotonic()
        late = deadline is not None and now >= deadline
        if late or self._closing.is_set():
            why = "in time" if late else "before it was closed"
            text = f"{self.command[0]} did not read {why} ({left} bytes left us)"
            raise NeverLeft(text) if left == 0 else TimedOut(text)
        pause = 0.2 if deadline is None else min(0.2, deadline - now)
        room = select.poll()
        room.register(self._stdin, select.POLLOUT)
        room.poll(pause * 1000)

    def _how(self) -> str:
        code = self.returncode
        if code is None:
            return ""
        return f" (signal {-code})" if code < 0 else f" (exit code {code})"

    def lines(self, *, max_line: int | None = None) -> Iterator[bytes]:
        """Yield each line of the child's stdout without its line end, until it closes.

        With `max_line` (bytes) a longer line is cut there and the rest comes as another line, so
        that a hostile child cannot fill the memory.
        """
        for together in self.gathered(max_line=max_line):
            yield from together

    def gathered(
        self, *, max_line: int | None = None, whole: Callable[[bytes], bool] = lambda _line: True
    ) -> Iterator[list[bytes]]:
        """Yield the same lines in lists: those together that came together.

        A last line that was not ended is yielded only if `whole` says that it is one.
        """
        with contextlib.suppress(OSError, ValueError):
            fd = os.dup(self._stdout.fileno())
            try:
                yield from gathered(fd, max_line, whole)
            finally:
                os.close(fd)

    def end_input(self) -> None:
        """Close the child's stdin: a well-behaved server takes that as the end."""
        self._closing.set()
        with self._lock, contextlib.suppress(OSError):
            self._stdin.close()

    def close(self, grace: float = 2.0) -> int | None:
        """End the child: close stdin, wait `grace` seconds, SIGTERM, wait, SIGKILL, reap.

        What is left of its process group is ended too. Returns the exit code. Safe to repeat.
        """
        self.end_input()
        if self._closed:  # the process id may belong to somebody else by now
            return self.returncode
        self._closed = True
        for sign in (None, signal.SIGTERM, getattr(signal, "SIGKILL", signal.SIGTERM)):
            if sign is not None:
                self._signal(sign)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(grace)
                break
        self._signal(getattr(signal, "SIGKILL", signal.SIGTERM))
        if self._guard is not None:
            self._guard.release(self.process.pid)
        for stream in (self._stdout, self.process.stderr):
            if stream is not None and (self._drain is None or stream is self._stdout):
                stream.close()
        if self._drain is not None:
            self._drain.join(1.0)
            assert self.process.stderr is not None
            self.process.stderr.close()
        return self.returncode

    def kill(self) -> None:
        """End the child and its group at once (SIGKILL), as a crash would."""
        if not self._closed:
            self._signal(getattr(signal, "SIGKILL", signal.SIGTERM))
        self.close(grace=1.0)

    def _signal(self, sign: int) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            if _POSIX:
                os.killpg(self.process.pid, sign)
            elif self.process.poll() is None:
                self.process.send_signal(sign)


def gathered(
    fd: int, max_line: int | None = None, whole: Callable[[bytes], bool] = lambda _line: True
) -> Iterator[list[bytes]]:
    """Yield the lines that can be read together, without their line ends, until the end.

    With `max_line` (bytes) a longer line is cut there and the rest comes as another line. What
    cannot be read any more counts as the end. A last line that was not ended is yielded only if
    `whole` says that it is one.
    """
    begun, size = [], 0  # the pieces of a line that has not ended yet
    while chunk := _read(fd):
        *ended, rest = chunk.split(b"\n")
        lines: list[bytes] = []
        for piece in ended:
            begun.append(piece)
            lines += _cut(b"".join(begun), max_line)
            begun, size = [], 0
        begun.append(rest)
        size += len(rest)
        if max_line is not None and size > max_line:
            *ready, rest = _cut(b"".join(begun), max_line)
            lines += ready
            begun, size = [rest], len(rest)
        if lines:
            yield lines
    if size and whole(last := b"".join(begun)):
        yield _cut(last, max_line)


def _read(fd: int) -> bytes:
    try:
        return os.read(fd, READ_AT_ONCE)
    except OSError:
        return b""


def _cut(line: bytes, max_line: int | None) -> list[bytes]:
    line = line.rstrip(b"\r")
    if max_line is None or len(line) <= max_line:
        return [line]
    return [line[at : at + max_line] for at in range(0, len(line), max_line)]
