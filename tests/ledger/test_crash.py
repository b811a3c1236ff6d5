"""SIGKILL at every named point: what was answered is there, and nothing runs twice."""

from __future__ import annotations

import collections
import contextlib
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from fencekit import Fence, Fresh, IntentFailed
from fencekit.core.state import Done, Unknown

ROOT = Path(__file__).parents[2]
SQLITE = ["begun", "decided", "written", "synced"]
JSONL = ["decided", "written", "synced"]
POINTS = [("sqlite", p) for p in SQLITE] + [("jsonl", p) for p in JSONL]


def run_worker(url, effects, crash_at="", count=4):
    return subprocess.run(
        [sys.executable, "-m", "tests.ledger.worker", url, str(count), str(effects)],
        cwd=ROOT,
        env={**os.environ, "FENCEKIT_CRASH_AT": crash_at},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def url_of(kind, folder):
    return f"{kind}:{folder / 'ledger'}"


@pytest.mark.parametrize("passing", [1, 2, 3, 4, 5, 8])
@pytest.mark.parametrize(("kind", "point"), POINTS)
def test_killed_at_any_point(kind, point, passing, tmp_path):
    url, effects = url_of(kind, tmp_path), tmp_path / "effects"
    first = run_worker(url, effects, f"{point}:{passing}")
    assert first.returncode == -signal.SIGKILL, first.stderr
    heard = dict.fromkeys(line.split()[1] for line in first.stdout.splitlines() if "done" in line)
    hashes = {a[1]: a[2] for line in first.stdout.splitlines() if (a := line.split())[0] == "done"}
    admitted = [a[1] for line in first.stdout.splitlines() if (a := line.split())[0] == "fresh"]

    with Fence.open(url) as fence:
        states = {shown.key.intent: shown.record.state for shown in fence.intents()}
        # Promise 2: every answer that was heard is on disk.
        for intent in heard:
            assert states[intent].sealed.hash == hashes[intent]
        for intent in set(admitted) - set(heard):
            assert isinstance(states[intent], Done | Unknown)
        assert list(fence.ledger.verify()) == []
        numbers = [s.ticket.seq for s in states.values()]
        assert len(set(numbers)) == len(numbers)

    # Promise 1 and 4: whoever comes next runs nothing that may have run.
    ran = collections.Counter(effects.read_text().split() if effects.exists() else [])
    with Fence.open(url) as fence:
        for i in range(4):
            with contextlib.suppress(IntentFailed):
                if isinstance(fence.prepare(f"i{i}", "effect", domain="d"), Fresh):
                    ran.update([f"i{i}"])
    assert set(ran.values()) == {1}


@pytest.mark.parametrize("kind", ["sqlite", "jsonl"])
def test_an_unanswered_admission_of_a_dead_process_is_not_free(kind, tmp_path):
    """The admission was synced and never heard: the next caller may not take it for absent."""
    url = url_of(kind, tmp_path)
    run_worker(url, tmp_path / "effects", "synced:1")
    with Fence.open(url) as fence, pytest.raises(IntentFailed, match="process ended"):
        fence.prepare("i0", "effect", domain="d")


@pytest.mark.parametrize(
    "point",
    ["audit archived", "rewritten", "rewrite synced", "renamed", "directory synced"],
)
def test_compaction_killed_at_every_step(point, tmp_path):
    url, effects = url_of("jsonl", tmp_path), tmp_path / "effects"
    assert run_worker(url, effects).returncode == 0
    program = f"from fencekit import Fence; Fence.open({url!r}).ledger.compact()"
    for _ in range(2):
        killed = subprocess.run(
            [sys.executable, "-c", program],
            cwd=ROOT,
            env={**os.environ, "FENCEKIT_CRASH_AT": point},
            check=False,
        )
        assert killed.returncode == -signal.SIGKILL
    with Fence.open(url) as fence:
        assert sorted(s.key.intent for s in fence.intents()) == ["i0", "i1", "i2", "i3"]
        assert [n for n, _ in fence.ledger.audit()] == list(range(1, 9))
        assert list(fence.ledger.verify()) == []
        fence.ledger.compact()
        assert [n for n, _ in fence.ledger.audit()] == list(range(1, 9))


def test_two_processes_share_sqlite_and_one_is_killed(tmp_path):
    """The survivor is told that the dead one's attempt may have run, at once."""
    url = url_of("sqlite", tmp_path)
    other = subprocess.Popen(
        [sys.executable, "-c", HOLD.format(url=url)], cwd=ROOT, stdout=subprocess.PIPE, text=True
    )
    assert other.stdout.readline().strip() == "held"
    with Fence.open(url) as fence:
        with pytest.raises(Exception, match="in flight"):
            fence.prepare("held", "t")
        other.kill()
        other.wait()
        with pytest.raises(IntentFailed, match="process ended"):
            fence.prepare("held", "t")
    other.stdout.close()


HOLD = """
from fencekit import Fence
fence = Fence.open({url!r})
fence.prepare("held", "t", holder="process")
print("held", flush=True)
import time
time.sleep(60)
"""
