"""The audit of a journal: in its lines, and in an archive beside it once it was compacted."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

import orjson

from fencekit.core.draft import Event
from fencekit.ledger.jsonl_file import write_all


def all_events(paths: Iterable[Path], after: int) -> Iterator[tuple[int, Event]]:
    """Yield the events after number `after` of several files, none twice."""
    for path in paths:
        for number, event in events(path):
            if number > after:
                after = number
                yield number, event


def archive(journal: Path, beside: Path) -> None:
    """Copy the events to the archive; a crash may leave some twice, under one number."""
    last = max((number for number, _ in events(beside)), default=0)
    lines = [_line(number, event) for number, event in events(journal) if number > last]
    fd = os.open(beside, os.O_CREAT | os.O_APPEND | os.O_WRONLY | os.O_NOFOLLOW, 0o600)
    try:
        write_all(fd, b"".join(lines))
        os.fsync(fd)
    finally:
        os.close(fd)


def _line(number: int, event: Event) -> bytes:
    return orjson.dumps({"number": number, "event": event}) + b"\n"


def events(path: Path) -> Iterator[tuple[int, Event]]:
    """Yield the numbered audit events of a journal or of the archive beside it."""
    number = 0
    try:
        lines = path.read_bytes().splitlines()
    except FileNotFoundError:
        return
    for text in lines:
        try:
            fields = orjson.loads(text)
        except ValueError:
            return
        if "event" in fields:
            yield fields["number"], fields["event"]
            continue
        number = fields.get("audit_number", number)
        for event in fields.get("audit", ()):
            number += 1
            yield number, event
