"""Descriptors whose kernel lock says that this process lives; a forked child closes its copies.

A lock by `flock` is let go when the last copy of its descriptor is closed. A child that kept its
copy, whether it ever uses the ledger or not, would hide the death of its parent.
"""

from __future__ import annotations

import contextlib
import os

_OURS: set[int] = set()


def keep(fd: int) -> int:
    """Count a descriptor among those that a child closes; returns it."""
    _OURS.add(fd)
    return fd


def close(fd: int) -> None:
    """Close a descriptor, and with it let go of its lock."""
    if fd in _OURS:
        _OURS.discard(fd)
        os.close(fd)


def _close_copies() -> None:
    while _OURS:
        with contextlib.suppress(OSError):
            os.close(_OURS.pop())


os.register_at_fork(after_in_child=_close_copies)
