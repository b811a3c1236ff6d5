"""The reply of the reverse proxy: read by whoever is connected, kept within bounds."""

from __future__ import annotations

import asyncio

from fencekit.wrap import reply
from fencekit.wrap.reply import SSE, Reply


class Reader:
    """A client that takes a piece when it is allowed to."""

    def __init__(self, *, stuck: bool = False) -> None:
        self.body = b""
        self.may = asyncio.Event()
        if not stuck:
            self.may.set()

    async def __call__(self, message):
        await self.may.wait()
        self.body += message.get("body", b"")


async def settle() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


def test_a_client_that_comes_back_hears_the_rest_and_each_connection_ends_at_a_cut():
    async def play():
        it = Reply()
        it.open(200, SSE)
        it.put(b"1", "e1")
        first = Reader()
        reading = asyncio.create_task(it.send_to(first))
        await settle()
        it.cut()
        await reading
        it.put(b"2", "e2")
        it.put(b"3", "e3")
        it.end()
        later = {name: Reader() for name in ("e1", "e2", "e3")}
        for name, reader in later.items():
            await it.send_to(reader, name)
        return first.body, {name: reader.body for name, reader in later.items()}

    first, later = asyncio.run(play())
    assert first == b"1"
    assert later == {"e1": b"23", "e2": b"3", "e3": b""}


def test_a_slow_client_makes_the_server_wait_until_it_goes(monkeypatch):
    monkeypatch.setattr(reply, "MAX_UNREAD", 10)

    async def play():
        it = Reply()
        it.open(200, SSE)
        slow = Reader(stuck=True)
        reading = asyncio.create_task(it.send_to(slow))
        await settle()
        it.put(b"x" * 11)
        waiting = asyncio.create_task(it.room())
        await settle()
        held = not waiting.done()
        reading.cancel()
        await asyncio.wait_for(waiting, 5)
        return held

    assert asyncio.run(play())


def test_without_a_client_the_oldest_pieces_go(monkeypatch):
    monkeypatch.setattr(reply, "MAX_KEPT", 10)

    async def play():
        it = Reply()
        it.open(200, SSE)
        for n in range(100):
            it.put(b"%03d" % n, f"e{n}")
        it.end()
        reader = Reader()
        await it.send_to(reader, "e97")
        return it.holds("e1"), reader.body

    assert asyncio.run(play()) == (False, b"098099")


def test_what_a_connected_client_has_read_is_not_kept_for_ever(monkeypatch):
    monkeypatch.setattr(reply, "MAX_KEPT", 10)

    async def play():
        it = Reply()
        it.open(200, SSE)
        reader = Reader()
        reading = asyncio.create_task(it.send_to(reader))
        for n in range(100):
            it.put(b"%03d" % n, f"e{n}")
            await settle()
        kept, ids = len(it._pieces), len(it._ids)
        it.end()
        await reading
        return reader.body, kept, ids

    body, kept, ids = asyncio.run(play())
    assert body == b"".join(b"%03d" % n for n in range(100))
    assert kept <= 4
    assert ids <= 5


def test_an_answer_that_ends_unsaid_is_an_empty_stream():
    async def play():
        it = Reply()
        reader = Reader()
        reading = asyncio.create_task(it.send_to(reader))
        await settle()
        it.end()
        await asyncio.wait_for(reading, 5)
        return it.status, reader.body

    assert asyncio.run(play()) == (200, b"")


def test_a_whole_answer_says_its_length():
    async def play():
        it = Reply()
        it.whole(404, [("x", "1")], b"gone")
        return it.headers

    assert asyncio.run(play()) == [("x", "1"), ("content-length", "4")]
