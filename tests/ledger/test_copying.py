"""A ledger is moved whole: killed at any step at most one side is open, and nothing is lost."""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from fencekit import Fence, Fresh, IntentFailed, Replay
from fencekit.core.errors import LedgerDamaged, LedgerMoved, MoveRefused
from fencekit.core.state import Done, Unknown
from fencekit.ledger import copying
from fencekit.ledger.copying import copy, give_up
from fencekit.ledger.open import open_ledger
from tests.ledger.conformance import url_of

ROOT = Path(__file__).parents[2]
STEPS = [
    "closed",
    "draining",
    "drained",
    "ended",
    "sealed",
    "filled:1",
    "filled:2",
    "compared",
    "handed",
    "opened",
]
KINDS = ["sqlite", "jsonl", "postgresql", "redis"]
# Every step between the two most used ledgers; the others have the same steps and other storage.
KILLS = [(("sqlite", "postgresql"), step) for step in STEPS] + [
    (way, step)
    for way in (("jsonl", "sqlite"), ("redis", "jsonl"))
    for step in ("draining", "sealed", "filled:1")
]
WAYS = [(a, b) for a, b in itertools.product(KINDS, KINDS) if a != b]


@pytest.fixture
def urls(request, tmp_path):
    kinds = getattr(request, "param", ("sqlite", "postgresql"))
    for side in ("from", "to"):
        (tmp_path / side).mkdir()
    return tuple(url_of(k, tmp_path / side) for k, side in zip(kinds, ("from", "to"), strict=True))


def fill(url):
    """Done, unknown, released, forgotten, in flight; domains with numbers, a floor above zero."""
    with Fence.open(url) as fence:
        for n in range(210):
            fence.commit(fence.prepare(f"done-{n}", "charge", {"n": 2**70}, domain="d").ticket, n)
        fence.abort(fence.prepare("lost", "charge", domain="lost").ticket, "reset by peer")
        fence.release(fence.prepare("free", "charge").ticket, "refused")
        fence.reserve("gone", 0)
        fence.evict_domain("gone")
        return fence.prepare("running", "charge", domain="e").ticket


def opened(url):
    """Whether a ledger admits anything new."""
    with Fence.open(url) as fence:
        try:
            fence.release(fence.prepare("probe", "t").ticket)
        except LedgerMoved:
            return False
        return True


def check_moved(source, target, ticket):
    """All is where it belongs, and each intent answers over there as it would have here."""
    with Fence.open(source) as fence:
        for intent in ("done-0", "lost", "new"):
            with pytest.raises(LedgerMoved, match="was moved to"):
                fence.prepare(intent, "charge")
        with pytest.raises(LedgerMoved):
            fence.commit(ticket, "late")
    with Fence.open(target) as fence:
        states = {s.key.intent: s.record.state for s in fence.intents()}
        assert sum(isinstance(state, Done) for state in states.values()) == 210
        assert {i for i, s in states.items() if isinstance(s, Unknown)} == {"lost", "running"}
        replay = fence.prepare("done-7", "charge", {"n": 2**70}, domain="d")
        assert isinstance(replay, Replay)
        assert replay.result == 7
        with pytest.raises(IntentFailed, match="reset by peer"):
            fence.prepare("lost", "charge", domain="lost")
        with pytest.raises(IntentFailed, match="before this attempt ended"):
            fence.prepare("running", "charge", domain="e")
        assert fence.current("d").seq == 210
        assert fence.current("never seen").seq == 1
        assert isinstance(fence.prepare("free", "charge"), Fresh)
        # The holder ran it: over there his word still counts.
        assert fence.commit(ticket, "late").verify()
        assert list(fence.ledger.verify()) == []


@pytest.mark.parametrize("urls", WAYS, indirect=True, ids="-".join)
def test_every_kind_moves_to_every_other(urls):
    ticket = fill(urls[0])
    old, new = map(open_ledger, urls)
    said = []
    copied = copy(old, new, 0, said.append)
    assert (copied.records, copied.domains, copied.made_unknown) == (213, 3, 1)
    assert old.marker().move == new.marker().move
    assert [event["event"] for _, event in old.audit()][-2:] == ["sealed", "handed"]
    assert [event["event"] for _, event in new.audit()] == ["closed", "open"]
    assert copy(old, new, 0, said.append).records == 0
    old.close()
    new.close()
    check_moved(*urls, ticket)


@pytest.mark.parametrize(("urls", "step"), KILLS, indirect=["urls"], ids=str)
def test_killed_at_any_step_at_most_one_side_is_open(urls, step):
    ticket = fill(urls[0])
    mover = [sys.executable, "-m", "tests.ledger.mover", *urls]
    for _ in range(2):
        killed = subprocess.run(
            mover, cwd=ROOT, env={**os.environ, "FENCEKIT_CRASH_AT": step}, check=False, timeout=60
        )
        assert killed.returncode in (-signal.SIGKILL, 0)
        assert [opened(url) for url in urls].count(True) <= 1
    ended = subprocess.run(mover, cwd=ROOT, check=True, timeout=60, capture_output=True)
    assert ended.stdout.strip() in (b"213", b"0")
    assert [opened(url) for url in urls] == [False, True]
    check_moved(*urls, ticket)


def test_what_runs_may_end_while_it_drains(urls):
    ticket = fill(urls[0])
    old, new = map(open_ledger, urls)
    with Fence.open(urls[0]) as fence:
        mover = threading.Thread(target=copy, args=(old, new, 30, lambda text: None))
        mover.start()
        while old.marker().phase != "draining":
            pass
        with pytest.raises(LedgerMoved, match="is being moved to"):
            fence.prepare("new", "charge")
        assert isinstance(fence.prepare("running", "charge", domain="e", attempt=ticket.id), Fresh)
        fence.heartbeat(ticket)
        cert = fence.commit(ticket, "in time")
        mover.join(30)
    with Fence.open(urls[1]) as fence:
        assert fence.prepare("running", "charge", domain="e").cert == cert
    old.close()
    new.close()


def test_a_move_that_drains_is_given_up(urls, monkeypatch):
    fill(urls[0])
    old, new = map(open_ledger, urls)
    monkeypatch.setattr(copying, "new_id", iter_or_stop(copying.new_id, 3))
    with pytest.raises(KeyboardInterrupt):
        copy(old, new, 0, lambda text: None)
    monkeypatch.undo()
    assert (old.marker().phase, new.marker().phase) == ("draining", "closed")
    give_up(old, new)
    assert [opened(url) for url in urls] == [True, True]
    third = open_ledger(urls[1] + "2")
    copy(old, third, 0, lambda text: None)
    third.close()
    with pytest.raises(MoveRefused, match="was moved to"):
        give_up(old, new)
    old.close()
    new.close()


def iter_or_stop(real, times):
    """Draw ids until somebody presses Ctrl-C."""
    left = iter(range(times))

    def draw():
        if next(left, None) is None:
            raise KeyboardInterrupt
        return real()

    return draw


def test_a_ledger_that_is_not_empty_is_refused_and_stays_open(urls):
    fill(urls[0])
    with Fence.open(urls[1]) as fence:
        fence.prepare("mine", "t")
    old, new = map(open_ledger, urls)
    with pytest.raises(MoveRefused, match="is not empty"):
        copy(old, new, 0, lambda text: None)
    assert [opened(url) for url in urls] == [True, True]
    old.close()
    new.close()


def test_a_third_ledger_cannot_join_a_move(urls, tmp_path):
    fill(urls[0])
    old, new = map(open_ledger, urls)
    copy(old, new, 0, lambda text: None)
    third = open_ledger(f"sqlite:{tmp_path / 'third.db'}")
    with pytest.raises(MoveRefused, match="was moved to"):
        copy(old, third, 0, lambda text: None)
    with pytest.raises(MoveRefused):
        copy(third, old, 0, lambda text: None)
    with pytest.raises(MoveRefused):
        copy(third, third, 0, lambda text: None)
    assert third.marker().phase == "open"
    copy(new, third, 0, lambda text: None)
    for ledger in (old, new, third):
        ledger.close()


def test_what_arrives_otherwise_keeps_the_new_ledger_closed(urls, monkeypatch):
    """One record is lost on the way: the digests differ, and nobody may go on over there."""
    fill(urls[0])
    old, new = map(open_ledger, urls)
    batches = copying._batches
    monkeypatch.setattr(copying, "_batches", lambda r: itertools.islice(batches(r), 1))
    with pytest.raises(LedgerDamaged, match=r"does not hold .*\(200 of 213 records"):
        copy(old, new, 0, lambda text: None)
    monkeypatch.undo()
    assert [opened(url) for url in urls] == [False, False]
    copy(old, new, 0, lambda text: None)
    assert [opened(url) for url in urls] == [False, True]
    old.close()
    new.close()
