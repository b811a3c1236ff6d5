"""Clients killed, stopped and cut off at random: the promises hold for the whole history.

`CHAOS_SECONDS` is how long each ledger is troubled, `CHAOS_SEED` what drives clients and nemesis;
what two processes do at the same instant no seed can say.
"""

from __future__ import annotations

import contextlib
import os
import time

import pytest
import redis

from fencekit.core.messages import Fresh
from tests.chaos import nemesis
from tests.chaos.checker import check
from tests.chaos.faults import FAULTS
from tests.chaos.moving import KILLED_AT, Mover, problems_of
from tests.chaos.record import told
from tests.chaos.run import CLIENTS, FAILING_OVER, TROUBLES, Run, started
from tests.ledger.servers import name_for

SECONDS = float(os.environ.get("CHAOS_SECONDS", "5"))
SEED = os.environ.get("CHAOS_SEED", "1")
FAULT_SECONDS = 3.0
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
@pytest.mark.parametrize("kind", FAILING_OVER)
def test_the_promises_hold_through_a_failover(kind, tmp_path):
    """The primary is killed, and what took over has every answer that anybody heard."""
    with started(kind, tmp_path, f"{SEED}.failover", servers=FAILING_OVER) as run:
        before = run.server.port
        run.go(max(5.0, SECONDS / 2), once="fail over")
        assert run.server.port != before
        history = run.history()
    assert run.did.count("fail over") == 1
    print(f"{kind}: {len(history.operations)} operations; {', '.join(run.did)}")
    assert check(history) == []
    ended = run.failed_over_ns
    assert any(isinstance(op.answer, Fresh) and op.start > ended for op in history.operations)


@pytest.mark.slow
def test_a_ledger_is_moved_while_clients_work(tmp_path):
    """SQLite to PostgreSQL; the mover is killed at several steps, clients too, the network cut."""
    with started("postgresql", tmp_path, f"{SEED}.move") as there:
        source = f"sqlite:{tmp_path / 'ledger.db'}"
        run = Run("sqlite", tmp_path, f"{SEED}.move", source, following=there.url)
        run.network, mover = there.network, Mover(source, there.url)
        run.begin()
        run.work(2.0)
        mover.start()
        while mover.is_alive():
            run.work(0.3)
            run.trouble("cut the network")
        mover.join()
        run.work(2.5)
        run.end()
        assert mover.problem == ""
        assert mover.kills == len(KILLED_AT)
        print(f"{len(told(tmp_path).operations)} operations; {', '.join(run.did)}")
        assert (
            problems_of(run, source, there.server.url(there.server.port, name_for(tmp_path))) == []
        )


class Asynchronous(nemesis.RedisWithReplica):
    """Answers wait for no replica, and the one there is has fallen behind when the primary dies."""

    def url(self, port, name):
        return nemesis.Redis.url(self, port, name)

    def fail_over(self):
        with contextlib.closing(redis.Redis(port=self.replica.port)) as db:
            db.replicaof("NO", "ONE")
        time.sleep(0.7)
        super().fail_over()


@pytest.mark.slow
def test_a_failover_that_loses_what_was_acknowledged_is_caught(tmp_path):
    with started("redis", tmp_path, f"{SEED}.lost", servers={"redis": Asynchronous}) as run:
        run.go(4.0, once="fail over")
        history = run.history()
    problems = check(history)
    print(f"{len(problems)} problems: {problems[:1]}")
    assert any("the ledger lost it" in problem for problem in problems)


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
