"""The demo: one server that charges on every call, probed as it is, then behind the fence.

Nothing is played: both acts run the real `fencekit probe` as a process, the second one on the real
`fencekit wrap`. What the probe says is held against the charges in the server's own file.
"""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

CALLERS = 12
TOOL = "charge_card"
ARGUMENTS = '{"order":"order-7"}'

FENCEKIT = [sys.executable, "-m", "fencekit.cli.main"]
SERVER = [sys.executable, "-m", "fencekit.demo.server"]

_TIME_LIMIT = 60.0


@dataclass(frozen=True)
class Act:
    """One act: what the probe reported, and how many charges the server's file holds."""

    fenced: bool
    report: dict[str, Any]
    charges: int
    problem: str = ""

    @property
    def verdict(self) -> str:
        """The probe's verdict."""
        return str(self.report.get("verdict"))

    @property
    def effects(self) -> int | None:
        """The distinct effects that the probe counted."""
        return self.report.get("effects")

    @property
    def counts(self) -> dict[str, int]:
        """Calls, answers and errors, as the probe counted them."""
        ways = self.report.get("ways") or [{}]
        return ways[0].get("counts") or {}

    @property
    def executed(self) -> int | None:
        """Answers that the fence marked as executed now; None without a fence."""
        return self._marks.get("executed_now")

    @property
    def replayed(self) -> int | None:
        """Answers that the fence marked as replayed from one executed now."""
        return self._marks.get("replayed_now")

    @property
    def _marks(self) -> dict[str, int]:
        ways = self.report.get("ways") or [{}]
        return ways[0].get("marks") or {}

    @property
    def shortcomings(self) -> list[str]:
        """Why the act did not show what it is meant to show; empty where it did."""
        if self.problem:
            return [self.problem]
        effects, verdict = (1, "ONE EFFECT") if self.fenced else (CALLERS, "PROVEN DOUBLE-FIRE")
        wanted: dict[str, tuple[object, object]] = {
            "callers": (self.counts.get("calls"), CALLERS),
            "clean answers": (self.counts.get("succeeded"), CALLERS),
            "distinct effects": (self.effects, effects),
            "charges on file": (self.charges, effects),
            "verdict": (self.verdict, verdict),
        }
        if self.fenced:
            wanted |= {"executed": (self.executed, 1), "replayed": (self.replayed, CALLERS - 1)}
        return [
            f"{name}: {found} where {expected} was to be shown"
            for name, (found, expected) in wanted.items()
            if found != expected
        ]


def play(folder: Path, *, fenced: bool) -> Act:
    """Run one act in a folder of its own."""
    effects = folder / "charges.jsonl"
    wrap = [*FENCEKIT, "wrap", "--ledger", f"sqlite:{folder / 'fence.db'}", "--"] if fenced else []
    command = [
        *FENCEKIT, "probe", "--json", "--exit-zero", "--calls", str(CALLERS),
        "--tool", TOOL, "--args", ARGUMENTS,
        "--count-tool", "list_charges", "--count-path", "$.length", "--settle", "0.3",
        "--env", f"FENCEKIT_EFFECTS={effects}",
        "--", *wrap, *SERVER,
    ]  # fmt: skip
    try:
        ended = subprocess.run(
            command, capture_output=True, text=True, timeout=_TIME_LIMIT, check=False
        )
    except subprocess.TimeoutExpired:
        return Act(fenced, {}, 0, f"the probe took more than {_TIME_LIMIT:g} s")
    charges = len(effects.read_text().splitlines()) if effects.exists() else 0
    if ended.returncode != 0:
        told = (ended.stderr.strip().splitlines() or ["nothing"])[-1]
        return Act(fenced, {}, charges, f"the probe exited {ended.returncode} and said: {told}")
    return Act(fenced, json.loads(ended.stdout), charges)
