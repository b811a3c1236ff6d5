"""Clients in several processes, killed and stopped at random: the promises hold for all of it."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from fencekit import Fence
from fencekit.core.state import Done
from tests.chaos.checker import Heard, History, check
from tests.ledger import servers

ROOT = Path(__file__).parents[2]
CLIENTS = 3
STEPS = int(os.environ.get("CHAOS_STEPS", "200"))
SEED = os.environ.get("CHAOS_SEED", "1")

URLS = {
    "sqlite": lambda folder: f"sqlite:{folder / 'ledger.db'}",
    "postgresql": lambda folder: f"{servers.postgres()}&schema={servers.name_for(folder)}",
    "redis": lambda folder: f"{servers.redis()}?namespace={servers.name_for(folder)}",
}


def start(url, folder, name, seed, fault=""):
    client = subprocess.Popen(
        [sys.executable, "-m", "tests.chaos.client", url, folder, name, seed, str(STEPS), fault],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert client.stdout.readline() == "ready\n", client.stderr.read()
    return client


def trouble(clients, chance):
    """Kill one client and stop another for a while; which ones, the seed says."""
    victim, stopped = chance.sample(clients, 2)
    stopped.send_signal(signal.SIGSTOP)
    victim.kill()
    victim.wait(30)
    stopped.send_signal(signal.SIGCONT)


def run(url, folder, faults=(), seed=SEED):
    """Two waves of clients, each troubled; returns the history of all of it."""
    chance = random.Random(seed)
    for wave in range(2):
        names = [f"c{wave}{n}" for n in range(CLIENTS)]
        fault = faults[0] if faults else ""
        clients = [start(url, str(folder), name, f"{seed}-{name}", fault) for name in names]
        for client in clients:
            client.stdin.write("go\n")
            client.stdin.close()
        if not faults:
            trouble(clients, chance)
        for client in clients:
            client.wait(60)
            client.stdout.close()
            client.stderr.close()
    return history(url, folder)


def history(url, folder):
    heard = []
    for path in sorted(folder.glob("*.history")):
        for line in path.read_text().splitlines():
            heard.append(Heard(**json.loads(line)))
    effects = [line.split() for line in (folder / "effects").read_text().splitlines()]
    with Fence.open(url) as fence:
        shown = list(fence.intents())
        states = {s.key.intent: type(s.record.state).__name__.lower() for s in shown}
        done = [s for s in shown if isinstance(s.record.state, Done)]
        hashes = {s.key.intent: s.record.state.sealed.hash for s in done}
        # A released attempt frees its intent: that is no admission without an outcome.
        released = {e["intent"] for _, e in fence.ledger.audit() if e["event"] == "released"}
        verifies = list(fence.ledger.verify()) == []
    kept = [h for h in heard if not (h.answer == "fresh" and h.intent in released - set(states))]
    return History(kept, [(i, int(g)) for i, g in effects], states, hashes, verifies)


@pytest.mark.slow
@pytest.mark.parametrize("kind", URLS)
def test_the_promises_hold_for_the_whole_history(kind, tmp_path):
    made = run(URLS[kind](tmp_path), tmp_path)

    assert check(made) == []
    assert sum(h.answer == "fresh" for h in made.heard) >= 3
    assert made.effects


@pytest.mark.slow
@pytest.mark.parametrize(
    "fault",
    [
        "admits in flight",
        "frees unknown",
        "forgets what is done",
        "answers before it is kept",
        "another's result",
    ],
)
def test_a_planted_fault_is_caught(fault, tmp_path):
    """A race needs a race to show: up to eight runs, until the checker sees it."""

    def caught(attempt):
        folder = tmp_path / str(attempt)
        folder.mkdir()
        return check(run(URLS["sqlite"](folder), folder, (fault,), seed=f"{SEED}.{attempt}")) != []

    assert any(caught(attempt) for attempt in range(8))
