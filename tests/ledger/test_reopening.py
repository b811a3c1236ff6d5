"""A ledger whose successor is lost opens again: never while that one is there, nothing runnable."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from pathlib import Path

import psycopg
import pytest
import redis

from fencekit import Fence, Fresh, IntentFailed, Replay
from fencekit.core.errors import InvalidRequest, LedgerError, LedgerMoved, MoveRefused
from fencekit.core.messages import Mark
from fencekit.core.state import InFlight, Marker
from fencekit.ledger import copying
from fencekit.ledger.copying import copy, give_up
from fencekit.ledger.open import open_ledger
from fencekit.ledger.presence import find
from fencekit.ledger.reopening import reopen, standing
from tests.ledger import servers
from tests.ledger.conformance import url_of
from tests.ledger.test_copying import ROOT, fill, opened

KINDS = ["sqlite", "jsonl", "postgresql", "redis"]


@pytest.fixture
def urls(request, tmp_path):
    kinds = getattr(request, "param", ("sqlite", "postgresql"))
    for side in ("from", "to"):
        (tmp_path / side).mkdir()
    return tuple(url_of(k, tmp_path / side) for k, side in zip(kinds, ("from", "to"), strict=True))


def moved(urls):
    fill(urls[0])
    with (
        contextlib.closing(open_ledger(urls[0])) as old,
        contextlib.closing(open_ledger(urls[1])) as new,
    ):
        copy(old, new, 0, lambda text: None)


def lose(url):
    """Take a ledger away, whatever it is kept in."""
    kind = url.partition(":")[0]
    if kind == "postgresql":
        with psycopg.connect(servers.postgres("wheel"), autocommit=True) as db:
            db.execute(f"DROP SCHEMA {url.rpartition('schema=')[2]} CASCADE")
    elif kind == "redis":
        db = redis.Redis.from_url(servers.redis(kind="wheel"))
        db.delete(*db.keys(f"*{url.rpartition('namespace=')[2]}*"))
        db.close()
    else:
        path = Path(url.partition(":")[2])
        for one in path.parent.glob(f"{path.name}*"):
            if one.is_file():
                one.unlink()


def check_reopened(url):
    with Fence.open(url) as fence:
        assert isinstance(fence.prepare("done-7", "charge", {"n": 2**70}, domain="d"), Replay)
        with pytest.raises(IntentFailed, match="reset by peer"):
            fence.prepare("lost", "charge", domain="lost")
        with pytest.raises(IntentFailed, match="before this attempt ended"):
            fence.prepare("running", "charge", domain="e")
        assert isinstance(fence.prepare("new", "charge"), Fresh)
        assert list(fence.ledger.verify()) == []


@pytest.mark.parametrize("urls", [(k, t) for k in KINDS for t in KINDS if k != t], indirect=True)
def test_only_once_the_other_one_is_gone(urls):
    moved(urls)
    with contextlib.closing(open_ledger(urls[0])) as old:
        assert standing(old).was_open
        with pytest.raises(MoveRefused, match="is not lost: it was moved here from"):
            reopen(old, "op", "test", urls[1])
        assert old.marker().phase == "handed"
    assert [opened(url) for url in urls] == [False, True]
    lose(urls[1])
    assert find(urls[1]) is None
    assert find(urls[1]) is None, "looking made it"
    with contextlib.closing(open_ledger(urls[0])) as old:
        assert reopen(old, "op", "the disk burnt", urls[1]) == 0
        noted = [e for _, e in old.audit() if e["event"] in ("reopening", "open")]
        assert [(e["event"], e["operator"], e["note"]) for e in noted] == [
            ("reopening", "op", "the disk burnt"),
            ("open", "op", "the disk burnt"),
        ]
        with pytest.raises(MoveRefused, match="it is open; only a ledger that was moved"):
            reopen(old, "op", "again", urls[1])
    check_reopened(urls[0])


@pytest.mark.parametrize("step", ["reopening", "ended", "reopened"])
def test_killed_at_any_step_it_is_not_open_and_goes_on(urls, step):
    moved(urls)
    lose(urls[1])
    program = (
        "import sys; from fencekit.ledger.open import open_ledger\n"
        "from fencekit.ledger.reopening import reopen\n"
        "reopen(open_ledger(sys.argv[1]), 'op', 'note', sys.argv[2])"
    )
    killed = subprocess.run(
        [sys.executable, "-c", program, *urls],
        env={**os.environ, "FENCEKIT_CRASH_AT": step}, cwd=ROOT, timeout=60, check=False,
    )  # fmt: skip
    assert killed.returncode == -signal.SIGKILL
    assert opened(urls[0]) == (step == "reopened")
    if step != "reopened":
        with contextlib.closing(open_ledger(urls[0])) as old:
            with contextlib.closing(open_ledger(urls[1])) as new:
                with pytest.raises(MoveRefused, match="is being opened again"):
                    copy(old, new, 0, lambda text: None)
                with pytest.raises(MoveRefused, match="is being opened again"):
                    give_up(old, new)
            lose(urls[1])
            reopen(old, "op", "note", urls[1])
    check_reopened(urls[0])


def half_moved(urls, monkeypatch, step):
    """A copy that was interrupted before a step after the sealing."""
    fill(urls[0])
    with (
        contextlib.closing(open_ledger(urls[0])) as old,
        contextlib.closing(open_ledger(urls[1])) as new,
    ):
        with monkeypatch.context() as patch:
            patch.setattr(copying.crash, "point", iter_or_stop_at(step))
            with pytest.raises(KeyboardInterrupt):
                copy(old, new, 0, lambda text: None)
        assert (old.marker().phase, new.marker().phase) == ("sealed", "closed")


def iter_or_stop_at(step):
    def point(name):
        if name == step:
            raise KeyboardInterrupt

    return point


def test_a_copy_that_goes_on_later_opens_nothing(urls, monkeypatch):
    """It compared, and sleeps before it hands over; meanwhile the old one is opened again."""
    fill(urls[0])
    old, new = map(open_ledger, urls)
    interrupted = []

    def meanwhile(name):
        if name == "compared":
            interrupted.append(name)
            with monkeypatch.context() as gone:
                gone.setattr("fencekit.ledger.reopening.find", lambda url: None)
                assert not standing(old).was_open
                reopen(old, "op", "the network is cut", urls[1])

    with monkeypatch.context() as patch:
        patch.setattr(copying.crash, "point", meanwhile)
        with pytest.raises(MoveRefused, match="it is open"):
            copy(old, new, 0, lambda text: None)
    assert interrupted
    assert (old.marker().phase, new.marker().phase) == ("open", "closed")
    for again in (lambda: copy(old, new, 0, lambda text: None), lambda: give_up(old, new)):
        with pytest.raises(MoveRefused):
            again()
        assert (old.marker().phase, new.marker().phase) == ("open", "closed")
    old.close()
    new.close()
    check_reopened(urls[0])


def test_a_half_filled_one_that_answers_is_finished_not_given_up(urls, monkeypatch):
    half_moved(urls, monkeypatch, "filled")
    with contextlib.closing(open_ledger(urls[0])) as old:
        with pytest.raises(MoveRefused, match="copy` again to finish"):
            reopen(old, "op", "note", urls[1])
        lose(urls[1])
        assert not standing(old).was_open
        reopen(old, "op", "note", urls[1])
    check_reopened(urls[0])


def test_what_is_still_in_flight_becomes_unknown(urls):
    """A process of an older fencekit may have admitted it while the ledger drained."""
    moved(urls)
    lose(urls[1])
    with contextlib.closing(open_ledger(urls[0])) as old:
        records = {key.intent: (key, record) for key, record in old.records()}
        key, record = records["running"]
        ticket, holder = record.state.ticket, record.state.holder
        flying = InFlight(ticket, holder, record.state.boot, 0, 0, "fence")
        listing = [(key, copying.replace(record, state=flying))]
        old.records = lambda: iter(listing)
        assert reopen(old, "op", "note", urls[1]) == 1


def test_a_server_that_answers_but_shows_nothing_is_not_lost(urls, tmp_path):
    """A wrong password is no proof that the ledger is gone."""
    moved(urls)
    with contextlib.closing(open_ledger(urls[0])) as old:
        marker = old.marker()
        with pytest.raises(InvalidRequest, match="say its URL with --to"):
            reopen(old, "op", "note", f"sqlite:{tmp_path}/another.db")
        port = servers.free_port()
        assert find(f"redis://127.0.0.1:{port}/0") is None
        assert find(f"postgresql://u@127.0.0.1:{port}/db") is None
        assert find("memory:") is None
        wrong = urls[1].replace("postgresql://", "postgresql://nobody:wrong@", 1)
        if "@" in urls[1]:
            wrong = urls[1].replace("postgres:", "nobody:wrong", 1)
        with pytest.raises(LedgerError):
            find(wrong)
        assert old.marker() == marker


def test_a_damaged_one_is_lost_and_a_locked_one_is_not(tmp_path):
    url = f"jsonl:{tmp_path / 'l.jsonl'}"
    with Fence.open(url) as fence:
        fence.prepare("a", "t")
        with pytest.raises(LedgerError, match="is held by process"):
            find(url)
    path = tmp_path / "l.jsonl"
    path.write_bytes(path.read_bytes().replace(b'"n":3', b'"n":4', 1))
    assert find(url) is None


def test_marks_of_another_move_open_nothing(urls):
    moved(urls)
    with contextlib.closing(open_ledger(urls[0])) as old:
        have = old.marker()
        wrong = Marker("reopening", have.other, "another move")
        answer = old.call(Mark("a" * 32, old.now().wall_ms, have, wrong))
        assert isinstance(answer, MoveRefused)
        with Fence.open(urls[0]) as fence, pytest.raises(LedgerMoved):
            fence.prepare("new", "charge")
