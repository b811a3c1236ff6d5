"""What both facades share: one ledger, drawing, counting, waking twins, heartbeats."""

from __future__ import annotations

import atexit
import threading
import time
import weakref
from typing import TypeVar

from fencekit.core.config import FenceConfig
from fencekit.core.errors import FenceError, InvalidRequest, LedgerUnavailable
from fencekit.core.messages import (
    Abort,
    Answer,
    Clear,
    Command,
    Commit,
    Forget,
    Fresh,
    Release,
    Settle,
)
from fencekit.core.stats import FenceStats, counter_of
from fencekit.fence.beats import Beats
from fencekit.fence.draw import Draw
from fencekit.fence.twins import Twins
from fencekit.ledger.base import After, Callback, Ledger, Outcome, is_answer
from fencekit.ledger.open import open_ledger

A = TypeVar("A")

# How often the counters are written beside the ledger, at the most.
SAVE_EVERY = 5.0

_ENDINGS = (Commit, Abort, Release, Clear, Settle, Forget)


class Calls:
    """One process's use of one ledger; threads share it."""

    def __init__(self, ledger: Ledger, config: FenceConfig) -> None:
        self.ledger = ledger
        self.config = config
        self.draw = Draw(ledger, config)
        self.twins = Twins(ledger)
        self.beats = Beats(ledger, self.draw)
        self._counts: dict[str, int] = {}
        self._counting = threading.Lock()
        self._saved_at = time.monotonic()
        self._closed = False
        _OPEN.add(self)

    @classmethod
    def open(cls, url: str | None, config: FenceConfig | None) -> Calls:
        """Open the ledger at `url` (None: the configured or default one)."""
        config = config if config is not None else FenceConfig()
        if not isinstance(config, FenceConfig):
            raise InvalidRequest(f"config must be a FenceConfig, not {type(config).__name__}")
        return cls(open_ledger(url), config)

    def sweep(self) -> int:
        """Delete what has expired, and old lines of the audit; returns how many intents changed."""
        self.sweep_audit()
        return self.ledger.sweep()

    def sweep_audit(self) -> int:
        """Delete audit lines that are older than `FenceConfig.audit_ttl`; returns how many."""
        return self.ledger.sweep_audit(self.ledger.now().wall_ms - self.config.audit_ttl_ms)

    def call(self, command: Command) -> Answer:
        """Ask and wait; this thread may write. Raises `LedgerError`."""
        answer = self.ledger.call(command)
        self.heard(command, answer)
        return answer

    def enqueue(self, command: Command, done: Callback) -> None:
        """Ask; `done` gets the answer, or the error of the ledger, in the writer's thread."""

        def heard(outcome: Outcome) -> After | None:
            if is_answer(outcome):
                self.heard(command, outcome)
            return done(outcome)

        self.ledger.enqueue(command, heard)

    def heard(self, command: Command, answer: Answer) -> None:
        """Count an answer, and wake whoever waits for the outcome it brought."""
        counter = counter_of(command, answer)
        if counter is not None:
            with self._counting:
                self._counts[counter] = self._counts.get(counter, 0) + 1
            if time.monotonic() - self._saved_at > SAVE_EVERY:
                self.save_counters()
        if isinstance(command, _ENDINGS):
            self.twins.changed(command.key)

    def stats(self) -> FenceStats:
        """What this fence answered since it was opened."""
        with self._counting:
            return FenceStats.from_counters(self._counts)

    def save_counters(self) -> None:
        """Write the counters beside the ledger; what fails here is made good the next time."""
        self._saved_at = time.monotonic()
        with self._counting:
            counts = dict(self._counts)
        if not counts:
            return
        try:
            self.ledger.save_counters(counts)
        except FenceError:
            return

    def close(self) -> None:
        """Save the counters, end the threads, close the ledger. Closing twice is harmless."""
        if self._closed:
            return
        self._closed = True
        _OPEN.discard(self)
        self.beats.close()
        self.twins.close()
        self.save_counters()
        self.ledger.close()


_OPEN: weakref.WeakSet[Calls] = weakref.WeakSet()


@atexit.register
def _close_all() -> None:
    for calls in list(_OPEN):
        calls.close()


def expect(answer: Answer, kind: type[A]) -> A:
    """Return an answer of the expected kind; raise any refusal."""
    if isinstance(answer, kind):
        return answer
    if isinstance(answer, FenceError):
        raise answer
    raise AssertionError(f"a ledger answered {type(answer).__name__} where {kind} was asked for")


def heard_too_late(config: FenceConfig, answer: Answer, waited: float) -> bool:
    """Whether so much of the lease passed before an admission was heard that it is given back."""
    return isinstance(answer, Fresh) and waited > config.lease / 3


def too_late(waited: float) -> LedgerUnavailable:
    """Return the error for an admission that was given back."""
    return LedgerUnavailable(
        f"the ledger took {waited:.1f} s to admit, more than a third of the lease: the attempt was "
        "given back and nothing ran; try again"
    )
