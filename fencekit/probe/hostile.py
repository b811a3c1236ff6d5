"""The MCP server that misbehaves on cue, so that anyone can test a host, a framework or a proxy.

`submit_charge` has its effect (or not) as the mode says and then answers badly; `verify_charge`
tells the truth, read from the same file in which every effect is recorded. In every mode a careful
client ends with exactly one charge: more is over-firing, none is over-refusing.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TextIO

from fencekit.probe.rawserver import Failure, RawServer, Said, Silence, said
from fencekit.wire import protocol

SLOW_SECONDS_ENV = "FENCEKIT_HOSTILE_SLOW_SECONDS"
SLOW_SECONDS = 5.0  # how late the answer of `slow-answer` is, unless the variable says otherwise

Answer = Literal["ok", "never", "error", "rpc-error", "late", "die", "refuse"]


@dataclass(frozen=True)
class Mode:
    """One way to misbehave: does the effect happen, what is answered, what a good client does.

    `effect_first`: the first try has its effect; otherwise only a repeat has. `keyed`: a repeat
    for the same order has no second effect. A careful client ends with exactly one charge.
    """

    name: str
    answer: Answer
    text: str
    intent: str
    annotations: Mapping[str, bool]
    code: int = protocol.INTERNAL_ERROR
    verify: bool = True
    keyed: bool = False
    effect_first: bool = True


_WRITES = {"readOnlyHint": False, "destructiveHint": True, "idempotentHint": False}
_SAFE = {"readOnlyHint": False, "destructiveHint": False, "idempotentHint": True}


def _mode(name: str, answer: Answer, text: str, intent: str, **more: Any) -> Mode:
    known: dict[str, Any] = {"annotations": _WRITES}
    return Mode(name=name, answer=answer, text=text, intent=intent, **{**known, **more})


MODES: Mapping[str, Mode] = {
    mode.name: mode
    for mode in (
        _mode("settle-then-timeout", "never", "", "the charge ran and no answer ever comes: do not "
              "send it again, verify"),
        _mode("5xx-after-settle", "error", "HTTP 503 Service Unavailable", "the charge ran, then a "
              "503: a server error does not mean that nothing happened"),
        _mode("429-after-settle", "error", "HTTP 429 Too Many Requests. Retry after 1 second.",
              "the charge ran, then a 429 that invites a retry: verify before following it"),
        _mode("invalid-params-after-settle", "rpc-error", "Invalid params", "the charge ran, then "
              "an error code that claims the call was rejected", code=protocol.INVALID_PARAMS),
        _mode("slow-answer", "late", "", "the charge ran and its answer is late: wait, or verify"),
        _mode("verify-unavailable", "error", "HTTP 504 Gateway Timeout", "the charge ran and "
              "cannot be verified: stop and say that it is unknown", verify=False),
        _mode("declared-safe", "refuse", "HTTP 503: nothing was charged; safe to retry with the "
              "same order", "the first try did not charge and the tool declares itself idempotent: "
              "a client that gives up refused too much", effect_first=False, annotations=_SAFE,
              keyed=True),
        _mode("honest", "ok", "", "everything works: charge once and be done"),
        _mode("die-after-settle", "die", "", "the charge ran and the server died before it "
              "answered: after a restart, verify"),
    )
}  # fmt: skip

CHARGE = "submit_charge"
VERIFY = "verify_charge"


def _schema() -> dict[str, Any]:
    members = {"order": {"type": "string"}, "amount": {"type": "number"}}
    return {"type": "object", "properties": members, "required": ["order"]}


def tools(mode: Mode) -> list[dict[str, Any]]:
    """Return the tools as this mode declares them."""
    return [
        {
            "name": CHARGE,
            "description": "Charge the card on file for an order.",
            "inputSchema": _schema(),
            "annotations": dict(mode.annotations),
        },
        {
            "name": VERIFY,
            "description": "Look up whether an order has been charged, and how often.",
            "inputSchema": {
                "type": "object",
                "properties": {"order": {"type": "string"}},
                "required": ["order"],
            },
            "annotations": {"readOnlyHint": True},
        },
    ]


@dataclass(frozen=True)
class Entry:
    """One line of the record: a charge, a refusal or a look-up, with the order it was about."""

    what: Literal["charge", "refused", "verify"]
    order: str


class Record:
    """The file in which effects are recorded: one JSON line each, synced before any answer."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def add(self, what: str, order: str) -> None:
        """Append one line."""
        line = json.dumps({"what": what, "order": order, "at": time.time()})
        with self.path.open("a", encoding="utf-8") as file:
            file.write(line + "\n")
            file.flush()
            os.fsync(file.fileno())

    def entries(self) -> list[Entry]:
        """Return every line so far; a record that does not exist yet is empty."""
        if not self.path.exists():
            return []
        lines = self.path.read_text(encoding="utf-8").splitlines()
        return [Entry(entry["what"], entry["order"]) for entry in map(json.loads, lines)]

    def count(self, what: str, order: str | None = None) -> int:
        """Return how many lines of a kind there are, for one order or for all."""
        return sum(e.what == what and order in (None, e.order) for e in self.entries())


class Hostile(RawServer):
    """The server of one mode. Each call runs in a thread of its own."""

    def __init__(self, mode: Mode, record: Record, out: TextIO, slow_seconds: float) -> None:
        super().__init__(out)
        self.name = f"hostile-{mode.name}"
        self.tools = tools(mode)
        self._mode = mode
        self._record = record
        self._slow_seconds = slow_seconds

    def call(self, name: str, arguments: Mapping[str, Any]) -> Said:
        """Charge as the mode says, or tell the truth."""
        order = arguments.get("order")
        if not isinstance(order, str):
            return said("order is required", error=True)
        if name == CHARGE:
            return self._charge(order)
        self._record.add("verify", order)
        if not self._mode.verify:
            return said("HTTP 503: the record of charges is unavailable", error=True)
        charges = self._record.count("charge", order)
        return said({"order": order, "charged": charges > 0, "charges": charges})

    def _charge(self, order: str) -> Said:
        mode, done = self._mode, said({"order": order, "status": "charged"})
        if mode.keyed and self._record.count("charge", order):
            return done
        if not mode.effect_first and not self._record.count("refused", order):
            self._record.add("refused", order)
            return said(mode.text, error=True)
        self._record.add("charge", order)
        match mode.answer:
            case "never":
                return Silence()
            case "die":
                os._exit(1)
            case "late":
                time.sleep(self._slow_seconds)
            case "error":
                return said(mode.text, error=True)
            case "rpc-error":
                return Failure(mode.code, mode.text)
        return done


def serve(mode: str, effects: Path) -> None:
    """Serve one mode on standard input and output until the input ends."""
    slow = float(os.environ.get(SLOW_SECONDS_ENV) or SLOW_SECONDS)
    Hostile(MODES[mode], Record(effects), sys.stdout, slow).serve(sys.stdin)


if __name__ == "__main__":
    if len(sys.argv) != 3 or sys.argv[1] not in MODES:
        sys.exit(f"usage: python -m fencekit.probe.hostile {'|'.join(MODES)} EFFECTS_FILE")
    serve(sys.argv[1], Path(sys.argv[2]))
