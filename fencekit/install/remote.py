"""A remote server's entry: turned into one that starts a fence before its URL, and back again.

Pure. Header values may be secrets or inputs of the host (`${input:token}`), so they move into
`env`, which hosts treat alike, and never into the arguments. What is not understood stays.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from fencekit.install.entries import Command, Edits
from fencekit.install.jsonc import Node, indent_of

VARIABLE = "FENCEKIT_HEADER_"
HTTP = frozenset({"http", "streamable-http", "streamableHttp"})

Swap = Mapping[str, Mapping[str, Any]]
"""What stands in an entry instead of a member, by its name: the members that replace it."""


@dataclass(frozen=True, slots=True)
class Remote:
    """Where an entry leads, and the headers it sends there."""

    url: str
    headers: Mapping[str, str]
    member: str = "url"


def remote_of(entry: Any) -> Remote | None:
    """Return where an entry leads; None for one that is no Streamable HTTP server we can read."""
    if not isinstance(entry, dict) or "env" in entry or "command" in entry:
        return None
    member = "url" if "url" in entry else "serverUrl"
    url, headers = entry.get(member), entry.get("headers", {})
    if not isinstance(url, str) or entry.get("type", "http") not in HTTP:
        return None
    if not isinstance(headers, dict) or not all(isinstance(v, str) for v in headers.values()):
        return None
    if len({_variable(name) for name in headers}) != len(headers):
        return None
    return Remote(url, headers, member)


def fenced(remote: Remote, fencekit: str, scope: str | None) -> Swap:
    """Return how an entry changes to start a fence in front of its URL."""
    words = ["wrap", *(() if scope is None else ("--scope", scope)), "--url", remote.url]
    for name in remote.headers:
        words += ["--header", f"{name}: ${_variable(name)}"]
    swap: dict[str, dict[str, Any]] = {
        remote.member: {"command": fencekit, "args": words},
        "type": {"type": "stdio"},
        "headers": {"env": {_variable(name): v for name, v in remote.headers.items()}},
    }
    return swap


def is_fenced(command: Command) -> bool:
    """Whether an entry that starts fencekit's `wrap` does so in front of a URL."""
    words = command.args
    return words[:1] == ("wrap",) and "--url" in words[:-1] and "--" not in words


def url_of(command: Command) -> str:
    """Return the URL that a fence stands in front of."""
    return command.args[command.args.index("--url") + 1]


def unfenced(entry: Mapping[str, Any], command: Command, member: str) -> Swap | None:
    """Return how a fenced entry changes back; None where its variables are not as we left them."""
    words, env = command.args, entry.get("env", {})
    told = [words[at + 1] for at, word in enumerate(words[:-1]) if word == "--header"]
    headers: dict[str, str] = {}
    for text in told:
        name, _, variable = text.partition(": $")
        if variable != _variable(name) or not isinstance(env, dict) or variable not in env:
            return None
        headers[name] = env[variable]
    if isinstance(env, dict) and len(env) != len(headers):
        return None  # somebody added a variable, which a remote entry has no place for
    return {
        "command": {member: url_of(command)},
        "args": {},
        "type": {"type": "http"},
        "env": {"headers": headers},
    }


def swapped(entry: Mapping[str, Any], swap: Swap) -> dict[str, Any]:
    """Return an entry after a swap."""
    made: dict[str, Any] = {}
    for name, value in entry.items():
        made.update(swap.get(name, {name: value}))
    return made


def edits(text: str, entry: Node, swap: Swap) -> Edits:
    """Return the changes of the text that carry a swap out."""
    made: Edits = []
    for name, new in swap.items():
        old = entry.members.get(name)
        if old is None:
            continue
        if not new:
            before = max(m.end for m in entry.members.values() if m.end <= old.key_start)
            made.append((text.index(",", before), old.end, ""))
            continue
        newline = "\n" in text[entry.start : old.key_start]
        gap = "\n" + indent_of(text, old.key_start) if newline else " "
        members = (
            f"{json.dumps(key)}: {json.dumps(v, ensure_ascii=False)}" for key, v in new.items()
        )
        made.append((old.key_start, old.end, f",{gap}".join(members)))
    return made


def _variable(name: str) -> str:
    kept = "".join(ch if ch.isascii() and ch.isalnum() else "_" for ch in name)
    return VARIABLE + kept.upper()
