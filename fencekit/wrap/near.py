"""Calls that differ from a recent one only in what looks like an id, a time or free text.

Pure. A model that plans anew writes the same payment with a new reference. Such a call is another
action for the fence and runs; where the configuration says so, it is reported.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any

from fencekit.core.canonical import canonical_bytes
from fencekit.core.errors import InvalidRequest

KEPT = 500  # shapes of calls that are remembered
WITHIN = 3600.0  # seconds
_NAME = re.compile(
    r"(^|_)(id|uuid|guid|key|nonce|ref|reference|token|note|notes|memo|comment|description|message|"
    r"text|body|subject|title|reason|time|timestamp|date|at|created)(_|$)"
)
_VALUE = re.compile(
    r"[0-9a-fA-F]{8}-?([0-9a-fA-F]{4}-?){3}[0-9a-fA-F]{12}|\d{4}-\d\d-\d\d.*|\d{9,}"
    r"|(?=[^\s]*\d)(?=[^\s]*[A-Za-z])[A-Za-z0-9_-]{10,}"
)
FREE_TEXT = 60  # characters from which on a text is read as free


class Near:
    """The shapes of recent calls."""

    def __init__(self) -> None:
        self._seen: OrderedDict[bytes, tuple[str, float]] = OrderedDict()

    def like(self, tool: str, arguments: Mapping[str, Any], intent: str, now: float) -> str | None:
        """Return the intent of a recent call of another identity but the same shape, or None.

        Remembers this call. `now` is in seconds.
        """
        try:
            shape = canonical_bytes([tool, _shape("", dict(arguments))])
        except InvalidRequest:
            return None
        before = self._seen.pop(shape, None)
        self._seen[shape] = (intent, now)
        while len(self._seen) > KEPT:
            self._seen.popitem(last=False)
        if before is None or before[0] == intent or now - before[1] > WITHIN:
            return None
        return before[0]


def _shape(name: str, value: Any) -> Any:
    """Return a value with everything volatile replaced by its type."""
    if isinstance(value, Mapping):
        return {key: _shape(key, inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_shape(name, inner) for inner in value]
    if isinstance(value, str):
        snake = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()
        if _NAME.search(snake) or len(value) > FREE_TEXT or _VALUE.fullmatch(value):
            return ["text"]
    return value
