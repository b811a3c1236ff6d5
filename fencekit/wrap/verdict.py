"""What an answer to a fenced call proves: done, not finished yet, rejected, or nothing.

Pure. An error frees a call only where the rejection itself is proven, never by its text or by most
codes: a tool can fire and then say "invalid params". Everything else may follow the effect.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from fencekit.wire import protocol
from fencekit.wire.frames import Frame, Kind
from fencekit.wrap.handles import handle_of
from fencekit.wrap.rules import ToolRule

LOOKED_AT = 65_536  # characters of the server's own words that patterns are looked for in
QUOTED = 300  # characters of the server's own words that are kept and quoted


class Proof(Enum):
    """What an answer proves."""

    DONE = "done"
    INTERIM = "interim"
    ACCEPTED = "accepted"
    REJECTED = "rejected"
    NOTHING = "nothing"


@dataclass(frozen=True, slots=True)
class Verdict:
    """What an answer proves, and the words for the record."""

    proof: Proof
    reason: str = ""


# The peer could not even read the request, has no such method, or speaks another version.
_REFUSED_BY_PROTOCOL = {
    protocol.PARSE_ERROR,
    protocol.INVALID_REQUEST,
    protocol.METHOD_NOT_FOUND,
    protocol.HEADER_MISMATCH,
    protocol.UNSUPPORTED_PROTOCOL_VERSION,
}

# How the SDKs say that arguments do not fit, where they answer with a result instead of -32602.
_VALIDATION = re.compile(
    r"input validation error|invalid arguments for tool|\bvalidation errors? for\b|"
    r"MCP error -32602",
    re.IGNORECASE,
)


def judge(
    answer: Frame,
    rule: ToolRule,
    arguments: Any,
    declared: Mapping[str, Any] | None,
    *,
    list_is_complete: bool,
) -> Verdict:
    """Judge the server's answer to a call.

    `declared` is the tool's entry in the server's list, None where it has none;
    `list_is_complete` says that the whole current list is known.
    """
    result = answer.result
    if answer.kind is Kind.RESPONSE and isinstance(result, Mapping):
        if result.get("resultType") == "input_required":
            return Verdict(Proof.INTERIM, "it asked for input")
        if handle_of(result) is not None:
            return Verdict(Proof.ACCEPTED, "accepted as a task")
        if result.get("resultType") == "task":
            return Verdict(Proof.NOTHING, "accepted as a task that has no id to ask by")
        if result.get("isError") is not True:
            return Verdict(Proof.DONE)
    reason = error_text(answer)
    code = answer.error.get("code")
    if declared is None and list_is_complete:
        return Verdict(Proof.REJECTED, f"the server has no such tool: {reason}")
    if code in _REFUSED_BY_PROTOCOL:
        return Verdict(Proof.REJECTED, reason)
    if (definitive := by_configuration(answer, rule)) is not None:
        return definitive
    said_invalid = code == protocol.INVALID_PARAMS or (
        code is None and _VALIDATION.search(_words(answer)) is not None
    )
    if said_invalid and declared is not None and breaks_schema(arguments, declared):
        return Verdict(Proof.REJECTED, f"the arguments break the tool's schema: {reason}")
    return Verdict(Proof.NOTHING, reason)


def by_configuration(answer: Frame, rule: ToolRule) -> Verdict | None:
    """Return the verdict that the rule's `definitive` list gives, or None where it says nothing."""
    said, code = _words(answer), answer.error.get("code")
    if any(_matches(pattern, code, said) for pattern in rule.definitive):
        return Verdict(Proof.REJECTED, f"definitive by configuration: {error_text(answer)}")
    return None


def _matches(pattern: str, code: object, said: str) -> bool:
    """A code is looked for where codes stand; a text that quotes one proves nothing."""
    return pattern == str(code) if _is_code(pattern) else pattern in said


def _is_code(pattern: str) -> bool:
    return re.fullmatch(r"-?\d+", pattern) is not None


def breaks_schema(arguments: Any, declared: Mapping[str, Any]) -> bool:
    """Whether the arguments certainly fail the tool's published `inputSchema`.

    False in every doubt: no schema, a broken one, one that refers to other documents.
    """
    schema = declared.get("inputSchema")
    if not isinstance(schema, dict):
        return False
    from jsonschema.validators import validator_for
    from referencing import Registry

    try:
        validator = validator_for(schema)
        validator.check_schema(schema)
        # An empty registry: a reference to another document is an error, never a download.
        checker = validator(schema, registry=Registry())
        return not checker.is_valid({} if arguments is None else arguments)
    except Exception:  # whatever a hostile schema provokes, it proves nothing about the call
        return False


def error_text(answer: Frame) -> str:
    """Return the server's own words about a failure, on one line and bounded."""
    return clean(_words(answer), QUOTED) or "an error without words"


def _words(answer: Frame) -> str:
    """Return the server's own words about a failure, as much of them as is looked at."""
    if answer.kind is Kind.ERROR:
        message = answer.error.get("message")
        return clean(message, LOOKED_AT) if isinstance(message, str) else "error"
    result = answer.result
    content = result.get("content") if isinstance(result, Mapping) else None
    texts = [
        block["text"]
        for block in (content if isinstance(content, list) else [])
        if isinstance(block, Mapping) and isinstance(block.get("text"), str)
    ]
    return clean(" ".join(texts), LOOKED_AT)


def clean(text: str, limit: int) -> str:
    """Return text without control characters, on one line, at most `limit` characters long."""
    flat = "".join(ch if ch.isprintable() else " " for ch in text[: limit * 4])
    flat = " ".join(flat.split())
    return flat if len(flat) <= limit else flat[: limit - 1] + "…"
