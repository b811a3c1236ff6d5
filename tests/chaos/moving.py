"""A run in which a ledger is moved to another one while clients work and the nemesis is at it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time

from fencekit import Fence
from fencekit.core.messages import Fresh
from tests.chaos.checker import History, check_promises
from tests.chaos.client import held
from tests.chaos.record import Held, effects, told
from tests.chaos.run import ROOT, Run

KILLED_AT = ("draining", "sealed", "filled:1", "handed")
"""Steps of the move; `tests/ledger/test_copying.py` kills at all of them, without clients."""


class Mover(threading.Thread):
    """Moves FROM to TO; is killed at one step after the other, and run again until it has ended."""

    def __init__(self, source: str, target: str) -> None:
        super().__init__()
        self.words = [sys.executable, "-m", "tests.ledger.mover", source, target]
        self.steps = iter(KILLED_AT)
        self.kills, self.problem = 0, ""

    def run(self) -> None:
        """Move, until a mover says that it is done."""
        until = time.monotonic() + 90
        step = next(self.steps)
        while time.monotonic() < until:
            mover = subprocess.run(
                self.words,
                cwd=ROOT,
                capture_output=True,
                timeout=90,
                check=False,
                env={**os.environ, "FENCEKIT_CRASH_AT": step},
            )
            if mover.returncode == 0:
                return
            if mover.returncode == -signal.SIGKILL:
                self.kills += 1
                step = next(self.steps, "")
                time.sleep(0.1)
            elif b"LedgerUnavailable" not in mover.stderr:
                # The network may be cut at any time; nothing else may go wrong.
                self.problem = mover.stderr.decode()
                return
        self.problem = "it did not end within 90 s"


def problems_of(run: Run, source: str, target: str) -> list[str]:
    """Return every promise that is broken over both ledgers, and what both admitted at a time."""
    with Fence.open(source) as fence:
        old = held(fence)
    with Fence.open(target) as fence:
        new = held(fence)
    both = Held(new.records, new.heads, [*old.audit, *new.audit], [*old.problems, *new.problems])
    history = History(told(run.folder).operations, effects(run.folder), both)
    return [*check_promises(history), *_both_admitted(history, old, new)]


def _both_admitted(history: History, old: Held, new: Held) -> list[str]:
    events = [[event["event"] for event in side.audit] for side in (old, new)]
    found = []
    if "admitted" in events[0][events[0].index("draining") :]:
        found.append("FROM admitted after it began to drain")
    if "admitted" in events[1][: events[1].index("open")]:
        found.append("TO admitted before it was opened")
    admitted = [
        {event["ticket"] for event in side.audit if event["event"] == "admitted"}
        for side in (old, new)
    ]
    fresh = [op for op in history.operations if isinstance(op.answer, Fresh)]
    last_asked = max(op.start for op in fresh if _first(op) in admitted[0])
    first_heard = min(op.end for op in fresh if op.answer.ticket.id in admitted[1])
    if first_heard < last_asked:
        found.append("TO had admitted before FROM was asked for the last time and admitted")
    return found


def _first(op: object) -> str:
    """Return the ticket that an operation was admitted with, not asked for again."""
    answer = op.answer  # type: ignore[attr-defined]
    return "" if answer.resent else str(answer.ticket.id)
