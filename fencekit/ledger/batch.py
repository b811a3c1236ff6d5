"""Group commit: callers that wait together share one durable write.

Whoever finds no writer at work becomes it: a lone caller writes in its own thread, and the commands
that arrive meanwhile ride in its next batch. Callers that may not block (`enqueue`) are served by a
thread that starts with the first of them.
"""

from __future__ import annotations

import contextlib
import threading
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future

from fencekit.core.errors import LedgerUnavailable
from fencekit.core.messages import Answer, Command
from fencekit.ledger.base import After, Callback, Outcome, is_answer

MAX_BATCH = 512
"""How many commands one durable write carries at the most; bounds the wait of the first."""

Waiting = tuple[Command, Callback]

_NOBODY_ELSES_PROBLEM = contextlib.suppress(Exception)


class GroupCommit:
    """Runs batches one after another; `run` gets commands and returns an outcome for each.

    An exception from `run` is the outcome of every command of that batch.
    """

    def __init__(self, run: Callable[[Sequence[Command]], Sequence[Outcome]]) -> None:
        self._run = run
        self._lock = threading.Lock()
        self._waiting: deque[Waiting] = deque()
        # Somebody has the writer's role; `_threads_turn` says that it is the thread.
        self._writing = False
        self._threads_turn = False
        self._wake = threading.Condition(self._lock)
        self._thread: threading.Thread | None = None
        self._closed = False

    def call(self, command: Command) -> Answer:
        """Decide one command; this thread becomes the writer if there is none."""
        with self._lock:
            self._refuse_if_closed()
            alone = not self._writing
            self._writing = True
        if alone:
            return self._call_alone(command)
        return self._call_in_batch(command)

    def _call_alone(self, command: Command) -> Answer:
        """Write in this thread; those who came meanwhile get the thread."""
        try:
            outcome = self._run((command,))[0]
        finally:
            self._hand_over()
        return _heard(outcome)

    def _call_in_batch(self, command: Command) -> Answer:
        slot: list[Outcome] = []
        ready = threading.Lock()
        ready.acquire()

        def done(outcome: Outcome) -> None:
            slot.append(outcome)
            ready.release()

        with self._lock:
            self._refuse_if_closed()
            self._waiting.append((command, done))
            if not self._writing:
                self._writing = True
                self._give_to_thread()
        ready.acquire()
        outcome = slot[0]
        return _heard(outcome)

    def enqueue(self, command: Command, done: Callback) -> None:
        """Queue one command; `done` is called in the writer's thread."""
        with self._lock:
            self._refuse_if_closed()
            self._waiting.append((command, done))
            if not self._writing:
                self._writing = True
                self._give_to_thread()

    def submit(self, command: Command) -> Future[Answer]:
        """Queue one command and return the future of its answer."""
        future: Future[Answer] = Future()

        def done(outcome: Outcome) -> None:
            if is_answer(outcome):
                future.set_result(outcome)
            else:
                assert isinstance(outcome, BaseException)
                future.set_exception(outcome)

        self.enqueue(command, done)
        return future

    def close(self) -> None:
        """Answer what waits, end the thread, and refuse what comes later."""
        with self._lock:
            self._closed = True
            self._wake.notify_all()
            while self._writing:
                self._wake.wait()
            thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join()

    def _refuse_if_closed(self) -> None:
        if self._closed:
            raise LedgerUnavailable("the ledger is closed: open it again with Fence.open")

    def _write_one_batch(self) -> None:
        with self._lock:
            size = min(len(self._waiting), MAX_BATCH)
            batch = [self._waiting.popleft() for _ in range(size)]
        if not batch:
            return
        try:
            outcomes = self._run([command for command, _ in batch])
        except BaseException as problem:
            outcomes = [problem] * len(batch)
        after: dict[After, None] = {}
        for (_, done), outcome in zip(batch, outcomes, strict=True):
            # A caller's callback must never keep the others from their answers.
            with _NOBODY_ELSES_PROBLEM:
                flush = done(outcome)
                if flush is not None:
                    after[flush] = None
        for flush in after:
            with _NOBODY_ELSES_PROBLEM:
                flush()

    def _hand_over(self) -> None:
        """Give the writer's role to the thread if anybody waits, else let it go."""
        with self._lock:
            if self._waiting:
                self._give_to_thread()
            else:
                self._let_go()

    def _let_go(self) -> None:
        self._writing = False
        # Only `close` waits for this; the thread would wake for nothing after every lone call.
        if self._closed:
            self._wake.notify_all()

    def _give_to_thread(self) -> None:
        self._threads_turn = True
        self._wake.notify_all()
        if self._thread is None:
            self._thread = threading.Thread(target=self._serve, name="fencekit-ledger", daemon=True)
            self._thread.start()

    def _serve(self) -> None:
        while True:
            with self._lock:
                while not self._threads_turn:
                    if self._closed:
                        return
                    self._wake.wait()
            self._write_one_batch()
            with self._lock:
                if not self._waiting:
                    self._threads_turn = False
                    self._let_go()


def _heard(outcome: Outcome) -> Answer:
    """Return an answer; raise a failure of the ledger."""
    if is_answer(outcome):
        return outcome
    assert isinstance(outcome, BaseException)
    raise outcome
