"""The proxy's ledger may fail and come back without a restart of the host."""

from __future__ import annotations

import shutil
import threading
from typing import Any

import pytest

from fencekit.core.config import FenceConfig
from fencekit.core.errors import LedgerError, LedgerGone
from fencekit.core.messages import Fresh, Prepare
from fencekit.core.request import EffectRequest
from fencekit.ledger import jsonl
from fencekit.wrap import record as module
from fencekit.wrap.record import Record
from tests.wrap.door import Door


@pytest.fixture
def clock(monkeypatch):
    """A monotonic clock that the test moves."""
    now = [1000.0]
    monkeypatch.setattr(module.time, "monotonic", lambda: now[0])
    return now


def ask(record: Record, ident: str) -> Any:
    heard: list[Any] = []
    done = threading.Event()

    def take(outcome: Any) -> None:
        heard.append(outcome)
        done.set()

    request = EffectRequest.make(f"i{ident}", "t", {})
    record.enqueue(Prepare(ident, record.wall_ms(), request, record.holder(), 60_000), take)
    assert done.wait(20)
    return heard[0]


def test_a_ledger_that_cannot_be_opened_refuses_and_is_tried_again_once_a_second(tmp_path, clock):
    place = tmp_path / "folder"
    place.write_text("a file where the folder should be")
    record = Record(f"sqlite:{place}/l.db", FenceConfig(), lambda: True)
    assert isinstance(record.problem, LedgerError)
    assert isinstance(ask(record, "1"), LedgerError)

    place.unlink()
    assert isinstance(ask(record, "2"), LedgerError)
    clock[0] += 1.5

    assert isinstance(ask(record, "3"), Fresh)
    assert record.problem is None
    record.close()


def test_an_open_ledger_answers_in_its_own_thread_and_is_peeked(tmp_path):
    record = Record(f"sqlite:{tmp_path}/l.db", FenceConfig(), lambda: True)

    assert isinstance(ask(record, "1"), Fresh)

    key = EffectRequest.make("i1", "t", {})
    from fencekit.core.state import IntentKey

    assert record.peek(IntentKey(key.principal, key.intent)) not in (None, 0)
    assert record.where.endswith("l.db")
    record.close()


def broken_sync(monkeypatch) -> None:
    def fails(_fd: int) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(jsonl, "sync", fails)


@pytest.mark.parametrize("idle", [True, False])
def test_a_file_that_is_no_longer_answered_from_is_opened_anew_while_nothing_runs(
    tmp_path, clock, idle, monkeypatch
):
    record = Record(f"jsonl:{tmp_path}/l.jsonl", FenceConfig(), lambda: idle)
    assert isinstance(ask(record, "1"), Fresh)
    with monkeypatch.context() as broken:
        broken_sync(broken)
        for ident in ("2", "3"):
            assert isinstance(ask(record, ident), LedgerError)
    assert isinstance(ask(record, "4"), LedgerError)
    clock[0] += 1.5

    assert isinstance(ask(record, "5"), Fresh if idle else LedgerError)
    record.close()


@pytest.mark.parametrize("url", ["jsonl:{}/l.jsonl", "sqlite:{}/l.db"])
def test_a_ledger_that_was_taken_away_is_never_begun_anew(tmp_path, clock, url):
    place = tmp_path / "folder"
    record = Record(url.format(place), FenceConfig(), lambda: True)
    assert isinstance(ask(record, "1"), Fresh)
    shutil.rmtree(place)
    for ident in range(2, 6):
        assert isinstance(ask(record, str(ident)), LedgerGone)
        clock[0] += 1.5

    assert not place.exists()
    record.close()


def test_the_call_that_asks_does_not_keep_a_failed_ledger_from_being_opened():
    door = Door()
    door.hold = True
    door.call(1)
    assert door.gate.busy
    assert not door.gate.holding
    door.release()

    assert door.gate.holding
    door.answer(1)
    assert not door.gate.holding
