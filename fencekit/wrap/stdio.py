"""The proxy between a host on standard streams and a child on standard streams.

No SDK and no event loop: a reader for each side, the ledger's writer, and a writer for what does
not fit into a pipe at once. The child's standard error stays the host's; its process group ends
when the host goes away.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Callable
from typing import Protocol

from fencekit.wire.errors import NeverLeft, WireError
from fencekit.wire.frames import Frame, Kind, parse
from fencekit.wire.stdio import Child, gathered
from fencekit.wrap.actions import Action, Call, Moment
from fencekit.wrap.lifeline import Lifeline, ignores_hangup
from fencekit.wrap.outbox import Outbox
from fencekit.wrap.pump import Pump, Upstream, say

MAX_LINE = 256 * 1024 * 1024  # bytes
HOST_GONE_GRACE = 5.0  # seconds for what is in flight when the host closes its end
SIGNAL_GRACE = 0.7  # hosts send SIGKILL two seconds after SIGTERM
CHILD_GRACE = 2.0
RECORD_GRACE = 1.0


class ChildUpstream:
    """A server on the standard streams of a child; `ended` is called when it goes away.

    `stays`: the client's connection outlives the child, so all that waits must be answered.
    """

    def __init__(
        self,
        pump: Pump,
        start: Callable[[], Child],
        ended: Callable[[], None],
        *,
        stays: bool = False,
    ) -> None:
        self._pump = pump
        self._stays = stays
        self._start = start
        self._ended = ended
        self._closing = False
        self.child = start()
        self._begin()

    def _begin(self) -> None:
        child = self.child
        self._gone = False
        self._outbox = Outbox(child.input_fd, child.write, self._written)
        self._reader = threading.Thread(
            target=self._read, args=(child, self._outbox), name="fencekit-server", daemon=True
        )
        self._reader.start()

    def send(self, frame: Frame, call: Call | None) -> None:
        """Hand a frame to the child. A modern server that has ended is started again for it."""
        if self._gone and self._pump.gate.modern and not self._closing:
            try:
                self.child = self._start()
            except WireError as error:
                say(f"the server could not be started again: {error}")
            else:
                say("the server had ended; it was started again for the next request")
                self._begin()
        self._outbox.put(frame.raw, call)

    def flush(self) -> None:
        """Write what was sent since the last time."""
        self._outbox.flush()

    def _written(self, calls: list[Call], problem: Exception | None) -> None:
        gate = self._pump.gate

        def told(call: Call, at: Moment) -> list[Action]:
            if problem is None:
                return gate.sent(call, at)
            if isinstance(problem, NeverLeft):
                return gate.unsent(call, str(problem), at)
            return gate.broken(call, str(problem), at)

        if calls:
            self._pump.turn(lambda at: [do for call in calls for do in told(call, at)])

    def _read(self, child: Child, outbox: Outbox) -> None:
        for lines in child.gathered(max_line=MAX_LINE, whole=_is_frame):
            self._pump.from_server(*(line for line in lines if line.strip()))
        with contextlib.suppress(Exception):
            child.process.wait(CHILD_GRACE)
        self._lost(child, outbox)

    def _lost(self, child: Child, outbox: Outbox) -> None:
        """Say what became of everything that was on its way to a child that has ended."""
        pump, code = self._pump, child.returncode
        how = "closed its output" if code is None else _how(code)
        for call in outbox.drop():
            pump.turn(lambda at, c=call: pump.gate.unsent(c, f"the server {how}", at))  # type: ignore[misc]
        again = pump.gate.modern and not self._closing
        answer_all = again or self._stays

        def gone(at: Moment) -> list[Action]:
            self._gone = True
            why = f"the server {how} before it answered"
            return pump.gate.server_gone(why, at, answer_all=answer_all)

        pump.turn(gone)
        if not again:
            self._ended()
        else:
            child.close(CHILD_GRACE)  # and what is left of its group; another takes its place

    def close(self, grace: float) -> int:
        """End the child and its process group; returns its exit code."""
        self._closing = True
        code = self.child.close(grace)
        self._reader.join(1.0)
        return 0 if code is None else code


def _is_frame(line: bytes) -> bool:
    """Whether the last line of a peer that ended is a message, or the torn half of one."""
    return parse(line)[0].kind is not Kind.INVALID


def _how(code: int) -> str:
    return f"ended (signal {-code})" if code < 0 else f"ended (exit code {code})"


class StdioHost:
    """The host on our own standard streams, from which everything else is kept away."""

    def __init__(self) -> None:
        self._in = os.dup(0)
        self._out = os.dup(1)
        self.lifeline = Lifeline(self._out)
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, 0)
        os.close(nothing)
        # What is printed by mistake must not land between the frames.
        os.dup2(2, 1)
        self.outbox = Outbox(self._out, self._write, lambda _calls, _problem: None)

    def _write(self, raw: bytes) -> None:
        data = memoryview(raw + b"\n")
        while data:
            data = data[os.write(self._out, data) :]

    def read(self, take: Callable[..., None], gone: Callable[[], None]) -> None:
        """Hand on the lines that come together until the host closes its end, or ends itself."""
        watched = False
        for lines in gathered(self._in, MAX_LINE, _is_frame):
            if not watched:
                watched = True
                self.lifeline.watch(gone)
            take(*lines)
        os.close(self._in)
        gone()


class Closable(Upstream, Protocol):
    """A way to a server that can be ended."""

    def close(self, grace: float) -> int:
        """End it within bounds; returns the exit status that the host should see."""


class StdioProxy:
    """Runs until the host or the server goes away, or a signal comes."""

    def __init__(self) -> None:
        self.host = StdioHost()
        self._over = threading.Event()
        self._why = ""

    def run(self, pump: Pump, connect: Callable[[Callable[[], None]], Closable]) -> int:
        """Relay between host and server; returns the exit status for this process.

        `connect` makes the way to the server, and is given what to call when that goes away.
        """
        self._catch_signals()
        upstream = connect(lambda: self._end("server"))
        pump.upstream = upstream
        threading.Thread(
            target=self.host.read,
            args=(pump.from_client, lambda: self._end("host")),
            name="fencekit-host",
            daemon=True,
        ).start()
        self._over.wait()
        return self._finish(pump, upstream)

    def _end(self, why: str) -> None:
        self._why = self._why or why
        self._over.set()

    def _catch_signals(self) -> None:
        for name in ("SIGTERM", "SIGINT"):
            signal.signal(getattr(signal, name), self._signalled)
        if not ignores_hangup():
            signal.signal(signal.SIGHUP, self._signalled)

    def _signalled(self, number: int, _frame: object) -> None:
        self._end(signal.Signals(number).name)

    def _finish(self, pump: Pump, upstream: Closable) -> int:
        """Let what is in flight end within bounds, record the rest as unknown, end the child."""
        pump.turn(pump.gate.client_gone)
        if self._why == "host":
            pump.wait_until_idle(HOST_GONE_GRACE)
        elif self._why != "server":
            pump.wait_until_idle(SIGNAL_GRACE)
        left = f"the host went away ({self._why}) before the server answered"
        if self._why != "server":
            pump.turn(lambda at: pump.gate.server_gone(left, at, answer_all=False))
        pump.wait_until_idle(RECORD_GRACE)
        quick = self._why not in ("host", "server")
        code = upstream.close(0.3 if quick else CHILD_GRACE)
        pump.stop()
        self.host.outbox.drain(RECORD_GRACE)
        pump.record.close()
        if self._why.startswith("SIG"):
            return 128 + int(signal.Signals[self._why])
        return 128 - code if code < 0 else code
