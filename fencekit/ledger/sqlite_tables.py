"""Reading and writing the rows of the SQLite ledger, and the view that reads what is needed."""

from __future__ import annotations

import contextlib
import sqlite3
import zlib
from collections.abc import Iterator, Mapping

import orjson

from fencekit.core.draft import Event, View, Writes
from fencekit.core.errors import LedgerDamaged
from fencekit.core.state import (
    OPEN,
    DomainHead,
    Floor,
    InFlight,
    IntentKey,
    IntentRecord,
    Liveness,
    Marker,
    Unknown,
)
from fencekit.ledger import codec
from fencekit.ledger.base import add_counters
from fencekit.ledger.due import due_of
from fencekit.ledger.holders import HolderLocks
from fencekit.ledger.sqlite_file import key_text

CACHED = 512
"""How many decoded records a process keeps, to spare decoding what it wrote itself."""


class Tables:
    """The rows, by key; the caller holds the transaction."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db
        self._cache: dict[IntentKey, tuple[bytes, IntentRecord]] = {}

    def intent(self, key: IntentKey) -> IntentRecord | None:
        """Return the record of an intent, checked, or None."""
        row = self._db.execute(
            "SELECT record, sum FROM intents WHERE key = ?", (key_text(key),)
        ).fetchone()
        if row is None:
            return None
        cached = self._cache.get(key)
        if cached is not None and cached[0] == row[0]:
            return cached[1]
        return checked_intent(key, row[0], row[1])

    def page(
        self, after: tuple[int, int]
    ) -> tuple[tuple[int, int], list[tuple[bytes, bytes, int]]]:
        """Return the next stored records (key, text, checksum), and where to go on after them."""
        rows = self._db.execute(
            "SELECT due, rowid, key, record, sum FROM intents WHERE (due, rowid) > (?, ?) "
            "ORDER BY due, rowid LIMIT 500",
            after,
        ).fetchall()
        place = (rows[-1][0], rows[-1][1]) if rows else after
        return place, [row[2:] for row in rows]

    def domain(self, name: str) -> DomainHead | None:
        """Return the head of a domain, checked, or None."""
        row = self._db.execute("SELECT head, sum FROM domains WHERE name = ?", (name,)).fetchone()
        return None if row is None else _checked_domain(name, row[0], row[1])

    def domains(self) -> list[tuple[str, DomainHead]]:
        """Return all domains."""
        rows = self._db.execute("SELECT name, head, sum FROM domains ORDER BY name").fetchall()
        return [(name, _checked_domain(name, head, checksum)) for name, head, checksum in rows]

    def floor(self) -> Floor:
        """Return where absent domains start."""
        row = self._db.execute("SELECT value FROM meta WHERE name = 'floor'").fetchone()
        return Floor() if row is None else codec.decode_floor(row[0])

    def clock(self) -> tuple[str, int] | None:
        """Return the distance of the two clocks that was confirmed, and the boot it was in."""
        row = self._db.execute("SELECT value FROM meta WHERE name = 'clock'").fetchone()
        if row is None:
            return None
        boot, distance = orjson.loads(row[0])
        return boot, distance

    def keep_clock(self, boot: str, distance: int) -> None:
        """Write down the distance of the two clocks that was confirmed in a boot."""
        value = orjson.dumps([boot, distance]).decode()
        self._db.execute("INSERT OR REPLACE INTO meta VALUES ('clock', ?)", (value,))

    def counters(self) -> dict[str, dict[str, int]]:
        """Return the counters by process; those of all ended ones are under an empty name."""
        rows = self._db.execute("SELECT process, counts FROM counters").fetchall()
        return {process: orjson.loads(counts) for process, counts in rows}

    def save_counters(self, process: str, counts: dict[str, int]) -> None:
        """Replace the counters of one process."""
        text = orjson.dumps(counts).decode()
        self._db.execute("INSERT OR REPLACE INTO counters VALUES (?, ?)", (process, text))

    def fold_counters(self, process: str) -> None:
        """Add the counters of an ended process to those of all ended ones."""
        kept = self.counters()
        self._db.execute("DELETE FROM counters WHERE process = ?", (process,))
        self.save_counters("", add_counters((kept.get("", {}), kept.get(process, {}))))

    def marker(self) -> Marker:
        """Return whether this ledger is open."""
        row = self._db.execute("SELECT value FROM meta WHERE name = 'marker'").fetchone()
        return OPEN if row is None else codec.decode_marker(row[0])

    def write(self, writes: Writes, audit: list[Event]) -> None:
        """Write what a batch decided."""
        for key, record in writes.intents.items():
            self.write_intent(key, record)
        for domain, head in writes.domains.items():
            if head is None:
                self._db.execute("DELETE FROM domains WHERE name = ?", (domain,))
            else:
                text = codec.encode_domain(head)
                self._db.execute(
                    "INSERT OR REPLACE INTO domains VALUES (?, ?, ?)",
                    (domain, text, zlib.crc32(text)),
                )
        if writes.floor is not None:
            floor = codec.encode_floor(writes.floor).decode()
            self._db.execute("INSERT OR REPLACE INTO meta VALUES ('floor', ?)", (floor,))
        if writes.marker is not None:
            self._write_marker(writes.marker)
        lines = [(orjson.dumps(line).decode(),) for line in audit]
        self._db.executemany("INSERT INTO audit (line) VALUES (?)", lines)

    def _write_marker(self, marker: Marker) -> None:
        text = codec.encode_marker(marker).decode()
        self._db.execute("INSERT OR REPLACE INTO meta VALUES ('marker', ?)", (text,))
        # A running process of an older fencekit reads no marker: SQLite itself turns it away.
        for verb in ("INSERT", "DELETE"):
            if marker.phase in ("sealed", "handed"):
                self._db.execute(
                    f"CREATE TRIGGER IF NOT EXISTS sealed_{verb} BEFORE {verb} ON intents "
                    "BEGIN SELECT RAISE(ABORT, 'it was moved to another ledger'); END"
                )
            else:
                self._db.execute(f"DROP TRIGGER IF EXISTS sealed_{verb}")

    def write_intent(self, key: IntentKey, record: IntentRecord | None) -> None:
        """Write or delete one record."""
        if record is None:
            self._db.execute("DELETE FROM intents WHERE key = ?", (key_text(key),))
            self._cache.pop(key, None)
            return
        text = codec.encode_intent(record)
        self._db.execute(
            "INSERT INTO intents (key, due, record, sum) VALUES (?, ?, ?, ?) "
            "ON CONFLICT (key) DO UPDATE SET due = excluded.due, record = excluded.record, "
            "sum = excluded.sum",
            (key_text(key), due_of(record), text, zlib.crc32(text)),
        )
        if len(self._cache) >= CACHED:
            self._cache.clear()
        self._cache[key] = (text, record)


class ReadingView(View):
    """A view that reads inside the transaction whatever a decision needs."""

    def __init__(self, tables: Tables, locks: HolderLocks) -> None:
        intents = _Intents(tables)
        holders = _Holders(locks, intents)
        super().__init__(intents, _Domains(tables), None, holders, tables.marker())


class _Intents(dict[IntentKey, IntentRecord | None]):
    """Reads a record when a decision needs it."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables

    def __missing__(self, key: IntentKey) -> IntentRecord | None:
        record = self[key] = self._tables.intent(key)
        return record


class _Domains(dict[str, DomainHead | None]):
    """Reads the head of a domain when a decision needs it."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables

    def __missing__(self, name: str) -> DomainHead | None:
        head = self[name] = self._tables.domain(name)
        return head


class _Holders(Mapping[IntentKey, Liveness]):
    """Tests the lock of a holder when a decision needs to know."""

    def __init__(self, locks: HolderLocks, intents: _Intents) -> None:
        self._locks = locks
        self._intents = intents

    def __getitem__(self, key: IntentKey) -> Liveness:
        record = self._intents[key]
        state = None if record is None else record.state
        if not isinstance(state, InFlight | Unknown) or state.holder.kind != "process":
            return Liveness.CANNOT_TELL
        return self._locks.liveness(state.holder.process)

    def __iter__(self) -> Iterator[IntentKey]:
        return iter(())

    def __len__(self) -> int:
        return 0


class transaction:  # noqa: N801 - reads as a statement
    """An immediate transaction; what is not committed is rolled back."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db

    def __enter__(self) -> transaction:
        self._db.execute("BEGIN IMMEDIATE")
        return self

    def commit(self) -> None:
        """Make it durable."""
        self._db.execute("COMMIT")

    def __exit__(self, *problem: object) -> None:
        if self._db.in_transaction:
            # After a failure the rollback may fail too; the first error is the one that counts.
            quiet: tuple[type[Exception], ...] = (sqlite3.Error,) if problem[0] else ()
            with contextlib.suppress(*quiet):
                self._db.execute("ROLLBACK")


def checked_intent(key: IntentKey, text: bytes, checksum: int) -> IntentRecord:
    """Decode a stored record. Raises `LedgerDamaged` naming the intent."""
    _check(f"intent {key.intent!r}", text, checksum)
    return codec.decode_intent(text)


def _checked_domain(name: str, text: bytes, checksum: int) -> DomainHead:
    _check(f"domain {name!r}", text, checksum)
    return codec.decode_domain(text)


def _check(what: str, text: bytes, checksum: int) -> None:
    if not isinstance(text, bytes) or zlib.crc32(text) != checksum:
        raise LedgerDamaged(f"{what} is damaged in the ledger: run `fencekit ledger verify`")
