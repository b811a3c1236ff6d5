"""The lines of the JSON-lines ledger: written, chained, and read back after any crash. Pure.

One line per decision that wrote something. `sum` is the CRC-32 of the line up to it; `prev` is the
`sum` of the line before, so a line that an editor took away is noticed; `synced` is the offset up
to which the file was known to be on disk when the line was written. An invalid line is a torn tail,
lost by a crash before anybody heard an answer, unless a later line claims it as synced: then it is
damage.

The first line of a file is of this version and its second is a `stop` of the version before, which
claims the first as synced: a fencekit that reads version 1 only, and no marker, sees damage and
touches nothing, instead of a torn file that it would begin anew.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import orjson

from fencekit.core.draft import Event, Writes
from fencekit.core.errors import LedgerDamaged, LedgerUnavailable
from fencekit.core.state import OPEN, DomainHead, Floor, IntentKey, IntentRecord, Marker
from fencekit.ledger import codec

VERSION = 2
_STOP_VERSION = 1
_READABLE = (VERSION, _STOP_VERSION)
_BEGIN = b'{"v":'
_SUM = b',"sum":"'
_END = b'"}\n'


@dataclass(frozen=True, slots=True)
class Line:
    """One line as read: what it wrote, and where it ends in the file."""

    number: int
    end: int
    synced: int
    fields: dict[str, Any]


@dataclass(slots=True)
class Journal:
    """What a file holds: its records, and the place where valid lines end."""

    intents: dict[IntentKey, IntentRecord] = field(default_factory=dict)
    domains: dict[str, DomainHead] = field(default_factory=dict)
    floor: Floor = field(default_factory=Floor)
    marker: Marker = OPEN
    number: int = 0
    last_sum: int = 0
    version: int = VERSION
    end: int = 0
    audit_number: int = 0
    # Keys that were last written by lines that end after the last good sync.
    touched: dict[IntentKey, IntentRecord | None] = field(default_factory=dict)

    def apply(self, line: Line, good_until: int | None = None) -> None:
        """Take over what a line wrote."""
        after_good = good_until is not None and line.end > good_until
        for principal, intent, value in line.fields.get("intents", ()):
            key = IntentKey(principal, intent)
            if after_good:
                self.touched.setdefault(key, self.intents.get(key))
            if value is None:
                self.intents.pop(key, None)
            else:
                self.intents[key] = codec.decode_intent(value)
        for name, value in line.fields.get("domains", ()):
            if value is None:
                self.domains.pop(name, None)
            else:
                self.domains[name] = codec.decode_domain(value)
        if "floor" in line.fields:
            self.floor = codec.decode_floor(line.fields["floor"])
        if "marker" in line.fields:
            self.marker = codec.decode_marker(line.fields["marker"])
        self.audit_number = line.fields.get("audit_number", self.audit_number)
        self.audit_number += len(line.fields.get("audit", ()))
        if line.number == 1:
            self.version = int(line.fields["v"])
        self.number, self.end = line.number, line.end


class Writer:
    """Makes the next lines of a file."""

    def __init__(self, number: int = 0, last_sum: int = 0) -> None:
        self.number = number
        self.last_sum = last_sum

    def line(
        self,
        at_ms: int,
        synced: int,
        writes: Writes,
        audit: list[Event],
        audit_number: int | None = None,
    ) -> bytes:
        """Return one line with its newline; `audit_number` restates how many events came before."""
        parts = [
            b'{"v":%d,"n":%d,"at_ms":%d,"synced":%d,"prev":"%08x"'
            % (VERSION, self.number + 1, at_ms, synced, self.last_sum)
        ]
        if writes.intents:
            rows = (
                b"[%b,%b,%b]"
                % (
                    orjson.dumps(key.principal),
                    orjson.dumps(key.intent),
                    b"null" if record is None else codec.encode_intent(record),
                )
                for key, record in writes.intents.items()
            )
            parts.append(b',"intents":[%b]' % b",".join(rows))
        if writes.domains:
            rows = (
                b"[%b,%b]"
                % (orjson.dumps(name), b"null" if head is None else codec.encode_domain(head))
                for name, head in writes.domains.items()
            )
            parts.append(b',"domains":[%b]' % b",".join(rows))
        if writes.floor is not None:
            parts.append(b',"floor":%b' % codec.encode_floor(writes.floor))
        if writes.marker is not None:
            parts.append(b',"marker":%b' % codec.encode_marker(writes.marker))
        if audit_number is not None:
            parts.append(b',"audit_number":%d' % audit_number)
        if audit:
            parts.append(b',"audit":%b' % orjson.dumps(audit))
        return self._summed(b"".join(parts))

    def stop(self, at_ms: int, synced: int) -> bytes:
        """Return the second line of every file; `synced` is where the first ends."""
        return self._summed(
            b'{"v":%d,"n":%d,"at_ms":%d,"synced":%d,"prev":"%08x","stop":"read by a fencekit that '
            b'knows version %d"'
            % (_STOP_VERSION, self.number + 1, at_ms, synced, self.last_sum, VERSION)
        )

    def _summed(self, body: bytes) -> bytes:
        self.number += 1
        self.last_sum = zlib.crc32(body)
        return b'%b,"sum":"%08x"}\n' % (body, self.last_sum)


def read(data: bytes, good_until: int | None = None) -> Journal:
    """Read a whole file; what follows the last valid line is torn (`Journal.end`).

    Raises `LedgerDamaged` naming the line where a later line claims an invalid one as synced, and
    where a line is missing; `LedgerUnavailable` for a file of a newer fencekit.
    """
    _refuse_newer(data)
    journal = Journal()
    start = 0
    while start < len(data):
        line = _parse(data, start, journal.number + 1, journal.last_sum)
        if line is None:
            _refuse_if_synced(data, start, journal.number + 1)
            break
        journal.apply(line, good_until)
        journal.last_sum = int(line.fields["sum"], 16)
        start = line.end
    return journal


def _parse(data: bytes, start: int, number: int, prev: int) -> Line | None:
    """Return the line that starts here if it is whole and follows the one before it."""
    line = parse_alone(data, start)
    if line is None or line.number != number or line.fields["prev"] != f"{prev:08x}":
        return None
    return line


def parse_alone(
    data: bytes, start: int, readable: tuple[int, ...] | None = _READABLE
) -> Line | None:
    """Return the line that starts here if it is whole by its own checksum, and of such a version.

    None stands for any version.
    """
    end = data.find(b"\n", start) + 1
    if not end:
        return None
    text = data[start:end]
    cut = text.rfind(_SUM)
    if cut < 0 or not text.endswith(_END):
        return None
    try:
        fields = orjson.loads(text)
        version, whole = int(fields["v"]), zlib.crc32(text[:cut]) == int(fields["sum"], 16)
        if not whole or (readable is not None and version not in readable):
            return None
        return Line(fields["n"], end, fields["synced"], fields)
    except (ValueError, KeyError, TypeError):
        return None


def _refuse_newer(data: bytes) -> None:
    line = parse_alone(data, 0, readable=None)
    if line is not None and int(line.fields["v"]) > VERSION:
        raise LedgerUnavailable(
            f"the journal was written by a newer fencekit (version {line.fields['v']}, this one "
            f"reads {VERSION}): upgrade fencekit"
        )


def _refuse_if_synced(data: bytes, start: int, number: int) -> None:
    for line in _later(data, start):
        if line.synced > start:
            raise LedgerDamaged(
                f"line {number} is damaged or missing (offset {start}), although line "
                f"{line.number} says that it was on disk: nothing was admitted; restore a copy of "
                "the file, or set it aside and reconcile what ran"
            )


def _later(data: bytes, start: int) -> Iterator[Line]:
    """Yield the whole lines from here on, wherever they begin.

    A line is found by how it begins and not by the newline before it, which may be what is damaged.
    Inside a text its quotes would be escaped.
    """
    while (start := data.find(_BEGIN, start)) >= 0:
        line = parse_alone(data, start)
        if line is not None:
            yield line
        start += 1
