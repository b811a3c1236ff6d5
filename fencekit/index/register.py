"""A register on disk: `register.toml`, `entries/`, `evidence/`, `register.lock`, `tally.toml`.

The private directory has the same shape. `load` reads and checks both and raises `RegisterError`
with everything that is wrong; what it returns may be published.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Any

import tomlkit

from fencekit.index import evidence, lock, rules
from fencekit.index.entry import Entry, parse
from fencekit.index.fields import Field, check_table, link, matching, one_of, text
from fencekit.index.lines import line_index
from fencekit.index.problem import Problem, RegisterError
from fencekit.index.rules import Run, Tally

CONFIG = "register.toml"
TALLY = "tally.toml"
SCHEMA = "fencekit.register/1"
_TAG = re.compile(r"[a-z0-9.@-]+,\d{4}(-\d\d){0,2}\Z")

CONFIG_FIELDS: dict[str, Field] = {
    "schema": Field(one_of((SCHEMA,)), True, f"always `{SCHEMA}`"),
    "title": Field(text, True, "the register's title"),
    "keeper": Field(text, True, "who keeps it"),
    "contact": Field(link, True, "where to submit, dispute and correct (https)"),
    "tag": Field(
        matching(_TAG, "must look like example.org,2026 (RFC 4151)"),
        True,
        "the authority of feed ids",
    ),
    "interest": Field(text, True, "what the keeper gains from it, in a sentence"),
}


@dataclass(frozen=True)
class Item:
    """One checked entry with its evidence documents and runs, by evidence number."""

    entry: Entry
    documents: Mapping[int, Any]
    runs: Mapping[int, Run]


@dataclass(frozen=True)
class Register:
    """Everything a build needs. `private` is empty in a build without the private directory."""

    root: Path
    config: Mapping[str, str]
    items: list[Item]
    private: list[Item]
    tally: Tally
    with_private: bool = False
    ended_ids: frozenset[str] = field(default_factory=frozenset)


def load(root: Path, private: Path | None = None) -> Register:
    """Read and check a register; raises RegisterError with every problem found."""
    config, problems = _config(root)
    items, found = _items(root, private=False)
    problems += found
    hidden: list[Item] = []
    if private is not None:
        hidden, found = _items(private, private=True)
        problems += found
    if not problems:  # an entry that cannot be read would only look as if its history were gone
        problems += _locks(root, items, hidden)
        problems += _locks(private, hidden, []) if private is not None else []
    problems += _across(items, hidden)
    tally, found = _tally(root, hidden if private is not None else None)
    problems += found
    if problems:
        raise RegisterError(problems)
    ends = frozenset(item.entry.ends for item in hidden if item.entry.ends)
    return Register(root, config, items, hidden, tally, private is not None, ends)


def _config(root: Path) -> tuple[dict[str, str], list[Problem]]:
    path = root / CONFIG
    if not path.is_file():
        words = f"there is no register in {root}; `fencekit index init {root}` makes one"
        raise RegisterError([Problem(str(path), 1, "register", words)])
    raw = path.read_text(encoding="utf-8")
    try:
        data = tomllib.loads(raw)
    except tomllib.TOMLDecodeError as error:
        return {}, [Problem(str(path), 1, "TOML", str(error))]
    return data, check_table(str(path), line_index(raw), (), data, CONFIG_FIELDS)


def _items(root: Path, *, private: bool) -> tuple[list[Item], list[Problem]]:
    items: list[Item] = []
    problems: list[Problem] = []
    for path in sorted((root / "entries").glob("*.toml")):
        if path.is_symlink():
            problems.append(Problem(str(path), 1, "entry", "is a symbolic link; a file is needed"))
            continue
        try:
            raw = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            problems.append(Problem(str(path), 1, "entry", f"cannot be read: {error}"))
            continue
        entry, found = parse(str(path), raw)
        problems += found
        if entry is None:
            continue
        if entry.id != path.stem:
            problems.append(entry.problem(f"must be the file's name, {path.stem!r}", "id"))
        documents, runs, found = evidence.read(root, entry)
        problems += found
        if not found:
            problems += rules.check(entry, runs, private=private)
        items.append(Item(entry, documents, runs))
    return items, problems


def _locks(root: Path, items: list[Item], elsewhere: list[Item]) -> list[Problem]:
    path = root / lock.NAME
    entries = [item.entry for item in items]
    if not path.is_file():
        if not entries:
            return []
        words = "is missing: restore it from version control (a new register gets one from init)"
        return [Problem(str(path), 1, "lock", words)]
    live, _ = lock.parse(path.read_text(encoding="utf-8"))
    moved = lock.digests(item.entry for item in elsewhere).keys()
    found = lock.compare(entries, live - moved)
    return [
        Problem(str(path), p.line, p.key, p.message) if p.file == lock.NAME else p for p in found
    ]


def _across(items: list[Item], hidden: list[Item]) -> list[Problem]:
    """Check what one entry alone cannot tell: the rows that private entries end."""
    ids = {item.entry.id for item in items}
    return [
        item.entry.problem(f"names no row: {item.entry.ends!r}", "ends")
        for item in hidden
        if item.entry.ends and item.entry.ends not in ids
    ]


def _tally(root: Path, hidden: list[Item] | None) -> tuple[Tally, list[Problem]]:
    """Count the private entries, or read what an earlier build with them wrote down."""
    if hidden is not None:
        return rules.tally(item.entry for item in hidden), []
    path = root / TALLY
    if not path.is_file():
        return Tally(None), []
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
        total = data["total"] if isinstance(data["total"], int) else None
        spans = tuple((str(s["from"]), str(s["to"]), int(s["count"])) for s in data.get("span", ()))
    except (tomllib.TOMLDecodeError, KeyError, TypeError, ValueError) as error:
        return Tally(None), [Problem(str(path), 1, "tally", f"cannot be read: {error}")]
    small = [n for n in (total, *(number for *_, number in spans)) if n is not None and n < rules.K]
    if small or (spans and sum(n for *_, n in spans) != total):
        words = f"publishes a count below {rules.K}; make it again with --private"
        return Tally(None), [Problem(str(path), 1, "tally", words)]
    return Tally(total, spans), []


def write_tally(register: Register) -> None:
    """Write the counts of what is not named, for builds without the private directory."""
    document = tomlkit.document()
    document.add(tomlkit.comment("Written by `fencekit index build --private`: counts only."))
    tally = register.tally
    document["total"] = tally.total if tally.total is not None else tally.words
    spans = tomlkit.aot()
    for first, last, number in tally.spans:
        table = tomlkit.table()
        table["from"], table["to"], table["count"] = first, last, number
        spans.append(table)
    if tally.spans:
        document["span"] = spans
    (register.root / TALLY).write_text(tomlkit.dumps(document), encoding="utf-8")


def write_lock(root: Path, items: list[Item]) -> None:
    """Add the history lines that are being published to the lock."""
    path = root / lock.NAME
    live, retired = (
        lock.parse(path.read_text(encoding="utf-8")) if path.is_file() else (set(), set())
    )
    new = lock.digests(item.entry for item in items).keys()
    path.write_text(lock.dump(live | new, retired), encoding="utf-8")


def newest(register: Register) -> date | None:
    """Return the newest date in the public entries: what "updated" means on the site."""
    dates = [line.date for item in register.items for line in item.entry.history]
    return max(dates, default=None)


def load_one(path: Path) -> Entry:
    """Read one entry by itself. Raises RegisterError where its form is wrong."""
    entry, problems = parse(str(path), path.read_text(encoding="utf-8"))
    if entry is None:
        raise RegisterError(problems)
    return entry
