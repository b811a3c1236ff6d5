"""Task handles: how a server says "accepted, the outcome comes later", and what it says of it then.

Pure. MCP 2025-11-25 wraps the task in `result.task` where the request asked for one; the extension
`io.modelcontextprotocol/tasks` of 2026-07-28 (SEP-2663) sends its fields flat, with `resultType`
`task`, to clients that declare it. There the final result stands in the answer to `tasks/get`; in
the older form it is the answer to `tasks/result`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from fencekit.wire import protocol
from fencekit.wire.frames import (
    Frame,
    Kind,
    encode,
    error_bytes,
    member,
    members,
    parse,
    result_bytes,
)

UNLIMITED_MS = 30 * 86_400_000
"""How long a task is believed whose server sets no limit or a longer one."""

# What the older form calls otherwise.
_OLDER = {"ttlMs": "ttl", "pollIntervalMs": "pollInterval"}
_NEWER = {old: new for new, old in _OLDER.items()}
_FIELDS = ("taskId", "status", "statusMessage", "createdAt", "lastUpdatedAt", *_OLDER)

# Where the proxy itself, or a connection, failed: nothing was said of the task.
_NOT_SAID = (protocol.CONNECTION_CLOSED, protocol.REQUEST_TIMEOUT)

FOLLOWED = frozenset({"tasks/get", "tasks/result", "tasks/cancel", "tasks/list"})
TOLD = frozenset({"notifications/tasks", "notifications/tasks/status"})


@dataclass(frozen=True, slots=True)
class Handle:
    """One task: its id, and how long the server keeps it (milliseconds)."""

    task: str
    ttl_ms: int


@dataclass(frozen=True, slots=True)
class Ending:
    """What was said of a task that has ended: an `answer` to the call as it would have been.

    None where there is none: then `why` says how it ended.
    """

    task: str
    why: str
    answer: Frame | None = None


def takes_tasks(frame: Frame) -> bool:
    """Whether the caller of this `tools/call` can read a task handle."""
    meta = frame.params.get("_meta")
    if isinstance(meta, dict) and protocol.META_PROTOCOL_VERSION in meta:
        declared = meta.get(protocol.META_CLIENT_CAPABILITIES)
        extensions = declared.get("extensions") if isinstance(declared, dict) else None
        return isinstance(extensions, dict) and protocol.TASKS_EXTENSION in extensions
    return isinstance(frame.params.get("task"), dict)


def handle_of(result: object) -> Handle | None:
    """Return the task that a result names instead of an outcome, or None where it is one."""
    if not isinstance(result, Mapping) or "content" in result:
        return None
    inner = result.get("task")
    task = inner if isinstance(inner, Mapping) else result
    ident = task.get("taskId")
    if not isinstance(ident, str) or (task is result and result.get("resultType") != "task"):
        return None
    ttl = task.get("ttlMs", task.get("ttl"))
    known = type(ttl) in (int, float) and 0 <= ttl < UNLIMITED_MS
    return Handle(ident, int(ttl) if known else UNLIMITED_MS)


def in_era(text: str, *, modern: bool) -> dict[str, bytes]:
    """Return the members of a result that carries a handle, in the form of one protocol era."""
    parts = dict(members(text.encode("utf-8")))
    nested = parts.get("task")
    if modern:
        flat = dict(members(nested)) if nested is not None else {}
        rest = {name: value for name, value in parts.items() if name != "task"}
        made = {_NEWER.get(name, name): value for name, value in flat.items()}
        return {**made, **rest, "resultType": encode("task")}
    rest = {n: v for n, v in parts.items() if n != "resultType" and (nested or n not in _FIELDS)}
    if nested is None:
        fields = {_OLDER.get(n, n): v for n, v in parts.items() if n in _FIELDS}
        inner = b",".join(encode(name) + b":" + value for name, value in fields.items())
        rest["task"] = b"{" + inner + b"}"
    return rest


def endings(request: Frame, answer: Frame) -> list[Ending]:
    """Return which tasks have ended, as the answer to a `tasks/…` request says."""
    task = request.params.get("taskId")
    if request.method == "tasks/list":
        return _listed(answer)
    if not isinstance(task, str):
        return []
    if answer.kind is Kind.ERROR:
        return _refused(task, request, answer)
    if request.method == "tasks/result":
        return [Ending(task, "", answer)]
    ending = _of_state(answer.result, member(answer.raw, "result"))
    return [ending] if ending is not None and ending.task == task else []


def told(notification: Frame) -> list[Ending]:
    """Return which task has ended, as a notification says."""
    ending = _of_state(notification.params, member(notification.raw, "params"))
    return [ending] if ending is not None else []


def _listed(answer: Frame) -> list[Ending]:
    tasks = answer.result.get("tasks") if isinstance(answer.result, Mapping) else None
    return [
        ending
        for state in (tasks if isinstance(tasks, list) else [])
        if (ending := _of_state(state, None)) is not None
    ]


def _refused(task: str, request: Frame, answer: Frame) -> list[Ending]:
    """An error to a question about a task says that it is unknown, or how its call failed.

    Which of both cannot be told apart, so it never proves that nothing happened.
    """
    code = answer.error.get("code")
    unheard = request.method == "tasks/get" and code == protocol.INVALID_PARAMS
    failed = request.method == "tasks/result" and code not in _NOT_SAID
    said = str(answer.error.get("message"))
    return [Ending(task, f"asked for it, the server said: {said}")] if unheard or failed else []


def _of_state(state: object, raw: bytes | None) -> Ending | None:
    """Read a task's state; `raw` are its bytes, which may hold the result to the letter."""
    if not isinstance(state, Mapping) or not isinstance(task := state.get("taskId"), str):
        return None
    words = state.get("statusMessage")
    match state.get("status"):
        case "completed" if isinstance(state.get("result"), Mapping) and raw is not None:
            result = member(raw, "result") or b"{}"
            return Ending(task, "", parse(result_bytes(0, result))[0])
        case "failed":
            return Ending(task, "it failed", _failure(state))
        case "cancelled":
            told = f": {words}" if isinstance(words, str) and words else ""
            return Ending(task, f"it was cancelled{told}")
        case _:
            return None


def _failure(state: Mapping[str, Any]) -> Frame | None:
    """Return the answer that a failed call would have had, as far as the task's state tells it."""
    error, words = state.get("error"), state.get("statusMessage")
    if isinstance(error, Mapping):
        code = error.get("code")
        known = code if isinstance(code, int) else protocol.INTERNAL_ERROR
        return parse(error_bytes(0, known, str(error.get("message", ""))))[0]
    if not isinstance(words, str):
        return None
    result = {"content": [{"type": "text", "text": words}], "isError": True}
    return parse(result_bytes(0, encode(result)))[0]
