"""One entry of the register: a TOML file that a person owns, checked key by key.

`FIELDS`, `EVIDENCE_FIELDS` and `HISTORY_FIELDS` are the schema; the documentation prints them. What
may be published is decided in `rules`; here only the form of each value is checked.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from typing import Any

from fencekit.index.fields import (
    Field,
    check_table,
    day,
    link,
    matching,
    moment,
    one_of,
    pinned_link,
    text,
)
from fencekit.index.lines import Path, line_index, line_of
from fencekit.index.problem import Problem
from fencekit.report.mechanisms import MECHANISMS

SCHEMA = "fencekit.entry/1"
KINDS = ("server", "client", "facilitator", "sdk", "toolkit", "host", "wrapper")
STATES = (
    "verified-safe", "fixed", "open", "undetermined", "unassessable", "unread", "withdrawn",
)  # fmt: skip
TIERS = ("battery run", "probe run", "code read")
LISTINGS = ("named", "not named")

_ID = re.compile(r"[a-z0-9][a-z0-9-]{1,62}\Z")
_COMMIT = re.compile(r"[0-9a-f]{40}([0-9a-f]{24})?\Z")
_SHA256 = re.compile(r"[0-9a-f]{64}\Z")
_DOCUMENT = re.compile(r"evidence/[A-Za-z0-9][\w.-]*\Z")


def _mechanisms(value: Any) -> str | None:
    if not isinstance(value, list):
        return "must be a list of kinds, such as ['fresh-key']"
    for kind in value:
        if complaint := one_of(tuple(MECHANISMS))(kind):
            return complaint
    return None


FIELDS: dict[str, Field] = {
    "schema": Field(one_of((SCHEMA,)), True, "always `fencekit.entry/1`"),
    "id": Field(
        matching(_ID, "must be 2 to 63 of a-z, 0-9 and '-'"), True, "the row's name in addresses"
    ),
    "implementation": Field(text, True, "its name, as its owner writes it"),
    "vendor": Field(text, True, "who makes it"),
    "source": Field(link, False, "where it lives (https)"),
    "kind": Field(one_of(KINDS), True, "what it is: " + ", ".join(KINDS)),
    "language": Field(text, False, "the language it is written in"),
    "versions": Field(text, True, "the version or range that was looked at"),
    "commit": Field(matching(_COMMIT, "must be a full commit id"), False, "the commit looked at"),
    "at_stake": Field(text, True, "what a second effect would cost, in one sentence"),
    "mechanisms": Field(_mechanisms, False, "kinds from the list of mechanisms"),
    "state": Field(one_of(STATES), True, "the verdict's state; a person writes it"),
    "verdict": Field(text, True, "the verdict in a sentence; a person writes it"),
    "reason": Field(text, False, "why it could not be assessed (unassessable)"),
    "listing": Field(one_of(LISTINGS), False, "`not named` where the owner does not want a row"),
    "owner_agrees": Field(
        lambda v: None if isinstance(v, bool) else "must be true or false",
        False,
        "the owner agreed to be named although unassessable or withdrawn",
    ),
    "reported": Field(moment, False, "when the owner was told (a time with zone, or a date)"),
    "fixed": Field(moment, False, "when the fix was public (a time with zone, or a date)"),
    "fix": Field(pinned_link, False, "the public fix, pinned to its commit"),
    "disclosure": Field(text, False, "how it was disclosed"),
    "credit": Field(text, False, "whom to thank"),
    "notes": Field(text, False, "anything a reader should know"),
    "dispute": Field(text, False, "the owner's objection, shown with the same weight"),
    "recheck": Field(day, False, "the day after which the observation has ended"),
    "ends": Field(text, False, "private entries only: the id of the named row that this one ends"),
    "evidence": Field(lambda v: None, False, "the evidence, one table each"),
    "history": Field(lambda v: None, False, "every state it had, oldest first; lines never change"),
}
EVIDENCE_FIELDS: dict[str, Field] = {
    "tier": Field(one_of(TIERS), True, "`battery run`, `probe run` or `code read`"),
    "date": Field(day, True, "the day it was made"),
    "command": Field(text, False, "the exact command that made it"),
    "document": Field(
        matching(_DOCUMENT, "must be a file directly below evidence/"), False, "the document"
    ),
    "sha256": Field(matching(_SHA256, "must be 64 hex digits"), False, "the document's SHA-256"),
    "link": Field(pinned_link, False, "the code that was read, pinned to its commit"),
    "test": Field(
        matching(_DOCUMENT, "must be a file directly below evidence/"),
        False,
        "a test that fails today (`probe --emit-test`), for the owner's brief only",
    ),
    "note": Field(text, False, "what it shows, in a sentence"),
}
HISTORY_FIELDS: dict[str, Field] = {
    "date": Field(day, True, "the day"),
    "state": Field(one_of(STATES), True, "the state from that day on"),
    "note": Field(text, False, "why"),
}


@dataclass(frozen=True)
class Evidence:
    """One piece of evidence; `line` is where it stands in the entry file."""

    tier: str
    date: date
    command: str = ""
    document: str = ""
    sha256: str = ""
    link: str = ""
    test: str = ""
    note: str = ""
    line: int = field(default=1, compare=False)


@dataclass(frozen=True)
class HistoryLine:
    """One state and the day from which it held."""

    date: date
    state: str
    note: str = ""


@dataclass(frozen=True)
class Entry:
    """One entry, every value in its checked form. Times carry their zone; dates are dates."""

    file: str
    id: str
    implementation: str
    vendor: str
    kind: str
    versions: str
    at_stake: str
    state: str
    verdict: str
    source: str = ""
    language: str = ""
    commit: str = ""
    mechanisms: tuple[str, ...] = ()
    reason: str = ""
    listing: str = "named"
    owner_agrees: bool = False
    reported: date | None = None
    fixed: date | None = None
    fix: str = ""
    disclosure: str = ""
    credit: str = ""
    notes: str = ""
    dispute: str = ""
    recheck: date | None = None
    ends: str = ""
    evidence: tuple[Evidence, ...] = ()
    history: tuple[HistoryLine, ...] = ()
    lines: Mapping[Path, int] = field(default_factory=dict, compare=False)

    def problem(self, message: str, *path: str | int) -> Problem:
        """Return a problem at one of this entry's keys."""
        key = ".".join(map(str, path)) or "entry"
        return Problem(self.file, line_of(dict(self.lines) or {(): 1}, path), key, message)


def parse(file: str, text: str) -> tuple[Entry | None, list[Problem]]:
    """Read one entry; where anything is wrong, the entry is None and the problems say where."""
    index = line_index(text)
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        at = re.search(r"line (\d+)", str(error))
        return None, [Problem(file, int(at[1]) if at else 1, "TOML", str(error))]
    problems = check_table(file, index, (), data, FIELDS)
    for name, fields in (("evidence", EVIDENCE_FIELDS), ("history", HISTORY_FIELDS)):
        items = data.get(name, [])
        if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
            words = f"must be tables, each headed [[{name}]]"
            problems.append(Problem(file, line_of(index, (name,)), name, words))
            continue
        for number, item in enumerate(items):
            problems += check_table(file, index, (name, number), item, fields)
    return (None, problems) if problems else (_entry(file, data, index), [])


def _entry(file: str, data: dict[str, Any], index: dict[Path, int]) -> Entry:
    values = {key: value for key, value in data.items() if key != "schema"}
    values["mechanisms"] = tuple(values.get("mechanisms") or ())
    values["evidence"] = tuple(
        Evidence(**item, line=line_of(index, ("evidence", at)))
        for at, item in enumerate(values.get("evidence", ()))
    )
    values["history"] = tuple(HistoryLine(**item) for item in values.get("history", ()))
    for key in ("reported", "fixed", "recheck"):
        values[key] = values.get(key) or None
    values["listing"] = values.get("listing") or "named"
    return Entry(file=file, lines=index, **values)
