"""The README does what it says: its Python runs, its commands run, its output is the real one."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from fencekit.cli.main import COMMANDS

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")

_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
# What differs from run to run: ids, counts under a race, times.
_VARIES = re.compile(r"\b(?=\w*\d)[0-9a-f]{8,}\b|\d+\.\d+|\d+")


def blocks(language):
    """Return the fenced blocks of one language."""
    return [text for name, text in _BLOCK.findall(README) if name == language]


def console(command):
    """Return the output that the README shows for a command."""
    (shown,) = [b for b in blocks("console") if b.startswith(f"$ fencekit {command}")]
    return shown.partition("\n")


def fencekit(*arguments):
    return subprocess.run(
        [sys.executable, "-m", "fencekit.cli.main", *arguments],
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )


@pytest.mark.parametrize("number", range(len(blocks("python"))))
def test_the_python_runs(number, tmp_path):
    ran = subprocess.run(
        [sys.executable, "-W", "error", "-c", blocks("python")[number]],
        capture_output=True,
        text=True,
        timeout=60,
        cwd=tmp_path,
        check=False,
    )

    assert (ran.returncode, ran.stderr) == (0, "")


def test_the_library_fits_in_ten_lines_and_runs_once(tmp_path):
    text = blocks("python")[0]
    ran = subprocess.run(
        [sys.executable, "-c", text], capture_output=True, text=True, cwd=tmp_path, check=True
    )

    one, two = ran.stdout.splitlines()
    assert one == two
    assert len([line for line in text.splitlines() if line.strip()]) <= 10


def test_the_demo_prints_what_is_shown():
    _, _, shown = console("demo")

    ended = fencekit("demo")

    assert ended.returncode == 0, ended.stderr
    assert ended.stdout == shown


@pytest.mark.parametrize("command", ["storm --processes 4", "turf-war"])
def test_the_other_runs_print_what_is_shown(command):
    _, _, shown = console(command)

    ended = fencekit(*command.split())

    assert ended.returncode == 0, ended.stderr
    # A line may break elsewhere where a number is longer.
    assert _words(ended.stdout) == _words(shown)


def _words(text):
    return re.sub(r"\s+", " ", _VARIES.sub("N", text))


def test_every_console_block_is_tested():
    assert [b.partition("\n")[0] for b in blocks("console")] == [
        "$ fencekit demo",
        "$ fencekit storm --processes 4",
        "$ fencekit turf-war",
    ]


def test_every_configuration_starts_a_server_that_is_there():
    configurations = [json.loads(text)["mcpServers"] for text in blocks("json")]

    assert configurations
    for servers in configurations:
        for server in servers.values():
            assert server["command"] == "fencekit"
            assert fencekit(server["args"][0], "--help").returncode == 0


def test_every_command_line_names_commands_and_options_that_exist():
    lines = "\n".join(blocks("sh")).replace("\\\n", " ").splitlines()
    used = [found for line in lines for found in _FENCEKIT.findall(line)]

    assert {"probe", "wrap", "serve", "demo"} <= {name for name, _ in used}
    for name, rest in used:
        told = fencekit(name, "--help")
        assert told.returncode == 0, name
        options = re.findall(r"(?<=\s)--[a-z-]+", rest.partition(" -- ")[0])
        assert [option for option in options if option not in told.stdout] == []


_FENCEKIT = re.compile(r"(?<!\S)fencekit ([a-z][a-z-]*)(.*)")


def test_every_command_is_in_the_table():
    table = README[README.index("## Commands") :]

    assert [name for name in COMMANDS if f"`{name}`" not in table.replace("fencekit ", "")] == []


def test_links_lead_somewhere():
    links = re.findall(r"\]\(([^)]+)\)", README)

    assert links
    assert [link for link in links if not (ROOT / link).exists()] == []


def test_it_says_what_must_be_said():
    words = " ".join(README.split())

    assert "`mcp-fencekit`" in words
    assert "the name `fencekit` on PyPI belongs to another" in words
    for limit in ("goes around it", "varies its arguments", "without a shared ledger"):
        assert limit in words
    assert os.linesep in README
