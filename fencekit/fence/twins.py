"""Waiting for a twin: woken by this process's own outcomes at once, by others' through one poller.

The poller is one thread per fence, however many callers wait. It looks 5 ms after it was asked and
then ever less often, up to every 250 ms; looking counts nothing and creates nothing.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from fencekit.core.errors import LedgerError
from fencekit.core.state import IntentKey
from fencekit.ledger.base import Ledger

FIRST_LOOK = 0.005
SLOWEST_LOOK = 0.25

Wake = Callable[[], None]


class Twins:
    """Calls back when the record of an intent may have changed."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._lock = threading.Lock()
        self._wake = threading.Condition(self._lock)
        self._waiting: dict[IntentKey, list[tuple[int, Wake]]] = {}
        self._interval = FIRST_LOOK
        self._thread: threading.Thread | None = None
        self._closed = False

    def watch(self, key: IntentKey, seen: int, wake: Wake) -> Callable[[], None]:
        """Call `wake` once when the record is no longer at revision `seen`; returns how to stop."""
        entry = (seen, wake)
        with self._lock:
            self._waiting.setdefault(key, []).append(entry)
            self._interval = FIRST_LOOK
            if self._thread is None:
                self._thread = threading.Thread(
                    target=self._poll, name="fencekit-twins", daemon=True
                )
                self._thread.start()
            self._wake.notify()

        def stop() -> None:
            with self._lock:
                left = [e for e in self._waiting.get(key, []) if e is not entry]
                if left:
                    self._waiting[key] = left
                else:
                    self._waiting.pop(key, None)

        return stop

    def changed(self, key: IntentKey) -> None:
        """Wake those who wait for an intent whose outcome this process just recorded."""
        if key not in self._waiting:
            return
        with self._lock:
            entries = self._waiting.pop(key, [])
        for _, wake in entries:
            wake()

    def close(self) -> None:
        """Wake everybody and end the poller."""
        with self._lock:
            self._closed = True
            entries = [e for waiting in self._waiting.values() for e in waiting]
            self._waiting.clear()
            self._wake.notify()
        for _, wake in entries:
            wake()
        if self._thread is not None:
            self._thread.join()

    def _poll(self) -> None:
        while True:
            with self._lock:
                while not self._waiting:
                    if self._closed:
                        return
                    self._wake.wait()
                self._wake.wait(self._interval)
                if self._closed:
                    return
                self._interval = min(self._interval * 1.5, SLOWEST_LOOK)
                keys = list(self._waiting)
            for key in keys:
                self._look(key)

    def _look(self, key: IntentKey) -> None:
        try:
            revision: int | None = self._ledger.peek(key)
        except LedgerError:
            revision = None  # whoever asks again gets the reason
        woken: list[Wake] = []
        with self._lock:
            left = []
            for seen, wake in self._waiting.get(key, []):
                if revision == seen:
                    left.append((seen, wake))
                else:
                    woken.append(wake)
            if left:
                self._waiting[key] = left
            else:
                self._waiting.pop(key, None)
        for wake in woken:
            wake()
