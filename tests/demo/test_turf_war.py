"""Three agents on one cluster: who is admitted, who is refused, and in whose words."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from fencekit import CausalConflict, EffectCert, Fence, ReadSetStale
from fencekit.cli.turf_war import command
from fencekit.demo import turf_war


@pytest.fixture(params=["memory", "sqlite"])
def url(request, tmp_path):
    return "memory:" if request.param == "memory" else f"sqlite:{tmp_path / 'fence.db'}"


def test_one_is_admitted_and_two_are_refused_by_the_fence(url):
    war = turf_war.run(url)

    a, b, c = (proposal.said for proposal in war.proposals)
    assert isinstance(a, EffectCert)
    assert a.verify()
    assert isinstance(b, ReadSetStale)
    assert (b.expected, b.actual, b.pending) == (0, 1, False)
    assert isinstance(c, CausalConflict)
    assert (c.known, c.actual) == ({"C": 1}, {"A": 1})
    assert (war.executed, war.nodes, war.shortcomings) == (1, 5, [])


def test_a_kept_ledger_can_be_fought_on_again(tmp_path):
    url = f"sqlite:{tmp_path / 'fence.db'}"

    assert turf_war.run(url).shortcomings == []
    assert turf_war.run(url).shortcomings == []
    with Fence.open(url) as fence:
        assert len(list(fence.intents())) == 2


def test_the_output_gives_the_fences_own_words_in_80_columns():
    result = CliRunner().invoke(command, [])

    words = " ".join(result.output.split())
    assert result.exit_code == 0
    assert "3 proposed, 1 executed" in result.output
    assert "read the domain again and decide anew" in words
    assert "is concurrent with what happened there: do not run it; ask a human" in words
    assert max(map(len, result.output.splitlines())) < 80


def test_json():
    document = json.loads(CliRunner().invoke(command, ["--json"]).stdout)

    assert [p["admitted"] for p in document["proposals"]] == [True, False, False]
    assert (document["proposed"], document["executed"]) == (3, 1)


def test_without_a_fence_all_three_run_and_it_exits_1(monkeypatch):
    """The same war where every refusal is swallowed: each agent gets a fence of its own."""
    real = Fence.prepare

    def unfenced(self, intent, tool, args, *, agent, **_):
        return real(Fence(), intent, tool, args, agent=agent)

    monkeypatch.setattr(Fence, "prepare", unfenced)
    monkeypatch.setattr(Fence, "commit", lambda self, ticket, result: None)

    result = CliRunner().invoke(command, [])

    assert result.exit_code == 1
    assert "3 proposals were executed, not one" in result.stderr


def test_a_ledger_that_cannot_be_opened_exits_3(tmp_path):
    (tmp_path / "fence.db").write_bytes(b"no database" * 500)

    result = CliRunner().invoke(command, ["--ledger", f"sqlite:{tmp_path / 'fence.db'}"])

    assert result.exit_code == 3
    assert "fence.db" in result.stderr
