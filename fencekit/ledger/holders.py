"""Is the process that holds an attempt alive? A lock that the kernel drops when it dies tells.

Each process of a ledger holds an exclusive lock on a file of its own beside the ledger. The files
are made, tested and removed only inside a write transaction of the ledger, so nobody can look
between the making of a file and the taking of its lock.
"""

from __future__ import annotations

import fcntl
import os
import re
from pathlib import Path

from fencekit.core.state import Liveness
from fencekit.ledger import lock_descriptors

_NAME = re.compile(r"[0-9a-f]{32}\Z")


class HolderLocks:
    """The lock files of one ledger, in a directory beside it."""

    def __init__(self, directory: Path, own: str) -> None:
        self._directory = directory
        self._own = own
        self._held: int | None = None

    def take(self) -> None:
        """Make this process's file and lock it; inside a write transaction only."""
        self._directory.mkdir(mode=0o700, exist_ok=True)
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
        fd = os.open(self._path(self._own), flags, 0o600)
        os.write(fd, f"{os.getpid()}\n".encode())
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        self._held = lock_descriptors.keep(fd)

    def liveness(self, process: str) -> Liveness:
        """Tell whether a process is alive; inside a write transaction only."""
        if process == self._own:
            return Liveness.ALIVE
        if not _NAME.match(process):
            return Liveness.CANNOT_TELL
        try:
            fd = os.open(self._path(process), os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
        except OSError:
            # Removed by sweep only after its death was noted everywhere, or by a stranger.
            return Liveness.CANNOT_TELL
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return Liveness.ALIVE
        else:
            return Liveness.DEAD
        finally:
            os.close(fd)

    def pid(self, process: str) -> int | None:
        """Return the pid that a process wrote into its file, for messages only."""
        try:
            return int(self._path(process).read_text(encoding="ascii").strip())
        except (OSError, ValueError):
            return None

    def remove_dead(self, needed: frozenset[str]) -> None:
        """Remove the files of dead processes that no open attempt names; inside a transaction."""
        try:
            names = [p.name for p in self._directory.iterdir()]
        except OSError:
            return
        for name in names:
            if name not in needed and self.liveness(name) is Liveness.DEAD:
                self._path(name).unlink(missing_ok=True)

    def release(self) -> None:
        """Drop the lock and the file; what this process still holds reads as dead from now on."""
        if self._held is not None:
            lock_descriptors.close(self._held)
            self._held = None

    def _path(self, process: str) -> Path:
        return self._directory / process
