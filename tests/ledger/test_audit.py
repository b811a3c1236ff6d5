"""The audit is kept for a bounded time: old lines go, the newest stay, and nobody waits for it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from fencekit import Fence, FenceConfig, InvalidRequest
from fencekit.fence import Calls
from fencekit.ledger import base, jsonl, jsonl_audit, memory, postgres, redis, sqlite_sweep
from fencekit.ledger.open import open_ledger
from tests.ledger.conformance import LEDGERS, TestClock, url_of

ROOT = Path(__file__).parents[2]
KEPT, ROWS = 10, 7
HOUR_MS = 3_600_000


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """Few lines are kept and looked at in one step, so that a short audit takes several."""
    for module in (base, memory, jsonl, sqlite_sweep, postgres, redis):
        for name, value in (("AUDIT_KEPT", KEPT), ("AUDIT_ROWS", ROWS)):
            if hasattr(module, name):
                monkeypatch.setattr(module, name, value)


def numbers(ledger):
    return [number for number, _ in ledger.audit()]


def write(ledger, clock, many, name="a"):
    """`many` events, two an intent."""
    fence = Fence(calls=Calls(ledger, FenceConfig()))
    for n in range(many // 2):
        fence.abort(fence.prepare(f"{name}{n}", "t").ticket, "no answer")


@pytest.mark.parametrize("name", LEDGERS)
def test_old_lines_go_and_the_newest_stay(name, tmp_path):
    clock = TestClock()
    ledger = LEDGERS[name](tmp_path, clock)
    assert ledger.sweep_audit(ledger.now().wall_ms) == 0
    write(ledger, clock, 40)
    events = list(ledger.audit())
    clock.ms += HOUR_MS
    border = ledger.now().wall_ms
    write(ledger, clock, 4, "b")
    assert ledger.sweep_audit(border - HOUR_MS) == 0, "nothing is as old as that"
    assert numbers(ledger) == list(range(1, 45))
    # Of 44 lines the newest 10 stay, although 40 are old.
    assert ledger.sweep_audit(border) == 34
    assert numbers(ledger) == list(range(35, 45))
    assert list(ledger.audit())[:6] == events[34:]
    assert ledger.sweep_audit(border) == 0
    assert [n for n, _ in ledger.audit(40)] == [41, 42, 43, 44]
    write(ledger, clock, 20, "c")
    assert numbers(ledger) == list(range(35, 65))
    # Now it is their age that keeps them.
    assert ledger.sweep_audit(border) == 6
    assert numbers(ledger) == list(range(41, 65))
    assert list(ledger.verify()) == []
    assert len(list(ledger.records())) == 32
    ledger.close()
    if name != "memory":
        again = LEDGERS[name](tmp_path, clock)
        assert numbers(again) == list(range(41, 65))
        write(again, clock, 2, "d")
        assert numbers(again) == list(range(41, 67))
        again.close()


@pytest.mark.parametrize("kind", ["sqlite", "postgresql", "redis"])
def test_two_sweep_while_others_write_and_read(kind, tmp_path):
    """Nothing goes twice, a reader sees numbers that grow, and every new line is there."""
    url = url_of(kind, tmp_path)
    ledgers = [open_ledger(url) for _ in range(3)]
    write(ledgers[0], None, 120)
    limit = list(ledgers[0].audit())[-1][1]["at_ms"] + 1
    done, swept, seen = threading.Event(), [], []
    while ledgers[0].now().wall_ms < limit + 5:
        pass
    write(ledgers[0], None, 10, "kept")

    def sweeps(ledger):
        swept.append(ledger.sweep_audit(limit))

    def follows():
        with Fence.open(url) as fence:
            while not done.is_set():
                seen.append(numbers(fence.ledger))

    sweepers = [threading.Thread(target=sweeps, args=(ledger,)) for ledger in ledgers[1:]]
    reader = threading.Thread(target=follows)
    for thread in (reader, *sweepers):
        thread.start()
    write(ledgers[0], None, 60, "b")
    for thread in sweepers:
        thread.join(60)
    done.set()
    reader.join(60)
    sweeps(ledgers[0])
    assert sum(swept) == 120
    assert len(numbers(ledgers[0])) == 70
    assert all(shown == sorted(set(shown)) for shown in seen)
    for ledger in ledgers:
        ledger.close()


def test_a_sweep_that_hangs_keeps_nobody_waiting(tmp_path):
    """SQLite has one writer at a time: a step must not hold on while it looks for the next."""
    fence = Fence.open(f"sqlite:{tmp_path / 'l.db'}")
    write(fence.ledger, None, 60)
    hanging, goes_on = threading.Event(), threading.Event()

    def hang():
        hanging.set()
        assert goes_on.wait(30)

    real, sqlite_sweep._give_way = sqlite_sweep._give_way, hang
    try:
        sweeper = threading.Thread(target=fence.ledger.sweep_audit, args=(2**60,))
        sweeper.start()
        assert hanging.wait(30)
        fence.commit(fence.prepare("pay", "t").ticket)
        assert sweeper.is_alive()
    finally:
        goes_on.set()
        sweeper.join(30)
        sqlite_sweep._give_way = real
    fence.close()


@pytest.mark.parametrize("step", ["audit archived", "rewritten", "renamed", "audit copied"])
def test_a_journal_killed_while_its_audit_is_swept_lost_nothing_new(step, tmp_path):
    url = f"jsonl:{tmp_path / 'l.jsonl'}"
    with Fence.open(url) as fence:
        write(fence.ledger, None, 40)
    program = (
        "import sys; from fencekit.ledger import jsonl, open\n"
        f"jsonl.AUDIT_KEPT = {KEPT}; open.open_ledger(sys.argv[1]).sweep_audit(2**60)"
    )
    env = {**os.environ, "FENCEKIT_CRASH_AT": step}
    killed = subprocess.run(
        [sys.executable, "-c", program, url], env=env, cwd=ROOT, timeout=60, check=False
    )
    assert killed.returncode == -signal.SIGKILL
    with Fence.open(url) as fence:
        assert numbers(fence.ledger) in (list(range(1, 41)), list(range(31, 41)))
        fence.ledger.sweep_audit(2**60)
        assert numbers(fence.ledger) == list(range(31, 41))
        write(fence.ledger, None, 2, "b")
        assert numbers(fence.ledger) == list(range(31, 43))
        assert list(fence.ledger.verify()) == []


def test_a_torn_line_of_the_archive_hides_nothing(tmp_path):
    """A power cut in the middle of archiving: the line is in the journal still."""
    url = f"jsonl:{tmp_path / 'l.jsonl'}"
    with Fence.open(url) as fence:
        write(fence.ledger, None, 6)
    archived = tmp_path / "l.jsonl.audit"
    jsonl_audit.archive(tmp_path / "l.jsonl", archived)
    archived.write_bytes(archived.read_bytes()[:-7])
    with Fence.open(url) as fence:
        fence.ledger.compact()
        write(fence.ledger, None, 2, "b")
        assert numbers(fence.ledger) == list(range(1, 9))


def test_sweeping_a_fence_keeps_the_audit_for_its_time(tmp_path):
    url = f"sqlite:{tmp_path / 'l.db'}"
    with Fence.open(url) as fence:
        write(fence.ledger, None, 40)
        fence.sweep()
        assert len(numbers(fence.ledger)) == 40
    with Fence.open(url, FenceConfig(audit_ttl=0.001)) as fence:
        while fence.ledger.now().wall_ms <= list(fence.ledger.audit())[-1][1]["at_ms"] + 1:
            pass
        fence.sweep()
        assert len(numbers(fence.ledger)) == KEPT
    with pytest.raises(InvalidRequest, match="audit_ttl"):
        FenceConfig(audit_ttl=0)
