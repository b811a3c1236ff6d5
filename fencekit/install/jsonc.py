"""JSON with comments, as editors keep their settings: read with the place of every value.

A file is changed by replacing the text of single values, so that comments, order, indentation and
everything that is not understood stay as they are. Trailing commas are read as editors read them.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import Any

_BLANK = re.compile(r"(?:[ \t\r\n\ufeff]+|//[^\n]*|/\*.*?\*/)*", re.DOTALL)
_SCALAR = re.compile(r"[-+.0-9A-Za-z]+")
MAX_DEPTH = 100


@dataclass(frozen=True, slots=True)
class Node:
    """One value: its place in the text, and what it says.

    An object's `members` are in their order; of a name that occurs twice the last one counts.
    `key_start` is where the member that holds this value begins, its own start elsewhere.
    """

    start: int
    end: int
    value: Any
    members: dict[str, Node] = field(default_factory=dict)
    key_start: int = 0

    @property
    def is_object(self) -> bool:
        """Whether the value is an object."""
        return isinstance(self.value, dict)


class _Reader:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0

    def blank(self) -> None:
        match = _BLANK.match(self.text, self.at)
        assert match is not None
        self.at = match.end()

    def fail(self, what: str) -> ValueError:
        line = self.text.count("\n", 0, self.at) + 1
        return ValueError(f"line {line}: {what}")

    def take(self, char: str) -> bool:
        self.blank()
        if self.text.startswith(char, self.at):
            self.at += len(char)
            return True
        return False

    def node(self, key_start: int | None = None, depth: int = 0) -> Node:
        self.blank()
        start = self.at
        where = start if key_start is None else key_start
        if depth > MAX_DEPTH:
            raise self.fail("nested too deeply")
        if self.take("{"):
            return self.object(start, where, depth)
        if self.take("["):
            return self.array(start, where, depth)
        if self.text.startswith('"', start):
            return Node(start, self.string_end(), self.string(start), {}, where)
        match = _SCALAR.match(self.text, start)
        if match is None:
            raise self.fail("no value where one is expected")
        try:
            value = json.loads(match[0])
        except ValueError:
            raise self.fail(f"{match[0][:20]!r} is no JSON value") from None
        self.at = match.end()
        return Node(start, self.at, value, {}, where)

    def string_end(self) -> int:
        at = self.at + 1
        while at < len(self.text) and self.text[at] not in '"\n':
            at += 2 if self.text[at] == "\\" else 1
        if not self.text.startswith('"', at):
            raise self.fail("a text that does not end")
        self.at = at + 1
        return self.at

    def string(self, start: int) -> str:
        try:
            return str(json.loads(self.text[start : self.at]))
        except ValueError:
            raise self.fail("a text with an escape that JSON does not have") from None

    def object(self, start: int, where: int, depth: int) -> Node:
        members: dict[str, Node] = {}
        while not self.take("}"):
            self.blank()
            key_start = self.at
            if not self.text.startswith('"', key_start):
                raise self.fail("a name in quotes is expected")
            self.string_end()
            name = self.string(key_start)
            if not self.take(":"):
                raise self.fail("a colon is expected")
            members[name] = self.node(key_start, depth + 1)
            if not self.take(",") and not self.text.startswith("}", self.at):
                raise self.fail("a comma or the end of the object is expected")
        value = {name: node.value for name, node in members.items()}
        return Node(start, self.at, value, members, where)

    def array(self, start: int, where: int, depth: int) -> Node:
        values = []
        while not self.take("]"):
            values.append(self.node(None, depth + 1).value)
            if not self.take(",") and not self.text.startswith("]", self.at):
                raise self.fail("a comma or the end of the list is expected")
        return Node(start, self.at, values, {}, where)


def parse(text: str) -> Node:
    """Read a whole file. Raises ValueError naming the line of what is wrong."""
    reader = _Reader(text)
    node = reader.node()
    reader.blank()
    if reader.at != len(text):
        raise reader.fail("text after the value")
    return node


def replaced(text: str, edits: list[tuple[int, int, str]]) -> str:
    """Return the text with (start, end, new text) edits applied; they must not overlap."""
    for start, end, new in sorted(edits, reverse=True):
        text = text[:start] + new + text[end:]
    return text


def indent_of(text: str, at: int) -> str:
    """Return the white space with which the line of a place begins."""
    begin = text.rfind("\n", 0, at) + 1
    line = text[begin:at]
    return line[: len(line) - len(line.lstrip(" \t"))]
