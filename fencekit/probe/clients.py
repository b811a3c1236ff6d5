"""Three reference clients for the hostile server: they check the battery as much as it them.

`python -m fencekit.probe.clients careful|blind|refuser ORDER -- SERVER…`. `blind` repeats whatever
did not end well, `refuser` never calls at all, `careful` repeats only what is declared safe to
repeat or was verified not to have happened. Exit 0 when it believes the order is charged.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

from fencekit.probe.hostile import CHARGE, VERIFY
from fencekit.wire.client import Client, Target
from fencekit.wire.errors import WireError
from fencekit.wire.frames import Frame, Kind

KINDS = ("careful", "blind", "refuser")
PATIENCE = 1.0  # seconds to wait for an answer
TRIES = 3


class Shopper:
    """Charges one order through a server that it starts, and starts again when it died."""

    def __init__(self, server: Sequence[str], order: str) -> None:
        self._target = Target(command=tuple(server), timeout=20.0, stderr="null")
        self._order = order
        self._client: Client | None = None

    def call(self, tool: str) -> Frame | None:
        """Call a tool once and return its answer, or None where none came."""
        arguments = {"order": self._order, "amount": 10}
        if tool == VERIFY:
            del arguments["amount"]
        try:
            if self._client is None:
                self._client = self._target.connect()
            call = {"name": tool, "arguments": arguments}
            return self._client.request("tools/call", call, timeout=PATIENCE)
        except WireError:
            self.close()
            return None

    def declared_safe(self) -> bool:
        """Whether the tool says that repeating it is safe."""
        try:
            if self._client is None:
                self._client = self._target.connect()
            found = [tool for tool in self._client.list_tools() if tool.get("name") == CHARGE]
        except WireError:
            return False
        return bool(found) and (found[0].get("annotations") or {}).get("idempotentHint") is True

    def close(self) -> None:
        """Let go of the server; the next call starts it again."""
        if self._client is not None:
            self._client.close()
            self._client = None


def succeeded(answer: Frame | None) -> bool:
    """Whether an answer came and says that it worked."""
    if answer is None or answer.kind is Kind.ERROR:
        return False
    return isinstance(answer.result, dict) and answer.result.get("isError") is not True


def blind(shopper: Shopper) -> bool:
    """Repeat whatever did not end well."""
    return any(succeeded(shopper.call(CHARGE)) for _ in range(TRIES))


def careful(shopper: Shopper) -> bool:
    """Repeat only what is declared safe, or what was verified not to have happened."""
    safe = shopper.declared_safe()
    for _ in range(TRIES):
        if succeeded(shopper.call(CHARGE)):
            return True
        if safe:
            continue
        charged = _verified(shopper.call(VERIFY))
        if charged is not False:
            return bool(charged)
    return False


def _verified(answer: Frame | None) -> bool | None:
    """Return whether the look-up says that it was charged, or None where it could not tell."""
    import json

    if not succeeded(answer):
        return None
    assert answer is not None
    try:
        found: Any = json.loads(answer.result["content"][0]["text"])
        return bool(found["charged"])
    except (KeyError, IndexError, TypeError, ValueError):
        return None


def main(argv: Sequence[str]) -> int:
    """Run one client; 0 when it believes that the order is charged, else 1."""
    kind, order, _, *server = argv
    if kind == "refuser":
        return 1
    shopper = Shopper(server, order)
    try:
        return 0 if (careful if kind == "careful" else blind)(shopper) else 1
    finally:
        shopper.close()


if __name__ == "__main__":
    if len(sys.argv) < 5 or sys.argv[1] not in KINDS or sys.argv[3] != "--":
        sys.exit(f"usage: python -m fencekit.probe.clients {'|'.join(KINDS)} ORDER -- SERVER…")
    sys.exit(main(sys.argv[1:]))
