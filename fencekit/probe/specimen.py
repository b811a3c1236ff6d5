"""A small MCP server on raw frames whose retry safety is known: what the probe is tested against.

`python -m fencekit.probe.specimen MODE`, where MODE says what a repeated charge does:

- `fires`    every call charges: the classic double-fire
- `races`    looks first, then charges: safe one after another, doubles when two calls overlap
- `forgets`  remembers in memory only: safe until the process ends
- `echoes`   charges every time and says the same words every time
- `keeps`    remembers on disk under a lock before it answers: the correct one

The truth is counted outside the answers: each charge appends one line to the file that
`FENCEKIT_EFFECTS` names (without it, to memory), and is posted to `FENCEKIT_SINK` where that names
an HTTP address; only `keeps` sends an idempotency key there. No SDK, so that it starts at once.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import threading
import uuid
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, TextIO

from fencekit.probe.rawserver import RawServer, Said, said

MODES = ("fires", "races", "forgets", "echoes", "keeps")
EFFECTS_ENV = "FENCEKIT_EFFECTS"
SINK_ENV = "FENCEKIT_SINK"
RACE_WINDOW = 0.4  # seconds for which `races` holds a call open for another one to overlap it

_ORDER = {
    "type": "object",
    "properties": {"order": {"type": "string"}, "amount": {"type": "number"}},
    "required": ["order"],
}
TOOLS = [
    {
        "name": "charge_card",
        "description": "Charge the card on file for an order.",
        "inputSchema": _ORDER,
        "annotations": {"readOnlyHint": False, "destructiveHint": True},
    },
    {
        "name": "list_charges",
        "description": "List every charge made so far.",
        "inputSchema": {"type": "object", "properties": {}},
        "annotations": {"readOnlyHint": True},
    },
]


class Till:
    """Makes charges and remembers them as its mode says."""

    def __init__(self, mode: str, effects: Path | None, sink: str | None) -> None:
        self.mode = mode
        self._effects = effects
        self._sink = sink
        self._memory: list[str] = []
        self._known: dict[str, str] = {}
        self._lock = threading.Lock()
        self._inside = threading.Condition()
        self._overlapping: dict[str, int] = {}

    def charge(self, order: str) -> dict[str, str]:
        """Charge an order once or again, as the mode says, and return the answer."""
        if self.mode == "races":
            return self._race(order)
        with self._lock:
            if self.mode == "forgets":
                return self._once(order)
            if self.mode == "keeps":
                with self._shared():
                    return self._once(order)
            charge = self._fire(order)
        return {"status": "charged", "order": order} if self.mode == "echoes" else charge

    def _once(self, order: str) -> dict[str, str]:
        if self.mode == "keeps" and order not in self._known:
            self._known.update(self._recorded())
        if order in self._known:
            return self._answer(order, self._known[order])
        made = self._fire(order)
        self._known[order] = made["charge_id"]
        return made

    def _race(self, order: str) -> dict[str, str]:
        """Look, dawdle until another call for the order is inside too, then act."""
        with self._inside:
            if order in self._known:
                return self._answer(order, self._known[order])
            self._overlapping[order] = self._overlapping.get(order, 0) + 1
            self._inside.notify_all()
            self._inside.wait_for(lambda: self._overlapping[order] > 1, timeout=RACE_WINDOW)
        made = self._fire(order)
        with self._inside:
            self._known[order] = made["charge_id"]
        return made

    def _answer(self, order: str, charge_id: str) -> dict[str, str]:
        return {"status": "charged", "order": order, "charge_id": charge_id}

    def _fire(self, order: str) -> dict[str, str]:
        charge_id = f"ch_{uuid.uuid4().hex[:12]}"
        line = json.dumps([order, charge_id])
        if self._effects is None:
            self._memory.append(line)
        else:
            with self._effects.open("a", encoding="utf-8") as file:
                file.write(line + "\n")
                file.flush()
                os.fsync(file.fileno())
        if self._sink is not None:
            self._post(order)
        return self._answer(order, charge_id)

    def _post(self, order: str | None) -> None:
        import urllib.request

        assert self._sink is not None
        headers = {"content-type": "application/json"}
        if self.mode == "keeps" and order is not None:
            headers["Idempotency-Key"] = f"charge-{order}"
        body = None if order is None else json.dumps({"order": order}).encode()
        where = self._sink.rstrip("/") + "/charges"
        request = urllib.request.Request(where, body, headers)
        with contextlib.suppress(OSError), urllib.request.urlopen(request, timeout=5):
            pass

    def charges(self) -> list[dict[str, str]]:
        """Return every charge on record; with a sink, its API is asked as well."""
        if self._sink is not None:
            self._post(None)
        return [{"order": order, "charge_id": ident} for order, ident in self._recorded_all()]

    def _recorded_all(self) -> list[tuple[str, str]]:
        lines = list(self._memory)
        if self._effects is not None and self._effects.exists():
            lines = self._effects.read_text(encoding="utf-8").splitlines()
        return [(str(order), str(ident)) for order, ident in map(json.loads, lines)]

    def _recorded(self) -> dict[str, str]:
        return dict(reversed(self._recorded_all()))

    @contextlib.contextmanager
    def _shared(self) -> Iterator[None]:
        """Hold the lock beside the effects file, so that other processes wait their turn."""
        if self._effects is None:
            yield
            return
        import fcntl

        with self._effects.with_suffix(".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield


class Specimen(RawServer):
    """The server over a till."""

    tools = TOOLS

    def __init__(self, till: Till, out: TextIO) -> None:
        super().__init__(out)
        self.name = f"specimen-{till.mode}"
        self._till = till

    def call(self, name: str, arguments: Mapping[str, Any]) -> Said:
        """Charge, or list the charges."""
        if name == "list_charges":
            return said(self._till.charges())
        order = arguments.get("order")
        if not isinstance(order, str):
            return said("order is required", error=True)
        return said(self._till.charge(order))


def main(mode: str) -> None:
    """Serve on standard input and output until the input ends."""
    path = os.environ.get(EFFECTS_ENV)
    till = Till(mode, Path(path) if path else None, os.environ.get(SINK_ENV) or None)
    Specimen(till, sys.stdout).serve(sys.stdin)


if __name__ == "__main__":
    if len(sys.argv) != 2 or sys.argv[1] not in MODES:
        sys.exit(f"usage: python -m fencekit.probe.specimen {'|'.join(MODES)}")
    main(sys.argv[1])
