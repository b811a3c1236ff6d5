"""The pump's line: nobody who brings an event waits for another, and none is left lying."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from fencekit.core.config import FenceConfig
from fencekit.wire.frames import encode
from fencekit.wrap.actions import ToClient
from fencekit.wrap.gate import Gate
from fencekit.wrap.identity import Scope
from fencekit.wrap.pump import ROUNDS, TURNS_A_FLUSH, Pump
from fencekit.wrap.record import Record
from fencekit.wrap.rules import Rules
from fencekit.wrap.turn import Settings


class Wire:
    """A server that only remembers; `flushes` holds what left together."""

    def __init__(self) -> None:
        self.kept: list[Any] = []
        self.flushes: list[list[Any]] = []

    def send(self, frame: Any, _call: Any) -> None:
        self.kept.append(frame.message.get("params", {}).get("n"))

    def flush(self) -> None:
        if self.kept:
            self.flushes.append(self.kept)
            self.kept = []

    @property
    def sent(self) -> list[Any]:
        return [n for together in self.flushes for n in together]


@pytest.fixture
def pump():
    record = Record("memory:", FenceConfig(), lambda: True)
    settings = Settings(Rules(), Scope("s"), record.holder, lambda: "id")
    it = Pump(Gate(settings), record, lambda _raw: None)
    it.upstream = Wire()
    yield it
    it.stop()
    record.close()


def note(n: Any) -> bytes:
    return encode({"jsonrpc": "2.0", "method": "notifications/x", "params": {"n": n}})


def test_lines_that_come_together_leave_together(pump):
    pump.from_client(*(note(n) for n in range(10)))
    assert pump.upstream.flushes == [list(range(10))]


def test_who_brings_an_event_does_not_wait_for_the_one_who_works(pump):
    held, go = threading.Event(), threading.Event()

    def slow(_at: Any) -> list[Any]:
        held.set()
        assert go.wait(20)
        return []

    worker = threading.Thread(target=lambda: pump.turn(slow))
    worker.start()
    assert held.wait(20)
    pump.from_client(note(1))  # returns, although the gate is busy
    assert pump.upstream.sent == []
    go.set()
    worker.join(20)
    assert pump.upstream.sent == [1]


def test_what_waits_in_the_line_is_not_idle(pump):
    held, go = threading.Event(), threading.Event()

    def slow(_at: Any) -> list[Any]:
        held.set()
        assert go.wait(20)
        return []

    worker = threading.Thread(target=lambda: pump.turn(slow))
    worker.start()
    assert held.wait(20)
    pump.from_client(b'{"jsonrpc":"2.0","id":1,"method":"ping"}')
    assert not pump.wait_until_idle(0.01)
    go.set()
    worker.join(20)
    assert not pump.wait_until_idle(0.01)  # the server has it and has not answered
    pump.from_server(b'{"jsonrpc":"2.0","id":1,"result":{}}')
    assert pump.wait_until_idle(20)
    pump._line.append(lambda _at: [])  # brought, and taken by nobody yet
    assert not pump.wait_until_idle(0.0)


def test_a_fault_in_one_turn_is_told_and_stops_no_other(pump, capsys):
    def faulty(_at: Any) -> list[Any]:
        raise RuntimeError("planted\x1b[31m")

    pump._line.append(faulty)
    pump.from_client(note(1))
    assert pump.upstream.sent == [1]
    told = capsys.readouterr().err
    assert "planted" in told
    assert "\x1b" not in told


def test_a_turn_comes_after_all_that_happened_before_it(pump):
    pump._line.append(lambda at: pump.gate.client(_parsed(note(1)), at))
    seen: list[list[Any]] = []

    def look(_at: Any) -> list[Any]:
        seen.append(pump.upstream.sent)
        return []

    pump.turn(look)
    assert seen == [[1]]


def _parsed(raw: bytes) -> Any:
    from fencekit.wire.frames import parse

    return parse(raw)[0]


def test_what_a_turn_brings_in_the_same_thread_is_worked_off_by_it(pump):
    def bring(_at: Any) -> list[Any]:
        pump.from_client(note("inner"))
        assert pump.upstream.sent == []  # its place is after this turn
        return []

    pump.turn(bring)
    assert pump.upstream.sent == ["inner"]


def test_a_thread_with_other_duties_hands_a_long_line_over(pump):
    here, workers = threading.get_ident(), set()
    total = TURNS_A_FLUSH * (ROUNDS + 3)
    done = threading.Event()

    def step(n: int) -> Any:
        def run(_at: Any) -> list[Any]:
            workers.add((threading.get_ident() == here, n // TURNS_A_FLUSH))
            if n == total - 1:
                done.set()
            return []

        return run

    pump._happened([step(n) for n in range(total)])
    assert done.wait(20)
    assert workers == {(n < ROUNDS, n) for n in range(ROUNDS + 3)}


def test_nothing_is_lost_and_each_bringer_keeps_its_order(pump):
    many, each = 8, 500
    barrier = threading.Barrier(many)

    def bring(who: int) -> None:
        barrier.wait()
        for n in range(each):
            pump.from_client(note([who, n]))

    threads = [threading.Thread(target=bring, args=(who,)) for who in range(many)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    pump.turn(lambda _at: [])

    sent = pump.upstream.sent
    assert len(sent) == many * each
    for who in range(many):
        assert [n for w, n in sent if w == who] == list(range(each))


def test_answers_reach_the_client_before_the_flush_of_their_turns_ends():
    record = Record("memory:", FenceConfig(), lambda: True)
    said: list[bytes] = []
    left: list[list[bytes]] = []

    def flush() -> None:
        left.append(list(said))

    settings = Settings(Rules(), Scope("s"), record.holder, lambda: "id")
    pump = Pump(Gate(settings), record, said.append, flush)
    pump.turn(lambda _at: [ToClient(b"a"), ToClient(b"b")])
    assert left == [[b"a", b"b"]]
    pump.stop()
    record.close()
