"""Reading a tool's arguments: what clients and models garble on the way is put right or refused.

Some hosts send objects and arrays as JSON inside a string, and null for what was left out. Both are
read as they were meant, except in `result`, which is kept to the letter.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import best_match

from fencekit.core.errors import InvalidRequest
from fencekit.serve.schemas import VERBATIM, Schema

_CONTAINERS = {"object": dict, "array": list}

# How much of a complaint is passed on; it may quote what the caller sent.
_MAX_COMPLAINT = 200


def read_arguments(schema: Schema, arguments: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the arguments as the schema wants them. Raises `InvalidRequest` naming the place."""
    properties = schema["properties"]
    given = {
        name: value if name == VERBATIM else _unquoted(properties.get(name, {}), value)
        for name, value in (arguments or {}).items()
        if value is not None or name == VERBATIM
    }
    judged = {**given, VERBATIM: {}} if VERBATIM in given else given
    complaint = best_match(Draft202012Validator(schema).iter_errors(judged))
    if complaint is not None:
        where = complaint.json_path.removeprefix("$").removeprefix(".")
        what = complaint.message[:_MAX_COMPLAINT]
        raise InvalidRequest(f"{where}: {what}" if where else what)
    return given


def whole(number: float) -> int:
    """Return an integer that JSON may have carried as 3.0; the schema has seen that it is one."""
    return int(number)


def _unquoted(schema: Schema, value: Any) -> Any:
    wanted = _CONTAINERS.get(schema.get("type", ""))
    if wanted is None or not isinstance(value, str):
        return value
    try:
        read = json.loads(value)
    except (ValueError, RecursionError):
        return value
    return read if isinstance(read, wanted) else value
