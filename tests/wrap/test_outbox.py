"""Frames leave in their order, together where they fit, and every call hears what became of it."""

from __future__ import annotations

import os
import threading

import pytest

from fencekit.wire.errors import NeverLeft
from fencekit.wrap.outbox import FITS, Outbox


class Pipe:
    """An outbox on a pipe whose writes are counted; calls are stood for by numbers."""

    def __init__(self) -> None:
        self.reading, self.writing = os.pipe()
        self.writes: list[bytes] = []
        self.told: list[tuple[list[int], Exception | None]] = []
        self.heard = threading.Event()
        self.fault: Exception | None = None
        self.box = Outbox(self.writing, self.write, self.report)  # type: ignore[arg-type]

    def write(self, raw: bytes) -> None:
        if self.fault is not None:
            raise self.fault
        self.writes.append(raw)
        data = memoryview(raw + b"\n")
        while data:
            data = data[os.write(self.writing, data) :]

    def report(self, calls: list[int], problem: Exception | None) -> None:
        self.told.append((calls, problem))
        self.heard.set()


@pytest.fixture
def pipe():
    it = Pipe()
    yield it
    os.close(it.reading)
    it.box.drain(5.0)
    os.close(it.writing)


def test_what_was_put_leaves_in_one_write_at_the_flush(pipe):
    for number in range(3):
        pipe.box.put(b"%d" % number, number)
    assert pipe.writes == []
    pipe.box.flush()

    assert pipe.writes == [b"0\n1\n2"]
    assert os.read(pipe.reading, 100) == b"0\n1\n2\n"
    assert pipe.told == [([0, 1, 2], None)]


def test_no_piece_is_longer_than_a_pipe_takes_whole(pipe):
    frame = b"x" * (FITS // 3)
    for _ in range(5):
        pipe.box.put(frame)
    pipe.box.flush()

    assert b"".join(w + b"\n" for w in pipe.writes) == (frame + b"\n") * 5
    assert all(len(written) < FITS for written in pipe.writes)
    assert len(pipe.writes) == 3


def test_a_frame_that_does_not_fit_keeps_its_place_and_nobody_waits_for_it(pipe):
    big = b"b" * (1024 * 1024)
    pipe.box.put(b"before")
    pipe.box.put(big, 1)
    pipe.box.put(b"after", 2)
    pipe.box.flush()  # the pipe is full now, and this returned

    got = b""
    while not got.endswith(b"after\n"):
        got += os.read(pipe.reading, 65_536)
    assert got == b"before\n" + big + b"\nafter\n"
    pipe.box.drain(5.0)
    assert [calls for calls, _ in pipe.told] == [[1], [2]]


def test_every_call_of_a_write_that_failed_is_told(pipe):
    pipe.fault = NeverLeft("it reads no more")
    pipe.box.put(b"a", 1)
    pipe.box.put(b"b", 2)
    pipe.box.flush()

    assert pipe.told == [([1, 2], pipe.fault)]


def test_after_the_drop_nothing_leaves_and_the_callers_are_told(pipe):
    pipe.box.put(b"kept", 1)
    assert pipe.box.drop() == []
    pipe.box.flush()

    assert pipe.writes == []
    [(calls, problem)] = pipe.told
    assert calls == [1]
    assert isinstance(problem, NeverLeft)


def test_the_drop_returns_the_calls_that_were_not_begun(pipe):
    pipe.box.put(b"b" * (1024 * 1024))
    pipe.box.put(b"a", 1)
    pipe.box.flush()
    got = len(os.read(pipe.reading, 1))  # it has begun

    assert pipe.box.drop() == [1]
    while got < 1024 * 1024 + 1:  # the one that was begun ends
        got += len(os.read(pipe.reading, 65_536))
