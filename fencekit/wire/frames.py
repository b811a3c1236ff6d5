"""One JSON-RPC frame: the bytes it came in, and what they say.

Pure. A frame is parsed whole, because the method name alone can be spelled in many ways
(`"tools\\/call"`, `"tools\\u002fcall"`). What two parsers could read differently is told, never
guessed: duplicate keys are listed, batches are split, and bytes that are not one JSON-RPC object
give a frame of kind `invalid` that says why. Integers keep every digit; ids keep their type.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

import orjson

from fencekit.wire.protocol import METHOD_NOT_FOUND

IdKey = tuple[str, str]


class Kind(StrEnum):
    """What a frame is."""

    REQUEST = "request"
    NOTIFICATION = "notification"
    RESPONSE = "response"
    ERROR = "error"
    INVALID = "invalid"


@dataclass(frozen=True, slots=True)
class Frame:
    """One JSON-RPC message.

    `raw` holds exactly the bytes it came in, without the line end. `message` is the parsed object,
    empty for `invalid`. `duplicates` names the keys that occur twice in one object somewhere in
    it: Python keeps the last, another parser may keep the first. `batched` says that it came out
    of a JSON array. `fault` says why an `invalid` frame is invalid.
    """

    raw: bytes
    kind: Kind
    message: Mapping[str, Any]
    duplicates: tuple[str, ...] = ()
    batched: bool = False
    fault: str = ""
    # Asked for many times while a frame is judged, so each is looked up once.
    id: object = field(init=False, repr=False, compare=False)
    """The id as parsed: a string, a number or None."""
    key: IdKey = field(init=False, repr=False, compare=False)
    """The id as a dictionary key that keeps `7`, `7.0` and `"7"` apart."""
    method: str | None = field(init=False, repr=False, compare=False)
    """The method of a request or notification."""
    params: Mapping[str, Any] = field(init=False, repr=False, compare=False)
    """The params where they are an object, else an empty mapping."""

    def __post_init__(self) -> None:
        message = self.message
        ident, method, params = message.get("id"), message.get("method"), message.get("params")
        object.__setattr__(self, "id", ident)
        object.__setattr__(self, "key", id_key(ident))
        object.__setattr__(self, "method", method if isinstance(method, str) else None)
        object.__setattr__(self, "params", params if isinstance(params, dict) else {})

    @property
    def result(self) -> Any:
        """The result of a response (None when there is none)."""
        return self.message.get("result")

    @property
    def error(self) -> Mapping[str, Any]:
        """The error object of an error frame, else an empty mapping."""
        error = self.message.get("error")
        return error if isinstance(error, dict) else {}


def id_key(value: object) -> IdKey:
    """Return a key under which ids are equal only if their JSON type and text are equal."""
    return (type(value).__name__, str(value))


def _decoder(duplicates: list[str]) -> json.JSONDecoder:
    def pairs(items: list[tuple[str, Any]]) -> dict[str, Any]:
        made = dict(items)
        if len(made) != len(items):
            seen: set[str] = set()
            for key, _ in items:
                if key in seen and key not in duplicates:
                    duplicates.append(key)
                seen.add(key)
        return made

    def refuse(name: str) -> Any:
        raise ValueError(f"{name} is not JSON")

    return json.JSONDecoder(object_pairs_hook=pairs, parse_constant=refuse)


def _space(text: str, at: int) -> int:
    while at < len(text) and text[at] in " \t\r\n":
        at += 1
    return at


def _classify(message: object) -> tuple[Kind, str]:
    if not isinstance(message, dict):
        return Kind.INVALID, "not a JSON object"
    if "method" in message:
        if not isinstance(message["method"], str):
            return Kind.INVALID, "the method is not a string"
        if "id" not in message:
            return Kind.NOTIFICATION, ""
        if isinstance(message["id"], bool | dict | list):
            return Kind.INVALID, "the id is neither a string nor a number"
        return Kind.REQUEST, ""
    if "error" in message:
        return Kind.ERROR, ""
    if "result" in message:
        return Kind.RESPONSE, ""
    return Kind.INVALID, "neither a method, a result nor an error"


def _frame(raw: bytes, message: object, duplicates: tuple[str, ...], batched: bool) -> Frame:
    kind, fault = _classify(message)
    known: Mapping[str, Any] = message if isinstance(message, dict) else {}
    return Frame(raw, kind, known, duplicates, batched, fault)


def parse(raw: bytes) -> list[Frame]:
    """Return the frames of one line or one HTTP body: one, or one for each element of a batch.

    Never raises: what cannot be read is one frame of kind `invalid`. An element of a batch keeps
    its own slice of the bytes.
    """
    body = raw.rstrip(b"\r\n")
    message = _quickly(body)
    if message is not None:
        return [_frame(body, message, (), batched=False)]
    return _carefully(body)


# Whitespace that hides a key from counting.
_EXACT = 2.0**63
_SPACED_KEY = re.compile(rb'"[ \t\r\n]+:')


def _quickly(body: bytes) -> object | None:
    """Read an object of which nothing is left to tell; None where only the careful way can.

    Every key ends with `":`, and other texts can only add such marks (an escaped quote, a text that
    begins with a colon). So where as many keys were kept as there are marks, none occurs twice.
    """
    if not body.startswith(b"{") or _SPACED_KEY.search(body):
        return None
    try:
        message = orjson.loads(body)
        return message if _keys(message) == body.count(b'":') else None
    except (ValueError, RecursionError):
        return None


def _keys(value: Any) -> int:
    """Return how many keys there are in an object or array and in all that it holds.

    Raises ValueError for a number that may be an integer of more than 64 bits, rounded.
    """
    found, inner = 0, value
    if type(value) is dict:
        found, inner = len(value), value.values()
    for one in inner:
        kind = type(one)
        if kind is dict or kind is list:
            found += _keys(one)
        elif kind is float and not -_EXACT < one < _EXACT:
            raise ValueError("too long to be sure of")
    return found


def _carefully(body: bytes) -> list[Frame]:
    duplicates: list[str] = []
    decoder = _decoder(duplicates)
    try:
        text = body.decode("utf-8")
        start = _space(text, 0)
        if text.startswith("[", start):
            return _batch(body, text, start)
        message, end = decoder.raw_decode(text, start)
        if _space(text, end) != len(text):
            return [Frame(body, Kind.INVALID, {}, fault="text after the JSON value")]
    except (ValueError, RecursionError) as error:
        return [Frame(body, Kind.INVALID, {}, fault=f"not JSON: {type(error).__name__}: {error}")]
    return [_frame(body, message, tuple(duplicates), batched=False)]


def _batch(body: bytes, text: str, start: int) -> list[Frame]:
    """Split a JSON array; an array that is empty or broken anywhere is one invalid frame."""
    frames: list[Frame] = []
    at = _space(text, start + 1)
    while not text.startswith("]", at):
        duplicates: list[str] = []
        message, end = _decoder(duplicates).raw_decode(text, at)
        piece = text[at:end].encode("utf-8")
        frames.append(_frame(piece, message, tuple(duplicates), batched=True))
        at = _space(text, end)
        if text.startswith(",", at):
            at = _space(text, at + 1)
            if text.startswith("]", at):
                raise ValueError("a comma before the end of the batch")
        elif not text.startswith("]", at):
            raise ValueError("a batch that does not end")
    if _space(text, at + 1) != len(text):
        raise ValueError("text after the batch")
    if not frames:
        return [Frame(body, Kind.INVALID, {}, fault="an empty batch")]
    return frames


def members(raw: bytes) -> list[tuple[str, bytes]]:
    """Return (name, exact bytes of the value) for each top-level member of a JSON object.

    In their order; a name that occurs twice is there twice. Raises ValueError if `raw` is not a
    JSON object.
    """
    text = raw.decode("utf-8")
    decoder = json.JSONDecoder()
    at = _space(text, 0)
    if not text.startswith("{", at):
        raise ValueError("not a JSON object")
    found: list[tuple[str, bytes]] = []
    at = _space(text, at + 1)
    while not text.startswith("}", at):
        key, at = decoder.raw_decode(text, at)
        at = _space(text, at)
        if not text.startswith(":", at):
            raise ValueError("a key without a value")
        start = _space(text, at + 1)
        _, at = decoder.raw_decode(text, start)
        found.append((str(key), text[start:at].encode("utf-8")))
        at = _space(text, at)
        if text.startswith(",", at):
            at = _space(text, at + 1)
        elif not text.startswith("}", at):
            raise ValueError("an object that does not end")
    return found


def member(raw: bytes, name: str) -> bytes | None:
    """Return the exact bytes of one top-level member of a JSON object, or None where it has none.

    The last one counts where the name occurs twice, as in `parse`. Raises ValueError if `raw` is
    not a JSON object.
    """
    if (last := _last_member(raw, name)) is not None:
        return last
    found: bytes | None = None
    for key, value in members(raw):
        if key == name:
            found = value
    return found


def _last_member(raw: bytes, name: str) -> bytes | None:
    """Return the bytes of a member if it is plainly the last one; None where that is not plain."""
    mark = b'"%b":' % name.encode()
    at = raw.find(mark)
    if at < 0 or not raw.endswith(b"}"):
        return None
    value = raw[at + len(mark) : -1].strip(b" \t\r\n")
    try:
        # What stands before it is whole members, and what follows is one value and nothing else.
        orjson.loads(raw[:at] + b'"":0}')
        orjson.loads(value)
    except ValueError:
        return None
    return value


def encode(value: object) -> bytes:
    """Return compact JSON bytes; a lone surrogate, which UTF-8 cannot carry, is escaped.

    Raises ValueError for NaN and the infinities, TypeError for what JSON has no form for.
    """
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError:
        return json.dumps(value, separators=(",", ":"), allow_nan=False).encode("ascii")


def request_bytes(ident: object, method: str, params: bytes | None = None) -> bytes:
    """Return a request whose params are these bytes, unchanged."""
    head = b'{"jsonrpc":"2.0","id":' + encode(ident) + b',"method":' + encode(method)
    return head + (b',"params":' + params if params is not None else b"") + b"}"


def notification_bytes(method: str, params: bytes | None = None) -> bytes:
    """Return a notification whose params are these bytes, unchanged."""
    head = b'{"jsonrpc":"2.0","method":' + encode(method)
    return head + (b',"params":' + params if params is not None else b"") + b"}"


def result_bytes(ident: object, result: bytes) -> bytes:
    """Return a response whose result is these bytes, unchanged."""
    return b'{"jsonrpc":"2.0","id":' + encode(ident) + b',"result":' + result + b"}"


def error_bytes(ident: object, code: int, message: str, data: object = None) -> bytes:
    """Return an error answer."""
    error: dict[str, object] = {"code": code, "message": message}
    if data is not None:
        error["data"] = data
    return encode({"jsonrpc": "2.0", "id": ident, "error": error})


# What a bare client says to a server's own requests; everything else is "method not found".
_POLITE: dict[str, Callable[[], object]] = {
    "ping": dict,
    "elicitation/create": lambda: {"action": "decline"},
}


def polite_answer(frame: Frame) -> bytes:
    """Return a client's answer to a server's request: ping is answered, all else is declined."""
    if frame.method in _POLITE:
        return result_bytes(frame.id, encode(_POLITE[frame.method]()))
    return error_bytes(frame.id, METHOD_NOT_FOUND, f"this client does not offer {frame.method}")
