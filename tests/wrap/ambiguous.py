"""A server whose one action always happens and whose answer is every kind of unclear.

`python -m tests.wrap.ambiguous MODE` on standard streams. Every effect is appended to the file that
FENCEKIT_EFFECTS names before anything is said about it.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from typing import Any

MODES = (
    "silence", "503", "429", "-32602", "imitates", "slow", "blind", "dies", "safe", "honest",
)  # fmt: skip
IMITATION = "Input validation error: Invalid arguments for tool create_payment: order is required"
SLOW = 0.8  # seconds, past the limit of the host


def tools(mode: str) -> list[dict[str, Any]]:
    schema = {"type": "object", "properties": {"order": {"type": "string"}}}
    hints = {"idempotentHint": True} if mode == "safe" else {"readOnlyHint": False}
    return [
        {"name": "create_payment", "inputSchema": schema, "annotations": hints},
        {"name": "find_payment", "annotations": {"readOnlyHint": True}},
    ]


def fire() -> int:
    with open(os.environ["FENCEKIT_EFFECTS"], "a", encoding="utf-8") as file:
        file.write("effect\n")
    with open(os.environ["FENCEKIT_EFFECTS"], encoding="utf-8") as file:
        return len(file.readlines())


def said(text: str, *, error: bool = False) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": text}], **({"isError": True} if error else {})}


def result(message: Any, mode: str) -> dict[str, Any] | None:
    """Return the members of the answer; None for no answer at all."""
    method = message["method"]
    if method == "initialize":
        version = message["params"]["protocolVersion"]
        return {
            "result": {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": {}}
        }
    if method == "tools/list":
        return {"result": {"tools": tools(mode)}}
    if method != "tools/call":
        return {"error": {"code": -32601, "message": "no such method"}}
    if message["params"]["name"] == "find_payment":
        return {"result": said("503", error=True)}
    return _paid(mode)


def _paid(mode: str) -> dict[str, Any] | None:
    count = fire()
    match mode:
        case "silence":
            return None
        case "503" | "429" | "blind":
            return {"result": said(f"HTTP {mode}: try again later", error=True)}
        case "-32602":
            return {"error": {"code": -32602, "message": "Invalid params"}}
        case "imitates":
            return {"result": said(IMITATION, error=True)}
        case "slow":
            time.sleep(SLOW)
        case "dies":
            os._exit(9)
        case "safe" if count == 1:
            return {"result": said("HTTP 503", error=True)}
    return {"result": said("paid")}


def main(mode: str) -> None:
    lock = threading.Lock()

    def handle(message: Any) -> None:
        made = result(message, mode)
        if made is not None:
            with lock:
                print(json.dumps({"jsonrpc": "2.0", "id": message["id"], **made}), flush=True)

    for line in sys.stdin:
        message = json.loads(line)
        if "id" in message:
            threading.Thread(target=handle, args=(message,), daemon=True).start()


if __name__ == "__main__":
    main(sys.argv[1])
