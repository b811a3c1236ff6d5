"""The storm: one execution, whoever dies; and it says so when it is not one."""

from __future__ import annotations

import json
import os

import pytest
from click.testing import CliRunner

from fencekit import Fence
from fencekit.cli.storm import command
from fencekit.core.errors import LedgerFull
from fencekit.core.state import Done, Unknown
from fencekit.demo import storm
from fencekit.demo.charging import Tally, charge, charges
from tests.ledger.conformance import url_of


def invoke(*arguments):
    return CliRunner().invoke(command, list(arguments))


def quiet(_text):
    """Hear nothing of what is going on."""


@pytest.mark.parametrize("ledger", ["memory:", "sqlite:{}/fence.db", "jsonl:{}/fence.jsonl"])
def test_one_process_executes_once(tmp_path, ledger):
    plan = storm.Plan(ledger.format(tmp_path), tmp_path, attempts=200)

    outcome = storm.run(plan, quiet)

    assert outcome.shortcomings == []
    assert outcome.executions == len(charges(plan.effects)) == outcome.tally.executed == 1
    # The late retries come when the race is over: every one of them is served.
    assert outcome.tally.served >= 200 - 16
    assert outcome.tally.served + outcome.tally.stood_down == outcome.prevented == 199
    assert len(outcome.tally.receipts) == 1


def test_several_processes_execute_once(tmp_path):
    plan = storm.Plan(f"sqlite:{tmp_path / 'fence.db'}", tmp_path, attempts=200, processes=4)

    outcome = storm.run(plan, quiet)

    assert outcome.shortcomings == []
    assert outcome.executions == 1
    assert outcome.tally.answered == 200
    assert outcome.tally.served >= 200 - 4 * 16
    with Fence.open(plan.ledger) as fence:
        (shown,) = fence.intents()
        assert isinstance(shown.record.state, Done)


@pytest.mark.parametrize("trial", range(3))
def test_a_process_killed_in_the_middle_of_the_charge_never_makes_it_two(tmp_path, trial):
    plan = storm.Plan(
        f"sqlite:{tmp_path / 'fence.db'}", tmp_path, attempts=100, processes=3, kill=True
    )

    outcome = storm.run(plan, quiet)

    assert outcome.killed == 1
    assert outcome.executions == 1
    assert outcome.shortcomings == []
    # Nobody got a receipt, for nobody knows; nobody ran it again either.
    assert (outcome.tally.executed, outcome.tally.served) == (0, 0)
    assert outcome.tally.stood_down + outcome.lost == 100
    with Fence.open(plan.ledger) as fence:
        (shown,) = fence.intents()
        assert isinstance(shown.record.state, Unknown)
        assert shown.record.state.cause == "died"


def test_a_kept_ledger_can_be_stormed_again(tmp_path):
    url = f"sqlite:{tmp_path / 'fence.db'}"

    runs = [storm.run(storm.Plan(url, tmp_path, attempts=20), quiet) for _ in range(2)]

    assert [run.executions for run in runs] == [1, 1]
    assert runs[0].plan.order != runs[1].plan.order


def test_what_it_prints():
    result = invoke("--attempts", "50", "--ledger", "memory:")

    assert result.exit_code == 0
    rows = dict(line.split(" : ") for line in result.stdout.splitlines()[1:])
    values = {name.strip(): value for name, value in rows.items()}
    assert values["attempts"] == "50"
    assert values["ACTUAL EXECUTIONS"] == "1"
    assert values["double-charges prevented"] == "49"
    assert int(values["served sealed receipt"]) + int(values["told to stand down"]) == 49
    assert values["elapsed"].endswith(" s")
    assert max(map(len, result.stdout.splitlines())) < 80


def test_json():
    result = invoke("--attempts", "20", "--processes", "2", "--json")

    document = json.loads(result.stdout)
    assert document["executions"] == 1
    assert document["served"] + document["stood_down"] == document["prevented"] == 19


def test_two_executions_exit_1(monkeypatch):
    """A fence that forgets: every caller is admitted, and the file outside tells."""
    real = Fence.prepare

    def forgetful(self, *args, **more):
        return real(Fence(), *args, **more)

    monkeypatch.setattr(Fence, "prepare", forgetful)

    result = invoke("--attempts", "5", "--ledger", "memory:")

    assert result.exit_code == 1
    assert "the charge ran 5 times, not once" in result.stderr
    assert "ACTUAL EXECUTIONS        : 5" in result.stdout


def test_a_ledger_that_stops_answering_is_told(monkeypatch):
    def full(self, *args, **more):
        raise LedgerFull("no space left: free some")

    monkeypatch.setattr(Fence, "prepare", full)

    result = invoke("--attempts", "5", "--ledger", "memory:")

    assert result.exit_code == 1
    assert "the charge ran 0 times" in result.stderr
    assert "no space left: free some" in result.stderr
    assert "not answered by the ledger : 5" in result.stdout


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--kill"], "--processes 2"),
        (["--processes", "2", "--ledger", "memory:"], "one process"),
        (["--processes", "2", "--ledger", "nonsense"], "sqlite:PATH"),
        (["--attempts", "0"], "--attempts"),
    ],
)
def test_wrong_options_exit_2(arguments, says):
    result = invoke(*arguments)

    assert result.exit_code == 2
    assert says in result.stderr


def test_a_ledger_for_one_process_exits_3_with_several(tmp_path):
    result = invoke("--processes", "2", "--ledger", f"jsonl:{tmp_path / 'fence.jsonl'}")

    assert result.exit_code == 3
    assert "fence.jsonl" in result.stderr


def test_only_whole_lines_are_charges(tmp_path):
    effects = tmp_path / "effects.jsonl"
    assert charges(effects) == []
    receipt = charge(effects, "order-1")
    with effects.open("a") as file:
        file.write('{"order": "ord')

    (made,) = charges(effects)

    assert made == {"order": "order-1", "charge": receipt["charge"], "pid": os.getpid()}


def test_a_tally_survives_the_pipe():
    tally = Tally(executed=1, served=2, receipts={"b", "a"}, problems=["p"])

    assert Tally.from_json(json.loads(json.dumps(tally.to_json()))) == tally


@pytest.mark.parametrize("kind", ["sqlite", "postgresql", "redis"])
def test_many_charges_for_a_while_each_run_once(tmp_path, kind):
    plan = storm.Plan(url_of(kind, tmp_path), tmp_path, processes=2, intents=40, seconds=1)

    outcome = storm.run(plan, quiet)

    assert outcome.shortcomings == []
    assert 1 <= outcome.executions <= 40
    assert outcome.executions == outcome.tally.executed
    assert outcome.repeated == 0
    assert outcome.attempts == outcome.tally.answered > outcome.executions


def test_a_charge_that_ran_twice_is_told_by_many_intents(tmp_path):
    """The instrument can fail: somebody charges one order outside the fence."""
    plan = storm.Plan(f"sqlite:{tmp_path / 'fence.db'}", tmp_path, intents=2, seconds=0.2)
    charge(plan.effects, plan.orders[0])

    outcome = storm.run(plan, quiet)

    assert outcome.repeated == 1
    assert outcome.shortcomings == ["1 of 2 charges ran more than once"]


def test_the_command_takes_intents_and_seconds():
    done = invoke("--intents", "3", "--seconds", "0.2")
    assert done.exit_code == 0
    assert "CHARGED MORE THAN ONCE" in done.stdout
    assert json.loads(invoke("--intents", "3", "--seconds", "0.2", "--json").stdout)["intents"] == 3


def test_a_process_killed_half_way_leaves_nothing_that_runs_twice(tmp_path):
    plan = storm.Plan(
        f"sqlite:{tmp_path / 'fence.db'}", tmp_path, processes=3, kill=True, intents=20, seconds=1
    )

    outcome = storm.run(plan, quiet)

    assert (outcome.killed, outcome.repeated, outcome.shortcomings) == (1, 0, [])
    assert outcome.elapsed < 20
