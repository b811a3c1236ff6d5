"""What carries the gate's actions out, whatever the client and the server are connected by.

One lock keeps turns of the gate and their actions in order; nothing under it ever waits for a peer
or for the disk. What happens often (frames, answers of the ledger) is put in a line; whoever holds
the lock works the line off, so that no reader waits for another and the frames of many turns leave
in one write.
"""

from __future__ import annotations

import contextlib
import queue
import sys
import threading
import time
from collections import deque
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
LONGEST_LINE = 1000  # events that may wait before their bringer waits too
TURNS_A_FLUSH = 64
ROUNDS = 4  # how often a thread with other duties looks at the line before it hands it over

Step = Callable[[Moment], list[Action]]


class Upstream(Protocol):
    """Where frames for the server go."""

    def send(self, frame: Frame, call: Call | None) -> None:
        """Take a frame without waiting; for a call, report what became of it."""

    def flush(self) -> None:
        """Let go of what `send` may have kept to write it together."""


class Pump:
    """Turns events into turns of the gate, and their actions into bytes and commands."""

    def __init__(
        self,
        gate: Gate,
        record: Record,
        to_client: Callable[[bytes], None],
        flush: Callable[[], None] = lambda: None,
    ) -> None:
        self.gate = gate
        self.record = record
        self.upstream: Upstream | None = None
        self._to_client = to_client
        self._flush_client = flush
        self._lock = threading.RLock()
        self._line: deque[Step] = deque()
        self._looks: list[Peek] = []
        self._depth = 0
        self._asked = 0
        self._calls_out = self._frames_out = False
        self._bell: queue.SimpleQueue[bool] = queue.SimpleQueue()
        self._rung = False
        self._worker: threading.Thread | None = None
        self._woken = threading.Event()
        self._sleeping = True
        self._stopped = False
        self._ticker = threading.Thread(target=self._tick, name="fencekit-time", daemon=True)
        self._ticker.start()

    def now(self) -> Moment:
        """Read the clocks."""
        return Moment(time.monotonic(), self.record.wall_ms())

    def from_client(self, *lines: bytes) -> None:
        """Take lines or bodies of the client."""
        client = self.gate.client
        self._happened([_step(client, frame) for raw in lines for frame in parse(raw)])

    def from_server(self, *lines: bytes) -> None:
        """Take lines or bodies of the server."""
        server, steps = self.gate.server, []
        for raw in lines:
            crash.point("server answered")
            steps += [_step(server, frame) for frame in parse(raw)]
        self._happened(steps)

    def turn(self, step: Step) -> None:
        """Run one turn of the gate and carry its actions out, after all that happened before."""
        with self._lock:
            inner = self._depth > 0
            while self._line and not inner:
                self._round()
            self._run(step)
        if not inner:
            self._after()
            self._take_over()

    # --- the line of what happened ---

    def _happened(self, steps: list[Step]) -> None:
        self._line.extend(steps)
        self._take_over(wait=len(self._line) > LONGEST_LINE)

    def _take_over(self, *, wait: bool = False, forever: bool = False) -> None:
        """Work the line off, unless somebody does: he looks again after he has let go.

        A thread that has something else to do hands the rest over after `ROUNDS`.
        """
        rounds = 0
        while self._line and self._lock.acquire(blocking=wait):
            try:
                if self._depth:  # within a turn of this very thread, which looks again itself
                    return
                self._round()
            finally:
                self._lock.release()
            self._after()
            rounds += 1
            if rounds == ROUNDS and not forever:
                self._ring()
                return

    def _round(self) -> None:
        """Run what waits in the line, at most so much that its answers do not get old."""
        at = self.now()
        self._depth += 1
        try:
            for _ in range(min(len(self._line), TURNS_A_FLUSH)):
                self._guarded(self._line.popleft(), at)
            self._flush()
        finally:
            self._depth -= 1

    def _guarded(self, step: Step, at: Moment) -> None:
        """Run a turn that somebody else may have brought: its fault must not end this thread."""
        try:
            self._carry_out(step(at))
        except Exception as fault:
            say(f"a fault of fencekit, please report it: {type(fault).__name__}: {fault}")

    def _run(self, step: Step) -> None:
        self._depth += 1
        try:
            self._carry_out(step(self.now()))
            if self._depth == 1:
                self._flush()
        finally:
            self._depth -= 1

    def _carry_out(self, actions: list[Action]) -> None:
        for action in actions:
            self._do(action)

    def _flush(self) -> None:
        """Write what the turns so far had for server and client."""
        while self._frames_out:
            sent, self._calls_out, self._frames_out = self._calls_out, False, False
            if sent:
                crash.point("sending")
            if self.upstream is not None:
                self.upstream.flush()
            if sent:
                crash.point("sent")
            self._flush_client()

    def _after(self) -> None:
        """Wake the clock where something new may be due; look at records without the lock."""
        if self._sleeping or self.gate.turn.hurry:
            with self._lock:
                self.gate.turn.hurry = self._sleeping = False
                self._woken.set()
        while self._looks:
            with self._lock:
                looks, self._looks = self._looks, []
            for look in looks:
                self._peek(look)

    def _peek(self, look: Peek) -> None:
        number = self.record.peek(look.call.key)
        if number is not None:
            self.turn(lambda at: self.gate.peeked(look.call, number, at))

    def _do(self, action: Action) -> None:
        match action:
            case ToClient():
                crash.point("answering")
                self._frames_out = True
                self._to_client(action.raw)
            case ToServer():
                assert self.upstream is not None
                self._frames_out = True
                self._calls_out = self._calls_out or action.call is not None
                self.upstream.send(action.frame, action.call)
            case Ask():
                self._asked += 1
                self.record.enqueue(action.command, lambda said: self._heard(action, said))
            case Peek():
                self._looks.append(action)
            case Count():
                self.record.count(action.command, action.answer)
            case Say():
                say(action.text)

    # --- answers of the ledger ---

    def _heard(self, ask: Ask, outcome: Outcome) -> None:
        """Take an answer in the ledger's thread, which must go on as soon as it has more to do."""
        crash.point("ledger answered")

        def step(at: Moment) -> list[Action]:
            self._asked -= 1
            return self.gate.ledger(ask, outcome, at)

        self._line.append(step)
        if self._asked <= 1:
            self._take_over()
        else:
            self._ring()

    def _ring(self) -> None:
        """Let a thread of its own work the line off."""
        if self._worker is None:
            self._worker = threading.Thread(target=self._work, name="fencekit-turns", daemon=True)
            self._worker.start()
        if not self._rung:
            self._rung = True
            self._bell.put(True)

    def _work(self) -> None:
        while self._bell.get():
            self._rung = False
            self._take_over(forever=True)

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
        while not self._stopped:
            left = until - time.monotonic()
            if self._idle(max(left, 0.0)) or left <= 0:
                break
            time.sleep(min(left, 0.01))
        return self._idle(0.0)

    def _idle(self, patience: float) -> bool:
        """Whether nothing is in flight, nor on its way to the gate."""
        if not self._lock.acquire(timeout=patience):
            return False
        try:
            return not self._line and not self.gate.busy
        finally:
            self._lock.release()

    def stop(self) -> None:
        """End the clock's thread."""
        self._stopped = True
        self._woken.set()
        self._bell.put(False)


def _step(take: Callable[[Frame, Moment], list[Action]], frame: Frame) -> Step:
    return lambda at: take(frame, at)


def say(text: str) -> None:
    """Write one line to stderr, without anything a terminal would obey."""
    with contextlib.suppress(OSError, ValueError):
        sys.stderr.write(f"fencekit: {clean(text, 2000)}\n")
        sys.stderr.flush()
