"""An instrument that cannot fail proves nothing: the probe is tried on servers of known safety.

Each way that a run uses is performed on a built-in broken server, which every counter that can
prove there must call PROVEN, and on a built-in correct one, which none may. For twins the broken
one doubles only when two calls really overlap, so twins fired one by one do not pass.
"""

from __future__ import annotations

import contextlib
import io
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from fencekit.probe import specimen
from fencekit.probe.answers import Lens
from fencekit.probe.fire import Shot
from fencekit.probe.judge import judge
from fencekit.probe.model import Evidence, Setting, Verdict, Way
from fencekit.probe.observer import Observer, ToolCounter
from fencekit.probe.rawserver import over_http
from fencekit.probe.sink import Sink
from fencekit.probe.ways import Rig
from fencekit.wire.client import Target

ARGUMENTS = {"order": "self-check", "amount": 1}
CALLS = 4
BROKEN = {
    Way.TWINS: "races",
    Way.RETRY: "fires",
    Way.LOST_ANSWER: "forgets",
    Way.RESTART: "forgets",
}
# Over HTTP the server lives on when a connection is lost, so forgetting is not enough.
BROKEN_HTTP = {Way.LOST_ANSWER: "fires"}
CORRECT = "keeps"
COUNTERS = ("answers", "observer", "sink")


@dataclass(frozen=True)
class Check:
    """One trial: which way and counter on which specimen, what it said, whether that is right."""

    way: Way
    counter: str
    specimen: str
    verdict: Verdict
    passed: bool


@dataclass(frozen=True)
class SelfCheck:
    """All trials of a run. A run whose self-check did not pass is void."""

    checks: tuple[Check, ...]
    elapsed_ms: float

    @property
    def passed(self) -> bool:
        """Whether every trial said what it must."""
        return bool(self.checks) and all(check.passed for check in self.checks)


def self_check(ways: Sequence[Way], *, http: bool = False) -> SelfCheck:
    """Try every way with every counter on a broken and on a correct server.

    `http` tries them over Streamable HTTP, where a way that ends the server does not apply.
    """
    began = time.monotonic()
    broken = {**BROKEN, **BROKEN_HTTP} if http else BROKEN
    checks = [
        check
        for way in ways
        if not (http and way is Way.RESTART)
        for mode in (broken[way], CORRECT)
        for check in _trials(way, mode, _perform(way, mode, http=http))
    ]
    return SelfCheck(tuple(checks), round((time.monotonic() - began) * 1000, 1))


def _perform(way: Way, mode: str, *, http: bool) -> Evidence:
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="fencekit-self-check-"))
        sink = stack.enter_context(Sink())
        effects = Path(folder) / "effects"
        if http:
            till = specimen.Till(mode, effects, sink.url)
            served = specimen.Specimen(till, io.StringIO())
            target = Target(url=stack.enter_context(over_http(served)), timeout=20.0)
        else:
            target = Target(
                command=(sys.executable, "-m", "fencekit.probe.specimen", mode),
                env={specimen.EFFECTS_ENV: str(effects), specimen.SINK_ENV: sink.url},
                timeout=20.0,
            )
        rig = Rig(
            shot=Shot("charge_card", ARGUMENTS, timeout=20.0),
            connect=target.connect,
            setting=Setting(stdio=not http),
            calls=CALLS,
            observer=Observer(ToolCounter("list_charges", "$.length")),
            sink=sink,
        )
        return rig.perform(way)[0]


def _trials(way: Way, mode: str, evidence: Evidence) -> list[Check]:
    """Judge the same evidence with each counter alone."""
    lens = Lens(echoed=frozenset(str(value) for value in ARGUMENTS.values()))
    alone = {
        "answers": replace(evidence, observation=None, sink=None),
        "observer": replace(evidence, sink=None, calls=_silent(evidence)),
        "sink": replace(evidence, observation=None, calls=_silent(evidence)),
    }
    broken = mode != CORRECT
    checks = []
    for counter in COUNTERS:
        # An answer that is thrown away cannot be compared with the next one.
        if counter == "answers" and way is Way.LOST_ANSWER:
            continue
        verdict = judge(alone[counter], lens).verdict
        passed = (verdict is Verdict.PROVEN) == broken
        checks.append(Check(way, counter, mode, verdict, passed))
    return checks


def _silent(evidence: Evidence) -> tuple:  # type: ignore[type-arg]
    """Return the calls with their answers made equal, so that only the counter speaks."""
    return tuple(replace(call, result={}) for call in evidence.calls)
