"""The proxy as a host sees it: a process on standard streams in front of a real server."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import psutil
import pytest

from fencekit.wire import protocol
from fencekit.wire.client import Client, Target

SPECIMEN = (sys.executable, "-m", "fencekit.probe.specimen")
WRAP = (sys.executable, "-c", "from fencekit.cli.main import main; main()", "wrap")


class Host:
    """A host on raw frames that starts the proxy as hosts do."""

    def __init__(self, command: list[str], env: dict[str, str]) -> None:
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, **env},
        )

    def send(self, message: Any) -> None:
        assert self.process.stdin is not None
        raw = message if isinstance(message, bytes) else json.dumps(message).encode()
        self.process.stdin.write(raw + b"\n")
        self.process.stdin.flush()

    def read(self) -> bytes:
        assert self.process.stdout is not None
        return self.process.stdout.readline().rstrip(b"\n")

    def call(self, ident: int, order: str = "o1") -> None:
        params = {"name": "charge_card", "arguments": {"order": order}}
        self.send({"jsonrpc": "2.0", "id": ident, "method": "tools/call", "params": params})

    def open(self) -> None:
        self.send({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {}})
        self.read()

    def end(self) -> tuple[int, str]:
        assert self.process.stdin is not None
        self.process.stdin.close()
        assert self.process.stderr is not None
        said = self.process.stderr.read().decode()
        assert self.process.stdout is not None
        self.process.stdout.close()
        self.process.stderr.close()
        return self.process.wait(20), said


@pytest.fixture
def effects(tmp_path):
    return tmp_path / "effects"


@pytest.fixture
def host(tmp_path, effects):
    started: list[Host] = []

    def start(*server: str, options: tuple[str, ...] = ()) -> Host:
        command = [*WRAP, "--ledger", str(tmp_path / "ledger.db"), "--scope", "t", *options, "--"]
        it = Host([*command, *server], {"FENCEKIT_EFFECTS": str(effects)})
        started.append(it)
        return it

    yield start
    for it in started:
        if it.process.poll() is None:
            it.process.kill()
        it.process.wait(10)
        for stream in (it.process.stdin, it.process.stdout, it.process.stderr):
            with contextlib.suppress(OSError):
                stream.close()


def servers(proxy: int) -> list[psutil.Process]:
    """Return the servers that a proxy has started, without the shell that watches over them."""
    children = psutil.Process(proxy).children()
    return [child for child in children if "groups=" not in " ".join(child.cmdline())]


def count(effects: Path) -> int:
    return len(effects.read_text().splitlines()) if effects.exists() else 0


def test_a_double_firing_server_fires_once_across_restarts_of_the_proxy(host, effects):
    first = host(*SPECIMEN, "fires")
    first.open()
    for ident in range(1, 13):
        first.call(ident)
    answers = [json.loads(first.read()) for _ in range(12)]
    assert first.end()[0] == 0
    second = host(*SPECIMEN, "fires")
    second.open()
    second.call(1)
    again = json.loads(second.read())
    second.end()

    assert count(effects) == 1
    texts = {a["result"]["content"][0]["text"] for a in [*answers, again]}
    assert len(texts) == 1
    marks = [a["result"].get("_meta", {}).get(protocol.META_OUTCOME) for a in answers]
    assert [m is None for m in marks].count(True) == 1
    assert again["result"]["_meta"][protocol.META_OUTCOME]["replayed"] is True


@pytest.mark.parametrize("era", ["legacy", "modern"])
def test_a_client_of_each_era_talks_through_it(tmp_path, effects, era):
    target = Target(
        command=(*WRAP, "--ledger", str(tmp_path / "l.db"), "--", *SPECIMEN, "fires"),
        env={"FENCEKIT_EFFECTS": str(effects)},
        era=era,
    )
    client: Client = target.connect()
    assert [t["name"] for t in client.list_tools()] == ["charge_card", "list_charges"]
    params = {"name": "charge_card", "arguments": {"order": "o1"}}
    said = [client.request("tools/call", params).result["content"] for _ in range(3)]
    client.close()

    assert count(effects) == 1
    assert said[0] == said[1] == said[2]


ECHO = """
import sys
for line in sys.stdin.buffer:
    sys.stdout.buffer.write(line)
    sys.stdout.buffer.flush()
"""


def test_frames_pass_byte_for_byte_in_order_and_of_any_size(host):
    it = host(sys.executable, "-c", ECHO)
    frames = [
        b'{"jsonrpc": "2.0","id":1, "method":"no\\/such","params":{"n":1.0,"b":9007199254740993}}',
        b'{"jsonrpc":"2.0","method":"notifications/x","params":null}',
        b'{"jsonrpc":"2.0","id":2,"method":"big","params":{"blob":"' + b"x" * 12_000_000 + b'"}}',
        b'{"jsonrpc":"2.0","method":"notifications/last"}',
    ]
    writer = threading.Thread(target=lambda: [it.send(frame) for frame in frames])
    writer.start()

    got = [it.read() for _ in frames]

    writer.join(20)
    assert got == frames


def test_the_exit_status_of_the_server_is_the_proxys(host):
    it = host(sys.executable, "-c", "import sys; sys.stdin.readline(); sys.exit(7)")
    it.send({"jsonrpc": "2.0", "method": "notifications/x"})

    assert it.process.wait(20) == 7


DIES = """
import json, os, sys
for line in sys.stdin:
    message = json.loads(line)
    if message.get("method") == "tools/call":
        open(os.environ["FENCEKIT_EFFECTS"], "a").write("effect\\n")
        os._exit(3)
    result = {"tools": [{"name": "charge_card"}]}
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
"""


def test_a_server_that_dies_after_the_effect_leaves_it_unknown_and_is_never_asked_again(
    host, effects
):
    first = host(sys.executable, "-c", DIES)
    first.open()
    first.call(1)
    lost = json.loads(first.read())
    assert first.process.wait(20) == 3
    second = host(sys.executable, "-c", DIES)
    second.open()
    second.call(1)
    refused = json.loads(second.read())

    assert count(effects) == 1
    for answer in (lost, refused):
        assert answer["result"]["isError"] is True
        assert answer["result"]["_meta"][protocol.META_OUTCOME]["state"] == "unknown"


MORTAL = """
import json, os, sys
for line in sys.stdin:
    m = json.loads(line)
    if m["method"] == "die":
        os._exit(5)
    result = {"resultType": "complete", "pid": os.getpid(), "tools": [{"name": "charge_card"}]}
    print(json.dumps({"jsonrpc": "2.0", "id": m["id"], "result": result}), flush=True)
"""


def test_a_stateless_server_that_ended_is_started_again_for_the_next_request(host):
    meta = {protocol.META_PROTOCOL_VERSION: protocol.LATEST_MODERN}
    it = host(sys.executable, "-c", MORTAL)

    def ask(ident: int, method: str, **params: Any) -> Any:
        it.send(
            {"jsonrpc": "2.0", "id": ident, "method": method, "params": {**params, "_meta": meta}}
        )
        return json.loads(it.read())

    first = ask(1, "tools/list")["result"]["pid"]
    assert "ended (exit code 5)" in ask(2, "die")["error"]["message"]
    second = ask(3, "tools/list")["result"]["pid"]
    call = ask(4, "tools/call", name="charge_card", arguments={})
    ask(5, "die")
    again = ask(6, "tools/call", name="charge_card", arguments={})

    assert first != second == call["result"]["pid"]
    assert again["result"]["pid"] == second
    assert it.end()[0] == 5


SLOW = """
import json, os, sys, time, signal
signal.signal(signal.SIGTERM, signal.SIG_IGN)
for line in sys.stdin:
    message = json.loads(line)
    if message.get("method") == "tools/call":
        open(os.environ["FENCEKIT_EFFECTS"], "a").write("effect\\n")
        print(json.dumps({"jsonrpc": "2.0", "method": "notifications/started"}), flush=True)
        time.sleep(600)
    result = {"tools": [{"name": "charge_card"}]}
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
"""


@pytest.mark.parametrize("sign", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_a_proxy_that_is_ended_in_mid_call_fences_it_and_takes_its_child_along(host, effects, sign):
    first = host(sys.executable, "-c", SLOW)
    first.open()
    first.call(1)
    assert b"started" in first.read()
    (child,) = servers(first.process.pid)
    first.process.send_signal(sign)
    first.process.wait(20)
    gone, _ = psutil.wait_procs([child], 10)
    second = host(sys.executable, "-c", SLOW)
    second.open()
    second.call(1)
    refused = json.loads(second.read())

    assert gone == [child]
    assert count(effects) == 1
    assert refused["result"]["_meta"][protocol.META_OUTCOME]["state"] == "unknown"


def test_a_twin_in_another_process_hears_the_outcome(host, effects):
    hosts = [host(*SPECIMEN, "fires") for _ in range(4)]
    for it in hosts:
        it.open()
    for it in hosts:
        it.call(1)
    answers = [json.loads(it.read()) for it in hosts]

    assert count(effects) == 1
    assert len({a["result"]["content"][0]["text"] for a in answers}) == 1


def test_nothing_but_frames_is_on_stdout_and_the_start_line_says_what_holds(host, tmp_path):
    it = host(*SPECIMEN, "fires")
    it.open()
    it.call(1)
    json.loads(it.read())
    code, said = it.end()

    assert code == 0
    assert f"scope t, ledger sqlite:{tmp_path / 'ledger.db'}" in said
    assert "1 of 2 tools are fenced" in said


def test_a_server_that_cannot_be_started_is_said_in_one_line():
    made = subprocess.run(
        [*WRAP, "--ledger", "memory:", "--", "no-such-program-here"],
        check=False,
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        timeout=30,
    )

    assert made.returncode == 2
    assert "no such program" in made.stderr
    assert "Traceback" not in made.stderr


def test_the_stdio_path_loads_no_sdk_and_no_event_loop(tmp_path):
    code = (
        "import sys, subprocess\n"
        "import fencekit.cli.wrap as w\n"
        "import fencekit.wrap.stdio, fencekit.wrap.gate, fencekit.wrap.record\n"
        "import fencekit.wrap.scope\n"
        "from fencekit.ledger.open import open_ledger\n"
        f"open_ledger('sqlite:{tmp_path}/l.db').close()\n"
        "bad = [m for m in ('mcp', 'asyncio', 'httpx2', 'pydantic', 'jsonschema', 'jinja2') "
        "if m in sys.modules]\n"
        "print(bad)"
    )
    made = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True, timeout=60
    )

    assert made.stdout.strip() == "[]"


def test_the_plan_names_every_tool_and_fires_nothing(effects):
    made = subprocess.run(
        [*WRAP, "--plan", "--json", "--", *SPECIMEN, "fires"],
        check=True,
        capture_output=True,
        text=True,
        env={**os.environ, "FENCEKIT_EFFECTS": str(effects)},
        timeout=60,
    )

    assert {t["tool"]: t["kind"] for t in json.loads(made.stdout)} == {
        "charge_card": "append",
        "list_charges": "read",
    }
    assert count(effects) == 0
