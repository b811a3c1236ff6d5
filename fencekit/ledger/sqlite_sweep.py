"""Sweeping a SQLite ledger: in small transactions, between which others write."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable
from contextlib import AbstractContextManager

import orjson

from fencekit.core.state import Now
from fencekit.core.sweep import may_sweep, sweep
from fencekit.ledger.base import AUDIT_KEPT, AUDIT_ROWS
from fencekit.ledger.due import old_among
from fencekit.ledger.sqlite_file import key_of
from fencekit.ledger.sqlite_tables import Tables, checked_intent, transaction

SWEEP_ROWS = 500
SWEEP_PAGES = 1000
SWEEP_PAUSE = 0.005
"""Seconds between two transactions of a sweep."""

Reading = Callable[[], AbstractContextManager[sqlite3.Connection]]


def sweep_intents(reading: Reading, now: Now) -> int:
    """Delete what has expired and give the space back; returns how many intents changed."""
    changed = 0
    if now.expiry_paused:
        return 0
    while True:
        with reading() as db, transaction(db) as begun:
            if not may_sweep(Tables(db).marker()):
                break
            rows = db.execute(
                "SELECT key, record, sum FROM intents WHERE due > 0 AND due <= ? LIMIT ?",
                (now.wall_ms, SWEEP_ROWS),
            ).fetchall()
            for text, stored, checksum in rows:
                key = key_of(text)
                record = checked_intent(key, stored, checksum)
                Tables(db).write_intent(key, sweep(record, now))
            begun.commit()
            changed += len(rows)
        if len(rows) < SWEEP_ROWS:
            break
        _give_way()
    _give_space_back(reading)
    return changed


def sweep_audit(reading: Reading, before_ms: int) -> int:
    """Delete the oldest lines that are from before a wall time; returns how many went."""
    swept = 0
    while True:
        with reading() as db, transaction(db) as begun:
            rows = db.execute(
                "SELECT n, line FROM audit WHERE n <= (SELECT max(n) FROM audit) - ? "
                "ORDER BY n LIMIT ?",
                (AUDIT_KEPT, AUDIT_ROWS),
            ).fetchall()
            old = old_among((orjson.loads(line) for _, line in rows), before_ms)
            if old:
                db.execute("DELETE FROM audit WHERE n <= ?", (rows[old - 1][0],))
                begun.commit()
        swept += old
        if old < AUDIT_ROWS:
            break
        _give_way()
    if swept:
        _give_space_back(reading)
    return swept


def _give_space_back(reading: Reading) -> None:
    while True:
        with reading() as db:
            # As a script: every step of the statement frees one page, and `execute` takes one.
            db.executescript(f"PRAGMA incremental_vacuum({SWEEP_PAGES})")
            if not db.execute("PRAGMA freelist_count").fetchone()[0]:
                return
        _give_way()


def _give_way() -> None:
    """Let writers in: SQLite hands its lock to whoever asks first, and they ask less often."""
    time.sleep(SWEEP_PAUSE)
