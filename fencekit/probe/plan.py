"""What is going to be fired, checked before anything is: tool, arguments, ways. Pure."""

from __future__ import annotations

import difflib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from fencekit.probe.answers import Lens
from fencekit.probe.model import Way
from fencekit.probe.observer import Counter
from fencekit.probe.sink import Fault, Reply
from fencekit.wire.client import Target

HINTS = ("readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint")
MAX_CALLS = 4096


class CannotProbe(Exception):
    """Nothing was proven because nothing could be asked; the text says what to do."""


@dataclass(frozen=True)
class SinkPlan:
    """How to wire the sink: the variable that gets its address, and how it answers."""

    env: str
    path: str = ""
    replies: tuple[Reply, ...] = ()
    fault: Fault = ""
    only: str = ""
    unverified: bool = False


@dataclass(frozen=True)
class Plan:
    """Everything a run does. Times in seconds."""

    target: Target
    tool: str
    arguments: Mapping[str, Any]
    ways: tuple[Way, ...] = (Way.TWINS,)
    calls: int = 12
    connections: int = 1
    timeout: float = 60.0
    control: tuple[str, Mapping[str, Any]] | None = None
    counter: Counter | None = None
    settle: float = 5.0
    sink: SinkPlan | None = None
    cut_after: float | None = None
    ignore: tuple[str, ...] = ()
    ids: tuple[str, ...] = ()
    fenced: bool = False

    @property
    def lens(self) -> Lens:
        """How this run's answers are compared."""
        return Lens(self.ignore, self.ids, frozenset(echoes(self.arguments)))

    def fires(self, way: Way) -> int:
        """Return how many calls of the tool a way makes."""
        return self.calls if way is Way.TWINS else 2


@dataclass(frozen=True)
class Tool:
    """The tool under test as the server describes it."""

    name: str
    description: str = ""
    schema: Mapping[str, Any] = field(default_factory=dict)
    hints: Mapping[str, bool] = field(default_factory=dict)

    @property
    def reads_only(self) -> bool:
        """Whether it says that it only reads."""
        return self.hints.get("readOnlyHint") is True

    @property
    def warning(self) -> str:
        """A plain warning where the hints say that the tool destroys, or nothing."""
        if self.reads_only or self.hints.get("destructiveHint") is not True:
            return ""
        return "the tool says that it may destroy or overwrite (destructiveHint: true)"


def echoes(arguments: object) -> list[str]:
    """Return every scalar in the arguments as text: in an answer it is an echo, not an id."""
    if isinstance(arguments, Mapping):
        return [text for value in arguments.values() for text in echoes(value)]
    if isinstance(arguments, list | tuple):
        return [text for value in arguments for text in echoes(value)]
    return [str(arguments)]


def find_tool(tools: Sequence[Mapping[str, Any]], name: str) -> Tool:
    """Return the named tool. Raises CannotProbe with the closest names: nothing is fired."""
    for tool in tools:
        if tool.get("name") == name:
            hints = tool.get("annotations")
            hints = hints if isinstance(hints, dict) else {}
            schema = tool.get("inputSchema")
            return Tool(
                name=name,
                description=str(tool.get("description") or ""),
                schema=schema if isinstance(schema, dict) else {},
                hints={h: hints[h] for h in HINTS if isinstance(hints.get(h), bool)},
            )
    names = [str(tool.get("name")) for tool in tools]
    near = difflib.get_close_matches(name, names, n=3, cutoff=0.4)
    if not names:
        raise CannotProbe(f"the server offers no tools, so not {name!r} either; nothing was fired")
    shown = ", ".join(near or sorted(names)[:8])
    lead = "did you mean" if near else "it offers"
    raise CannotProbe(f"the server has no tool {name!r}; {lead}: {shown}? Nothing was fired.")


def check_arguments(tool: Tool, arguments: Mapping[str, Any]) -> None:
    """Check the arguments against the tool's input schema. Raises CannotProbe naming the place.

    A schema that is itself invalid, or that points outside itself, checks nothing.
    """
    import jsonschema
    import referencing.exceptions
    from jsonschema.validators import validator_for

    if not tool.schema:
        return
    kind = validator_for(tool.schema, default=jsonschema.Draft202012Validator)
    try:
        kind.check_schema(dict(tool.schema))
        error = next(iter(kind(tool.schema).iter_errors(dict(arguments))), None)
    except (jsonschema.SchemaError, referencing.exceptions.Unresolvable, RecursionError):
        return
    if error is not None:
        where = "$" + "".join(f"[{p}]" if isinstance(p, int) else f".{p}" for p in error.path)
        raise CannotProbe(
            f"the arguments do not fit {tool.name}: at {where}, {error.message[:200]}. "
            "Nothing was fired; correct --args."
        )


def read_arguments(text: str) -> dict[str, Any]:
    """Parse `--args`. Raises CannotProbe where it is not a JSON object."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise CannotProbe(f"--args is not JSON: {error}") from error
    if not isinstance(value, dict):
        raise CannotProbe("--args is not a JSON object, as a tool's arguments must be")
    return value
