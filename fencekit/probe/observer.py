"""The second counter: something that reads how many effects there are, before and after.

Either a read tool of the same server with a path to a number (or to a list, whose length counts),
or a shell command whose output is a number. It is sampled over a quiet interval first: what moves
on its own cannot count our calls. Afterwards it is read until it stands still, within a bound.
"""

from __future__ import annotations

import json
import re
import subprocess
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from fencekit.probe.answers import normal
from fencekit.probe.model import Observation
from fencekit.wire.client import Client
from fencekit.wire.errors import WireError
from fencekit.wire.frames import Kind

QUIET = 0.4  # seconds over which it is sampled before anything is called
POLL = 0.1  # seconds between two reads while it settles
STEADY = 3  # equal reads in a row that count as settled
COMMAND_LIMIT = 30.0  # seconds that one run of a count command may take


class CannotCount(Exception):
    """The observer gave no number; the text says why."""


class Counter(Protocol):
    """One way to read the number of effects."""

    @property
    def name(self) -> str:
        """How reports name it."""

    def read(self, client: Client | None) -> int:
        """Return the number now. `client` is a connection it may use. Raises CannotCount."""


@dataclass(frozen=True)
class ToolCounter:
    """Counts with a read tool of the same server: `path` leads to a number or to a list."""

    tool: str
    path: str = "$"
    arguments: Mapping[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """How reports name it."""
        return f"tool {self.tool} at {self.path}"

    def read(self, client: Client | None) -> int:
        """Call the tool and return the number at the path."""
        assert client is not None
        call = {"name": self.tool, "arguments": dict(self.arguments)}
        try:
            answer = client.request("tools/call", call)
        except WireError as error:
            raise CannotCount(f"{self.tool} did not answer: {error}") from error
        if answer.kind is Kind.ERROR or answer.result.get("isError"):
            raise CannotCount(f"{self.tool} answered with an error")
        return number_at(normal(answer.result), self.path)


@dataclass(frozen=True)
class CommandCounter:
    """Counts with a shell command that prints a number."""

    command: str
    cwd: str | None = None

    @property
    def name(self) -> str:
        """How reports name it."""
        return f"command {self.command}"

    def read(self, client: Client | None) -> int:
        """Run the command and return the number it printed last."""
        try:
            done = subprocess.run(
                self.command,
                shell=True,
                cwd=self.cwd,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=COMMAND_LIMIT,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            raise CannotCount(f"the count command took over {COMMAND_LIMIT:g} s") from error
        found = re.findall(r"-?\d+", done.stdout[-1000:])
        if done.returncode != 0 or not found:
            said = (done.stderr or done.stdout).strip().splitlines()
            why = said[-1][:200] if said else "no output"
            raise CannotCount(f"the count command gave no number (exit {done.returncode}): {why}")
        return int(found[-1])


def number_at(value: object, path: str) -> int:
    """Return the number at a path: `$`, `.name`, `[3]`, and `.length` of a list, text or object.

    A path that ends at a list counts its items. Raises CannotCount where there is no number.
    """
    steps = re.findall(r"\.([^.\[\]]+)|\[(\d+)\]", path)
    rebuilt = "$" + "".join(f".{name}" if name else f"[{index}]" for name, index in steps)
    if rebuilt != path:
        raise CannotCount(f"{path} is not a path such as $.items.length or $[0].total")
    here: Any = value
    for at, (name, index) in enumerate(steps):
        if name == "length" and at == len(steps) - 1 and not _has(here, name):
            if not isinstance(here, list | dict | str):
                raise CannotCount(f"{path}: a {type(here).__name__} has no length")
            return len(here)
        try:
            here = here[name] if name else here[int(index)]
        except (KeyError, IndexError, TypeError) as error:
            shown = json.dumps(value)[:120]
            raise CannotCount(f"{path} is not in the answer {shown}") from error
    if isinstance(here, list):
        return len(here)
    if isinstance(here, str) and re.fullmatch(r"\s*-?\d+\s*", here):
        return int(here)
    if isinstance(here, bool) or not isinstance(here, int):
        raise CannotCount(f"{path} leads to a {type(here).__name__}, not to a number or a list")
    return here


def _has(value: object, name: str) -> bool:
    return isinstance(value, dict) and name in value


@dataclass
class Observer:
    """Reads a counter before and after a way.

    `connect` opens a connection for each read where the calls go to processes of their own: what
    such a fresh process sees is shared state, and no single process's memory. `settle` (seconds)
    bounds how long it may go on moving.
    """

    counter: Counter
    settle: float = 5.0
    sleep: Callable[[float], None] = time.sleep
    drift: int = 0

    def sample_quiet(self, client: Client | None) -> None:
        """Read twice, a quiet interval apart, while nothing is called. Raises CannotCount."""
        before = self.counter.read(client)
        self.sleep(QUIET)
        self.drift = self.counter.read(client) - before

    def before(self, client: Client | None) -> Observation:
        """Return an observation that holds the count before anything is called."""
        try:
            count = self.counter.read(client)
        except CannotCount as error:
            return Observation(self.counter.name, fault=str(error))
        return Observation(self.counter.name, before=count, drift=self.drift)

    def after(self, seen: Observation, client: Client | None) -> Observation:
        """Return the observation with the count after, once it stands still."""
        if seen.fault:
            return seen
        reads: list[int] = []
        try:
            for _ in range(max(STEADY, int(self.settle / POLL))):
                reads.append(self.counter.read(client))
                if len(reads) >= STEADY and len(set(reads[-STEADY:])) == 1:
                    break
                self.sleep(POLL)
        except CannotCount as error:
            return Observation(seen.source, seen.before, fault=str(error), drift=seen.drift)
        settled = len(set(reads[-STEADY:])) == 1
        return Observation(seen.source, seen.before, reads[-1], seen.drift, settled)
