"""When the host, or the proxy itself, dies without a word: nothing of what they started runs on."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.wrap.test_stdio import WRAP, servers

# Deaf to the end of its input and to SIGTERM, with a grandchild that is so too.
SERVER = """
import json, os, signal, subprocess, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
deaf = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(600)"
inner = subprocess.Popen([sys.executable, "-c", deaf], stdin=subprocess.DEVNULL)
with open(sys.argv[1], "w") as pids:
    print(os.getppid(), os.getpid(), inner.pid, file=pids)
for line in sys.stdin:
    message = json.loads(line)
    if "id" in message:
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": {}}), flush=True)
time.sleep(600)
"""
PING = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "ping"}).encode() + b"\n"
# A host that lets the proxy have our input, reads its output, and hands on what it reads.
HOST = """
import subprocess, sys
proxy = subprocess.Popen(sys.argv[1:], stdout=subprocess.PIPE)
for line in proxy.stdout:
    sys.stdout.buffer.write(line)
    sys.stdout.flush()
"""
# The same, but the proxy has our output too: only its parent shows that the host is gone.
SILENT = "import subprocess, sys; subprocess.Popen(sys.argv[1:]).wait()"


def until(true: Callable[[], bool], seconds: float = 60.0) -> None:
    """Wait for what another process does; nothing tells us of processes that are not our own."""
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end
        time.sleep(0.02)


def alive(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


class Scene:
    """Processes around one proxy; our own hand holds the input that the proxy reads."""

    def __init__(self, folder: Path) -> None:
        self.pids = folder / "pids"
        server = f"{sys.executable} -c '{SERVER}' {self.pids}; true"
        self.proxy = [*WRAP, "--ledger", "memory:", "--scope", "t", "--", "sh", "-c", server]
        self.started: list[subprocess.Popen[bytes]] = []

    def start(self, *command: str, **more: Any) -> subprocess.Popen[bytes]:
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, **more}
        made = subprocess.Popen([*command], **pipes)
        self.started.append(made)
        return made

    def exchange(self, process: subprocess.Popen[bytes]) -> None:
        """Let a frame go there and back."""
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(PING)
        process.stdin.flush()
        assert json.loads(process.stdout.readline())["result"] == {}

    @property
    def family(self) -> list[int]:
        """The shell around the server, the server, and what it started."""
        return [int(pid) for pid in self.pids.read_text().split()]

    def all_end(self) -> None:
        until(lambda: not any(alive(pid) for pid in self.family))


@pytest.fixture
def scene(tmp_path) -> Iterator[Scene]:
    made = Scene(tmp_path)
    yield made
    for process in made.started:
        process.kill()
        process.wait(10)
        for stream in (process.stdin, process.stdout):
            if stream is not None:
                stream.close()
    for pid in made.family if made.pids.exists() else []:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


@pytest.mark.parametrize("host", [HOST, SILENT], ids=["it reads", "only the parent"])
def test_a_killed_host_ends_all_though_the_input_stays_open(scene, host):
    it = scene.start(sys.executable, "-c", host, *scene.proxy)
    scene.exchange(it)
    proxy = psutil.Process(scene.family[0]).ppid()

    it.kill()

    scene.all_end()
    until(lambda: not alive(proxy))


def test_a_launcher_between_host_and_proxy_does_not_hide_the_hosts_death(scene):
    launcher = ["sh", "-c", '"$@"; true', "sh", *scene.proxy]
    it = scene.start(sys.executable, "-c", HOST, *launcher)
    scene.exchange(it)

    it.kill()

    scene.all_end()


@pytest.mark.parametrize("lingers", [False, True])
def test_a_launcher_that_leaves_before_the_first_frame_is_not_the_host(scene, lingers):
    wait = f"while ! [ -s {scene.pids} ]; do sleep 0.05; done" if lingers else ":"
    quoted = f'exec 3<&0; "$@" <&3 & exec 3<&-; {wait}'
    it = scene.start("sh", "-c", quoted, "sh", *scene.proxy)
    assert it.wait(10) == 0
    scene.exchange(it)
    scene.exchange(it)

    assert all(alive(pid) for pid in scene.family)
    it.stdin.close()
    scene.all_end()


def test_nohup_outlives_the_parent_and_a_hangup(scene):
    ignoring = "import signal; signal.signal(signal.SIGHUP, signal.SIG_IGN);"
    it = scene.start(sys.executable, "-c", ignoring + SILENT, *scene.proxy)
    scene.exchange(it)
    proxy = psutil.Process(scene.family[0]).ppid()

    it.kill()
    it.wait(10)
    os.kill(proxy, signal.SIGHUP)

    scene.exchange(it)
    it.stdin.close()
    scene.all_end()


def test_a_killed_proxy_takes_the_servers_whole_group_along(scene):
    it = scene.start(*scene.proxy)
    scene.exchange(it)
    assert all(alive(pid) for pid in scene.family)

    it.kill()

    scene.all_end()


def test_a_killed_http_front_takes_its_servers_along_and_its_parent_is_no_host(scene):
    at = scene.proxy.index("--ledger")
    front = [*scene.proxy[:at], "--http", "127.0.0.1:0", *scene.proxy[at:]]
    launch = "import subprocess, sys; print(subprocess.Popen(sys.argv[1:]).pid, flush=True)"
    it = scene.start(sys.executable, "-c", launch, *front, stderr=subprocess.PIPE)
    pid = int(it.stdout.readline())
    assert it.wait(10) == 0
    address = next(line.split()[3].rstrip(b",") for line in it.stderr if b"listening" in line)
    ask(address.decode())

    assert alive(pid)
    os.kill(pid, signal.SIGKILL)

    scene.all_end()
    it.stderr.close()


def ask(url: str) -> None:
    """Open a session, which starts a server."""
    import httpx2

    params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t"}}
    body = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}
    accept = {"accept": "application/json, text/event-stream"}
    assert httpx2.post(url, json=body, headers=accept, timeout=20).status_code == 200


def test_the_watcher_ends_with_the_last_group(scene):
    it = scene.start(*scene.proxy)
    scene.exchange(it)
    (watcher,) = set(psutil.Process(it.pid).children()) - set(servers(it.pid))

    it.stdin.close()
    it.wait(20)

    until(lambda: not watcher.is_running())
    assert not any(alive(pid) for pid in scene.family)
