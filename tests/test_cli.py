"""The command line as a whole."""

from __future__ import annotations

import click
import pytest
from click.testing import CliRunner

from fencekit.cli.main import COMMANDS, LazyGroup, cli, main
from fencekit.core.errors import InvalidRequest, LedgerFull


def test_help_lists_every_command():
    out = CliRunner().invoke(cli, ["--help"]).output

    assert [name for name in COMMANDS if name not in out] == []


def test_every_command_has_help():
    for name in COMMANDS:
        result = CliRunner().invoke(cli, [name, "--help"])
        assert result.exit_code == 0, (name, result.output)


def test_a_mistyped_command_exits_2():
    result = CliRunner().invoke(cli, ["no-such-command"])

    assert result.exit_code == 2
    assert "No such command" in result.output


@pytest.mark.parametrize(
    ("raised", "code", "says"),
    [
        (LedgerFull("no space left on the disk: free some"), 3, "no space left on the disk"),
        (InvalidRequest("intent must not be empty"), 2, "intent must not be empty"),
        (click.UsageError("no such thing"), 2, "no such thing"),
        (KeyboardInterrupt(), 130, "interrupted"),
        (KeyError("forgotten"), 70, "KeyError: 'forgotten'"),
    ],
)
def test_what_no_command_caught_is_told_without_a_trace(monkeypatch, capsys, raised, code, says):
    @click.command()
    def command():
        raise raised

    monkeypatch.setattr(LazyGroup, "get_command", lambda *_: command)

    with pytest.raises(SystemExit) as left:
        main(["probe"])

    told = capsys.readouterr()
    assert left.value.code == code
    assert says in told.err
    assert told.out == ""
    assert "Traceback" not in told.err


def test_a_fault_can_be_traced_on_request(monkeypatch):
    monkeypatch.setenv("FENCEKIT_TRACEBACK", "1")

    @click.command()
    def command():
        raise KeyError("forgotten")

    monkeypatch.setattr(LazyGroup, "get_command", lambda *_: command)

    with pytest.raises(KeyError, match="forgotten"):
        main(["probe"])


@pytest.mark.parametrize("code", [0, 1])
def test_the_code_of_a_command_is_the_exit_code(monkeypatch, code):
    @click.command()
    @click.pass_context
    def command(ctx):
        ctx.exit(code)

    monkeypatch.setattr(LazyGroup, "get_command", lambda *_: command)

    with pytest.raises(SystemExit) as left:
        main(["probe"])

    assert left.value.code == code
