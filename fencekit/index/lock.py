"""`register.lock`: a digest of every history line that was ever published, so none changes unseen.

One digest a line, sorted. A digest covers the entry's id, the line's place and its text, and tells
none of them; a line that begins with `-` was retired with its row.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable

from fencekit.index.entry import Entry
from fencekit.index.problem import Problem

NAME = "register.lock"
_HEAD = "# Digests of published history lines; keep it with the entries, under version control."


def digest(entry: Entry, at: int) -> str:
    """Return the digest of one history line of one entry."""
    line = entry.history[at]
    words = json.dumps([entry.id, at, line.date.isoformat(), line.state, line.note])
    return hashlib.sha256(words.encode()).hexdigest()


def digests(entries: Iterable[Entry]) -> dict[str, tuple[Entry, int]]:
    """Return the digest of every history line, with the line it stands for."""
    return {digest(entry, at): (entry, at) for entry in entries for at in range(len(entry.history))}


def parse(text: str) -> tuple[set[str], set[str]]:
    """Return the digests that must be there, and those that were retired."""
    lines = [line.strip() for line in text.splitlines() if line.strip() and line[0] != "#"]
    return {x for x in lines if x[0] != "-"}, {x[1:] for x in lines if x[0] == "-"}


def dump(live: Iterable[str], retired: Iterable[str]) -> str:
    """Return the text of the file."""
    return "\n".join([_HEAD, *sorted(live), *sorted(f"-{x}" for x in retired)]) + "\n"


def compare(entries: list[Entry], locked: set[str]) -> list[Problem]:
    """Return the published lines that were changed or taken away."""
    present = digests(entries)
    gone = len(locked - present.keys())
    if not gone:
        return []
    found = []
    for entry in entries:
        known = [digest(entry, at) in locked for at in range(len(entry.history))]
        for at, there in enumerate(known):
            if not there and any(known[at + 1 :]):
                words = "was published and has changed: restore it and add a new line below"
                found.append(entry.problem(words, "history", at))
    rest = gone - len(found)
    if rest > 0:
        words = (
            f"{rest} published history line(s) are changed or gone: restore them from version"
            " control; a state changes by a new line, a row leaves by `fencekit index retire`"
        )
        found.append(Problem(NAME, 1, "history", words))
    return found
