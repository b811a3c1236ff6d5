"""Two proxies over HTTP on one PostgreSQL ledger: one dies in a call, the other tells the truth."""

from __future__ import annotations

import itertools
import signal

import pytest

from fencekit.wire.client import Target
from fencekit.wire.errors import WireError
from fencekit.wire.protocol import META_OUTCOME
from tests.ledger.conformance import url_of

from .test_front import CALL, front
from .test_stdio import count

LEASE = "1"


class RoundRobin:
    """A client that takes the replicas in turn, and the next one where one does not answer."""

    def __init__(self, *urls):
        self.turns = itertools.cycle(urls)
        self.dead = 0

    def call(self):
        for _ in range(2):
            try:
                client = Target(url=next(self.turns), era="modern", timeout=20).connect()
                try:
                    return client.request("tools/call", CALL).result
                finally:
                    client.close()
            except WireError:
                self.dead += 1
        raise AssertionError("no replica answers")


def state_of(result):
    return result.get("_meta", {}).get(META_OUTCOME, {}).get("state", "executed now")


# The server has answered the handshake and the listing before it answers the call.
STEPS = [("ledger answered:1", 0), ("server answered:3", 1), ("ledger answered:2", 1)]


@pytest.mark.parametrize(("step", "effects"), STEPS)
def test_the_survivor_of_two_replicas_never_makes_it_two(tmp_path, monkeypatch, step, effects):
    """Killed after the admission, after the effect, after the commit: never a second effect."""
    ledger = url_of("postgresql", tmp_path)
    options = ("--ledger", ledger, "--lease", LEASE)
    monkeypatch.setenv("FENCEKIT_CRASH_AT", step)
    with front(tmp_path, *options) as (doomed, process):
        monkeypatch.delenv("FENCEKIT_CRASH_AT")
        with front(tmp_path, *options) as (survivor, _):
            client = RoundRobin(doomed, survivor)
            results = [client.call() for _ in range(6)]
        assert process.wait(20) == -signal.SIGKILL
    assert client.dead >= 1
    assert count(tmp_path / "effects") == effects
    states = [state_of(result) for result in results]
    if step == "ledger answered:2":
        # The outcome was on record: everybody gets the one result.
        assert set(states) == {"done"}
        assert len({str(result["content"]) for result in results}) == 1
    else:
        # Nobody knows: nobody may run it again, and it is said.
        assert set(states) == {"unknown"}
        assert all(result["isError"] for result in results)


def test_two_replicas_share_one_answer(tmp_path):
    options = ("--ledger", url_of("postgresql", tmp_path))
    with front(tmp_path, *options) as (one, _), front(tmp_path, *options) as (two, _):
        client = RoundRobin(one, two)
        results = [client.call() for _ in range(6)]
    assert client.dead == 0
    assert count(tmp_path / "effects") == 1
    assert [state_of(result) for result in results] == ["executed now", *["done"] * 5]
    assert len({str(result["content"]) for result in results}) == 1
