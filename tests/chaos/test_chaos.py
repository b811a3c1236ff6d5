"""Clients killed, stopped and cut off at random: the promises hold for the whole history.

`CHAOS_SECONDS` is how long each ledger is troubled, `CHAOS_SEED` what drives clients and nemesis;
what two processes do at the same instant no seed can say.
"""

from __future__ import annotations

import os

import pytest

from fencekit.core.messages import Fresh
from tests.chaos.checker import check
from tests.chaos.faults import FAULTS
from tests.chaos.run import CLIENTS, TROUBLES, started

SECONDS = float(os.environ.get("CHAOS_SECONDS", "8"))
SEED = os.environ.get("CHAOS_SEED", "1")
FAULT_SECONDS = 5.0
RUNS = 6
"""How many runs a planted fault is given: a race needs a race to show."""


def history_of(kind, folder, seed, seconds, fault=""):
    with started(kind, folder, seed, fault) as run:
        run.go(seconds)
        return run, run.history()


@pytest.mark.slow
@pytest.mark.parametrize("kind", CLIENTS)
def test_the_promises_hold_for_the_whole_history(kind, tmp_path):
    run, history = history_of(kind, tmp_path, SEED, SECONDS)
    unheard = sum(op.answer is None for op in history.operations)
    print(
        f"{kind}: seed {SEED}, {len(history.operations)} operations ({unheard} unheard) of "
        f"{len(run.deaths)} clients, {len(history.effects)} effects; {', '.join(run.did)}"
    )

    assert check(history) == []
    assert sum(isinstance(op.answer, Fresh) for op in history.operations) > 10
    assert history.effects
    if len(run.did) >= len(TROUBLES[kind]):
        assert set(run.did) == set(TROUBLES[kind])


@pytest.mark.slow
@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_is_caught(fault, tmp_path):
    kind = FAULTS[fault][1]
    for attempt in range(RUNS):
        folder = tmp_path / str(attempt)
        folder.mkdir()
        _, history = history_of(kind, folder, f"{SEED}.{attempt}", FAULT_SECONDS, fault)
        problems = check(history)
        if problems:
            print(f"{fault}: run {attempt + 1}: {len(problems)} problems: {problems[0]}")
            return
    pytest.fail(f"{RUNS} runs did not show it")
