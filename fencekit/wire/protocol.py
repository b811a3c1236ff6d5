"""The constants of MCP that frames need, and the codec of its HTTP header values.

Declared here because importing the SDK costs over a second of CPU; the tests compare every value
with the SDK's own. Source: MCP specification 2025-11-25 and 2026-07-28.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator, Mapping
from typing import Any, Literal

Era = Literal["legacy", "modern"]

HANDSHAKE_VERSIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
MODERN_VERSIONS = ("2026-07-28",)
LATEST_HANDSHAKE = HANDSHAKE_VERSIONS[-1]
LATEST_MODERN = MODERN_VERSIONS[-1]

META_PROTOCOL_VERSION = "io.modelcontextprotocol/protocolVersion"
META_CLIENT_CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"
META_CLIENT_INFO = "io.modelcontextprotocol/clientInfo"
META_SERVER_INFO = "io.modelcontextprotocol/serverInfo"
META_LOG_LEVEL = "io.modelcontextprotocol/logLevel"
META_SUBSCRIPTION_ID = "io.modelcontextprotocol/subscriptionId"
TASKS_EXTENSION = "io.modelcontextprotocol/tasks"
# Our own key: how a fence marks the answers it did not get from the server just now.
META_OUTCOME = "fencekit/outcome"

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603
CONNECTION_CLOSED = -32000
REQUEST_TIMEOUT = -32001
HEADER_MISMATCH = -32020
MISSING_REQUIRED_CLIENT_CAPABILITY = -32021
UNSUPPORTED_PROTOCOL_VERSION = -32022
URL_ELICITATION_REQUIRED = -32042

HEADER_PROTOCOL_VERSION = "mcp-protocol-version"
HEADER_METHOD = "mcp-method"
HEADER_NAME = "mcp-name"
HEADER_SESSION = "mcp-session-id"
HEADER_LAST_EVENT_ID = "last-event-id"
HEADER_PARAM_PREFIX = "Mcp-Param-"
SCHEMA_HEADER_KEY = "x-mcp-header"

# Method -> the member of `params` that the Mcp-Name header repeats.
NAME_BEARING = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
# The same for the tasks extension (SEP-2663), which the SDK does not have.
TASK_BEARING = dict.fromkeys(("tasks/get", "tasks/update", "tasks/cancel"), "taskId")


def is_stateless(version: object) -> bool:
    """Whether a protocol version, known or not, is one of the stateless era.

    Versions are dates: what is newer than the last one with a handshake has none.
    """
    return isinstance(version, str) and version > LATEST_HANDSHAKE


_SENTINEL = re.compile(r"=\?base64\?.*\?=")
_PRINTABLE = re.compile(r"[\x20-\x7e]*")


def encode_header_value(value: str) -> str:
    """Return `value` as an HTTP field value; what would not survive the trip is base64-wrapped."""
    plain = _PRINTABLE.fullmatch(value) and value == value.strip()
    if plain and not _SENTINEL.fullmatch(value):
        return value
    return f"=?base64?{base64.b64encode(value.encode('utf-8')).decode('ascii')}?="


def _annotated(schema: object, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield (path, header token) for every property reachable by `properties` alone."""
    properties = schema.get("properties") if isinstance(schema, Mapping) else None
    if not isinstance(properties, Mapping):
        return
    for name, sub in properties.items():
        if not isinstance(sub, Mapping):
            continue
        here = (*path, str(name))
        if isinstance(token := sub.get(SCHEMA_HEADER_KEY), str):
            yield here, token
        yield from _annotated(sub, here)


def param_headers(schema: object, arguments: object) -> dict[str, str]:
    """Return the Mcp-Param-* headers that a modern `tools/call` repeats from its arguments.

    Only strings, integers, floats and booleans are repeated; an absent or null value is left out.
    """
    headers: dict[str, str] = {}
    for path, token in _annotated(schema):
        value: Any = arguments
        for key in path:
            value = value.get(key) if isinstance(value, Mapping) else None
        if isinstance(value, bool):
            value = "true" if value else "false"
        if isinstance(value, str | int | float):
            headers[HEADER_PARAM_PREFIX + token] = encode_header_value(str(value))
    return headers
