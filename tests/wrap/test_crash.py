"""SIGKILL at every step of a call, and many proxies racing on one ledger: never two effects."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
from typing import Any

import pytest

from fencekit.wire.protocol import META_OUTCOME

from .test_stdio import SPECIMEN, WRAP, Host, count

# Each point once or twice: the first answers of server and ledger belong to what comes before.
STEPS = [
    "ledger answered:1",
    "ledger answered:2",
    "sending:1",
    "sent:1",
    "server answered:1",
    "server answered:2",
    "server answered:3",
    "answering:1",
    "answering:2",
    "decided:1",
    "decided:2",
    "written:1",
    "written:2",
]


def start(tmp_path, server=(*SPECIMEN, "fires"), **env: str) -> Host:
    wrap = [*WRAP, "--ledger", str(tmp_path / "l.db"), "--scope", "t", "--"]
    return Host([*wrap, *server], {"FENCEKIT_EFFECTS": str(tmp_path / "effects"), **env})


def finish(it: Host) -> None:
    it.process.kill()
    it.process.wait(10)
    for stream in (it.process.stdin, it.process.stdout, it.process.stderr):
        try:
            assert stream is not None
            stream.close()
        except OSError:
            pass


def heard(it: Host, ident: int) -> Any:
    """Call and return the answer; None if the proxy died first."""
    try:
        it.call(ident)
        line = it.read()
    except OSError:
        return None
    return json.loads(line) if line else None


@pytest.mark.parametrize("step", STEPS)
def test_a_proxy_killed_at_any_step_never_lets_the_effect_happen_twice(tmp_path, step):
    first = start(tmp_path, FENCEKIT_CRASH_AT=step)
    try:
        first.open()
        answer = heard(first, 1)
    except (OSError, json.JSONDecodeError):
        answer = None
    with contextlib.suppress(OSError):
        assert first.process.stdin is not None
        first.process.stdin.close()
    # A matrix whose points are never passed would prove nothing.
    assert first.process.wait(20) == -signal.SIGKILL
    finish(first)
    later = []
    for ident in (2, 3):
        it = start(tmp_path)
        it.open()
        later.append(heard(it, ident))
        finish(it)

    assert count(tmp_path / "effects") <= 1
    states = [a["result"]["_meta"][META_OUTCOME]["state"] for a in later if "_meta" in a["result"]]
    assert set(states) <= {"done", "unknown"}
    if answer is not None or "done" in states:
        assert count(tmp_path / "effects") == 1
    if "unknown" not in states:
        assert "charge_id" in later[-1]["result"]["content"][0]["text"]


SLOW = """
import json, os, sys, time
for line in sys.stdin:
    m = json.loads(line)
    if m.get("method") == "tools/call":
        with open(os.environ["FENCEKIT_EFFECTS"], "a") as file:
            file.write("effect\\n")
        time.sleep(0.3)
        r = {"content": [{"type": "text", "text": "charge_id"}]}
    else:
        r = {"tools": [{"name": "charge_card"}]}
    print(json.dumps({"jsonrpc": "2.0", "id": m["id"], "result": r}), flush=True)
"""


@pytest.mark.parametrize("killed", [False, True])
@pytest.mark.parametrize("proxies", [2, 4, 8])
def test_many_proxies_race_for_one_effect(tmp_path, proxies, killed):
    racing = [start(tmp_path, (sys.executable, "-c", SLOW)) for _ in range(proxies)]
    for it in racing:
        it.open()
    for it in racing:
        it.call(1)
    if killed:
        while count(tmp_path / "effects") == 0:
            os.sched_yield()
        racing[0].process.kill()
    answers = [it.read() for it in racing]
    for it in racing:
        finish(it)

    assert count(tmp_path / "effects") == 1
    texts = [json.loads(a)["result"]["content"][0]["text"] for a in answers if a]
    if not killed:
        assert texts == ["charge_id"] * proxies
    assert len(texts) >= proxies - 1
