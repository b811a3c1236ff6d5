"""Shared by all tests: a clean environment, and what to do when an optional tool is missing."""

from __future__ import annotations

import os
import shutil

import hypothesis
import pytest

# A busy machine is no finding, and a run must be repeatable: no deadline, fixed examples.
hypothesis.settings.register_profile(
    "fencekit",
    deadline=None,
    derandomize=True,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
)
hypothesis.settings.load_profile("fencekit")

# Where this is set (CI), a missing optional tool is a failure, not a skip.
REQUIRE_ALL = os.environ.get("FENCEKIT_REQUIRE_ALL") == "1"


def missing(reason: str) -> None:
    """Skip for a missing optional tool; where everything must be there, fail instead."""
    if REQUIRE_ALL:
        pytest.fail(f"{reason} (FENCEKIT_REQUIRE_ALL=1: nothing may skip here)")
    pytest.skip(reason)


def need(tool: str) -> str:
    """Return the path of an optional program, or skip the test loudly."""
    path = shutil.which(tool)
    if path is None:
        missing(f"{tool} is not installed")
    assert path is not None
    return path


@pytest.fixture(autouse=True)
def _clean_environment(monkeypatch, tmp_path_factory):
    """Keep the user's own ledgers, configuration and colours out of every test."""
    for name in list(os.environ):
        if name.startswith("FENCEKIT_") and name != "FENCEKIT_REQUIRE_ALL":
            monkeypatch.delenv(name)
    state = tmp_path_factory.mktemp("state")
    for name in ("XDG_STATE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME"):
        monkeypatch.setenv(name, str(state / name.lower()))
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "80")
