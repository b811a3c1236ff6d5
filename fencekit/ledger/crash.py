"""Named points at which a test may end the process; they cost a comparison in production.

`FENCEKIT_CRASH_AT=written:3` ends the process at the third passing of the point `written`.
"""

from __future__ import annotations

import os
import signal

_ARMED, _, _count = os.environ.get("FENCEKIT_CRASH_AT", "").partition(":")
_left = [int(_count or "1")]


def point(name: str) -> None:
    """End this process at once if a test armed this point; nothing is flushed or cleaned up."""
    if _ARMED and name == _ARMED:
        _left[0] -= 1
        if _left[0] == 0:
            os.kill(os.getpid(), signal.SIGKILL)
