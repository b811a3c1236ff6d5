"""Arrays in PostgreSQL's own binary format, so that a batch costs little to send.

Values go as they are: nothing is escaped, quoted or parsed on either side. The format is that of
the server's `array_recv`, one dimension: how many dimensions, whether there are nulls, the type of
the elements, their number, the lower bound; then each element after its length, -1 for null.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any, ClassVar

import psycopg
from psycopg.adapt import Dumper
from psycopg.pq import Format

_NONE = struct.Struct("!iiI").pack
_SOME = struct.Struct("!iiIii").pack
_LENGTH = struct.Struct("!i").pack
_NULL = _LENGTH(-1)


class Array:
    """One array, packed; `element` and `array` are the types' numbers in the server's catalogue."""

    __slots__ = ("packed",)
    element: ClassVar[int]
    array: ClassVar[int]
    fixed: ClassVar[str] = ""

    def __init__(self, values: Sequence[Any]) -> None:
        if not values:
            self.packed = _NONE(0, 0, self.element)
            return
        count = len(values)
        if self.fixed:
            size = struct.calcsize(f"!{self.fixed}")
            flat = [part for value in values for part in (size, value)]
            body = struct.pack("!" + f"i{self.fixed}" * count, *flat)
            self.packed = _SOME(1, 0, self.element, count, 1) + body
            return
        parts = [_SOME(1, None in values, self.element, count, 1)]
        for value in values:
            parts += (_NULL,) if value is None else (_LENGTH(len(value)), value)
        self.packed = b"".join(parts)


class Int4s(Array):
    """`int[]`"""

    element, array, fixed = 23, 1007, "i"


class Int8s(Array):
    """`bigint[]`"""

    element, array, fixed = 20, 1016, "q"


class Booleans(Array):
    """`boolean[]`"""

    element, array, fixed = 16, 1000, "?"


class Byteas(Array):
    """`bytea[]`, of bytes and None"""

    element, array = 17, 1001


class Texts(Array):
    """`text[]`, of UTF-8"""

    element, array = 25, 1009


def register(db: psycopg.Connection[Any]) -> None:
    """Teach one connection to send these arrays."""
    for kind in (Int4s, Int8s, Booleans, Byteas, Texts):
        db.adapters.register_dumper(kind, _DUMPERS[kind])


class _Packed(Dumper):
    format = Format.BINARY

    def dump(self, obj: Array) -> bytes:
        return obj.packed


_DUMPERS = {
    kind: type(f"{kind.__name__}Dumper", (_Packed,), {"oid": kind.array})
    for kind in (Int4s, Int8s, Booleans, Byteas, Texts)
}
