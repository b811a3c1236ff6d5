"""Heartbeats: one thread per fence moves the leases of everything that this process runs."""

from __future__ import annotations

import threading
import time

from fencekit.core.state import PreparedEffect
from fencekit.fence.draw import Draw
from fencekit.ledger.base import Ledger, Outcome


class Beats:
    """Sends a heartbeat for each held ticket every third of the lease."""

    def __init__(self, ledger: Ledger, draw: Draw) -> None:
        self._ledger = ledger
        self._draw = draw
        self._every = draw.config.lease / 3
        self._lock = threading.Lock()
        self._wake = threading.Condition(self._lock)
        self._due: dict[str, tuple[float, PreparedEffect]] = {}
        self._thread: threading.Thread | None = None
        self._closed = False

    def hold(self, ticket: PreparedEffect) -> None:
        """Begin to move the lease of a ticket."""
        with self._lock:
            self._due[ticket.id] = (time.monotonic() + self._every, ticket)
            if self._thread is None:
                self._thread = threading.Thread(
                    target=self._beat, name="fencekit-beats", daemon=True
                )
                self._thread.start()
            elif len(self._due) == 1:
                self._wake.notify()

    def drop(self, ticket: PreparedEffect) -> None:
        """Stop moving the lease of a ticket."""
        with self._lock:
            self._due.pop(ticket.id, None)

    def close(self) -> None:
        """End the thread; the leases of what is still held run out."""
        with self._lock:
            self._closed = True
            self._due.clear()
            self._wake.notify()
        if self._thread is not None:
            self._thread.join()

    def _beat(self) -> None:
        while True:
            with self._lock:
                if self._closed:
                    return
                now = time.monotonic()
                due = [ticket for at, ticket in self._due.values() if at <= now]
                for ticket in due:
                    self._due[ticket.id] = (now + self._every, ticket)
                if not due:
                    soonest = min((at for at, _ in self._due.values()), default=None)
                    self._wake.wait(None if soonest is None else soonest - now)
            for ticket in due:
                self._send(ticket)

    def _send(self, ticket: PreparedEffect) -> None:
        def done(_outcome: Outcome) -> None:
            """A lost heartbeat is made good by the next one; the outcome itself will tell."""

        try:
            self._ledger.enqueue(self._draw.heartbeat(ticket), done)
        except Exception:
            # Closed or unreachable: the next beat, or the commit, gets the reason.
            return
