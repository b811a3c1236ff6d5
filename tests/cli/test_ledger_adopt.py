"""`fencekit ledger adopt`: what the operator is shown, asked and told."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from click.testing import CliRunner

from fencekit import Fence
from fencekit.cli.main import cli
from fencekit.wrap.identity import Scope
from fencekit.wrap.scope import scope_of
from tests.wrap.door import Door, outcome

COMMAND = ("--", "npx", "pay", "--token", "hunter2")


@pytest.fixture
def url(tmp_path, monkeypatch):
    """A ledger in which the scope of another folder has a lost call, and one that runs."""
    home, old, here = (tmp_path / name for name in ("home", "old", "here"))
    for folder in (home, old, here):
        folder.mkdir()
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home))
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.chdir(here)
    return f"sqlite:{tmp_path / 'ledger'}"


def scope(folder: str, **more) -> Scope:
    return scope_of(COMMAND[1:], folder, {}, **more)


def lose(url: str, where: Scope, *orders: str) -> None:
    with Fence.open(url) as fence:
        for order in orders:
            door = Door(ledger=fence.ledger, scope=where)
            door.call(1, arguments={"order": order})
            door.fail(1)


def run(*args, code=0, **more):
    result = CliRunner().invoke(cli, ["ledger", "adopt", *args], **more)
    assert result.exit_code == code, result.output
    return result


def duplicate(url: str, where: Scope, order: str = "o1") -> tuple[int, str]:
    """Call again under a scope; returns how often it ran, and the state that was told."""
    with Fence.open(url) as fence:
        door = Door(ledger=fence.ledger, scope=where)
        door.call(1, arguments={"order": order})
        return door.executed, outcome(door.last)["state"] if door.to_client else ""


def test_it_adopts_into_the_scope_that_wrap_would_have_here(url, tmp_path):
    old = scope(str(tmp_path / "old"))
    lose(url, old, "o1", "o2")

    out = run(old.name, "--note", "moved", "--yes", "--ledger", url, *COMMAND)

    assert out.stdout.count("unknown here now") == 2
    assert "hunter2" not in out.output
    assert duplicate(url, scope(str(tmp_path / "here"))) == (0, "unknown")
    assert duplicate(url, old) == (0, "unknown")
    again = run(old.name, "--note", "x", "--yes", "--json", "--ledger", url, *COMMAND)
    assert [row["what"] for row in json.loads(again.stdout)] == ["known", "known"]


def test_whoever_judges_an_adopted_call_hears_of_the_one_that_is_left(url, tmp_path):
    old, here = scope(str(tmp_path / "old")), scope(str(tmp_path / "here"))
    lose(url, old, "o1")
    run(old.name, "--note", "moved by hand", "--yes", "--ledger", url, *COMMAND)
    with Fence.open(url) as fence:
        before, after = sorted(
            (s.key.intent for s in fence.intents()), key=lambda i: i.startswith(here.name)
        )

    args = ["--note", "n", "--yes", "--ledger", url]
    out = CliRunner().invoke(cli, ["ledger", "clear", after, *args])
    again = CliRunner().invoke(cli, ["ledger", "clear", before, *args])

    assert (out.exit_code, again.exit_code) == (0, 0)
    assert f"judge it too: {before}" in out.stderr
    assert "judge it too" not in again.stderr


def test_options_and_the_users_config_name_the_scope_as_for_wrap(url, tmp_path, monkeypatch):
    old = scope(str(tmp_path / "old"))
    lose(url, old, "o1")
    monkeypatch.setenv("SHOP", "prod")
    config = tmp_path / "mine.toml"
    config.write_text(f'scope = "shop"\naccount_env = ["SHOP"]\nledger = "{url}"\n')

    run(old.name, "--note", "n", "--yes", "--config", str(config), *COMMAND)

    named = scope_of(COMMAND[1:], "/", {"SHOP": "prod"}, name="shop", account_env=["SHOP"])
    assert duplicate(url, named) == (0, "unknown")
    dev = scope_of(COMMAND[1:], "/", {"SHOP": "dev"}, name="shop", account_env=["SHOP"])
    assert duplicate(url, dev) == (1, "")


def test_a_scope_of_before_its_account_had_a_name_is_adopted(url, monkeypatch):
    lose(url, Scope("shop"), "o1")
    monkeypatch.setenv("SHOP", "prod")
    options = ("--scope", "shop", "--account-env", "SHOP", "--ledger", url)

    run("shop", "--note", "n", "--yes", *options, *COMMAND)

    mine = scope_of(COMMAND[1:], "/", {"SHOP": "prod"}, name="shop", account_env=["SHOP"])
    assert duplicate(url, mine) == (0, "unknown")


def test_a_guest_of_the_front_stays_who_it_is(url, tmp_path):
    old, here = scope(str(tmp_path / "old")), scope(str(tmp_path / "here"))
    for guest in ("group:a", "group:b"):
        lose(url, replace(old, account=guest), "o1")
    options = ("--principal", "group:a", "--note", "n", "--yes", "--ledger", url)

    run(old.name, *options, *COMMAND)

    assert duplicate(url, replace(here, account="group:a")) == (0, "unknown")
    assert duplicate(url, replace(here, account="group:b")) == (1, "")
    assert duplicate(url, here) == (1, "")
    own = run(here.name, *options, *COMMAND, code=2)
    assert "not of this very scope" in own.stderr


def test_of_several_accounts_one_is_to_be_named(url):
    for account in ("account:a", "account:b"):
        lose(url, Scope("shop", account), "o1")

    out = run("shop", "--note", "n", "--yes", "--ledger", url, *COMMAND, code=2)

    assert "--principal" in out.stderr
    assert "account:a" in out.stderr
    run("shop", "--principal", "account:b", "--note", "n", "--yes", "--ledger", url, *COMMAND)


def test_what_runs_is_left_and_the_exit_says_so(url, tmp_path):
    old = scope(str(tmp_path / "old"))
    with Fence.open(url) as fence:
        Door(ledger=fence.ledger, scope=old).call(1)
        out = run(old.name, "--note", "n", "--yes", "--ledger", url, *COMMAND, code=2)
        assert "still running there" in out.stdout
        run(old.name, "--running", "--note", "n", "--yes", "--ledger", url, *COMMAND)


def test_nothing_is_done_unasked_or_without_a_reason(url, tmp_path):
    old = scope(str(tmp_path / "old"))
    lose(url, old, "o1")

    assert "--note" in run(old.name, "--yes", "--ledger", url, *COMMAND, code=2).stderr
    assert "--yes" in run(old.name, "--note", "n", "--ledger", url, *COMMAND, code=2).stderr
    assert "-- CMD" in run(old.name, "--note", "n", "--ledger", url, code=2).stderr
    nothing = run("elsewhere", "--note", "n", "--yes", "--ledger", url, *COMMAND, code=2)
    assert "nothing without an outcome" in nothing.stderr
    assert duplicate(url, scope(str(tmp_path / "here"))) == (1, "")


def test_hostile_names_stay_inert(url):
    hostile = "pay\x1b[31m\u202e"
    lose(url, Scope(hostile), "o1")

    out = run(hostile, "--note", "n", "--yes", "--ledger", url, *COMMAND)

    assert "\x1b" not in out.output
    assert "\u202e" not in out.output
