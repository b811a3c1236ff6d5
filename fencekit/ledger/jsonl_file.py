"""The journal's file: locked by one process, written whole, synced; failures said in words."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

import orjson

from fencekit.core.errors import LedgerError, LedgerFull, LedgerLocked, LedgerUnavailable
from fencekit.ledger import lock_descriptors


def sync(fd: int) -> None:
    """Wait until the file's data is on disk."""
    getattr(os, "fdatasync", os.fsync)(fd)


def write_all(fd: int, data: bytes) -> None:
    """Write every byte, however few the system takes at a time."""
    left = memoryview(data)
    while left:
        left = left[os.write(fd, left) :]


def sync_directory(directory: Path) -> None:
    """Wait until the names in a directory are on disk."""
    fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def set_aside(path: Path, torn: bytes) -> None:
    """Keep what a crash left half written beside a journal, so that nothing is ever thrown away."""
    for number in range(1, 10_000):
        aside = path.with_name(f"{path.name}.torn-{number}")
        with contextlib.suppress(FileExistsError):
            fd = os.open(aside, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_NOFOLLOW, 0o600)
            try:
                write_all(fd, torn)
                os.fsync(fd)
            finally:
                os.close(fd)
            return


def keep_clock(path: Path, boot: str, distance: int) -> None:
    """Write down the distance of the two clocks that was confirmed in a boot."""
    new = path.with_name(path.name + ".new")
    new.write_bytes(orjson.dumps([boot, distance]))
    new.replace(path)


def read_clock(path: Path) -> tuple[str, int] | None:
    """Read what `keep_clock` wrote; None where there is nothing that reads so."""
    try:
        boot, distance = orjson.loads(path.read_bytes())
        return str(boot), int(distance)
    except (OSError, ValueError, TypeError):
        return None


def take_lock(path: Path, ledger: Path) -> int:
    """Lock a journal for this process. Raises `LedgerLocked` naming who holds it."""
    with translated(ledger):
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            who = os.pread(fd, 20, 0).decode("ascii", "replace").strip() or "another process"
            os.close(fd)
            raise LedgerLocked(
                f"the ledger {ledger} is held by process {who}, and a journal has one at a time: "
                "end that process, or use the default ledger (sqlite:), which processes share"
            ) from None
        os.ftruncate(fd, 0)
        os.pwrite(fd, f"{os.getpid()}\n".encode(), 0)
    return lock_descriptors.keep(fd)


def in_words(path: Path, problem: OSError) -> LedgerError:
    """Say what failed, where, and what to do."""
    if problem.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        return LedgerFull(
            f"no space is left for the ledger {path}: nothing was admitted; free some space and "
            "try again"
        )
    if problem.errno in (errno.EROFS, errno.EACCES, errno.EPERM):
        return LedgerFull(
            f"the ledger {path} cannot be written: nothing was admitted; make it and its folder "
            "writable"
        )
    return LedgerUnavailable(
        f"the ledger {path} cannot be used ({problem.strerror or problem}): nothing was admitted; "
        "look at its folder and its disk"
    )


@contextlib.contextmanager
def translated(path: Path) -> Iterator[None]:
    """Turn a failure of the system into one that says what to do."""
    try:
        yield
    except OSError as problem:
        raise in_words(path, problem) from None
