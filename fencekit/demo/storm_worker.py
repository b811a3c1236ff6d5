"""One process of a storm: `python -m fencekit.demo.storm_worker`, told what to do on its input.

Each line in is a JSON object, each gets one line back: first the plan (answered when the ledger is
open), then how often or for how long to ask, until the input ends.
"""

from __future__ import annotations

import json
import signal
import sys
import threading
from pathlib import Path
from typing import Any

from fencekit.core.errors import InvalidRequest, LedgerError
from fencekit.demo.charging import Charging
from fencekit.fence import Fence

_HELD = 60.0  # seconds for which a process that is to be killed waits for it


def main() -> None:
    """Work until the input ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the storm ends its processes itself
    plan = json.loads(sys.stdin.readline())
    try:
        fence = Fence.open(plan["ledger"])
    except (LedgerError, InvalidRequest) as problem:
        _say({"problem": str(problem)})
        return
    with fence:
        after = threading.Event() if plan["hold"] else None
        charging = Charging(
            fence,
            plan["orders"],
            Path(plan["effects"]),
            None if after is None else lambda: _held(after),
        )
        _say({"ready": True})
        for line in sys.stdin:
            asked = json.loads(line)
            if "seconds" in asked:
                _say(charging.attempt_for(asked["seconds"]).to_json())
            else:
                _say(charging.attempt(asked["times"]).to_json())


def _held(never: threading.Event) -> None:
    """Stay in the middle of the effect; nobody sets this event, a SIGKILL ends the wait."""
    never.wait(_HELD)


def _say(message: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
