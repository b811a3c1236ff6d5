"""The recorder: every command asked and every answer heard, on disk before the client goes on.

Each client appends to a file of its own, one write a line; a killed client leaves at most one torn
line. Commands and answers are pickled whole, so that the checker sees what the client saw.
"""

from __future__ import annotations

import base64
import os
import pickle
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fencekit.core.state import DomainHead, IntentKey, IntentRecord
from tests.chaos.linear import FOREVER, Operation

# Read before any client's clock is stepped.
_wall_ns, _clock_ns = time.time_ns, time.clock_gettime_ns


def lease_ms(shared: bool) -> int:
    """Return the true lease time: the server's clock (this machine's), or the machine's uptime."""
    return (_wall_ns() if shared else _clock_ns(time.CLOCK_BOOTTIME)) // 1_000_000


@dataclass(slots=True)
class Recorder:
    """Writes what one client asks and hears."""

    folder: Path
    name: str
    shared: bool
    _file: int = field(init=False)
    _effects: int = field(init=False)

    def __post_init__(self) -> None:
        flags = os.O_CREAT | os.O_APPEND | os.O_WRONLY
        self._file = os.open(self.folder / f"{self.name}.history", flags)
        self._effects = os.open(self.folder / "effects", flags)

    def say(self, *what: Any) -> None:
        """Write one line."""
        os.write(self._file, base64.b64encode(pickle.dumps(what)) + b"\n")

    def ask(self, number: str, command: Any) -> None:
        """Write down that a command is about to be asked."""
        self.say("ask", number, command, time.monotonic_ns(), lease_ms(self.shared))

    def hear(self, number: str, answer: Any) -> None:
        """Write down an answer, or None where the ledger could not give one."""
        self.say("hear", number, answer, time.monotonic_ns(), lease_ms(self.shared))

    def effect(self, ticket: Any) -> None:
        """Do the effect: a line that is counted outside the fence."""
        line = " ".join((ticket.id, ticket.request.principal or "-", ticket.intent))
        os.write(self._effects, line.encode() + b"\n")


@dataclass(slots=True)
class Held:
    """What the ledger holds in the end."""

    records: dict[IntentKey, IntentRecord]
    heads: dict[str, DomainHead]
    audit: list[dict[str, Any]]
    problems: list[str]


@dataclass(slots=True)
class Told:
    """What all clients wrote."""

    operations: list[Operation] = field(default_factory=list)
    # As what holder each client's process is known to its ledger.
    holders: dict[str, str] = field(default_factory=dict)
    stats: dict[str, Any] = field(default_factory=dict)
    final: Held | None = None


def told(folder: Path) -> Told:
    """Read the histories of a folder."""
    found = Told()
    for path in sorted(folder.glob("*.history")):
        asked: dict[str, tuple[Any, int, int]] = {}
        for kind, *rest in _lines(path):
            if kind == "ask":
                asked[rest[0]] = (rest[1], rest[2], rest[3])
            elif kind == "hear" and rest[1] is not None:
                command, start, asked_ms = asked.pop(rest[0])
                op = Operation(path.stem, command, rest[1], start, rest[2], asked_ms, rest[3])
                found.operations.append(op)
            elif kind == "holder":
                found.holders[path.stem] = rest[0]
            elif kind == "stats":
                found.stats[path.stem] = rest[0]
            elif kind == "final":
                found.final = rest[0]
        for command, start, asked_ms in asked.values():
            op = Operation(path.stem, command, None, start, FOREVER, asked_ms, FOREVER)
            found.operations.append(op)
    return found


def _lines(path: Path) -> Iterator[tuple[Any, ...]]:
    for line in path.read_bytes().split(b"\n")[:-1]:
        yield pickle.loads(base64.b64decode(line))


def effects(folder: Path) -> list[tuple[str, str, str]]:
    """Return (ticket, principal, intent), once for each time an effect ran."""
    path = folder / "effects"
    lines = path.read_text().splitlines() if path.exists() else []
    return [(t, "" if p == "-" else p, i) for t, p, i in map(str.split, lines)]
