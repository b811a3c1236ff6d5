"""`fencekit serve` as a process: tickets survive it, stdout holds nothing but MCP."""

from __future__ import annotations

import asyncio
import json
import os
import pty
import signal
import subprocess

import pytest
from mcp import Client
from mcp.client.stdio import StdioServerParameters

from fencekit import Fence, IntentInFlight
from fencekit.serve.refusals import META_REFUSAL
from tests.serve.conftest import FENCEKIT

CHARGE = {
    "intent": "charge:1",
    "domain": "order:1",
    "tool": "charge_card",
    "args": {"cents": 4200},
    "agent": "a",
}
HELLO = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    },
}


def session(ledger, era, script):
    """Start a server on the ledger, run `script(client)` against it, and end it."""
    parameters = StdioServerParameters(
        command=FENCEKIT[0], args=[*FENCEKIT[1:], "serve", "--ledger", ledger]
    )

    async def run():
        async with Client(parameters, mode=era) as client:
            return await script(client)

    return asyncio.run(run())


def calling(tool, /, **arguments):
    """Return a script that makes one call."""

    async def script(client):
        return await client.call_tool(tool, arguments)

    return script


def test_tickets_survive_a_restart(ledger, era):
    """Each call below meets a server that was started for it alone."""
    fresh = session(ledger, era, calling("fence_prepare", **CHARGE)).structured_content
    ticket = fresh["prepared"]
    running = session(ledger, era, calling("fence_prepare", **CHARGE))
    held = session(ledger, era, calling("fence_heartbeat", prepared=ticket))
    done = session(ledger, era, calling("fence_commit", prepared=ticket, result={"id": "ch_1"}))
    replay = session(ledger, era, calling("fence_prepare", **CHARGE))

    assert running.meta[META_REFUSAL]["error"] == "IntentInFlight"
    assert held.structured_content["status"] == "held"
    assert done.structured_content["status"] == "committed"
    assert replay.structured_content == {
        "status": "already_done",
        "cert": done.structured_content["cert"],
    }


def test_an_abort_survives_a_restart(ledger, era):
    ticket = session(ledger, era, calling("fence_prepare", **CHARGE)).structured_content["prepared"]
    gone = session(ledger, era, calling("fence_abort", prepared=ticket, reason="lost the answer"))
    refused = session(ledger, era, calling("fence_prepare", **CHARGE))

    assert gone.structured_content == {"status": "aborted"}
    assert refused.is_error
    assert "lost the answer" in refused.content[0].text
    assert refused.meta[META_REFUSAL]["error"] == "IntentFailed"


def run(*arguments, stdin="", **environment):
    """Run `fencekit` with its input at its end."""
    return subprocess.run(
        [*FENCEKIT, *arguments],
        input=stdin,
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, **environment},
        check=False,
    )


def frames(*messages):
    """Return messages as the lines of a client."""
    return "".join(json.dumps(message) + "\n" for message in messages)


def test_stdout_holds_nothing_but_mcp_whatever_comes_in(ledger):
    bad = (
        frames(HELLO) + "no JSON\n[]\n{}\n" + frames({"jsonrpc": "2.0", "id": 2, "method": "ping"})
    )

    ended = run("serve", "--ledger", ledger, stdin=bad)

    lines = [json.loads(line) for line in ended.stdout.splitlines()]
    assert {line["jsonrpc"] for line in lines} == {"2.0"}
    assert {1, 2} <= {line.get("id") for line in lines}
    assert ended.returncode == 0
    assert "fencekit since boot: admitted=0" in ended.stderr


def test_bare_fencekit_on_a_pipe_serves():
    ended = run(stdin=frames(HELLO), FENCEKIT_LEDGER="memory:")

    (answer,) = [json.loads(line) for line in ended.stdout.splitlines()]
    assert answer["result"]["serverInfo"]["name"] == "fencekit"
    assert ended.returncode == 0


def test_bare_fencekit_on_a_terminal_prints_help():
    ours, theirs = pty.openpty()
    try:
        ended = subprocess.run(
            FENCEKIT, stdin=theirs, capture_output=True, text=True, timeout=60, check=False
        )
    finally:
        os.close(ours)
        os.close(theirs)

    assert ended.stdout.startswith("Usage: fencekit")
    assert ended.returncode == 0


def test_settings_come_from_options_else_the_environment(ledger):
    told = run("serve", FENCEKIT_LEDGER=ledger, FENCEKIT_LEASE_SECS="7").stderr
    overruled = run("serve", "--lease", "9", FENCEKIT_LEDGER=ledger, FENCEKIT_LEASE_SECS="7").stderr

    assert f"ledger {ledger.removeprefix('sqlite:')}, lease 7 s" in told
    assert "lease 9 s" in overruled


def test_the_result_ttl_reaches_the_outcome(ledger):
    """A result that is kept for a millisecond is gone when it is asked for."""
    fresh = session(ledger, "legacy", calling("fence_prepare", **CHARGE)).structured_content
    parameters = StdioServerParameters(
        command=FENCEKIT[0],
        args=[*FENCEKIT[1:], "serve", "--ledger", ledger],
        env={"FENCEKIT_RESULT_TTL_SECS": "0.001"},
    )

    async def commit():
        async with Client(parameters, mode="legacy") as client:
            await client.call_tool("fence_commit", {"prepared": fresh["prepared"], "result": {}})
        async with Client(parameters, mode="legacy") as client:
            return await client.call_tool("fence_prepare", CHARGE)

    assert asyncio.run(commit()).structured_content["status"] == "fresh"


@pytest.mark.parametrize(
    ("arguments", "environment", "code", "says"),
    [
        (["--ledger", "nonsense:x"], {}, 2, "sqlite:PATH"),
        (["--lease", "0"], {}, 2, "--lease"),
        ([], {"FENCEKIT_LEASE_SECS": "soon"}, 2, "FENCEKIT_LEASE_SECS"),
        ([], {"FENCEKIT_RESULT_TTL_SECS": "-1"}, 2, "FENCEKIT_RESULT_TTL_SECS"),
    ],
)
def test_wrong_settings_exit_2(arguments, environment, code, says):
    ended = run("serve", *arguments, **environment)

    assert (ended.returncode, ended.stdout) == (code, "")
    assert says in ended.stderr
    assert "Traceback" not in ended.stderr


def test_a_ledger_that_cannot_be_used_exits_3(tmp_path):
    (tmp_path / "fence.db").write_bytes(b"this is no database at all" * 100)

    ended = run("serve", "--ledger", f"sqlite:{tmp_path / 'fence.db'}")

    assert (ended.returncode, ended.stdout) == (3, "")
    assert "fence.db" in ended.stderr
    assert "Traceback" not in ended.stderr


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_and_keeps_what_was_admitted(ledger, number):
    process = subprocess.Popen(
        [*FENCEKIT, "serve", "--ledger", ledger],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with process:
        assert process.stdin is not None
        assert process.stdout is not None
        call = {"name": "fence_prepare", "arguments": CHARGE}
        process.stdin.write(
            frames(HELLO, {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": call})
        )
        process.stdin.flush()
        answers = [json.loads(process.stdout.readline()) for _ in range(2)]
        process.send_signal(number)
        assert process.wait(30) == 128 + number
        process.stdin.close()

    assert answers[1]["result"]["structuredContent"]["status"] == "fresh"
    with Fence.open(ledger) as fence:
        assert fence.ledger.counters()["admitted"] == 1
        with pytest.raises(IntentInFlight):
            fence.prepare("charge:1", "charge_card", {"cents": 4200}, domain="order:1", agent="a")
