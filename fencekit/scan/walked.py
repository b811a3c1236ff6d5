"""What a walk from a handler finds: writes with their chains, retries, stores, what was cut."""

from __future__ import annotations

from dataclasses import dataclass, field

from fencekit.scan import keys
from fencekit.scan.effect import Effect
from fencekit.scan.facts import Call, Function
from fencekit.scan.values import Env


@dataclass(slots=True, frozen=True)
class Hop:
    """One step of a chain: the function entered, and whether by import or by name only."""

    symbol: str
    file: str
    line: int
    certain: bool


@dataclass(slots=True, frozen=True)
class Retry:
    """A place that sends again, and what marks it.

    `wraps` tells whether it repeats the write, None where the source does not say; `blind` that
    it does so without a key that stays the same.
    """

    file: str
    line: int
    by: str
    wraps: bool | None = True
    blind: bool = True


@dataclass(slots=True, frozen=True)
class Control:
    """A parameter for a key in a function that a tool's path calls, and whether it is given one.

    `place` is the parameter's file, line and name, `entered` the function's file and line.
    """

    function: str
    name: str
    place: tuple[str, int, str]
    entered: tuple[str, int]
    call: tuple[str, int]
    given: bool


@dataclass(slots=True)
class Hit:
    """A write that the walk reached."""

    file: str
    line: int
    effect: Effect
    chain: tuple[Hop, ...]
    retries: tuple[Retry, ...]
    keys: list[keys.KeyFact]
    inputs: set[str]
    function: Function
    call: Call
    env: Env
    order: int = 0


@dataclass(slots=True)
class Walked:
    """Everything one walk found."""

    hits: list[Hit] = field(default_factory=list)
    weak: list[Hit] = field(default_factory=list)
    stores: list[tuple[str, int, str, int]] = field(default_factory=list)  # file, line, name, order
    lookups: list[tuple[str, int, str, int]] = field(default_factory=list)  # in stores of anything
    controls: list[Control] = field(default_factory=list)
    unknowns: list[tuple[str, str, int]] = field(default_factory=list)
    cut: list[tuple[str, int]] = field(default_factory=list)
    raises_after: list[int] = field(default_factory=list)
    functions: set[int] = field(default_factory=set)
    releases: list[tuple[str, int, str]] = field(default_factory=list)
    stored: list[tuple[str, int, str, int]] = field(default_factory=list)
