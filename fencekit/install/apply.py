"""Writing what was planned: atomically, and only over the very text that was read."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterable
from pathlib import Path

from fencekit.install.hosts import Place
from fencekit.install.plan import Change, Plan

MAX_BYTES = 32 * 1024 * 1024
_CLAUDE_TIMEOUT = 60.0  # seconds


class NotWritten(Exception):
    """A file was left as it is; the text says why and what to do."""


def read(places: Iterable[Place], notes: list[str]) -> dict[Path, str]:
    """Read every file that is there; what cannot be read becomes a note."""
    texts: dict[Path, str] = {}
    for path in dict.fromkeys(place.path for place in places):
        try:
            if path.is_file():
                if path.stat().st_size > MAX_BYTES:
                    raise ValueError("it is too large")
                # newline="" keeps line ends as they are
                with path.open(encoding="utf-8", newline="") as file:
                    texts[path] = file.read()
        except (OSError, ValueError) as problem:
            notes.append(f"{path} is left alone: {problem}")
    return texts


def write(path: Path, old: str, new: str) -> None:
    """Replace a file's text. Raises `NotWritten` if it is not `old` any more, or cannot be."""
    target = path.resolve()
    name = ""
    try:
        mode = target.stat().st_mode & 0o777
        descriptor, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}-")
        with os.fdopen(descriptor, "w", encoding="utf-8", newline="") as file:
            file.write(new)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(name, mode)
        with target.open(encoding="utf-8", newline="") as file:
            if file.read() != old:
                raise NotWritten(f"{path} was changed meanwhile and is left alone: run it again")
        os.replace(name, target)
        name = ""
    except OSError as problem:
        raise NotWritten(f"{path} could not be written: {problem.strerror}") from None
    finally:
        if name:
            Path(name).unlink(missing_ok=True)


def apply(plan: Plan, project: Path) -> list[str]:
    """Carry a plan out; returns a line for each entry. Raises `NotWritten` at the first failure.

    What Claude Code writes itself goes through its own command where that is there.
    """
    claude = shutil.which("claude")
    own = [c for c in plan.changes if c.server.place.through_claude] if claude else []
    said = [_through_claude(claude, change, project) for change in own if claude]
    files = Plan(plan.texts, [change for change in plan.changes if change not in own])
    for path in files.paths():
        mine = [change for change in files.changes if change.server.place.path == path]
        if any(change.server.place.through_claude for change in mine) and claude_runs():
            raise NotWritten(
                f"{path} is written by Claude Code, which is running: end it and run this again"
            )
        write(path, files.texts[path], files.new_text(path))
        said += [f"{change.server.name} in {path}" for change in mine]
    return said


def _through_claude(claude: str, change: Change, project: Path) -> str:
    server, scope = change.server, change.server.place.level
    entry = change.entry()
    if "command" in entry:
        entry.setdefault("type", "stdio")
    steps = (
        ["mcp", "remove", "--scope", scope, server.name],
        ["mcp", "add-json", "--scope", scope, server.name, json.dumps(entry)],
    )
    for step in steps:
        try:
            made = subprocess.run(
                [claude, *step],
                check=False,
                cwd=project,
                capture_output=True,
                text=True,
                timeout=_CLAUDE_TIMEOUT,
            )
        except (OSError, subprocess.TimeoutExpired) as problem:
            raise NotWritten(f"`claude mcp {step[1]}` failed: {problem}") from None
        if made.returncode != 0:
            why = (made.stderr or made.stdout).strip().splitlines()[-1:] or ["no reason given"]
            raise NotWritten(f"`claude mcp {step[1]} {server.name}` failed: {why[0][:300]}")
    return f"{server.name} in Claude Code ({scope})"


def claude_runs() -> bool:
    """Whether a Claude Code of this machine seems to be running; True where nothing can tell."""
    try:
        made = subprocess.run(
            ["ps", "-A", "-o", "comm="], check=True, capture_output=True, text=True, timeout=10
        )
    except (OSError, subprocess.SubprocessError):
        return True
    return any(os.path.basename(line.strip()) == "claude" for line in made.stdout.splitlines())
