"""The clocks of one machine: wall time for audit and retention, lease time for leases.

Lease time is `CLOCK_BOOTTIME`: it runs through suspend, nobody can set it, and it is the same for
every process of a machine until the next boot, whose id tells that it started anew. If wall time
jumps against it by more than five minutes, nothing may expire until somebody confirms the new time:
a clock set a year ahead must not make every recorded result run again.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from pathlib import Path

from fencekit.core.state import Now

_LOG = logging.getLogger("fencekit")

MAX_JUMP_MS = 5 * 60 * 1000

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


def boot_id() -> str:
    """Return the id of this boot of the kernel, or a constant where the system has none."""
    try:
        return _BOOT_ID.read_text(encoding="ascii").strip()
    except OSError:
        return "this boot"


def _wall_ms() -> int:
    return time.time_ns() // 1_000_000


_LEASE_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


def _lease_ms() -> int:
    return time.clock_gettime_ns(_LEASE_CLOCK) // 1_000_000


class Clocks:
    """Reads both clocks and watches their distance."""

    def __init__(
        self,
        wall_ms: Callable[[], int] = _wall_ms,
        lease_ms: Callable[[], int] = _lease_ms,
        boot: str | None = None,
    ) -> None:
        self._wall_ms = wall_ms
        self._lease_ms = lease_ms
        self.boot = boot if boot is not None else boot_id()
        self._distance: int | None = None
        self._told = False

    def now(self) -> Now:
        """Return both clocks; expiry is paused while their distance is not the confirmed one."""
        wall, lease = self._wall_ms(), self._lease_ms()
        distance = self._distance
        if distance is None:
            distance = self._distance = wall - lease
        jumped = wall - lease - distance
        paused = not -MAX_JUMP_MS <= jumped <= MAX_JUMP_MS
        if paused and not self._told:
            self._tell(jumped)
        return Now(wall, lease, self.boot, paused)

    def _tell(self, jumped: int) -> None:
        self._told = True
        # A log, not a warning: those can be made to raise, and an effect may just have happened.
        _LOG.warning(
            "the wall clock jumped by %+d minutes: no recorded result expires until somebody says "
            "that it is right (`fencekit ledger confirm-clock`)",
            jumped // 60_000,
        )

    def expect(self, boot: str, distance: int) -> None:
        """Take over the distance that was confirmed in the same boot."""
        if boot == self.boot and distance != self._distance:
            self._distance = distance
            self._told = False

    def confirm(self) -> int:
        """Accept the present wall time; returns the new distance, to be kept."""
        self._distance = self._wall_ms() - self._lease_ms()
        self._told = False
        return self._distance
