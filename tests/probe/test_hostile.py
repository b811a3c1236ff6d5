"""The server that misbehaves on cue, and the battery that scores clients on it."""

from __future__ import annotations

import json
import sys

import pytest
from click.testing import CliRunner

from fencekit.cli.hostile import command
from fencekit.probe import battery, hostile
from fencekit.probe.battery import Score, fill, run_trial
from fencekit.probe.hostile import MODES, Record
from fencekit.wire.client import Target
from fencekit.wire.errors import WireError

CLIENT = [sys.executable, "-m", "fencekit.probe.clients"]
ENDS_IN_SILENCE = ("settle-then-timeout", "die-after-settle")


@pytest.mark.parametrize("name", MODES)
def test_each_mode_does_what_it_says(name, tmp_path):
    """The effect and the answer, seen by a bare client; the truth in the record."""
    mode, record = MODES[name], Record(tmp_path / "effects")
    target = Target(
        command=(sys.executable, "-m", "fencekit.probe.hostile", name, str(record.path)),
        env={hostile.SLOW_SECONDS_ENV: "0.01"},
    )
    client = target.connect()
    assert client.server_name == f"hostile-{name}"
    charge = next(tool for tool in client.list_tools() if tool["name"] == "submit_charge")
    assert charge["annotations"].get("idempotentHint", False) is (name == "declared-safe")

    call = {"name": "submit_charge", "arguments": {"order": "o1"}}
    if name in ENDS_IN_SILENCE:
        with pytest.raises(WireError) as caught:
            client.request("tools/call", call, timeout=1.0)
        assert caught.value.may_have_run
    else:
        answer = client.request("tools/call", call)
        bad = bool(answer.error) or answer.result.get("isError", False)
        assert bad is (mode.answer in ("error", "rpc-error", "refuse"))
    assert record.count("charge", "o1") == (0 if name == "declared-safe" else 1)
    client.close()

    client = target.connect()
    look = {"name": "verify_charge", "arguments": {"order": "o1"}}
    answer = client.request("tools/call", look)
    assert answer.result.get("isError", False) is (name == "verify-unavailable")
    if name != "verify-unavailable":
        text = json.loads(answer.result["content"][0]["text"])
        assert text["charges"] == record.count("charge", "o1")
    client.close()


def test_a_repeat_of_what_is_declared_safe_charges_once(tmp_path):
    record = Record(tmp_path / "effects")
    command = (sys.executable, "-m", "fencekit.probe.hostile", "declared-safe", str(record.path))
    client = Target(command=command).connect()
    call = {"name": "submit_charge", "arguments": {"order": "o1"}}
    errors = [client.request("tools/call", call).result.get("isError", False) for _ in range(3)]
    client.close()

    assert errors == [True, False, False]
    assert record.count("charge") == 1


def test_the_built_in_clients_are_told_apart_in_every_mode():
    """Blind over-fires where it must, the refuser over-refuses, the careful one holds."""
    wrong = [control for control in battery.controls() if not control.passed]

    assert wrong == []


def test_a_client_that_does_not_run_is_no_careful_client():
    trial = run_trial(
        [sys.executable, "-c", "import os; os.abort()", "{server}"], MODES["honest"], limit=20
    )

    assert trial.score is Score.NOT_RUN


def test_a_client_that_hangs_is_ended_at_the_limit_and_scored_by_the_record():
    code = "import time; time.sleep(60)"
    trial = run_trial([sys.executable, "-c", code, "{server}"], MODES["honest"], limit=0.3)

    assert trial.ended == "client ended at the limit of 0.3 s"
    assert trial.score is Score.NOT_RUN


def test_the_slots_of_a_client_command():
    server = ["py", "-m", "s p"]

    assert fill(["c", "{server}", "{order}"], server, "o") == ["c", "py", "-m", "s p", "o"]
    assert fill(["c", "--mcp={server}"], server, "o") == ["c", "--mcp=py -m 's p'"]
    with pytest.raises(ValueError, match="server"):
        fill(["c"], server, "o")


def test_the_battery_on_the_command_line(monkeypatch):
    monkeypatch.setattr(battery, "controls", lambda: iter(()))
    monkeypatch.setenv(hostile.SLOW_SECONDS_ENV, "1.2")
    run = CliRunner().invoke(
        command, ["--battery", "--json", "--", *CLIENT, "blind", "{order}", "--", "{server}"]
    )
    document = json.loads(run.stdout)

    scores = {entry["mode"]: entry["score"] for entry in document["modes"]}
    assert run.exit_code == 1
    assert scores["5xx-after-settle"] == "over-fired"
    assert scores["honest"] == scores["declared-safe"] == "held"


def test_a_failed_control_scores_nobody(monkeypatch):
    bad = battery.Control("blind", "honest", Score.HELD, Score.OVER_FIRED)
    monkeypatch.setattr(battery, "controls", lambda: iter([bad]))

    run = CliRunner().invoke(command, ["--battery", "--", "anything", "{server}"])

    assert run.exit_code == 2
    assert "FAILED, no client was scored" in run.stdout


@pytest.mark.parametrize("args", [[], ["no-such-mode"], ["--battery", "--", "client-without-slot"]])
def test_usage_errors_exit_2(args):
    assert CliRunner().invoke(command, args).exit_code == 2


def test_modes_are_listed():
    out = CliRunner().invoke(command, ["--list"]).output

    assert [name for name in MODES if name not in out] == []
