"""Every ledger obeys its marker in the same way, and no admission slips past a change of it."""

from __future__ import annotations

import threading

import pytest

from fencekit.core.errors import FenceError, LedgerMoved, MoveRefused
from fencekit.core.messages import Fill, Fresh, Mark, Ok
from fencekit.core.state import OPEN, Marker
from fencekit.core.table import Situation
from fencekit.ledger.open import open_ledger
from tests.ledger.conformance import DURABLE, LEDGERS, SHARED, START_MS, TestClock, url_of
from tests.ledger.situations import KEY, VERBS, Script, T, U, reach
from tests.ledger.test_conformance import Pair, seen_by

WAYS = {
    "draining": ["draining"],
    "sealed": ["draining", "sealed"],
    "handed": ["draining", "sealed", "handed"],
    "reopening": ["draining", "sealed", "reopening"],
    "closed": ["closed"],
}


def mark(ask, clock, phase, before=OPEN):
    """Take one step of the move "m" and return the marker."""
    wanted = Marker(phase, "elsewhere", "m")
    assert ask(Mark(f"{phase:0<32}", START_MS + clock.ms, before, wanted)) == Ok("marked")
    return wanted


# The rule is the core's and the marker a value like any other: one server of each kind is enough.
@pytest.mark.parametrize("phase", WAYS)
@pytest.mark.parametrize("name", [name for name in LEDGERS if "-" not in name])
def test_every_verb_in_every_situation_behind_the_marker(name, phase, tmp_path):
    for where in seen_by(name):
        path = tmp_path / where.name
        path.mkdir()
        one = Pair(name, path)
        script = one.script()
        reach(where, script)
        before = OPEN
        for step in WAYS[phase]:
            before = mark(one.ask, one.clock, step, before)
        for verb in VERBS:
            for ticket in (T, U):
                getattr(script, verb)(ticket)
        script.current()
        one.compare()
        if name in DURABLE:
            one.reopen()
            one.compare()
        one.ledger.close()


@pytest.mark.parametrize("name", LEDGERS)
def test_a_closed_ledger_takes_what_is_copied_into_it(name, tmp_path):
    (tmp_path / "from").mkdir()
    (tmp_path / "to").mkdir()
    source, target = Pair(name, tmp_path / "from"), Pair(name, tmp_path / "to")
    reach(Situation.DONE_OTHERS, source.script())
    source.script().current()
    mark(target.ask, target.clock, "closed")
    filling = Fill(
        "f" * 32,
        START_MS,
        "m",
        tuple(source.ledger.records()),
        tuple(source.ledger.domains()),
        source.ledger.floor(),
    )
    for _ in range(2):
        assert target.ask(filling) == Ok("filled")
    target.compare()
    assert list(target.ledger.records()) == list(source.ledger.records())
    source.ledger.close()
    target.ledger.close()


@pytest.mark.parametrize("name", LEDGERS)
@pytest.mark.parametrize("phase", ["sealed", "closed"])
def test_nothing_is_swept_from_a_ledger_that_is_copied(name, phase, tmp_path):
    one = Pair(name, tmp_path)
    reach(Situation.DONE_OTHERS, one.script())
    before = OPEN
    for step in WAYS[phase]:
        before = mark(one.ask, one.clock, step, before)
    one.clock.ms += 3_600_000 * 48
    assert one.ledger.sweep() == 0
    assert one.ledger.peek(KEY) > 0
    one.ledger.close()


def _several(name, path):
    """Two holders of one ledger where it can be shared, else one."""
    if name in ("memory", "jsonl"):
        return [LEDGERS[name](path, TestClock())]
    return [open_ledger(url_of(name, path)) for _ in range(2)]


@pytest.mark.parametrize("name", LEDGERS)
def test_no_admission_follows_the_marker_in_the_audit(name, tmp_path):
    """Many admit while somebody marks: each is either before the mark or refused by it."""
    ledgers = _several(name, tmp_path)
    ready, admitted = threading.Semaphore(0), []

    def admit(index):
        ledger, clock = ledgers[index % len(ledgers)], TestClock()
        clock.ms = ledger.now().wall_ms - START_MS
        script = Script(ledger.call, clock, "")
        for n in range(10_000):
            try:
                if isinstance(script.prepare(f"{index:02x}{n:030x}"), Fresh):
                    admitted.append(n)
                script.release(f"{index:02x}{n:030x}")
            except LedgerMoved:
                return
            except FenceError:
                continue
            finally:
                ready.release()

    threads = [threading.Thread(target=admit, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for _ in range(40):
        ready.acquire(timeout=30)
    clock = TestClock(ledgers[0].now().wall_ms - START_MS)
    mark(ledgers[0].call, clock, "draining")
    for thread in threads:
        thread.join(60)
    events = [event["event"] for _, event in ledgers[0].audit()]
    assert "admitted" not in events[events.index("draining") :]
    assert events.count("admitted") == len(admitted)
    for ledger in ledgers:
        ledger.close()


@pytest.mark.parametrize("name", SHARED)
def test_a_marker_that_changes_between_reading_and_writing_turns_the_attempt_away(name, tmp_path):
    first, second = _several(name, tmp_path)
    store, clock = first._store, TestClock(first.now().wall_ms - START_MS)
    write = store.compare_and_write

    def late(groups, *now):
        store.compare_and_write = write
        mark(second.call, clock, "draining")
        return write(groups, *now)

    store.compare_and_write = late
    with pytest.raises(LedgerMoved):
        Script(first.call, clock, "").prepare(T)
    assert [event["event"] for _, event in first.audit()] == ["draining"]
    first.close()
    second.close()


@pytest.mark.parametrize("name", SHARED)
def test_an_opening_that_fails_admits_nobody_of_its_batch(name, tmp_path):
    """A prepare that rides behind the opening stands or falls with it."""
    first, second = _several(name, tmp_path)
    store, clock = first._store, TestClock(first.now().wall_ms - START_MS)
    closed = mark(first.call, clock, "closed")
    write = store.compare_and_write

    def late(groups, *now):
        store.compare_and_write = write
        # Opened and closed again by somebody else: the marker is another one now.
        opened = mark(second.call, clock, "open", closed)
        other = Marker("closed", "elsewhere", "another")
        assert second.call(Mark("e" * 32, START_MS + clock.ms, opened, other)) == Ok("marked")
        return write(groups, *now)

    store.compare_and_write = late
    opening = Mark("d" * 32, START_MS + clock.ms, closed, Marker("open", "elsewhere", "m"))
    riding = []
    Script(riding.append, clock, "").prepare(T)
    answers = first._run([opening, *riding])
    assert [type(answer) for answer in answers] == [MoveRefused, LedgerMoved]
    assert list(first.records()) == []
    first.close()
    second.close()
