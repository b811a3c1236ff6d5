"""A storm: many processes, at one instant and again later, all try to make the same charges.

The race comes first, all callers at once; when it is over, the rest of the attempts arrive as late
retries. With `kill`, the process that charges is killed with SIGKILL in the middle of it, between
the race and the late retries. What really happened is counted in a file outside the fence.
"""

from __future__ import annotations

import collections
import contextlib
import json
import os
import secrets
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from fencekit.core.errors import LedgerUnavailable
from fencekit.demo.charging import THREADS, Charging, Tally, charges
from fencekit.fence import Fence

_LOOK_EVERY = 0.01  # seconds between looks for the charge to interrupt
_KILL_WITHIN = 30.0


@dataclass(frozen=True)
class Plan:
    """What to try: `ledger` is a URL, `folder` is where the charges are counted.

    With `seconds` the attempts at all `intents` go on for that long, however many they become.
    """

    ledger: str
    folder: Path
    attempts: int = 1000
    processes: int = 1
    kill: bool = False
    intents: int = 1
    seconds: float | None = None
    order: str = field(default_factory=lambda: f"order-{secrets.token_hex(6)}")

    @property
    def effects(self) -> Path:
        """The file to which each charge appends a line."""
        return self.folder / f"{self.order}.jsonl"

    @property
    def orders(self) -> list[str]:
        """The orders that are charged, each an intent of its own."""
        if self.intents == 1:
            return [self.order]
        return [f"{self.order}-{n}" for n in range(self.intents)]


@dataclass(frozen=True)
class Outcome:
    """What happened. `lost` attempts died with a killed process: their callers heard nothing."""

    plan: Plan
    attempts: int
    executions: int
    repeated: int
    tally: Tally
    lost: int
    killed: int
    elapsed: float

    @property
    def prevented(self) -> int:
        """The attempts that did not charge."""
        return self.attempts - self.executions

    @property
    def shortcomings(self) -> list[str]:
        """Why the storm did not show what it is meant to show; empty where it did."""
        found = []
        if self.plan.intents == 1 and self.executions != 1:
            found.append(f"the charge ran {self.executions} times, not once")
        if self.repeated and self.plan.intents > 1:
            found.append(f"{self.repeated} of {self.plan.intents} charges ran more than once")
        if not self.executions:
            found.append("nothing was charged at all")
        receipts = self.tally.receipts
        if len(receipts) > len({receipt.split()[0] for receipt in receipts}):
            found.append(f"{len(receipts)} different receipts were served")
        if self.tally.answered + self.lost != self.attempts:
            found.append(f"{self.tally.answered + self.lost} attempts were accounted for")
        if self.plan.kill and not self.killed:
            found.append("no process was killed")
        return found + sorted(set(self.tally.problems))

    def to_json(self) -> dict[str, Any]:
        """Return the outcome as a JSON object."""
        return {
            "order": self.plan.order,
            "processes": self.plan.processes,
            "intents": self.plan.intents,
            "attempts": self.attempts,
            "executions": self.executions,
            "repeated": self.repeated,
            "served": self.tally.served,
            "stood_down": self.tally.stood_down,
            "unanswered": self.tally.unanswered,
            "lost": self.lost,
            "killed": self.killed,
            "elapsed": round(self.elapsed, 3),
            "prevented": self.prevented,
            "shortcomings": self.shortcomings,
        }


class _Caller(Protocol):
    """Somebody who can be told to ask; `heard` returns None where it died before it answered."""

    def ask(self, times: int) -> None: ...

    def ask_for(self, seconds: float) -> None: ...

    def heard(self) -> Tally | None: ...


def run(plan: Plan, say: Callable[[str], None]) -> Outcome:
    """Run the storm; `say` hears what is going on. Raises `LedgerError` or `InvalidRequest`."""
    with contextlib.ExitStack() as stack:
        callers: list[_Caller]
        if plan.processes == 1:
            callers = [_Here(stack.enter_context(Fence.open(plan.ledger)), plan)]
        else:
            callers = list(stack.enter_context(_workers(plan)))
        return _storm(plan, callers, say)


def _storm(plan: Plan, callers: list[_Caller], say: Callable[[str], None]) -> Outcome:
    began = time.monotonic()
    if plan.seconds is not None:
        return _lasting_storm(plan, plan.seconds, callers, say)
    total, lost = Tally(), 0
    racing = min(plan.attempts, len(callers) * THREADS)
    say(f"{racing} callers at one instant")
    shares = _share(racing, len(callers))
    for caller, times in zip(callers, shares, strict=True):
        caller.ask(times)
    killed = _kill_who_charges(plan, callers) if plan.kill else 0
    living = []
    for caller, times in zip(callers, shares, strict=True):
        tally = caller.heard()
        if tally is None:
            lost += times
        else:
            total.add(tally)
            living.append(caller)
    late = plan.attempts - racing
    say(f"{late} late retries")
    shares = _share(late, len(living))
    for caller, times in zip(living, shares, strict=True):
        caller.ask(times)
    for caller, times in zip(living, shares, strict=True):
        tally = caller.heard()
        if tally is None:
            lost += times
        else:
            total.add(tally)
    return _outcome(plan, plan.attempts, total, lost, killed, time.monotonic() - began)


def _lasting_storm(
    plan: Plan, seconds: float, callers: list[_Caller], say: Callable[[str], None]
) -> Outcome:
    """All callers go through all orders until the time is up; half-way one may be killed."""
    began = time.monotonic()
    say(f"{len(callers) * THREADS} callers, {plan.intents} orders, {seconds:g} s")
    for caller in callers:
        caller.ask_for(seconds)
    killed = 0
    if plan.kill:
        threading.Event().wait(seconds / 2)
        killed = _kill_who_charges(plan, callers)
    total = Tally()
    for caller in callers:
        tally = caller.heard()
        if tally is not None:
            total.add(tally)
    # How often a process that was killed had asked, nobody knows.
    return _outcome(plan, total.answered, total, 0, killed, time.monotonic() - began)


def _outcome(
    plan: Plan, attempts: int, total: Tally, lost: int, killed: int, elapsed: float
) -> Outcome:
    ran = collections.Counter(made["order"] for made in charges(plan.effects))
    repeated = sum(times > 1 for times in ran.values())
    return Outcome(plan, attempts, ran.total(), repeated, total, lost, killed, elapsed)


def _share(times: int, among: int) -> list[int]:
    return [times // among + (n < times % among) for n in range(among)]


class _Here:
    """The callers of this very process."""

    def __init__(self, fence: Fence, plan: Plan) -> None:
        self._charging = Charging(fence, plan.orders, plan.effects)
        self._tally = Tally()

    def ask(self, times: int) -> None:
        self._tally = self._charging.attempt(times)

    def ask_for(self, seconds: float) -> None:
        self._tally = self._charging.attempt_for(seconds)

    def heard(self) -> Tally:
        return self._tally


class _Worker:
    """The callers of another process; see `storm_worker`."""

    def __init__(self, plan: Plan, limit: float) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "fencekit.demo.storm_worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        # A worker that hangs must not hang the storm: then its attempts count as lost.
        self._limit = threading.Timer(limit, self.process.kill)
        self._limit.daemon = True
        self._limit.start()
        self._tell(
            {
                "ledger": plan.ledger,
                "orders": plan.orders,
                "effects": str(plan.effects),
                "hold": plan.kill and plan.seconds is None,
            }
        )

    def await_ready(self) -> None:
        """Wait until its ledger is open. Raises `LedgerUnavailable` with what it says."""
        said = self._hear()
        if said is None:
            raise LedgerUnavailable("a process of the storm ended before it opened the ledger")
        if "problem" in said:
            raise LedgerUnavailable(said["problem"])

    def ask(self, times: int) -> None:
        self._tell({"times": times})

    def ask_for(self, seconds: float) -> None:
        self._tell({"seconds": seconds})

    def heard(self) -> Tally | None:
        said = self._hear()
        return None if said is None else Tally.from_json(said)

    def end(self) -> None:
        """End the process: its input ends, and if that is not enough it is killed."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        with contextlib.suppress(OSError):
            self.process.stdin.close()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self._limit.cancel()
        self.process.stdout.close()

    def _tell(self, message: dict[str, Any]) -> None:
        assert self.process.stdin is not None
        # Whoever died is noticed when its answer does not come.
        with contextlib.suppress(OSError):
            self.process.stdin.write(json.dumps(message) + "\n")
            self.process.stdin.flush()

    def _hear(self) -> dict[str, Any] | None:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        said: dict[str, Any] | None = json.loads(line) if line.endswith("\n") else None
        return said


@contextlib.contextmanager
def _workers(plan: Plan) -> Iterator[list[_Worker]]:
    limit = 60 + (plan.attempts / 20 if plan.seconds is None else 2 * plan.seconds)
    workers: list[_Worker] = []
    try:
        for _ in range(plan.processes):
            workers.append(_Worker(plan, limit))
        for worker in workers:
            worker.await_ready()
        yield workers
    finally:
        for worker in workers:
            worker.end()


def _kill_who_charges(plan: Plan, callers: list[_Caller]) -> int:
    """Kill the process whose charge shows in the file, if it is one of ours; return how many."""
    ours = {c.process.pid: c.process for c in callers if isinstance(c, _Worker)}
    deadline = time.monotonic() + _KILL_WITHIN
    while time.monotonic() < deadline:
        for made in charges(plan.effects):
            process = ours.get(made["pid"])
            if process is not None and process.poll() is None:
                os.kill(process.pid, signal.SIGKILL)
                process.wait()
                return 1
        time.sleep(_LOOK_EVERY)
    return 0
