"""Named points at which a test may end the process; they cost a comparison in production."""

from __future__ import annotations

import os
import signal

_ARMED = os.environ.get("FENCEKIT_CRASH_AT", "")


def point(name: str) -> None:
    """End this process at once if a test armed this point; nothing is flushed or cleaned up."""
    if _ARMED and name == _ARMED:
        os.kill(os.getpid(), signal.SIGKILL)
