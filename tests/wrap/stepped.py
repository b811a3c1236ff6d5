"""A server that is killed, or stands still, at a named step of a call.

`python -m tests.wrap.stepped` on standard streams. At the step that FENCEKIT_STEP names the server
kills itself or, where FENCEKIT_GATE is the stem of two FIFOs, tells on the first that it is there,
and goes on when somebody opens the second. A call's own arguments `step` and `gate` come before
the variables. Its effect is a line in the file FENCEKIT_EFFECTS.
"""

from __future__ import annotations

import json
import os
import signal
import sys

STEPS = ("idle", "asked", "fired", "half answered", "answered")


asked: dict[str, str] = {}


def reach(step: str) -> None:
    """Die or wait here, if this is the step."""
    if asked.get("step", os.environ.get("FENCEKIT_STEP")) != step:
        return
    sys.stdout.flush()
    gate = asked.get("gate", os.environ.get("FENCEKIT_GATE"))
    if gate is None:
        os.kill(os.getpid(), signal.SIGKILL)
    else:
        open(f"{gate}.there", "w").close()
        open(f"{gate}.go").close()


def answer(ident: object, result: object) -> None:
    """Write an answer, in two halves."""
    line = json.dumps({"jsonrpc": "2.0", "id": ident, "result": result}) + "\n"
    sys.stdout.write(line[:20])
    if isinstance(result, dict) and "content" in result:
        reach("half answered")
    sys.stdout.write(line[20:])
    sys.stdout.flush()


def main() -> None:
    """Serve."""
    for line in sys.stdin:
        message = json.loads(line)
        if message.get("method") == "tools/call":
            asked.clear()
            asked.update(message["params"].get("arguments", {}))
            reach("asked")
            with open(os.environ["FENCEKIT_EFFECTS"], "a", encoding="utf-8") as file:
                file.write("effect\n")
            reach("fired")
            answer(message["id"], {"content": [{"type": "text", "text": "charge_id"}]})
            reach("answered")
        elif "id" in message:
            version = message.get("params", {}).get("protocolVersion")
            says = {"protocolVersion": version, "capabilities": {}, "serverInfo": {}}
            answer(message["id"], {"tools": [{"name": "charge_card"}], **says})
            if message["method"] == "tools/list":
                reach("idle")


if __name__ == "__main__":
    main()
