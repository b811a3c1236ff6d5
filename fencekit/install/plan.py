"""What an installation would change: pure, from the texts of the files to their new texts."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fencekit.install import entries, jsonc, remote
from fencekit.install.entries import Command, Edits
from fencekit.install.hosts import Place
from fencekit.install.jsonc import Node
from fencekit.install.remote import Swap


@dataclass(frozen=True, slots=True)
class Server:
    """One entry of one place."""

    place: Place
    name: str
    node: Node

    @property
    def command(self) -> Command | None:
        """What it starts."""
        return entries.command_of(self.node.value)


@dataclass(frozen=True, slots=True)
class Change:
    """One entry that gets another command, or, of a remote server, other members."""

    server: Server
    new: Command | Swap

    def edits(self, text: str) -> Edits:
        """Return the changes of the file's text."""
        if isinstance(self.new, Command):
            return entries.edits(text, self.server.node, self.new)
        return remote.edits(text, self.server.node, self.new)

    def entry(self) -> dict[str, Any]:
        """Return the entry as it becomes."""
        old = self.server.node.value
        if isinstance(self.new, Command):
            return {**old, "command": self.new.program, "args": list(self.new.args)}
        return remote.swapped(old, self.new)


@dataclass(slots=True)
class Plan:
    """The changes by file, and what a person should know."""

    texts: Mapping[Path, str]
    changes: list[Change] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def new_text(self, path: Path) -> str:
        """Return the text of a file after its changes."""
        text = self.texts[path]
        made = [
            edit
            for change in self.changes
            if change.server.place.path == path
            for edit in change.edits(text)
        ]
        return jsonc.replaced(text, made)

    def paths(self) -> list[Path]:
        """Return the files that change, each once."""
        return list(dict.fromkeys(change.server.place.path for change in self.changes))

    def diff(self) -> str:
        """Return the changes as a unified diff."""
        lines: list[str] = []
        for path in self.paths():
            old, new = self.texts[path].splitlines(True), self.new_text(path).splitlines(True)
            lines += difflib.unified_diff(old, new, str(path), str(path))
        return "".join(line if line.endswith("\n") else line + "\n" for line in lines)


def servers(places: Iterable[Place], texts: Mapping[Path, str], notes: list[str]) -> list[Server]:
    """Return every entry of every place whose file can be read; broken files become notes."""
    roots: dict[Path, Node | None] = {}
    found: list[Server] = []
    for place in places:
        if place.path not in texts:
            continue
        if place.path not in roots:
            roots[place.path] = _parsed(place.path, texts[place.path], notes)
        node = roots[place.path]
        for key in place.keys:
            node = node.members.get(key) if node is not None else None
        members = node.members if node is not None else {}
        found += [Server(place, name, entry) for name, entry in members.items()]
    return found


def _parsed(path: Path, text: str, notes: list[str]) -> Node | None:
    try:
        node = jsonc.parse(text)
    except (ValueError, RecursionError) as problem:
        notes.append(f"{path} is left alone: it could not be read ({problem})")
        return None
    if not node.is_object:
        notes.append(f"{path} is left alone: it holds no object")
        return None
    return node


def install(
    found: list[Server],
    texts: Mapping[Path, str],
    chosen: Callable[[Server], bool],
    fencekit: str,
    scope: str | None,
    *,
    include_url: bool = False,
) -> Plan:
    """Plan to put the fence in front of the chosen servers, remote ones only with `include_url`.

    User-level entries get the absolute path `fencekit` and a scope (by default their own name),
    because their hosts start them anywhere and without the shell's PATH.
    """
    plan = Plan(texts)
    for server in filter(chosen, found):
        where = f"{server.name} in {server.place.path}"
        command = server.command
        user = server.place.level != "project"
        own = _name(scope if scope is not None else server.name if user else None)
        program = fencekit if user else "fencekit"
        if command is None:
            leads = remote.remote_of(server.node.value) if include_url else None
            if leads is not None:
                plan.changes.append(Change(server, remote.fenced(leads, program, own)))
            else:
                plan.notes.append(f"{where} is left alone: it {_why_not(server, include_url)}")
        elif entries.is_wrapped(command):
            plan.notes.append(f"{where} is behind the fence already")
        else:
            plan.changes.append(Change(server, entries.wrapped(command, program, own)))
    plan.notes += _still_raw(found, plan)
    return plan


def _why_not(server: Server, include_url: bool) -> str:
    if not entries.is_url(server.node.value):
        return "is not known"
    if include_url:
        return "is no Streamable HTTP server whose entry can be put back; see `fencekit wrap --url`"
    return "names a remote server; --include-url fences it too"


def uninstall(
    found: list[Server], texts: Mapping[Path, str], chosen: Callable[[Server], bool]
) -> Plan:
    """Plan to take the fence away from the chosen servers; whatever else changed since stays."""
    plan = Plan(texts)
    for server in filter(chosen, found):
        command = server.command
        if command is None or not entries.is_wrapped(command):
            continue
        if command.args[-1] == "--":
            plan.notes.append(f"{server.name} in {server.place.path} wraps nothing; left alone")
            continue
        if remote.is_fenced(command):
            member = "serverUrl" if server.place.host == "windsurf" else "url"
            swap = remote.unfenced(server.node.value, command, member)
            if swap is not None:
                plan.changes.append(Change(server, swap))
            else:
                plan.notes.append(
                    f"{server.name} in {server.place.path} is left alone: its variables are no "
                    "longer those that the fence put there"
                )
            continue
        plan.changes.append(Change(server, entries.unwrapped(command)))
    return plan


def _name(scope: str | None) -> str | None:
    """Return a scope that `wrap` accepts, from the free text of an entry's name."""
    if scope is None:
        return None
    kept = "".join(ch if ch.isascii() and (ch.isalnum() or ch in "._@:+-") else "-" for ch in scope)
    return kept.lstrip("._@:+-")[:100] or "server"


def _still_raw(found: list[Server], plan: Plan) -> Iterator[str]:
    """Warn of entries through which a fenced server can still be reached without the fence."""
    changed = {id(change.server) for change in plan.changes}
    fenced = {_target(change.server) for change in plan.changes}
    for server in found:
        command = server.command
        if command is not None and entries.is_wrapped(command) and command.args[-1] != "--":
            at_url = remote.is_fenced(command)
            fenced.add(remote.url_of(command) if at_url else entries.unwrapped(command))
    for server in found:
        target = _target(server)
        if id(server) not in changed and target is not None and target in fenced:
            yield (
                f"warning: {server.name} in {server.place.path} still reaches the same server "
                "without the fence, which is only a fence if it is the only door"
            )


def _target(server: Server) -> Command | str | None:
    """Return what an entry reaches: what it starts, or its URL."""
    leads = remote.remote_of(server.node.value)
    return server.command if leads is None else leads.url
