"""The proxy's way to its ledger: asked without waiting, and opened again after a failure.

While it cannot be opened every command is answered with the `LedgerError` that says why, so that
fenced calls are refused and everything else still passes.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import TypeVar

from fencekit.core.config import FenceConfig
from fencekit.core.errors import LedgerError, LedgerGone, LedgerUnavailable
from fencekit.core.messages import Answer, Command
from fencekit.core.state import Holder, IntentKey
from fencekit.fence.calls import Calls as FenceCalls
from fencekit.ledger.base import Callback, Ledger, Outcome

REOPEN_EVERY = 1.0  # seconds

T = TypeVar("T")


class Record:
    """One ledger, which may fail and come back. `idle` says that no admitted call of ours runs."""

    def __init__(self, url: str | None, config: FenceConfig, idle: Callable[[], bool]) -> None:
        self._url = url
        self._config = config
        self._idle = idle
        self._lock = threading.Lock()
        self._calls: FenceCalls | None = None
        self._problem: LedgerError | None = None
        self._failures = 0
        self._gone = False
        self._tried_at = float("-inf")
        self.open()

    def open(self) -> None:
        """Open the ledger; a failure is kept as the answer to everything."""
        self._tried_at = time.monotonic()
        try:
            self._calls, self._problem, self._failures = (
                FenceCalls.open(self._url, self._config),
                None,
                0,
            )
        except LedgerError as problem:
            self._calls, self._problem = None, problem

    @property
    def problem(self) -> LedgerError | None:
        """Why the ledger is not open, if so."""
        return self._problem

    @property
    def where(self) -> str:
        """The ledger's URL, as far as it is known."""
        return self._calls.ledger.url if self._calls is not None else self._url or "the default"

    def holder(self) -> Holder:
        """The identity under which this process holds attempts."""
        return self._calls.ledger.holder if self._calls is not None else Holder("process", "")

    def wall_ms(self) -> int:
        """The ledger's wall time in milliseconds."""
        return self._calls.ledger.now().wall_ms if self._calls else time.time_ns() // 1_000_000

    def enqueue(self, command: Command, done: Callback) -> None:
        """Ask; `done` gets the outcome later, in the ledger's thread. Never raises."""
        if self._needs_opening():
            threading.Thread(target=self._reopen, args=(command, done), daemon=True).start()
            return
        self._enqueue(command, done)

    def _needs_opening(self) -> bool:
        """Whether to try again: not open, or failing while no admitted call of ours runs.

        Never where the file was taken away: opening it anew would begin an empty record, in which
        nothing has happened yet.
        """
        failing = self._calls is None or (self._failures > 1 and self._idle())
        return failing and not self._gone and time.monotonic() - self._tried_at >= REOPEN_EVERY

    def _reopen(self, command: Command, done: Callback) -> None:
        with self._lock:
            if self._needs_opening():
                if self._calls is not None:
                    self._calls.close()
                self.open()
        self._enqueue(command, done)

    def _enqueue(self, command: Command, done: Callback) -> None:
        def heard(outcome: Outcome) -> None:
            failed = isinstance(outcome, LedgerError)
            self._failures = self._failures + 1 if failed else 0
            self._gone = isinstance(outcome, LedgerGone)
            if isinstance(outcome, BaseException) and not isinstance(outcome, Exception):
                outcome = LedgerUnavailable(f"the ledger's thread ended: {outcome!r}")
            done(outcome)

        if self._calls is None:
            problem = self._problem or LedgerUnavailable("the ledger is not open")
            done(problem.fresh())
            return
        try:
            self._calls.enqueue(command, heard)
        except LedgerError as problem:
            self._failures += 1
            done(problem)

    def count(self, command: Command, answer: Answer) -> None:
        """Count an attempt that was answered without asking, as one that was asked."""
        if self._calls is not None:
            self._calls.heard(command, answer)

    def peek(self, key: IntentKey) -> int | None:
        """Return the number of an intent's record; None where the ledger cannot tell."""
        return self.look(lambda ledger: ledger.peek(key))

    def look(self, read: Callable[[Ledger], T]) -> T | None:
        """Return what `read` sees of the ledger; None where that cannot be used."""
        try:
            return read(self._calls.ledger) if self._calls is not None else None
        except LedgerError:
            return None

    def close(self) -> None:
        """Let go of the ledger."""
        if self._calls is not None:
            self._calls.close()
