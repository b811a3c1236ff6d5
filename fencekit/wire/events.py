"""Server-sent events as they came: the bytes of each, its id, and what it carries.

httpx2's own decoder gives fields only; a relay must also hand on comments (they keep connections
alive), retry times and the exact bytes. Source: WHATWG HTML, "Server-sent events".
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from dataclasses import dataclass

from fencekit.wire.errors import Unanswered

_BLANK = re.compile(rb"(?:\r\n|\n|\r(?!\n)){2}")
_LINE_END = re.compile(r"\r\n|\n|\r")


@dataclass(frozen=True, slots=True)
class Event:
    """One block of an event stream.

    `id` is None where the block has none; `retry` is in milliseconds; `data` is empty for a comment
    and for an event that only says its id.
    """

    raw: bytes
    id: str | None = None
    data: str = ""
    kind: str = "message"
    retry: int | None = None


def read_event(block: bytes) -> Event:
    """Read one block, with or without its blank line."""
    fields: dict[str, str] = {}
    data: list[str] = []
    for line in _LINE_END.split(block.decode("utf-8", "replace")):
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if name == "data":
            data.append(value)
        elif name in ("event", "retry") or (name == "id" and "\0" not in value):
            fields[name] = value
    retry = fields.get("retry", "")
    wait = int(retry) if retry.isascii() and retry.isdigit() and len(retry) < 10 else None
    kind = fields.get("event") or "message"
    return Event(block, fields.get("id"), "\n".join(data), kind, wait)


async def events(chunks: AsyncIterator[bytes], limit: int) -> AsyncIterator[Event]:
    """Split a stream into its blocks; one that the stream's end cuts off is dropped.

    Raises Unanswered for a block of more than `limit` bytes.
    """
    kept = bytearray()
    looked = 0
    async for chunk in chunks:
        kept += chunk
        while found := _BLANK.search(kept, looked):
            block = bytes(kept[: found.end()])
            del kept[: found.end()]
            looked = 0
            yield read_event(block)
        looked = max(0, len(kept) - 3)  # a blank line may begin in what has been looked at
        if len(kept) > limit:
            raise Unanswered(f"an event of more than {limit} bytes")


def event_bytes(data: bytes) -> bytes:
    """Return an event of our own that carries one line of data."""
    return b"event: message\r\ndata: " + data + b"\r\n\r\n"
