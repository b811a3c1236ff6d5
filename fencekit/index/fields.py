"""How the keys of the register's files are checked, with the line in every message."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable
from datetime import date, datetime
from typing import Any, NamedTuple

from fencekit.index.lines import Path, line_of
from fencekit.index.problem import Problem
from fencekit.report.page import https_url

_PINNED = re.compile(r"(?:^|[/@=])[0-9a-f]{40}(?:[0-9a-f]{24})?(?=[/?#]|$)")
_LONGEST = 4000  # characters of any text

Check = Callable[[Any], str | None]


def text(value: Any) -> str | None:
    """Accept a text of bounded length."""
    if not isinstance(value, str):
        return "must be a text in quotes"
    return None if len(value) <= _LONGEST else f"is longer than {_LONGEST} characters"


def one_of(allowed: tuple[str, ...]) -> Check:
    """Accept one of a few words."""

    def check(value: Any) -> str | None:
        if value in allowed:
            return None
        near = difflib.get_close_matches(str(value), allowed, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        return f"must be one of {', '.join(map(repr, allowed))}{hint}"

    return check


def matching(pattern: re.Pattern[str], words: str) -> Check:
    """Accept a text of a form."""
    return lambda value: None if isinstance(value, str) and pattern.match(value) else words


def link(value: Any) -> str | None:
    """Accept a plain https address."""
    return None if https_url(value) else "must be a plain https address"


def pinned_link(value: Any) -> str | None:
    """Accept an https address that names a commit."""
    if link(value):
        return link(value)
    if _PINNED.search(str(value)):
        return None
    return "must name a commit (40 hex digits), not a branch or a tag: those move"


def day(value: Any) -> str | None:
    """Accept a date without a time."""
    whole = isinstance(value, date) and not isinstance(value, datetime)
    return None if whole else "must be a date such as 2026-12-01, without quotes"


def moment(value: Any) -> str | None:
    """Accept a time with its zone, or a date."""
    if isinstance(value, datetime):
        if value.tzinfo is None:
            return "has no zone: write 2026-12-01T10:30:00+01:00, or only the date"
        return None
    return None if isinstance(value, date) else "must be a time with its zone, or a date"


class Field(NamedTuple):
    """One key: how its value is checked, whether it must be there, and what it means."""

    check: Check
    required: bool
    about: str


def check_table(
    file: str,
    index: dict[Path, int],
    path: Path,
    table: dict[str, Any],
    fields: dict[str, Field],
) -> list[Problem]:
    """Return what is wrong with one table: unknown, empty, ill-formed and missing keys."""
    found = []

    def complain(key: str, message: str) -> None:
        where = ".".join(map(str, (*path, key)))
        found.append(Problem(file, line_of(index, (*path, key)), where, message))

    for key, value in table.items():
        if key not in fields:
            near = difflib.get_close_matches(key, fields, n=1)
            complain(
                key, "is no key of an entry" + (f"; did you mean {near[0]!r}?" if near else "")
            )
        elif value == "" and fields[key].required:
            complain(key, f"is empty: {fields[key].about}")
        elif value != "" and (message := fields[key].check(value)):
            complain(key, message)
    for key, one in fields.items():
        if one.required and key not in table:
            complain(key, f"is missing: {one.about}")
    return found
