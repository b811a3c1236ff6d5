"""The connections of one process to PostgreSQL: at most so many, each waited for a bounded time.

A connection is opened when it is needed and none is idle, and kept. One on which something failed
is closed and not given out again: whoever asks next gets a new one, or hears why there is none.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import psycopg
from psycopg import errors as pg_errors

STATEMENT_SECONDS = 5.0
"""For how long a statement is waited for; a server that is stopped never says that it is."""


class BoundedConnection(psycopg.Connection[Any]):
    """A connection that waits `limit` seconds for the server, whatever state that is in.

    Only the client can set this limit: a server that is stopped, or cut off without a word, keeps
    no time-out of its own.
    """

    limit = STATEMENT_SECONDS

    def wait(self, gen: Any, interval: float = 0.1, timeout: float | None = None) -> Any:
        """Carry out one exchange with the server. Raises `psycopg.OperationalError` when late."""
        limit = self.limit if timeout is None else timeout
        try:
            return super().wait(gen, interval, limit)
        except pg_errors._WaitTimeout:
            # What is merely slow should not go on holding locks for a caller that has left.
            self._try_cancel(timeout=1.0)
            raise psycopg.OperationalError(f"it did not answer within {limit:g} s") from None


class Busy(Exception):
    """Every connection was in use for as long as one may be waited for."""


class Pool:
    """At most `size` connections, opened by `connect`; `wait` bounds the wait for one, seconds."""

    def __init__(self, connect: Callable[[], BoundedConnection], size: int, wait: float) -> None:
        self._connect = connect
        self.size = size
        self.wait = wait
        self._begin()

    def _begin(self) -> None:
        self._pid = os.getpid()
        self._free = threading.Condition()
        self._used = 0
        self._closed = False
        self.idle: list[BoundedConnection] = []

    @contextlib.contextmanager
    def connection(self) -> Iterator[BoundedConnection]:
        """Lend one connection. Raises `Busy`, or `psycopg.Error` where none can be opened."""
        if self._pid != os.getpid():
            # The parent's connections are not ours to use or to close; they are left alone.
            _LEFT_ALONE.append(self.idle)
            self._begin()
        db = self._take()
        try:
            if db is None or db.closed:
                db = self._connect()
            yield db
        except (psycopg.OperationalError, psycopg.InterfaceError):
            if db is not None:
                with contextlib.suppress(psycopg.Error):
                    db.close()
            raise
        finally:
            self._give_back(db)

    def _take(self) -> BoundedConnection | None:
        until = time.monotonic() + self.wait
        with self._free:
            while self._used >= self.size:
                if not self._free.wait(until - time.monotonic()):
                    raise Busy
            self._used += 1
            return self.idle.pop() if self.idle else None

    def _give_back(self, db: BoundedConnection | None) -> None:
        with self._free:
            self._used -= 1
            if db is not None and not db.closed and not self._closed:
                self.idle.append(db)
                db = None
            self._free.notify()
        if db is not None:
            db.close()

    def close(self) -> None:
        """Close what is idle now, and what is in use when it comes back."""
        if self._pid != os.getpid():
            return
        with self._free:
            self._closed, idle, self.idle = True, self.idle, []
        for db in idle:
            db.close()


# What a forked child inherited and must neither use nor close.
_LEFT_ALONE: list[object] = []
