"""One value, one byte string, one digest: canonical JSON by RFC 8785.

Extension: integers beyond ±(2^53-1) are written as their exact decimal digits, where RFC 8785
stops at doubles. Two integers that differ therefore never share their bytes. `1` and `1.0` are
one number, and so are `0` and `-0.0`.

Fast path: `orjson` writes sorted, compact JSON. Its bytes are taken only where a walk over the
value has shown that they are the canonical ones (`_is_plain`); everything else goes through
`_Writer`, which is exact and names the place of what it refuses.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from typing import Any, TypeAlias

import orjson
import rfc8785

from fencekit.core.errors import InvalidRequest

Json: TypeAlias = Any
"""A JSON value: None, bool, int, float, str, a list or tuple of these, a dict with str keys."""

MAX_DEPTH = 254
"""Containers inside containers, at most. What `orjson` writes, so the two paths agree."""

# In UTF-8, characters from U+10000 sort after those of U+E000 to U+FFFF; in UTF-16, before.
# Only a text that holds both can have keys whose order differs.
_ASTRAL = re.compile(rb"[\xf0-\xf4]")
_HIGH_BMP = re.compile(rb"[\xee\xef]")
_PLAIN_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,39}\Z", re.ASCII)
# Integers of 19 digits and more may not fit orjson's 64 bits, which would read them as doubles.
_LONG_DIGITS = re.compile(rb"[0-9]{19}")


class CanonicalError(InvalidRequest):
    """A value has no canonical JSON. `path` says where (`$.args.items[3]`), `reason` why."""

    def __init__(self, reason: str, steps: tuple[str | int, ...] = ()) -> None:
        self.reason = reason
        self.steps = steps
        super().__init__(reason, steps)

    @property
    def path(self) -> str:
        """The place in the value, printable ASCII whatever the keys hold, and short."""
        if len(self.steps) > 12:
            shown = [*map(_step, self.steps[:8]), "…", *map(_step, self.steps[-4:])]
        else:
            shown = [*map(_step, self.steps)]
        return "$" + "".join(shown)

    def __str__(self) -> str:
        return f"no canonical JSON for {self.path}: {self.reason}"


def canonical_bytes(value: Json) -> bytes:
    """Return the RFC 8785 bytes of `value` (integers of any size: see the module).

    Raises `CanonicalError` for NaN and infinities, keys that are not text, lone surrogates,
    cycles, more than `MAX_DEPTH` levels, and types that JSON does not have (`Decimal` included:
    the caller must choose between a number that rounds and a text that does not).
    """
    if type(value) is dict or type(value) is list:
        try:
            text = orjson.dumps(value, None, orjson.OPT_SORT_KEYS)
        except TypeError:  # orjson.JSONEncodeError is one
            return _write(value)
        # Only after orjson is it known that there is no cycle to walk around in.
        if _is_plain(value) and (
            text.isascii() or not (_ASTRAL.search(text) and _HIGH_BMP.search(text))
        ):
            return text
    elif type(value) is str:
        try:
            return orjson.dumps(value)
        except TypeError:  # a lone surrogate: the exact path says where
            return _write(value)
    return _write(value)


def digest(value: Json) -> str:
    """Return the SHA-256 of the canonical bytes, in lower-case hex. Raises `CanonicalError`."""
    return hashlib.sha256(canonical_bytes(value)).hexdigest()


def fingerprint(tool: str, args: Json) -> str:
    """Return what a request is known by: the digest of `{"tool": tool, "args": args}`."""
    return digest({"args": args, "tool": tool})


def fingerprint_from_bytes(tool: str, args: bytes) -> str:
    """Return `fingerprint(tool, …)` for arguments whose canonical bytes are at hand."""
    return hashlib.sha256(b'{"args":%b,"tool":%b}' % (args, canonical_bytes(tool))).hexdigest()


def parse_json(text: bytes | str) -> Json:
    """Parse JSON text without losing a digit: integers of any size stay exact.

    Raises `ValueError` for anything RFC 8259 does not allow (NaN and Infinity included), for
    numbers beyond the range of doubles, and for nesting that no call stack here can follow.
    """
    data = text.encode() if isinstance(text, str) else text
    if not _LONG_DIGITS.search(data):
        return orjson.loads(data)
    try:
        return json.loads(data.decode(), parse_constant=_refuse, parse_float=_finite)
    except RecursionError:
        raise ValueError("JSON text is nested too deeply") from None


def _refuse(name: str) -> float:
    raise ValueError(f"{name} is not a number of JSON")


def _finite(digits: str) -> float:
    number = float(digits)
    return number if math.isfinite(number) else _refuse(digits[:40])


def _is_plain(value: dict[str, Json] | list[Json]) -> bool:
    """Say whether orjson's bytes for this acyclic value are canonical but for the order of keys.

    Three things differ: types that orjson knows and JSON does not (dates, UUID, Enum, …), floats
    that print as integers or with an exponent, and NaN, which orjson writes as null. Keys need no
    look: orjson takes none but exact str.
    """
    todo: list[Any] = [value.values() if type(value) is dict else value]
    for values in todo:  # grows while it is walked; cheaper than a call for each container
        for item in values:
            if (kind := type(item)) is str or kind is int:
                continue
            if kind is dict:
                todo.append(item.values())
            elif kind is list or kind is tuple:
                todo.append(item)
            elif item is None or kind is bool:
                continue
            elif kind is not float or not _prints_alike(item):
                return False
    return True


def _prints_alike(number: float) -> bool:
    """Say whether a float is one that every shortest-digits printer writes as `digits.digits`."""
    return 1e-4 <= abs(number) < 1e15 and not number.is_integer()


def _write(value: Json) -> bytes:
    writer = _Writer()
    try:
        writer.add(value, 0)
    except RecursionError:
        raise CanonicalError("nested too deeply for the call stack it was met on") from None
    return "".join(writer.parts).encode()


class _Writer:
    """The exact path: writes one value into `parts`, refusing what has no canonical form."""

    def __init__(self) -> None:
        self.parts: list[str] = []
        self.open: set[int] = set()

    def add(self, value: Json, depth: int) -> None:
        """Write one value that sits inside `depth` containers."""
        if isinstance(value, str):
            self.parts.append(_text(value))
        elif value is None:
            self.parts.append("null")
        elif isinstance(value, bool):  # before int, which it is a kind of
            self.parts.append("true" if value else "false")
        elif isinstance(value, int):
            self.parts.append(_integer(value))
        elif isinstance(value, float):
            self.parts.append(_float(value))
        elif isinstance(value, (dict, list, tuple)):
            self._add_container(value, depth + 1)
        else:
            raise CanonicalError(_why_not(value))

    def _add_container(
        self, value: dict[Any, Json] | list[Json] | tuple[Json, ...], depth: int
    ) -> None:
        if id(value) in self.open:
            raise CanonicalError("it contains itself")
        if depth > MAX_DEPTH:
            raise CanonicalError(f"nested deeper than {MAX_DEPTH} levels")
        self.open.add(id(value))
        if isinstance(value, dict):
            self._add_object(value, depth)
        else:
            self._add_array(value, depth)
        self.open.discard(id(value))

    def _add_array(self, value: list[Json] | tuple[Json, ...], depth: int) -> None:
        mark = "["
        index = 0
        try:
            for index, item in enumerate(value):  # noqa: B007  (the error below names it)
                self.parts.append(mark)
                mark = ","
                self.add(item, depth)
        except CanonicalError as error:
            raise CanonicalError(error.reason, (index, *error.steps)) from None
        self.parts.append("[]" if mark == "[" else "]")

    def _add_object(self, value: dict[Any, Json], depth: int) -> None:
        members = [(_utf16(key), key, item) for key, item in value.items()]
        members.sort(key=lambda member: member[0])
        mark = "{"
        key = ""
        try:
            for _, key, item in members:
                self.parts.append(f"{mark}{_text(key)}:")
                mark = ","
                self.add(item, depth)
        except CanonicalError as error:
            raise CanonicalError(error.reason, (key, *error.steps)) from None
        self.parts.append("{}" if mark == "{" else "}")


_quote = json.JSONEncoder(ensure_ascii=False).encode


def _text(value: str) -> str:
    if not value.isascii() and not _is_unicode(value):
        raise CanonicalError("text holds a lone surrogate, which UTF-8 cannot carry")
    return _quote(value)


def _is_unicode(value: str) -> bool:
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def _utf16(key: Any) -> bytes:
    """Return what RFC 8785 sorts a key by: its UTF-16 code units."""
    if not isinstance(key, str):
        raise CanonicalError(f"an object's key is of type {type(key).__name__}, not text")
    try:
        return key.encode("utf-16-be")
    except UnicodeEncodeError:
        raise CanonicalError("an object's key holds a lone surrogate") from None


def _integer(value: int) -> str:
    try:
        return int.__repr__(value)
    except ValueError:  # sys.get_int_max_str_digits
        raise CanonicalError("an integer with thousands of digits; send it as text") from None


def _float(value: float) -> str:
    try:
        return rfc8785.dumps(value).decode("ascii")
    except rfc8785.FloatDomainError:
        raise CanonicalError("NaN and infinities are not JSON; send null or text") from None


def _why_not(value: Any) -> str:
    name = type(value).__name__
    if name == "Decimal":
        return "a Decimal is not JSON; send text to keep its digits, or a number"
    return f"type {name} is not JSON"


def _step(step: str | int) -> str:
    if isinstance(step, str) and _PLAIN_KEY.match(step):
        return f".{step}"
    return f"[{json.dumps(step)[:40]}]"
