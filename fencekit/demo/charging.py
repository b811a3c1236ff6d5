"""One charge, attempted again and again behind the fence: one process's part of a storm.

The charge is real enough to count: it appends one line to a file, synced, out of the fence's sight.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable
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
    """Callers of one process that all want the same order charged.

    `after` runs in the middle of the effect: the money has moved, the fence has not heard of it.
    """

    def __init__(
        self, fence: Fence, order: str, effects: Path, after: Callable[[], None] | None = None
    ) -> None:
        self._fence = fence
        self._order = order
        self._effects = effects
        self._after = after
        self._lock = threading.Lock()

    def attempt(self, times: int) -> Tally:
        """Ask `times` times from up to `THREADS` threads that start at one instant."""
        tally = Tally()
        callers = min(THREADS, times)
        if not callers:
            return tally
        start = threading.Barrier(callers)
        shares = [times // callers + (n < times % callers) for n in range(callers)]
        threads = [threading.Thread(target=self._caller, args=(s, start, tally)) for s in shares]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return tally

    def _caller(self, times: int, start: threading.Barrier, tally: Tally) -> None:
        start.wait()
        for _ in range(times):
            mine = self._once()
            with self._lock:
                tally.add(mine)

    def _once(self) -> Tally:
        try:
            admission = self._fence.prepare(
                f"charge:{self._order}",
                "charge_card",
                {"order": self._order, "cents": CENTS},
                domain=f"order:{self._order}",
                holder="process",
            )
        except Refused:
            return Tally(stood_down=1)
        except LedgerError as problem:
            return Tally(unanswered=1, problems=[str(problem)])
        if isinstance(admission, Fresh):
            return self._run(admission.ticket)
        cert = admission.cert
        broken = [] if cert.verify() else [f"receipt {cert.hash[:12]} does not verify"]
        return Tally(served=1, receipts={cert.hash}, problems=broken)

    def _run(self, ticket: PreparedEffect) -> Tally:
        receipt = charge(self._effects, self._order)
        if self._after is not None:
            self._after()
        try:
            cert = self._fence.commit(ticket, receipt)
        except FenceError as problem:
            return Tally(executed=1, problems=[str(problem)])
        return Tally(executed=1, receipts={cert.hash})


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
