"""The demo shows what it says, and says so when it does not."""

from __future__ import annotations

import json
import sys

import pytest
from click.testing import CliRunner

from fencekit.cli.demo import command
from fencekit.demo import double_fire
from fencekit.demo.double_fire import Act, play

# A server that charges once whatever it is asked: act 1 cannot be shown with it.
HONEST = [sys.executable, "-m", "fencekit.probe.specimen", "keeps"]


def test_act_1_is_a_proven_double_fire(tmp_path):
    act = play(tmp_path, fenced=False)

    assert act.shortcomings == []
    assert (act.effects, act.charges, act.verdict) == (12, 12, "PROVEN DOUBLE-FIRE")
    assert act.executed is None


def test_a_server_that_does_not_double_fire_is_no_demo(tmp_path, monkeypatch):
    monkeypatch.setattr(double_fire, "SERVER", HONEST)

    act = play(tmp_path, fenced=False)

    assert "distinct effects: 1 where 12 was to be shown" in act.shortcomings
    assert "verdict: ONE EFFECT where PROVEN DOUBLE-FIRE was to be shown" in act.shortcomings


def test_a_probe_that_fails_is_told_in_its_own_words(tmp_path, monkeypatch):
    monkeypatch.setattr(double_fire, "SERVER", [sys.executable, "-c", "raise SystemExit(7)"])

    (problem,) = play(tmp_path, fenced=False).shortcomings

    assert problem.startswith("the probe exited 2 and said: ")


def _act(fenced, **changes):
    """Return a good act, but for the changes."""
    counts = {"calls": 12, "succeeded": 12} | changes.pop("counts", {})
    marks = {"executed_now": 1, "replayed_now": 11} if fenced else None
    report = {
        "verdict": "ONE EFFECT" if fenced else "PROVEN DOUBLE-FIRE",
        "effects": 1 if fenced else 12,
        "ways": [{"counts": counts, "marks": marks}],
    }
    charges = changes.pop("charges", report["effects"])
    return Act(fenced, report | changes, charges)


@pytest.mark.parametrize(
    "changes",
    [
        {"effects": 2},
        {"verdict": "INCONCLUSIVE"},
        {"charges": 2},
        {"counts": {"succeeded": 11}},
        {"counts": {"calls": 11}},
        {"ways": [{"counts": {"calls": 12, "succeeded": 12}, "marks": None}]},
    ],
)
def test_anything_less_exits_1(monkeypatch, changes):
    acts = {False: _act(False), True: _act(True, **dict(changes))}
    monkeypatch.setattr(double_fire, "play", lambda folder, fenced: acts[fenced])

    result = CliRunner().invoke(command, [])

    assert result.exit_code == 1
    assert "fencekit demo: act 2: " in result.stderr
    assert "one execution" not in result.stdout


def test_what_it_prints_fits_80_columns_and_comes_as_json(monkeypatch):
    acts = {False: _act(False), True: _act(True)}
    monkeypatch.setattr(double_fire, "play", lambda folder, fenced: acts[fenced])

    told = CliRunner().invoke(command, [])
    document = json.loads(CliRunner().invoke(command, ["--json"]).stdout)

    assert told.exit_code == 0
    assert "DISTINCT effects : 12  PROVEN DOUBLE-FIRE" in told.stdout
    assert "DISTINCT effects : 1  ONE EFFECT" in told.stdout
    assert "12 callers, 12 clean answers, one execution" in told.stdout
    assert max(map(len, told.stdout.splitlines())) < 80
    assert [act["effects"] for act in document["acts"]] == [12, 1]
    assert document["shortcomings"] == []
