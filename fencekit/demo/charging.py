"""Charges, attempted again and again behind the fence: one process's part of a storm.

A charge is real enough to count: it appends one line to a file, synced, out of the fence's sight.
"""

from __future__ import annotations

import json
import os
import random
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from fencekit.core.errors import FenceError, LedgerError, Refused
from fencekit.core.messages import Fresh
from fencekit.core.state import PreparedEffect
from fencekit.fence import Fence

THREADS = 16
"""How many callers of one process ask at the same instant."""

CENTS = 4_200


@dataclass
class Tally:
    """How the attempts of one process were answered; every attempt is in exactly one count."""

    executed: int = 0
    served: int = 0
    stood_down: int = 0
    unanswered: int = 0
    # Each is an order and the hash of the certificate that somebody got for it.
    receipts: set[str] = field(default_factory=set)
    problems: list[str] = field(default_factory=list)

    @property
    def answered(self) -> int:
        """All attempts that came back."""
        return self.executed + self.served + self.stood_down + self.unanswered

    def add(self, other: Tally) -> None:
        """Add another process's tally."""
        self.executed += other.executed
        self.served += other.served
        self.stood_down += other.stood_down
        self.unanswered += other.unanswered
        self.receipts |= other.receipts
        self.problems += other.problems

    def to_json(self) -> dict[str, Any]:
        """Return the tally as a JSON object."""
        return {**asdict(self), "receipts": sorted(self.receipts)}

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> Tally:
        """Read what `to_json` wrote."""
        return cls(**{**value, "receipts": set(value["receipts"])})


class Charging:
    """Callers of one process that all want the same orders charged.

    All callers of all processes go through the orders in one random sequence, so that they meet.
    `after` runs in the middle of the effect: the money has moved, the fence has not heard of it.
    """

    def __init__(
        self,
        fence: Fence,
        orders: Sequence[str],
        effects: Path,
        after: Callable[[], None] | None = None,
    ) -> None:
        self._fence = fence
        self._orders = orders
        self._effects = effects
        self._after = after
        self._lock = threading.Lock()

    def attempt(self, times: int) -> Tally:
        """Ask `times` times from up to `THREADS` threads that start at one instant."""
        callers = min(THREADS, times)
        shares = [times // callers + (n < times % callers) for n in range(callers)]
        return self._together([_times(share) for share in shares])

    def attempt_for(self, seconds: float) -> Tally:
        """Ask from `THREADS` threads until the time is up."""
        return self._together([_until(seconds) for _ in range(THREADS)])

    def _together(self, goes_on: list[Callable[[], bool]]) -> Tally:
        tally = Tally()
        start = threading.Barrier(max(1, len(goes_on)))
        threads = [
            threading.Thread(target=self._caller, args=(more, start, tally)) for more in goes_on
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return tally

    def _caller(self, more: Callable[[], bool], start: threading.Barrier, tally: Tally) -> None:
        sequence = random.Random(self._orders[0])
        start.wait()
        while more():
            mine = self._once(sequence.choice(self._orders))
            with self._lock:
                tally.add(mine)

    def _once(self, order: str) -> Tally:
        try:
            admission = self._fence.prepare(
                f"charge:{order}",
                "charge_card",
                {"order": order, "cents": CENTS},
                domain=f"order:{order}",
                holder="process",
            )
        except Refused:
            return Tally(stood_down=1)
        except LedgerError as problem:
            return Tally(unanswered=1, problems=[str(problem)])
        if isinstance(admission, Fresh):
            return self._run(order, admission.ticket)
        cert = admission.cert
        broken = [] if cert.verify() else [f"receipt {cert.hash[:12]} does not verify"]
        return Tally(served=1, receipts={f"{order} {cert.hash}"}, problems=broken)

    def _run(self, order: str, ticket: PreparedEffect) -> Tally:
        receipt = charge(self._effects, order)
        if self._after is not None:
            self._after()
        try:
            cert = self._fence.commit(ticket, receipt)
        except FenceError as problem:
            return Tally(executed=1, problems=[str(problem)])
        return Tally(executed=1, receipts={f"{order} {cert.hash}"})


def _times(left: int) -> Callable[[], bool]:
    """Say yes so many times."""
    rounds = iter(range(left))
    return lambda: next(rounds, None) is not None


def _until(seconds: float) -> Callable[[], bool]:
    """Say yes until the time is up."""
    end = time.monotonic() + seconds
    return lambda: time.monotonic() < end


def charge(effects: Path, order: str) -> dict[str, str]:
    """Charge the order: append one line in one write, sync it, and return the receipt."""
    charge_id = f"ch_{os.urandom(6).hex()}"
    line = json.dumps({"order": order, "charge": charge_id, "pid": os.getpid()}) + "\n"
    file = os.open(effects, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        os.write(file, line.encode())
        os.fsync(file)
    finally:
        os.close(file)
    return {"charge": charge_id, "order": order}


def charges(effects: Path) -> list[dict[str, Any]]:
    """Return the charges that really happened, whatever anybody says."""
    if not effects.exists():
        return []
    whole, _, _ = effects.read_text(encoding="utf-8").rpartition("\n")
    return [json.loads(line) for line in whole.splitlines()]
