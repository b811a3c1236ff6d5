"""What the server says of its tools, as far as it was seen, and how each is treated.

Pure. Lists that pass by are read; before the first fenced call of a tool that was never listed, the
gate asks for the whole list itself. A later list may tighten a tool's kind at once; loosening it
needs a restart, so that a server cannot talk its way past the fence.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from fencekit.wrap.policy import Treatment, treat
from fencekit.wrap.rules import TIGHTNESS, Rules, ToolKind
from fencekit.wrap.verdict import clean

MAX_TOOLS = 20_000
MAX_PAGES = 1000


@dataclass(slots=True)
class Catalogue:
    """The tools that the server listed, and their treatment."""

    rules: Rules
    say: Callable[[str], None]
    declared: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    complete: bool = False
    _treated: dict[str, Treatment] = field(default_factory=dict)

    def knows(self, tool: str) -> bool:
        """Whether it is settled how a tool is treated."""
        return tool in self.declared or self.rules.of(tool).kind is not None

    def treatment(self, tool: str) -> Treatment:
        """Return how a tool is treated."""
        known = self._treated.get(tool)
        return known if known is not None else treat(tool, self.declared.get(tool), self.rules)

    def page(self, tools: object) -> None:
        """Take over one page of the server's list."""
        for entry in tools if isinstance(tools, list) else []:
            name = entry.get("name") if isinstance(entry, Mapping) else None
            if isinstance(name, str) and len(self.declared) < MAX_TOOLS:
                self.declared[name] = entry
                self._treat(name, entry)

    def whole(self, tools: list[Any]) -> None:
        """Take over the whole list: what is not in it does not exist now."""
        self.declared.clear()
        self.page(tools)
        self.complete = True

    def changed(self) -> None:
        """The server says that its list has changed: nothing is known to be missing any more."""
        self.complete = False

    def fenced(self) -> int:
        """Return how many listed tools are fenced."""
        return sum(1 for t in self._treated.values() if t.kind is ToolKind.APPEND)

    def _treat(self, name: str, entry: Mapping[str, Any]) -> None:
        new, old = treat(name, entry, self.rules), self._treated.get(name)
        if old is not None and TIGHTNESS[new.kind] < TIGHTNESS[old.kind]:
            self.say(
                f"the server now declares {clean(name, 80)} {new.kind} ({new.why}) instead of "
                f"{old.kind}; it stays {old.kind} until fencekit wrap is restarted"
            )
            return
        if old is None and new.remark:
            self.say(clean(new.remark, 400))
        self._treated[name] = new


@dataclass(slots=True)
class Pages:
    """A walk over the pages of a list, until it ends or repeats."""

    tools: list[Any] = field(default_factory=list)
    seen: set[str] = field(default_factory=set)

    def take(self, result: object) -> str | None:
        """Take one page; returns the next cursor, or None at the end.

        Raises ValueError for a page that is none, or a list that does not end.
        """
        if not isinstance(result, Mapping) or not isinstance(result.get("tools"), list):
            raise ValueError("its answer holds no list of tools")
        self.tools += result["tools"]
        cursor = result.get("nextCursor")
        if not isinstance(cursor, str) or not cursor:
            return None
        if cursor in self.seen or len(self.seen) >= MAX_PAGES or len(self.tools) > MAX_TOOLS:
            raise ValueError("its list does not end")
        self.seen.add(cursor)
        return cursor
