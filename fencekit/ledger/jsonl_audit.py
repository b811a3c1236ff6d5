"""The audit of a journal: in its lines, and in an archive beside it once it was compacted."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterable, Iterator
from pathlib import Path

import orjson

from fencekit.core.draft import Event
from fencekit.ledger import crash
from fencekit.ledger.due import old_among
from fencekit.ledger.jsonl_file import sync_directory, write_all


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
    fd = os.open(beside, os.O_CREAT | os.O_RDWR | os.O_NOFOLLOW, 0o600)
    try:
        # What a crash left half written would hide what follows it; it is in the journal still.
        end = _end_of_whole_lines(fd)
        os.ftruncate(fd, end)
        os.lseek(fd, end, os.SEEK_SET)
        write_all(fd, b"".join(lines))
        os.fsync(fd)
    finally:
        os.close(fd)


def _end_of_whole_lines(fd: int) -> int:
    size = os.fstat(fd).st_size
    return os.pread(fd, size, 0).rfind(b"\n") + 1


def old_until(held: Iterable[tuple[int, Event]], until: int, before_ms: int) -> int:
    """Count the first events up to number `until` that are older than a wall time."""
    early = itertools.takewhile(lambda one: one[0] <= until, held)
    return old_among((event for _, event in early), before_ms)


def trim(beside: Path, until: int, before_ms: int) -> int:
    """Drop the first events up to number `until` that are old; returns how many.

    The rest is copied to a new file that takes the place of the archive.
    """
    held = list(events(beside))
    old = old_until(held, until, before_ms)
    if not old:
        return 0
    new = beside.with_name(f"{beside.name}.new")
    fd = os.open(new, os.O_CREAT | os.O_TRUNC | os.O_WRONLY | os.O_NOFOLLOW, 0o600)
    try:
        write_all(fd, b"".join(_line(number, event) for number, event in held[old:]))
        os.fsync(fd)
    finally:
        os.close(fd)
    crash.point("audit copied")
    os.rename(new, beside)
    sync_directory(beside.parent)
    return old


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
