"""`--expose-intent`: each fenced tool gains one optional argument that names the logical action.

Pure. The only thing by which the proxy ever alters a list of tools, and off by default.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from fencekit.wire.frames import Frame, encode, parse

ARGUMENT = "fencekit_intent"
_SAYS = (
    "Names the logical action. Leave it empty, or use the same value when retrying; a new value "
    "runs the action again."
)


def exposed(answer: Frame, fenced: Callable[[str], bool]) -> bytes:
    """Return a list of tools in which each fenced one has the argument."""
    result = answer.result
    tools = [_with_argument(t) if _is(t, fenced) else t for t in result["tools"]]
    return encode({**answer.message, "result": {**result, "tools": tools}})


def _is(tool: Any, fenced: Callable[[str], bool]) -> bool:
    return isinstance(tool, dict) and isinstance(tool.get("name"), str) and fenced(tool["name"])


def _with_argument(tool: dict[str, Any]) -> dict[str, Any]:
    schema = tool.get("inputSchema")
    schema = schema if isinstance(schema, dict) else {"type": "object"}
    properties = schema.get("properties")
    properties = properties if isinstance(properties, dict) else {}
    argument = {"type": "string", "description": _SAYS}
    return {
        **tool,
        "inputSchema": {**schema, "properties": {**properties, ARGUMENT: argument}},
    }


def taken(frame: Frame) -> tuple[Frame, str]:
    """Return the call without the argument, and its value ("" where it has none)."""
    arguments = frame.params.get("arguments")
    if not isinstance(arguments, dict) or ARGUMENT not in arguments:
        return frame, ""
    rest = {name: value for name, value in arguments.items() if name != ARGUMENT}
    params = {**frame.params, "arguments": rest}
    bare = parse(encode({**frame.message, "params": params}))[0]
    value = arguments[ARGUMENT]
    return bare, value if isinstance(value, str) else ""


def keyed(frame: Frame, value: str) -> Frame:
    """Return the call as it is told apart: with the named action as its key."""
    if not value:
        return frame
    message = {**frame.message, "params": {**frame.params, "idempotencyKey": value}}
    return replace(frame, message=message)
