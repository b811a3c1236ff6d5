"""Expectations marked in place in the sources of `fixtures/repos`, and what a scan says instead.

A mark is a comment. It speaks of the line it ends, or, on a line of its own, of the next line
that is no mark:

    // expect: tool=NAME [candidate] [declarative] [money] [unresolved]
    // expect: write=NAME                          a write of that tool is reported here
    // expect: mechanism=KIND tool=NAME
    // expect: guard=KIND tool=NAME
    // expect: retry=NAME [beside|open]            what sends that tool's write again; `beside`: not
                                                   this write, `open`: the source leaves it open
    // expect: skipped=REASON                      this file is not read; `_` for a space

Several marks may stand in one comment, parted by `;`. `#`, `//`, `--` and `/*` begin comments; in
JSON a key `"x-expect"` holds the mark and speaks of the next line. Except for `other` and
`declarative` guards, which count only where marked, the comparison goes both ways: what is
reported and not marked is a difference too, so a file without marks is a negative case.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

MARK = re.compile(r"(?:#|//|--|/\*|<!--)\s*expect:\s*(.*?)\s*(?:\*/|-->)?\s*$")
JSON_MARK = re.compile(r"\"x-expect\":\s*\"([^\"]*)\"")
FLAGS = frozenset({"candidate", "declarative", "money", "unresolved"})
WRAPS: dict[bool | None, tuple[str, ...]] = {True: (), False: ("beside",), None: ("open",)}
KEYS = frozenset({"tool", "write", "mechanism", "guard", "retry", "skipped"})
ONLY_WHERE_MARKED = frozenset({"other", "declarative"})

Fact = tuple[str, ...]


def expected(root: Path) -> set[Fact]:
    """Return the facts marked in the files of a fixture; raises `ValueError` for a broken mark."""
    out: set[Fact] = set()
    for path in sorted(p for p in root.rglob("*") if p.is_file()):
        lines = path.read_text(encoding="utf-8").splitlines()
        file = path.relative_to(root).as_posix()
        for at, line in enumerate(lines):
            found = MARK.search(line) or JSON_MARK.search(line)
            if found is None:
                continue
            alone = not line[: found.start()].strip() or found.re is JSON_MARK
            place = _next(lines, at) if alone else at + 1
            for text in found[1].split(";"):
                out.add(_fact(text.split(), file, place, f"{path}:{at + 1}"))
    return out


def _next(lines: list[str], at: int) -> int:
    """Return the number of the next line that is no mark."""
    for later in range(at + 1, len(lines)):
        if not MARK.search(lines[later]) and not JSON_MARK.search(lines[later]):
            return later + 1
    return at + 1


def _fact(words: list[str], file: str, line: int, where: str) -> Fact:
    pairs = dict(w.split("=", 1) for w in words if "=" in w)
    flags = sorted(w for w in words if "=" not in w)
    place = f"{file}:{line}"
    allowed = {w for told in WRAPS.values() for w in told} if "retry" in pairs else FLAGS
    if not pairs or not set(pairs) <= KEYS or not set(flags) <= allowed:
        raise ValueError(f"{where}: no mark: {' '.join(words)}")
    for kind in ("mechanism", "guard"):
        if kind in pairs:
            return (kind, pairs[kind], pairs["tool"], place)
    if "skipped" in pairs:
        return ("skipped", pairs["skipped"].replace("_", " "), file)
    if "retry" in pairs:
        return ("retry", pairs["retry"], place, *flags)
    if "tool" in pairs:
        return ("tool", pairs["tool"], place, *flags)
    kind = next(iter(pairs))
    return (kind, pairs[kind], place)


def reported(document: dict[str, Any]) -> set[Fact]:
    """Return the facts of a scan document in the terms of the marks."""
    out: set[Fact] = set()
    for tool in document["tools"]:
        name = tool["name"]
        out.add(("tool", name, place(tool), *sorted(f for f in FLAGS if tool[f])))
        if tool["candidate"]:
            out |= {("write", name, place(w)) for w in tool["writes"]}
        out |= {("mechanism", m["kind"], name, place(m)) for m in tool["mechanisms"]}
        out |= {("guard", g["kind"], name, place(g)) for g in tool["guards"]}
        out |= {("retry", name, place(r), *WRAPS[r["wraps_write"]]) for r in tool["retries"]}
    return out


def place(item: dict[str, Any]) -> str:
    """Return `file:line` of anything that has both."""
    return f"{item['file']}:{item['line']}"


def differences(root: Path, document: dict[str, Any]) -> list[str]:
    """Return what is marked and not reported, and what is reported and not marked."""
    wanted, found = expected(root), reported(document)
    extra = {f for f in found - wanted if not (f[0] == "guard" and f[1] in ONLY_WHERE_MARKED)}
    # A skipped folder stands for the files in it.
    found |= {
        ("skipped", s["reason"], f[2])
        for s in document["skipped"]
        for f in wanted
        if f[0] == "skipped" and (f[2] == s["path"] or f[2].startswith(s["path"] + "/"))
    }
    missing = sorted(f"missing: {' '.join(f)}" for f in wanted - found)
    return missing + sorted(f"not marked: {' '.join(f)}" for f in extra)
