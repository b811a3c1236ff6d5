"""The effect happened and the answer is unclear; a host asks three times; it happens once.

The same tests run against the bare server, which must fail them: an instrument that cannot fail
proves nothing.
"""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path
from typing import Any

import pytest

from fencekit.wire.client import Target
from fencekit.wire.errors import WireError
from fencekit.wire.protocol import META_OUTCOME
from tests.wire.web import Handler, web

from . import ambiguous
from .test_front import front
from .test_stdio import WRAP, count

HOST_LIMIT = 0.5  # seconds that the host waits for an answer before it asks again
TRIES = 3
SERVER = (sys.executable, "-m", "tests.wrap.ambiguous")
ROOT = Path(__file__).parent.parent.parent
CONFIG = """
call_deadline = "1s"
[tools.create_payment]
reconcile = { tool = "find_payment", args = { order = "$.order" }, found = "$.count" }
"""
APPENDS = [mode for mode in ambiguous.MODES if mode != "safe"]


def ask_three_times(target: Target) -> list[Any]:
    """Ask as a host does that never gives up: again after every answer, silence and death."""
    heard: list[Any] = []
    client = None
    for _ in range(TRIES):
        try:
            client = client or target.connect()
            params = {"name": "create_payment", "arguments": {"order": "o1"}}
            heard.append(client.request("tools/call", params, timeout=HOST_LIMIT).message)
        except WireError as error:
            heard.append(error)
        if client is not None and target.command and client.carrier.describe():
            client.close()
            client = None
    if client is not None:
        client.close()
    return heard


@contextlib.contextmanager
def over_http(mode: str):
    """Serve the mode over HTTP: what failed in the answer fails in the status as well."""

    def script(it: Handler, message: Any) -> None:
        if message is None or "id" not in message:
            it.json(b"", 202)
            return
        made = ambiguous.result(message, mode if mode != "dies" else "silence")
        paying = message.get("params", {}).get("name") == "create_payment"
        if made is None:
            it.close_connection = True  # the connection ends without a word
        elif paying and mode in ("503", "429"):
            it.json(b"slow down", int(mode), Content_Type="text/plain")
        else:
            it.json({"jsonrpc": "2.0", "id": message["id"], **made})

    with web(script) as served:
        yield served.url


@contextlib.contextmanager
def door(tmp_path: Path, mode: str, carrier: str, *, fenced: bool):
    """Yield what the host connects to: the server itself, or the proxy in front of it."""
    config = tmp_path / "mine.toml"
    config.write_text(CONFIG if mode in ("blind", "silence", "slow") else 'call_deadline = "20s"')
    wrap = (*WRAP, "--ledger", str(tmp_path / "l.db"), "--config", str(config), "--scope", "t")
    env = {"FENCEKIT_EFFECTS": str(tmp_path / "effects"), "PYTHONPATH": str(ROOT)}
    with contextlib.ExitStack() as stack:
        if carrier == "stdio":
            command = (*wrap, "--", *SERVER, mode) if fenced else (*SERVER, mode)
            yield Target(command=command, env=env, era="legacy")
            return
        url = stack.enter_context(over_http(mode))
        if fenced and carrier == "relay":
            options = ("--url", url, "--config", str(config))
            at, _ = stack.enter_context(front(tmp_path, *options, server=()))
            yield Target(url=at, era="legacy")
        elif fenced:
            yield Target(command=(*wrap, "--url", url), env=env, era="legacy")
        else:
            yield Target(url=url, era="legacy")


@pytest.mark.parametrize("carrier", ["stdio", "http", "relay"])
@pytest.mark.parametrize("mode", APPENDS)
def test_an_effect_whose_answer_is_unclear_happens_once(tmp_path, monkeypatch, mode, carrier):
    monkeypatch.setenv("FENCEKIT_EFFECTS", str(tmp_path / "effects"))
    with door(tmp_path, mode, carrier, fenced=True) as target:
        heard = ask_three_times(target)

    assert count(tmp_path / "effects") == 1
    last = heard[-1]
    if mode in ("honest", "slow"):
        assert last["result"]["content"][0]["text"] == "paid"
    elif not isinstance(last, WireError):
        assert last["result"]["_meta"][META_OUTCOME]["state"] in ("unknown", "running")


@pytest.mark.parametrize("carrier", ["stdio", "http", "relay"])
def test_a_tool_that_is_declared_safe_to_repeat_is_not_refused(tmp_path, monkeypatch, carrier):
    monkeypatch.setenv("FENCEKIT_EFFECTS", str(tmp_path / "effects"))
    with door(tmp_path, "safe", carrier, fenced=True) as target:
        heard = ask_three_times(target)

    assert [m["result"].get("isError", False) for m in heard] == [True, False, False]
    assert count(tmp_path / "effects") == 3


@pytest.mark.parametrize("carrier", ["stdio", "http"])
@pytest.mark.parametrize("mode", APPENDS)
def test_a_plain_relay_fails_this(tmp_path, monkeypatch, mode, carrier):
    monkeypatch.setenv("FENCEKIT_EFFECTS", str(tmp_path / "effects"))
    with door(tmp_path, mode, carrier, fenced=False) as target:
        ask_three_times(target)

    assert count(tmp_path / "effects") == TRIES
