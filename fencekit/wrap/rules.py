"""What an operator may say about a tool, and what the fence assumes where nothing is said.

Pure. Times are in seconds unless the name says otherwise. Where a field is None, the default for
all tools holds.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from fnmatch import fnmatchcase
from typing import Literal


class ToolKind(StrEnum):
    """How calls of a tool are treated."""

    READ = "read"
    SET = "set"
    APPEND = "append"
    PASS = "pass"


# From loose to tight: `pass` fences nothing, `append` everything.
TIGHTNESS = {ToolKind.PASS: 0, ToolKind.READ: 1, ToolKind.SET: 2, ToolKind.APPEND: 3}


@dataclass(frozen=True, slots=True)
class Reconcile:
    """A read-only tool that can tell whether a call happened.

    `args` maps its arguments to places in the arguments of the call (`$.order`) or to constants;
    `found` is the place in its answer that holds how often it was found.
    """

    tool: str
    args: Mapping[str, object]
    found: str


@dataclass(frozen=True, slots=True)
class ToolRule:
    """What the configuration says about one tool."""

    kind: ToolKind | None = None
    intent: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    domain: str | None = None
    replay_for: float = 86_400.0
    quiet_replay: float = 120.0
    lease: float = 60.0
    wait: float = 45.0
    call_deadline: float = 900.0
    definitive: tuple[str, ...] = ()
    undone_by: tuple[str, ...] = ()
    reconcile: Reconcile | None = None
    cancel: Literal["detach", "forward"] = "detach"
    near_duplicates: Literal["off", "warn"] = "off"


DEFAULT_KEYS = (
    "io.modelcontextprotocol/idempotency-key",
    "io.modelcontextprotocol/idempotencyKey",
    "fencekit/intent",
)
"""The `_meta` members of a call that are taken for its idempotency key."""


@dataclass(frozen=True, slots=True)
class Rules:
    """The whole configuration: the rule of each pattern, and what holds for the rest.

    `tools` maps globs to rules; the first exact name counts, else the first glob that matches.
    """

    tools: Mapping[str, ToolRule] = field(default_factory=dict)
    default: ToolRule = ToolRule()
    infer: bool = True
    meta_keys: tuple[str, ...] = DEFAULT_KEYS

    def of(self, tool: str) -> ToolRule:
        """Return the rule of a tool."""
        if tool in self.tools:
            return self.tools[tool]
        for pattern, rule in self.tools.items():
            if fnmatchcase(tool, pattern):
                return rule
        return self.default

    def undone_by(self, tool: str, listed: Iterable[str]) -> list[tuple[str, ToolRule]]:
        """Return (name, rule) of the tools whose finished calls a success of `tool` ends.

        A pattern stands for the `listed` tools that it matches, and for a tool of that very name.
        """
        if not any(tool in rule.undone_by for rule in self.tools.values()):
            return []
        rules = {name: self.of(name) for name in (*self.tools, *listed)}
        return [(name, rule) for name, rule in rules.items() if tool in rule.undone_by]
