"""The command line as a whole."""

from __future__ import annotations

from click.testing import CliRunner

from fencekit.cli.main import COMMANDS, cli


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
