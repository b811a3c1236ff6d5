"""Event streams: the same blocks and fields, wherever the network cuts the bytes."""

from __future__ import annotations

import asyncio

import pytest

from fencekit.wire.errors import Unanswered
from fencekit.wire.events import event_bytes, events, read_event

STREAM = (
    ": a comment\n\n"
    "id: 1\nretry: 20\ndata:\n\n"
    'event: message\r\ndata: {"a":1}\r\n\r\n'
    "data: x\ndata: é\rid: 2\r\r"
    "event: other\ndata: y\n\n"
    "data: cut off"
).encode()


def split(raw: bytes, sizes: list[int], limit: int = 1000):
    async def chunks():
        at = 0
        for size in sizes:
            yield raw[at : at + size]
            at += size
        yield raw[at:]

    async def gathered():
        return [event async for event in events(chunks(), limit)]

    return asyncio.run(gathered())


@pytest.mark.parametrize("size", range(1, len(STREAM) + 1))
def test_events_are_the_same_wherever_the_bytes_are_cut(size):
    got = split(STREAM, [size] * (len(STREAM) // size))

    said = [e for e in got if e.raw.strip()]
    assert [(e.id, e.data, e.kind, e.retry) for e in said] == [
        (None, "", "message", None),
        ("1", "", "message", 20),
        (None, '{"a":1}', "message", None),
        ("2", "x\né", "message", None),
        (None, "y", "other", None),
    ]
    assert b"".join(e.raw for e in got) == STREAM.removesuffix(b"data: cut off")


def test_a_block_that_does_not_end_is_bounded():
    with pytest.raises(Unanswered, match="100 bytes"):
        split(b"data: " + b"x" * 200, [50] * 4, limit=100)


@pytest.mark.parametrize("line", ["retry: -1", "retry: 1e3", "retry: 99999999999", "retry: ٣"])
def test_a_retry_that_is_no_number_is_none(line):
    assert read_event(f"{line}\n\n".encode()).retry is None


def test_an_id_with_a_null_character_is_none():
    assert read_event(b"id: a\0b\n\n").id is None


def test_an_event_of_our_own_reads_back():
    assert read_event(event_bytes(b'{"a":1}')).data == '{"a":1}'
