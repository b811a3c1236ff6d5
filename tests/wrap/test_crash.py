"""SIGKILL of proxy, server and host at every step, and proxies that race: never two effects."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import psutil
import pytest

from fencekit.wire.protocol import META_OUTCOME
from tests.wrap.test_stdio import servers

from . import stepped
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


STEPPED = (sys.executable, "-m", "tests.wrap.stepped")


def retried(tmp_path: Path, hosts: int = 2) -> list[tuple[str, str]]:
    """Ask again from new hosts, each with a proxy and a server of its own: (state, text) of each.

    The state is empty for a first answer, which carries no mark.
    """
    heard_again = []
    for ident in range(hosts):
        it = start(tmp_path, STEPPED)
        it.open()
        result = heard(it, ident + 2)["result"]
        finish(it)
        mark = result.get("_meta", {}).get(META_OUTCOME, {"state": ""})
        heard_again.append((mark["state"], result["content"][0]["text"]))
    return heard_again


@pytest.mark.parametrize(
    ("step", "effects", "state"),
    [("asked", 0, "unknown"), ("fired", 1, "unknown"), ("half answered", 1, "unknown"),
     ("answered", 1, "done")],
)  # fmt: skip
def test_a_server_killed_at_any_step_of_a_call_never_acts_again(tmp_path, step, effects, state):
    it = start(tmp_path, STEPPED, FENCEKIT_STEP=step)
    it.open()
    it.call(1)
    # As a host sees it without the proxy: the server is gone, and how. Half a line was never said.
    assert it.process.stdout is not None
    said = [json.loads(line) for line in it.process.stdout.read().splitlines()]
    assert it.process.wait(20) == 128 + signal.SIGKILL
    finish(it)
    assert [frame["id"] for frame in said] == [1]
    assert count(tmp_path / "effects") == effects

    assert {s for s, _ in retried(tmp_path)} == {state}
    assert count(tmp_path / "effects") == effects


def test_a_call_that_may_or_may_not_have_reached_a_dying_server_acts_at_most_once(tmp_path):
    it = start(tmp_path, STEPPED, FENCEKIT_STEP="idle")
    it.open()
    heard(it, 1)
    it.process.wait(20)
    finish(it)
    assert count(tmp_path / "effects") == 0

    states = [state for state, _ in retried(tmp_path)]
    if "unknown" in states:  # it was in the pipe when the server died
        assert states == ["unknown", "unknown"]
        assert count(tmp_path / "effects") == 0
    else:
        assert states == ["", "done"]
        assert count(tmp_path / "effects") == 1


# A host that goes so far and then waits for its end, saying how far it is.
HOST = """
import json, signal, subprocess, sys
step, command = sys.argv[1], sys.argv[2:]
proxy = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
def send(raw):
    proxy.stdin.write(raw)
    proxy.stdin.flush()
def ask(ident, method, params):
    send(json.dumps({"jsonrpc": "2.0", "id": ident, "method": method, "params": params}).encode()
         + b"\\n")
    return proxy.stdout.readline()
ask(0, "initialize", {})
call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": {"name": "charge_card", "arguments": {"order": "o1"}}}
raw = json.dumps(call).encode() + b"\\n"
send(raw[:30] if step == "half sent" else raw)
if step == "heard":
    proxy.stdout.readline()
print(proxy.pid, flush=True)
signal.pause()
"""


def ended(pid: int) -> bool:
    """Wait for a process that is not ours to end."""
    try:
        psutil.Process(pid).wait(20)
    except psutil.NoSuchProcess:
        return True
    except psutil.TimeoutExpired:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    return True


@pytest.mark.parametrize("step", ["half sent", "sent", *stepped.STEPS[1:], "heard"])
def test_a_host_killed_at_any_step_leaves_one_effect_and_its_result(tmp_path, step):
    held = step in stepped.STEPS
    gate = tmp_path / "gate"
    for name in ("there", "go"):
        os.mkfifo(f"{gate}.{name}")
    env = {"FENCEKIT_EFFECTS": str(tmp_path / "effects")}
    if held:
        env |= {"FENCEKIT_STEP": step, "FENCEKIT_GATE": str(gate)}
    wrap = [*WRAP, "--ledger", str(tmp_path / "l.db"), "--scope", "t", "--", *STEPPED]
    host = subprocess.Popen(
        [sys.executable, "-c", HOST, step, *wrap],
        env={**os.environ, **env},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    assert host.stdout is not None
    proxy = int(host.stdout.readline())
    if held:
        Path(f"{gate}.there").read_bytes()  # the server is at the step
    server = [child.pid for child in servers(proxy)]
    host.kill()
    host.wait(20)
    host.stdout.close()
    if held:
        Path(f"{gate}.go").write_bytes(b"")
    assert ended(proxy)
    assert all(ended(pid) for pid in server)
    assert count(tmp_path / "effects") == (step != "half sent")

    (first, _), (second, text) = retried(tmp_path)
    assert first == ("" if step == "half sent" else "done")
    assert (second, text) == ("done", "charge_id")
    assert count(tmp_path / "effects") == 1


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
