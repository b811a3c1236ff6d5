"""The same probe, the same server, behind the real fence: one executed, the others replayed."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from fencekit.cli.probe import command
from fencekit.probe.battery import Score, run_trial
from fencekit.probe.hostile import MODES

FENCEKIT = str(Path(sys.executable).parent / "fencekit")
SPECIMEN = [sys.executable, "-m", "fencekit.probe.specimen"]
EVERY = "twins,retry,lost-answer,restart"


def fenced(effects: Path, ledger: Path, *options: str) -> dict:  # type: ignore[type-arg]
    words = ["--tool", "charge_card", "--args", '{"order": "1"}', "--ways", EVERY, "--json"]
    words += ["--env", f"FENCEKIT_EFFECTS={effects}", *options]
    wrap = [FENCEKIT, "wrap", "--ledger", f"sqlite:{ledger}", "--"]
    run = CliRunner().invoke(command, [*words, "--", *wrap, *SPECIMEN, "fires"])
    assert run.exit_code == 0, run.output
    document: dict = json.loads(run.stdout)  # type: ignore[type-arg]
    return document


@pytest.mark.parametrize("counter", [[], ["--count-tool", "list_charges"]])
def test_one_effect_in_every_way_by_marks_and_by_a_counter(counter, tmp_path):
    effects = tmp_path / "effects"
    document = fenced(effects, tmp_path / "ledger.db", *counter)

    twins = document["ways"][0]
    assert effects.read_text().count("\n") == 1
    assert document["target"]["fenced"] is True
    assert [way["verdict"] for way in document["ways"]] == ["ONE EFFECT"] * 4
    assert (twins["marks"]["executed_now"], twins["marks"]["replayed_now"]) == (1, 11)
    assert twins["rests_on"] == ("observer" if counter else "fence")


def test_a_second_run_finds_nothing_that_executes_now(tmp_path):
    effects, ledger = tmp_path / "effects", tmp_path / "ledger.db"
    fenced(effects, ledger)
    document = fenced(effects, ledger)

    assert effects.read_text().count("\n") == 1
    assert document["verdict"] == "NO RACE SURFACE"
    assert "nothing executed now" in document["reason"]


@pytest.mark.parametrize("name", ["5xx-after-settle", "die-after-settle", "declared-safe"])
def test_a_blind_client_behind_the_fence_holds(name):
    """The client that over-fires without a fence (see test_hostile) is held by it."""
    client = [sys.executable, "-m", "fencekit.probe.clients", "blind", "{order}", "--"]
    trial = run_trial([*client, FENCEKIT, "wrap", "--", "{server}"], MODES[name], limit=60.0)

    assert trial.score is Score.HELD
