"""What carries the gate's actions out, whatever the client and the server are connected by.

One lock keeps turns of the gate and their actions in order; nothing under it ever waits for a peer
or for the disk.
"""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from collections.abc import Callable
from typing import Protocol

from fencekit.ledger import crash
from fencekit.ledger.base import Outcome
from fencekit.wire.frames import Frame, parse
from fencekit.wrap.actions import Action, Ask, Call, Count, Moment, Peek, Say, ToClient, ToServer
from fencekit.wrap.gate import Gate
from fencekit.wrap.record import Record
from fencekit.wrap.verdict import clean

LONGEST_SLEEP = 0.25  # seconds between two looks at what is due, while anything is


class Upstream(Protocol):
    """Where frames for the server go."""

    def send(self, frame: Frame, call: Call | None) -> None:
        """Take a frame without waiting; for a call, report what became of it."""


class Pump:
    """Turns events into turns of the gate, and their actions into bytes and commands."""

    def __init__(self, gate: Gate, record: Record, to_client: Callable[[bytes], None]) -> None:
        self.gate = gate
        self.record = record
        self.upstream: Upstream | None = None
        self._to_client = to_client
        self._lock = threading.RLock()
        self._woken = threading.Event()
        self._sleeping = True
        self._stopped = False
        self._ticker = threading.Thread(target=self._tick, name="fencekit-time", daemon=True)
        self._ticker.start()

    def now(self) -> Moment:
        """Read the clocks."""
        return Moment(time.monotonic(), self.record.wall_ms())

    def from_client(self, raw: bytes) -> None:
        """Take one line or body of the client."""
        for frame in parse(raw):
            self.turn(lambda at, f=frame: self.gate.client(f, at))  # type: ignore[misc]

    def from_server(self, raw: bytes) -> None:
        """Take one line or body of the server."""
        crash.point("server answered")
        for frame in parse(raw):
            self.turn(lambda at, f=frame: self.gate.server(f, at))  # type: ignore[misc]

    def turn(self, step: Callable[[Moment], list[Action]]) -> None:
        """Run one turn of the gate and carry its actions out, in order."""
        looks: list[Peek] = []
        with self._lock:
            for action in step(self.now()):
                if isinstance(action, Peek):
                    looks.append(action)
                else:
                    self._do(action)
            if self._sleeping or self.gate.turn.hurry:
                self.gate.turn.hurry = self._sleeping = False
                self._woken.set()
        for look in looks:  # reads of the ledger, so not under the lock
            self._peek(look)

    def _peek(self, look: Peek) -> None:
        number = self.record.peek(look.call.key)
        if number is not None:
            self.turn(lambda at: self.gate.peeked(look.call, number, at))

    def _do(self, action: Action) -> None:
        match action:
            case ToClient():
                crash.point("answering")
                self._to_client(action.raw)
            case ToServer():
                assert self.upstream is not None
                if action.call is not None:
                    crash.point("sending")
                self.upstream.send(action.frame, action.call)
                if action.call is not None:
                    crash.point("sent")
            case Ask():
                self.record.enqueue(action.command, lambda said: self._heard(action, said))
            case Count():
                self.record.count(action.command, action.answer)
            case Say():
                say(action.text)

    def _heard(self, ask: Ask, outcome: Outcome) -> None:
        crash.point("ledger answered")
        self.turn(lambda at: self.gate.ledger(ask, outcome, at))

    def _tick(self) -> None:
        while not self._stopped:
            with self._lock:
                due = self.gate.due()
                self._sleeping = due is None
                self._woken.clear()
            pause = None if due is None else min(due - time.monotonic(), LONGEST_SLEEP)
            if pause is None or pause > 0:
                self._woken.wait(pause)
            self.turn(self.gate.tick)

    def wait_until_idle(self, timeout: float) -> bool:
        """Wait until nothing is in flight, at most `timeout` seconds; says whether it is so."""
        until = time.monotonic() + timeout
        while self.gate.busy and time.monotonic() < until and not self._stopped:
            time.sleep(0.01)
        return not self.gate.busy

    def stop(self) -> None:
        """End the clock's thread."""
        self._stopped = True
        self._woken.set()


def say(text: str) -> None:
    """Write one line to stderr, without anything a terminal would obey."""
    with contextlib.suppress(OSError, ValueError):
        sys.stderr.write(f"fencekit: {clean(text, 2000)}\n")
        sys.stderr.flush()
