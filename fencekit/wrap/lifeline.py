"""Whether the host on our standard streams is still there, told by more than the end of its input.

A host may die while somebody else holds our input open. Two things still show it: nobody reads our
output any more (which works through any number of launchers), or the process that started us is
gone. A launcher that only starts us and leaves (`sh -c 'fencekit wrap … &'`) is not the host: the
parent that counts is the one that is there when the first frame comes and was there at our start.
Process 1 and a parent outside our namespace (0) are nobody's host, and `nohup` says that we are to
stay. One thread sleeps until something happens; only where the system cannot wake it by a process's
end (pidfd: Linux 5.3) it looks every two seconds.
"""

from __future__ import annotations

import os
import select
import signal
import threading
from collections.abc import Callable

_LOOK_EVERY = 2.0  # seconds


class Lifeline:
    """Watches for the end of the host, once `watch` was called."""

    def __init__(self, out: int) -> None:
        self._out = out
        self._parent = os.getppid()

    def watch(self, gone: Callable[[], None]) -> None:
        """Call `gone`, from a thread, when the host has ended. Call it with the first frame."""
        parent = self._parent
        if parent != os.getppid() or parent <= 1 or ignores_hangup():
            parent = 0
        threading.Thread(
            target=self._wait, args=(parent, gone), name="fencekit-lifeline", daemon=True
        ).start()

    def _wait(self, parent: int, gone: Callable[[], None]) -> None:
        poll, end = select.poll(), _end_of(parent) if parent else None
        poll.register(self._out, 0)  # errors and hang-ups are always told
        if end is not None:
            poll.register(end, select.POLLIN)
        timeout = _LOOK_EVERY * 1000 if parent and end is None else None
        # The parent may have ended before it could be watched.
        while not parent or os.getppid() == parent:
            told = dict(poll.poll(timeout))
            if told.get(self._out, 0) & select.POLLNVAL:  # not what this system can watch
                poll.unregister(self._out)
            elif told:
                break
        gone()


def ignores_hangup() -> bool:
    """Whether we were started to outlive our session (`nohup`)."""
    return signal.getsignal(signal.SIGHUP) is signal.SIG_IGN


def _end_of(process: int) -> int | None:
    """Return a descriptor that is readable when a process has ended; None where there is none."""
    try:
        return os.pidfd_open(process) if hasattr(os, "pidfd_open") else None
    except OSError:  # an old kernel, or it has ended just now
        return None
