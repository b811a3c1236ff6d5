"""One server's entry in a host's configuration: put behind the fence, and taken out again.

Pure. Only the texts of `command` and `args` are replaced; `env`, inputs, `${…}` and everything else
stay to the letter, and the entry keeps its name.
"""

from __future__ import annotations

import json
import ntpath
import posixpath
from dataclasses import dataclass
from typing import Any

from fencekit.install.jsonc import Node, indent_of

Edits = list[tuple[int, int, str]]


@dataclass(frozen=True, slots=True)
class Command:
    """What an entry starts."""

    program: str
    args: tuple[str, ...]


def command_of(entry: Any) -> Command | None:
    """Return what an entry starts; None for one that starts nothing (a URL, or nonsense)."""
    if not isinstance(entry, dict):
        return None
    program, args = entry.get("command"), entry.get("args", [])
    if not isinstance(program, str) or not program or not isinstance(args, list):
        return None
    if not all(isinstance(word, str) for word in args):
        return None
    return Command(program, tuple(args))


def is_url(entry: Any) -> bool:
    """Whether an entry names a remote server."""
    return isinstance(entry, dict) and isinstance(entry.get("url", entry.get("serverUrl")), str)


def is_wrapped(command: Command) -> bool:
    """Whether an entry starts a fence in front of a command or a URL."""
    stem = posixpath.basename(ntpath.basename(command.program)).removesuffix(".exe")
    fences = "--" in command.args or "--url" in command.args
    return stem == "fencekit" and command.args[:1] == ("wrap",) and fences


def wrapped(command: Command, fencekit: str, scope: str | None) -> Command:
    """Return the command with a fence in front of it."""
    scoped = () if scope is None else ("--scope", scope)
    return Command(fencekit, ("wrap", *scoped, "--", command.program, *command.args))


def unwrapped(command: Command) -> Command:
    """Return what a fence stands in front of."""
    program, *args = command.args[command.args.index("--") + 1 :]
    return Command(program, tuple(args))


def edits(text: str, entry: Node, new: Command) -> Edits:
    """Return the changes of the text that make the entry start `new`."""
    program = entry.members["command"]
    made: Edits = [(program.start, program.end, json.dumps(new.program, ensure_ascii=False))]
    args = entry.members.get("args")
    words = json.dumps(list(new.args), ensure_ascii=False)
    if args is not None:
        made.append((args.start, args.end, words))
    elif new.args:
        newline = "\n" in text[entry.start : program.key_start]
        gap = "\n" + indent_of(text, program.key_start) if newline else " "
        start, end, program_text = made[0]
        made[0] = (start, end, f'{program_text},{gap}"args": {words}')
    return made
