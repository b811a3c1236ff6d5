"""The emitted test fails today, passes once the effect runs once, and needs no fencekit."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest
from click.testing import CliRunner

from fencekit.cli.probe import command
from tests.wire.web import web

SPECIMEN = [sys.executable, "-m", "fencekit.probe.specimen"]
FINDINGS = {
    "answers": ("fires", []),
    "retry": ("fires", ["--ways", "retry"]),
    "observer": ("forgets", ["--ways", "restart", "--count-tool", "list_charges"]),
    "sink": ("echoes", ["--sink", "FENCEKIT_SINK", "--control", "list_charges"]),
}


def pytest_on(path, **env: str) -> subprocess.CompletedProcess[str]:
    quiet = ["-q", "-p", "no:cacheprovider", "-c", os.devnull]
    words = [sys.executable, "-m", "pytest", *quiet, str(path)]
    env = {**os.environ, **env}
    return subprocess.run(words, env=env, capture_output=True, text=True, check=False)


def probe(mode: str, found, *options: str, arguments: str = '{"order": "1"}'):
    words = ["--tool", "charge_card", "--args", arguments, "--calls", "4", *options]
    words += ["--emit-test", str(found), "--", *SPECIMEN, mode]
    return CliRunner().invoke(command, words)


@pytest.mark.parametrize("name", FINDINGS)
def test_it_fails_on_the_finding_and_passes_on_a_server_that_runs_once(name, tmp_path):
    mode, options = FINDINGS[name]
    found = tmp_path / "test_found.py"
    effects = f"FENCEKIT_EFFECTS={tmp_path / 'effects'}"
    run = probe(mode, found, "--env", effects, *options)
    assert run.exit_code == 1, run.output
    imports = [line for line in found.read_text().splitlines() if line.startswith("import")]
    assert [line for line in imports if "fencekit" in line] == []

    today = pytest_on(found)
    fixed = pytest_on(found, SERVER_COMMAND=" ".join([*SPECIMEN, "keeps"]))

    assert today.returncode == 1, today.stdout
    assert "for one action" in today.stdout
    assert fixed.returncode == 0, fixed.stdout


def test_secrets_are_not_written_down(tmp_path):
    found = tmp_path / "test_found.py"
    arguments = '{"order": "1", "password": "hunter2-hunter2"}'
    probe("fires", found, arguments=arguments)

    assert "hunter2" not in found.read_text()
    assert pytest_on(found, PROBE_ARGUMENTS=arguments).returncode == 1


def test_nothing_proven_is_no_test(tmp_path):
    found = tmp_path / "test_found.py"
    run = probe("keeps", found)

    assert run.exit_code == 0
    assert not found.exists()
    assert "no test was written" in run.stderr


@pytest.mark.parametrize("era", ["modern", "legacy"])
def test_over_http_it_fails_and_passes_too(era, tmp_path):
    found = tmp_path / "test_found.py"
    fixed = False
    charges: list[str] = []

    def shop(handler, message):
        if message is None or "id" not in message:
            handler.json({}, 202)
        elif message["method"] == "server/discover":
            handler.answer(message, {"supportedVersions": ["2026-07-28"]})
        elif message["method"] == "initialize":
            handler.answer(message, {"protocolVersion": "2025-11-25", "capabilities": {}})
        elif message["method"] == "tools/list":
            handler.answer(message, {"tools": [{"name": "pay"}]})
        else:
            if not fixed or not charges:
                charges.append(f"ch_{len(charges):08d}")
            text = json.dumps({"charge_id": charges[-1]})
            handler.answer(message, {"content": [{"type": "text", "text": text}]})

    with web(shop) as it:
        words = ["--tool", "pay", "--calls", "3", "--url", it.url, "--era", era]
        run = CliRunner().invoke(command, [*words, "--emit-test", str(found)])
        assert run.exit_code == 1, run.output
        today = pytest_on(found)
        fixed = True
        later = pytest_on(found)

    assert today.returncode == 1, today.stdout
    assert "executions for one action" in today.stdout
    assert later.returncode == 0, later.stdout
