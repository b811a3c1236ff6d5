"""Shared by the probe's tests."""

from __future__ import annotations

import functools

import pytest

from fencekit.probe import run
from fencekit.probe.selfcheck import self_check

_once = functools.cache(self_check)


@pytest.fixture(autouse=True)
def _self_check_once(monkeypatch):
    """Run the same self-check once for all runs of this session; its own tests call it anew."""
    monkeypatch.setattr(run, "self_check", _once)
    # What reaches the sink at all reaches it before the control call is answered.
    monkeypatch.setattr(run, "SINK_WAIT", 0.2)
