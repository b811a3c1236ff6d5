"""A power cut, as far as it can be played without one: what was not synced is lost, or half of it.

SQLite syncs its log at every commit, so what is after the end of the log at the last answer may be
lost at any place; and the pages that a checkpoint writes may be lost one by one while the log is
still there. (The journal's cuts are in test_journal.py.)
"""

from __future__ import annotations

import itertools
import struct

import pytest

from fencekit import Fence
from fencekit.core.state import Done, InFlight, Unknown

HEADER, FRAME_HEADER = 32, 24


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """The file, its log, and after each answer the log's end and what was acknowledged by then."""
    path = tmp_path_factory.mktemp("power") / "l.db"
    log = path.with_name("l.db-wal")
    fence = Fence.open(f"sqlite:{path}")
    db = fence.ledger._db
    assert db.execute("PRAGMA synchronous").fetchone() == (2,)
    assert db.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    before = path.read_bytes()
    answers, kept = [(0, {})], {}
    for n in range(6):
        ticket = fence.prepare(f"i{n}", "t", {"n": n}, domain="d").ticket
        answers.append((log.stat().st_size, kept := {**kept, f"i{n}": "admitted"}))
        if n % 3 == 2:
            fence.abort(ticket, "no answer")
            ended = "aborted"
        else:
            ended = fence.commit(ticket, "r" * 3000 * n).hash
        answers.append((log.stat().st_size, kept := {**kept, f"i{n}": ended}))
    whole = log.read_bytes()
    db.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()
    after = path.read_bytes()
    fence.close()
    (size,) = struct.unpack(">I", whole[8:12])
    return before, after, whole, answers, size


def check(folder, file, log, kept):
    """Everything acknowledged is there, the rest is there or not, and nothing is damaged."""
    for one in folder.glob("l.db*"):
        if one.is_file():
            one.unlink()
    (folder / "l.db").write_bytes(file)
    (folder / "l.db-wal").write_bytes(log)
    with Fence.open(f"sqlite:{folder / 'l.db'}") as fence:
        states = {shown.key.intent: shown.record.state for shown in fence.intents()}
        for intent, how in kept.items():
            state = states[intent]
            if how == "aborted":
                assert isinstance(state, Unknown), intent
            elif how == "admitted":
                assert isinstance(state, InFlight | Unknown | Done), intent
            else:
                assert isinstance(state, Done), intent
                assert state.sealed.hash == how
        assert list(fence.ledger.verify()) == []
        return len(states)


def test_the_log_cut_at_every_frame_after_the_last_answer(written, tmp_path):
    """At every boundary, in the middle of every frame, and with that frame's page never written."""
    before, _, whole, answers, size = written
    frame, cuts = FRAME_HEADER + size, 0
    assert (len(whole) - HEADER) % frame == 0
    for (end, kept), (next_end, _) in itertools.pairwise(answers):
        for cut in range(max(end, HEADER), next_end + 1, frame):
            check(tmp_path, before, whole[:cut], kept)
            check(tmp_path, before, whole[: cut + frame // 2], kept)
            lost = whole[:cut] + bytes(frame) + whole[cut + frame : next_end]
            check(tmp_path, before, lost, kept)
            cuts += 1
    assert cuts > 24


def test_the_cut_can_lose_an_answer(written, tmp_path):
    """One frame earlier and an acknowledged answer is gone: the log's end is what counts."""
    before, _, whole, answers, size = written
    for end, kept in answers[1:]:
        with pytest.raises((AssertionError, KeyError)):
            check(tmp_path, before, whole[: end - FRAME_HEADER - size], kept)


def test_a_checkpoint_cut_at_every_page(written, tmp_path):
    """The log is kept until every page is synced: any of them may be old, new, torn or zero."""
    before, after, whole, answers, size = written
    _, kept = answers[-1]
    pages = len(after) // size
    assert pages > 8
    old = before.ljust(len(after), b"\0")
    for page in range(pages):
        at, end = page * size, (page + 1) * size
        for content in (after[at:end], after[at : at + 512] + old[at + 512 : end]):
            mixed = old[:at] + content + old[end:]
            assert check(tmp_path, mixed, whole, kept) == 6
            late = after[:at] + old[at:end] + after[end:]
            assert check(tmp_path, late, whole, kept) == 6
