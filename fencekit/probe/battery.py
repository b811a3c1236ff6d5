"""Runs a client command through every mode of the hostile server and scores what it did.

The score is read from the server's own record, never from what the client says. A battery that
cannot tell a bad client from a good one proves nothing, so three built-in clients run first: a
blind one that must over-fire, one that never calls and must over-refuse, and a careful one that
must hold.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from fencekit.probe.clients import KINDS
from fencekit.probe.hostile import MODES, SLOW_SECONDS_ENV, Mode, Record

ORDER_ENV = "FENCEKIT_ORDER"
SERVER_SLOT = "{server}"
ORDER_SLOT = "{order}"
CONTROL_SLOW = "2"  # seconds; longer than the reference clients' patience
CONTROLS_AT_ONCE = 4
# Where a client that repeats what failed must be caught, and where it cannot be.
BLIND_FIRES = frozenset(MODES) - {"declared-safe", "honest"}


class Score(StrEnum):
    """What a client did in one mode."""

    HELD = "held"
    OVER_FIRED = "over-fired"
    OVER_REFUSED = "over-refused"
    NOT_RUN = "did not run"


@dataclass(frozen=True)
class Trial:
    """One mode: the score, the charges and look-ups that the server recorded, how it ended."""

    mode: Mode
    score: Score
    charges: int
    verifies: int
    ended: str


@dataclass(frozen=True)
class Control:
    """One built-in client in one mode, and whether the battery said of it what it must."""

    client: str
    mode: str
    score: Score
    expected: Score

    @property
    def passed(self) -> bool:
        """Whether the battery told it apart."""
        return self.score is self.expected


def fill(command: Sequence[str], server: Sequence[str], order: str) -> list[str]:
    """Return the client's command with `{server}` and `{order}` filled in.

    A word that is just `{server}` becomes the server's words; inside a longer word it becomes one
    shell-quoted text. Raises ValueError if `{server}` is nowhere.
    """
    if not any(SERVER_SLOT in word for word in command):
        raise ValueError("the client's command has no {server} to start the hostile server with")
    made: list[str] = []
    for word in command:
        if word == SERVER_SLOT:
            made += server
        else:
            text = word.replace(ORDER_SLOT, order)
            made.append(text.replace(SERVER_SLOT, shlex.join(server)))
    return made


def run_trial(
    command: Sequence[str], mode: Mode, *, limit: float, slow: str | None = None
) -> Trial:
    """Run the client in one mode, for at most `limit` seconds, and score it."""
    with tempfile.TemporaryDirectory(prefix="fencekit-hostile-") as folder:
        record = Record(Path(folder) / "effects.jsonl")
        server = [sys.executable, "-m", "fencekit.probe.hostile", mode.name, str(record.path)]
        order = f"order-{mode.name}"
        # The client gets a state directory of its own: a fence in it must not remember others.
        state = str(Path(folder) / "state")
        env = {**os.environ, ORDER_ENV: order, "XDG_STATE_HOME": state}
        if slow is not None:
            env[SLOW_SECONDS_ENV] = slow
        ended = _run(fill(command, server, order), env, limit)
        charges, verifies = record.count("charge"), record.count("verify")
        asked = bool(record.entries())
    return Trial(mode, _score(charges, asked, ended), charges, verifies, ended)


def _score(charges: int, asked: bool, ended: str) -> Score:
    if charges > 1:
        return Score.OVER_FIRED
    if charges == 1:
        return Score.HELD
    crashed = ended not in ("exit 0", "exit 1")
    return Score.NOT_RUN if crashed and not asked else Score.OVER_REFUSED


def _run(command: Sequence[str], env: dict[str, str], limit: float) -> str:
    """Run a command in a process group of its own; end the whole group at the limit."""
    try:
        process = subprocess.Popen(
            command,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=2,  # our stderr: the client talks, the score is data
            start_new_session=True,
        )
    except OSError as error:
        return f"could not start: {error}"
    try:
        code = process.wait(limit)
        return f"exit {code}" if code >= 0 else f"signal {-code}"
    except subprocess.TimeoutExpired:
        return f"client ended at the limit of {limit:g} s"
    finally:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def controls() -> Iterator[Control]:
    """Run the three built-in clients through every mode: the battery's own mutation test."""
    cases = [(client, name) for client in KINDS for name in MODES]
    # They mostly wait, for answers that do not come.
    with ThreadPoolExecutor(CONTROLS_AT_ONCE) as pool:
        yield from pool.map(_control, *zip(*cases, strict=True))


def _control(client: str, name: str) -> Control:
    words = [sys.executable, "-m", "fencekit.probe.clients", client, ORDER_SLOT, "--", SERVER_SLOT]
    trial = run_trial(words, MODES[name], limit=60.0, slow=CONTROL_SLOW)
    fires = client == "blind" and name in BLIND_FIRES
    expected = Score.OVER_FIRED if fires else Score.HELD
    expected = Score.OVER_REFUSED if client == "refuser" else expected
    return Control(client, name, trial.score, expected)


def battery(
    command: Sequence[str], *, limit: float, say: Callable[[str], None] = lambda _text: None
) -> list[Trial]:
    """Run the client command through every mode. `limit` in seconds for each."""
    trials = []
    for name, mode in MODES.items():
        say(f"mode {name}")
        trials.append(run_trial(command, mode, limit=limit))
    return trials
