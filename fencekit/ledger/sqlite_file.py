"""The SQLite file itself: its schema, its settings, and its errors in words a person can act on."""

from __future__ import annotations

import contextlib
import fcntl
import functools
import os
import sqlite3
import struct
from collections.abc import Iterator
from pathlib import Path

from fencekit.core.errors import (
    FenceError,
    LedgerDamaged,
    LedgerError,
    LedgerFull,
    LedgerGone,
    LedgerUnavailable,
)
from fencekit.core.state import IntentKey

SCHEMA = 2
"""1: as the first fencekit wrote it, which reads no marker. 2: the same tables; raised so that it
refuses a ledger that may have been moved."""
APPLICATION = 0x66656E63  # "fenc"
BUSY_SECONDS = 5.0

_TABLES = """
CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE intents (
  rowid INTEGER PRIMARY KEY,
  key BLOB NOT NULL UNIQUE,    -- principal NUL intent, UTF-8
  due INTEGER NOT NULL,        -- 0 while it has no outcome, else when sweep may look, ms
  record BLOB NOT NULL,
  sum INTEGER NOT NULL         -- CRC-32 of record
);
CREATE INDEX intents_due ON intents (due);
CREATE TABLE domains (
  name TEXT PRIMARY KEY, head BLOB NOT NULL, sum INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE audit (n INTEGER PRIMARY KEY AUTOINCREMENT, line TEXT NOT NULL);
CREATE TABLE counters (process TEXT PRIMARY KEY, counts TEXT NOT NULL) WITHOUT ROWID;
"""


def connect(path: Path, busy: float) -> sqlite3.Connection:
    """Open the file, make its tables if it is new, and refuse what is not ours to read."""
    if not path.exists():
        # Made here, so that nobody else can read it for an instant.
        with contextlib.suppress(FileExistsError):
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_NOFOLLOW, 0o600))
    db = sqlite3.connect(path, timeout=busy, isolation_level=None, check_same_thread=False)
    version, application = (
        db.execute(f"PRAGMA {name}").fetchone()[0] for name in ("user_version", "application_id")
    )
    _refuse_newer(path, version)
    if version == 0:
        _create(db, path)
    elif application != APPLICATION:
        raise LedgerUnavailable(f"{path} is not a fencekit ledger: choose another path")
    elif version < SCHEMA:
        _migrate(db, path)
    db.execute("PRAGMA journal_mode = WAL").fetchall()
    db.execute("PRAGMA synchronous = FULL")
    db.execute("PRAGMA wal_autocheckpoint = 4000")
    db.execute("PRAGMA journal_size_limit = 67108864").fetchall()
    return db


def _create(db: sqlite3.Connection, path: Path) -> None:
    db.execute("PRAGMA auto_vacuum = INCREMENTAL")
    db.execute("BEGIN IMMEDIATE")
    # Another process may have made it while this one waited.
    if db.execute("PRAGMA user_version").fetchone()[0] == 0:
        if db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
            db.execute("ROLLBACK")
            raise LedgerUnavailable(f"{path} is another program's database: choose another path")
        for statement in _TABLES.split(";"):
            if statement.strip():
                db.execute(statement)
        db.execute(f"PRAGMA application_id = {APPLICATION}")
        db.execute(f"PRAGMA user_version = {SCHEMA}")
    db.execute("COMMIT")


def _migrate(db: sqlite3.Connection, path: Path) -> None:
    """Bring an older file up to date; several processes may do this at once."""
    db.execute("BEGIN IMMEDIATE")
    # Another process, a newer one even, may have done so while this one waited.
    version = db.execute("PRAGMA user_version").fetchone()[0]
    if version < SCHEMA:
        db.execute(f"PRAGMA user_version = {SCHEMA}")
    db.execute("COMMIT")
    _refuse_newer(path, version)


def _refuse_newer(path: Path, version: int) -> None:
    if version > SCHEMA:
        raise LedgerUnavailable(
            f"the ledger {path} was written by a newer fencekit (schema {version}, this one reads "
            f"{SCHEMA}): upgrade fencekit"
        )


def key_text(key: IntentKey) -> bytes:
    """Return the key of an intent as it is stored; names hold no NUL."""
    return f"{key.principal}\0{key.intent}".encode()


def key_of(text: bytes) -> IntentKey:
    """Read what `key_text` wrote."""
    principal, _, intent = text.decode().partition("\0")
    return IntentKey(principal, intent)


def identities(path: Path) -> list[tuple[int, int]]:
    """Return the identities of the database, its log and its shared index."""
    infos = [os.stat(f"{path}{suffix}") for suffix in ("", "-wal", "-shm")]
    return [(info.st_dev, info.st_ino) for info in infos]


def check_place(path: Path, opened: list[tuple[int, int]]) -> None:
    """Refuse to go on with a file that somebody removed or replaced under us."""
    try:
        present = identities(path)
    except OSError as gone:
        raise LedgerGone(
            f"the ledger {gone.filename} is gone: put it back and restart, or start a new one "
            "only if no effect can be outstanding"
        ) from None
    if present != opened:
        raise LedgerGone(f"the ledger {path} was replaced by another file: restart to use that one")


@contextlib.contextmanager
def translated(path: Path) -> Iterator[None]:
    """Turn every failure of storage into one that says what happened, where, and what to do."""
    try:
        yield
    except FenceError:
        raise
    except sqlite3.Error as problem:
        raise _translate(path, problem) from None
    except OSError as problem:
        raise LedgerUnavailable(
            f"the ledger {path} cannot be used ({problem.strerror or problem}): nothing was "
            "admitted; mend that, or choose another place with --ledger"
        ) from None


def _translate(path: Path, problem: sqlite3.Error) -> LedgerError:
    code = getattr(problem, "sqlite_errorcode", 0) & 0xFF
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return LedgerUnavailable(
            f"the ledger {path} is busy{_who_holds(path)}: nothing was admitted; if that process "
            "is stopped, continue or end it, then try again"
        )
    if code == sqlite3.SQLITE_FULL:
        return LedgerFull(
            f"no space is left for the ledger {path}: nothing was admitted; free some space and "
            "try again"
        )
    if code in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM, sqlite3.SQLITE_AUTH):
        return LedgerFull(
            f"the ledger {path} cannot be written: nothing was admitted; make it and its folder "
            "writable"
        )
    if code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
        return LedgerDamaged(
            f"the ledger {path} is damaged ({problem}): nothing was admitted; keep the file, "
            "restore a copy, and reconcile what ran since"
        )
    return LedgerUnavailable(
        f"the ledger {path} cannot be used ({problem}): nothing was admitted; look at its folder "
        "and its disk"
    )


def _who_holds(path: Path) -> str:
    """Return " (held by process N)" where the kernel tells whose write lock is in the way."""
    try:
        fd = _shared_index(path)
    except OSError:
        return ""
    try:
        # The write lock of WAL mode is byte 120 of the shared-memory file.
        ask = struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, 120, 1, 0)
        kind, _, _, _, pid = struct.unpack("hhqqi4x", fcntl.fcntl(fd, fcntl.F_GETLK, ask))
    except OSError:
        return ""
    return f" (held by process {pid})" if kind != fcntl.F_UNLCK and pid > 0 else ""


@functools.cache
def _shared_index(path: Path) -> int:
    """Open the shared-memory file once and for good.

    Closing any descriptor of it would drop this process's own locks on it (POSIX).
    """
    return os.open(f"{path}-shm", os.O_RDONLY | os.O_CLOEXEC)
