"""Where a key stands in a TOML text: `tomllib` gives values without their lines."""

from __future__ import annotations

import re

Path = tuple[str | int, ...]

_HEADER = re.compile(r"\s*(\[\[?)\s*([^\]]+?)\s*\]")
_KEY = re.compile(r"""\s*("[^"]*"|'[^']*'|[\w-]+(?:\s*\.\s*[\w-]+)*)\s*=""")
_TRIPLE = re.compile(r"\"\"\"|'''")


def line_index(text: str) -> dict[Path, int]:
    """Return the line (from 1) of every table and key, as `("evidence", 0, "sha256")`.

    Good for messages only: a line it misjudges points nearby, it never changes a value.
    """
    found: dict[Path, int] = {(): 1}
    table: Path = ()
    counts: dict[str, int] = {}
    inside: str | None = None
    for number, line in enumerate(text.splitlines(), 1):
        if inside is None and (header := _HEADER.match(line)):
            name = _bare(header[2])
            table = (name,)
            if header[1] == "[[":
                table = (name, counts.get(name, 0))
                counts[name] = counts.get(name, 0) + 1
            found.setdefault(table, number)
        elif inside is None and (key := _KEY.match(line)):
            found.setdefault((*table, _bare(key[1])), number)
        for quote in _TRIPLE.findall(line):
            inside = quote if inside is None else None if quote == inside else inside
    return found


def _bare(name: str) -> str:
    return name.strip().strip("\"'")


def line_of(index: dict[Path, int], path: Path) -> int:
    """Return the line of a key, or of the nearest thing around it."""
    while path and path not in index:
        path = path[:-1]
    return index[path]
