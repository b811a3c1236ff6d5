"""The real functions, explored exhaustively; and seven planted faults that must be found."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fencekit.core import domains, endings, operators, prepare, sweep, table
from fencekit.core.messages import Head
from fencekit.core.state import Absent, Unknown
from fencekit.core.table import OnCommit, OnPrepare
from tests.conftest import REQUIRE_ALL
from tests.core import exploration, exploration_reads


def test_no_promise_breaks_without_operators():
    states, _ = exploration.explore(operators=0)

    assert states > 2_500


def test_no_promise_breaks_with_an_operator():
    states, _ = exploration.explore(operators=1)

    assert states > 50_000


def test_reclaim_gives_up_a_lapsed_attempt_and_nothing_else():
    states, _ = exploration.explore(operators=0, lease_expiry="reclaim")

    assert states > 12_000


def test_no_promise_breaks_with_three_tickets():
    states, _ = exploration.explore(operators=0, tickets=3)

    assert states > 60_000


def test_a_read_set_is_never_stale_at_admission_or_commit():
    states, _ = exploration_reads.explore()

    assert states > 100


def _patched_row(monkeypatch, module, verb, when, cell):
    original = table.row

    def row(situation):
        cells = original(situation)
        return replace(cells, **{verb: cell}) if situation in when else cells

    monkeypatch.setattr(module, "row", row)


def test_finds_a_clear_that_names_no_revision(monkeypatch):
    original = operators.clear

    def clear(draft, command, record):
        return original(draft, replace(command, revision=record.revision), record)

    monkeypatch.setattr("fencekit.core.decide.clear", clear)
    with pytest.raises(exploration.Broken, match=r"^4: an operator freed"):
        exploration.explore(operators=1)


def test_finds_a_lease_end_that_frees(monkeypatch):
    _patched_row(monkeypatch, prepare, "prepare", {table.Situation.OTHERS_LAPSED}, OnPrepare.ADMIT)
    with pytest.raises(exploration.Broken, match=r"^1: "):
        exploration.explore(operators=0)


def test_finds_a_commit_that_ignores_the_ticket(monkeypatch):
    _patched_row(monkeypatch, endings, "commit", {table.Situation.OTHERS}, OnCommit.FINISH)
    with pytest.raises(exploration.Broken, match=r"^5: "):
        exploration.explore(operators=1)


def test_finds_a_reclaim_of_a_holder_that_is_believed(monkeypatch):
    _patched_row(monkeypatch, prepare, "prepare", {table.Situation.OTHERS}, OnPrepare.ADMIT)
    with pytest.raises(exploration.Broken, match=r"^1: "):
        exploration.explore(operators=0, lease_expiry="reclaim")


def test_finds_a_commit_of_a_superseded_attempt(monkeypatch):
    _patched_row(monkeypatch, endings, "commit", {table.Situation.OTHERS}, OnCommit.FINISH)
    with pytest.raises(exploration.Broken, match=r"^5: "):
        exploration.explore(operators=0, lease_expiry="reclaim")


def test_finds_a_read_under_an_open_reservation_that_can_be_cited(monkeypatch):
    monkeypatch.setattr(domains, "_pending", lambda head, key: False)

    def current(draft, command):
        head = draft.head(command.domain)
        return draft.done(Head(command.domain, head.seq, head.clock, ()))

    monkeypatch.setattr(domains, "current", current)
    with pytest.raises(exploration.Broken, match="read"):
        exploration_reads.explore()


def test_finds_a_sweep_that_frees_unknown(monkeypatch):
    original = sweep.sweep

    def frees(record, now):
        if isinstance(record.state, Unknown):
            return replace(record, state=Absent())
        return original(record, now)

    monkeypatch.setattr(sweep, "sweep", frees)
    with pytest.raises(exploration.Broken, match=r"^4: sweep"):
        exploration.explore(operators=0)


@pytest.mark.timeout(1200)
def test_no_promise_breaks_with_two_operators():
    """More than a million states; it takes minutes, so only CI and `make explore` wait for it."""
    if not REQUIRE_ALL:
        pytest.skip("two operators take minutes: make explore")
    states, _ = exploration.explore(operators=2)

    assert states > 1_000_000
