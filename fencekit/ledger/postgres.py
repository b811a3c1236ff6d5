"""`postgresql://…`: many machines share one fence through a database that they already run.

READ COMMITTED throughout. A write takes advisory transaction locks on all keys that its decisions
read, absent ones too, in one order for everybody, in a statement of its own (a lock taken in the
same statement would read the snapshot from before the wait); then one statement compares the
versions and writes the groups that still hold. No session state and no server-side prepared
statement is used, so a transaction pooler may stand between.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import threading
from collections.abc import Iterator, Sequence
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

import psycopg
from psycopg import errors as pg_errors

from fencekit.core.errors import InvalidRequest, LedgerError, LedgerFull, LedgerUnavailable
from fencekit.ledger.base import Description
from fencekit.ledger.conditional import ConditionalLedger
from fencekit.ledger.groups import Group, Stored
from fencekit.ledger.postgres_schema import check_name, migrate

LOCK_MS, STATEMENT_MS, IDLE_MS = 5_000, 10_000, 10_000

# All of these end with the transaction.
_LIMITS = """
SELECT set_config('search_path', %s, true), set_config('lock_timeout', %s, true),
  set_config('statement_timeout', %s, true),
  set_config('idle_in_transaction_session_timeout', %s, true),
  set_config('synchronous_commit', 'on', true)
"""
_LOCKS = """
SELECT pg_advisory_xact_lock(l) FROM (
  SELECT DISTINCT hashtextextended(encode(k, 'hex'), 0) AS l FROM unnest(%s::bytea[]) AS k
  ORDER BY l
) AS locks
"""
_WRITE = """
WITH expected AS (
  SELECT * FROM unnest(%(e_group)s::int[], %(e_key)s::bytea[], %(e_version)s::bigint[])
    AS t(grp, key, version)
), failed AS (
  SELECT DISTINCT e.grp FROM expected e
  LEFT JOIN records r ON r.key = e.key
  WHERE COALESCE(r.version, 0) <> e.version
), changed AS (
  SELECT * FROM unnest(
    %(w_group)s::int[], %(w_key)s::bytea[], %(w_due)s::bigint[], %(w_value)s::bytea[]
  ) AS t(grp, key, due, value)
  WHERE t.grp NOT IN (SELECT grp FROM failed)
), gone AS (
  DELETE FROM records r USING changed c WHERE r.key = c.key AND c.value IS NULL
), written AS (
  INSERT INTO records (key, version, due, value)
  SELECT key, nextval('versions'), due, value FROM changed WHERE value IS NOT NULL
  ON CONFLICT (key) DO UPDATE
    SET version = excluded.version, due = excluded.due, value = excluded.value
), told AS (
  INSERT INTO audit (line)
  SELECT line FROM unnest(%(a_group)s::int[], %(a_line)s::text[]) WITH ORDINALITY
    AS t(grp, line, place)
  WHERE t.grp NOT IN (SELECT grp FROM failed) ORDER BY place
)
SELECT grp FROM failed
"""


class PostgresStore:
    """Opaque values in one table of one schema; `application` names this process to the server."""

    def __init__(self, conninfo: str, schema: str) -> None:
        self._conninfo = conninfo
        self._schema = check_name(schema)
        self._lock = threading.Lock()
        self._db: psycopg.Connection[Any] | None = None
        with self._translated():
            migrate(self._connection(), self._schema)

    def _connection(self) -> psycopg.Connection[Any]:
        if self._db is None or self._db.closed:
            self._db = psycopg.connect(
                self._conninfo,
                autocommit=True,
                prepare_threshold=None,
                connect_timeout=5,
                application_name="fencekit",
            )
        return self._db

    def read(self, keys: Sequence[bytes]) -> tuple[dict[bytes, Stored], int]:
        """Return what stands under each key, and the server's clock."""
        with self._lock, self._translated():
            rows = (
                self._connection()
                .execute(
                    "SELECT r.key, r.version, r.value, t.ms FROM (SELECT "
                    "(extract(epoch FROM clock_timestamp()) * 1000)::bigint AS ms) t "
                    f"LEFT JOIN {self._schema}.records r ON r.key = ANY(%s)",
                    (list(keys),),
                )
                .fetchall()
            )
        found = {bytes(k): Stored(v, bytes(value)) for k, v, value, _ in rows if k is not None}
        return found, int(rows[0][3])

    def compare_and_write(self, groups: Sequence[Group]) -> set[int]:
        """Lock, compare, write; returns the groups whose expectations do not hold."""
        locked = sorted({key for group in groups for key in group.expected})
        limits = (self._schema, str(LOCK_MS), str(STATEMENT_MS), str(IDLE_MS))
        with self._lock, self._translated():
            db = self._connection()
            # One round trip for all of it; the answer is read before the commit is sent.
            with db.pipeline(), db.transaction():
                db.execute(_LIMITS, limits)
                db.execute(_LOCKS, (locked,))
                written = db.execute(_WRITE, _parameters(groups))
                return {row[0] for row in written.fetchall()}

    def scan(self, prefix: bytes, after: bytes, limit: int) -> list[tuple[bytes, Stored]]:
        """Return values in the order of their keys."""
        end = prefix[:-1] + bytes([prefix[-1] + 1])
        return self._rows(
            "SELECT key, version, value FROM {}.records WHERE key > %s AND key < %s "
            "ORDER BY key LIMIT %s",
            (after, end, limit),
        )

    def due(self, until_ms: int, limit: int) -> list[tuple[bytes, Stored]]:
        """Return values that sweep may look at."""
        return self._rows(
            "SELECT key, version, value FROM {}.records WHERE due > 0 AND due <= %s "
            "ORDER BY due LIMIT %s",
            (until_ms, limit),
        )

    def _rows(self, query: str, parameters: tuple[Any, ...]) -> list[tuple[bytes, Stored]]:
        with self._lock, self._translated():
            rows = self._connection().execute(query.format(self._schema), parameters)
            return [(bytes(k), Stored(v, bytes(value))) for k, v, value in rows.fetchall()]

    def audit(self, after: int, limit: int) -> list[tuple[int, bytes]]:
        """Return audit lines, numbered by their order."""
        with self._lock, self._translated():
            rows = self._connection().execute(
                f"SELECT line FROM {self._schema}.audit ORDER BY n OFFSET %s LIMIT %s",
                (after, limit),
            )
            lines = [row[0].encode() for row in rows.fetchall()]
        return list(enumerate(lines, after + 1))

    def counters(self) -> list[bytes]:
        """Return the counters that processes saved."""
        with self._lock, self._translated():
            rows = self._connection().execute(f"SELECT counts FROM {self._schema}.counters")
            return [row[0].encode() for row in rows.fetchall()]

    def save_counters(self, process: str, counts: bytes) -> None:
        """Replace the counters of one process."""
        with self._lock, self._translated():
            self._connection().execute(
                f"INSERT INTO {self._schema}.counters VALUES (%s, %s) "
                "ON CONFLICT (process) DO UPDATE SET counts = excluded.counts",
                (process, counts.decode()),
            )

    def describe(self) -> Description:
        """Say where this is, and whether a lost server loses what was acknowledged."""
        with self._lock, self._translated():
            row = (
                self._connection()
                .execute(
                    "SELECT current_setting('server_version'), current_setting('fsync'), "
                    "current_setting('full_page_writes'), "
                    "current_setting('synchronous_standby_names')"
                )
                .fetchone()
            )
        assert row is not None
        version, fsync, pages, standby = row
        synced = fsync == "on" and pages == "on"
        durability = "synced by the server before every answer" if synced else "WEAK: fsync is off"
        if not standby:
            durability += "; a failover to an asynchronous standby may lose the newest outcomes"
        details = {"server": f"PostgreSQL {version}", "schema": self._schema}
        return Description("postgresql", _place(self._conninfo), durability, details)

    def close(self) -> None:
        """Close the connection."""
        with self._lock:
            if self._db is not None:
                self._db.close()

    @contextlib.contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except psycopg.Error as problem:
            if self._db is not None and isinstance(
                problem, psycopg.OperationalError | psycopg.InterfaceError
            ):
                with contextlib.suppress(psycopg.Error):
                    self._db.close()
                self._db = None
            raise _in_words(_place(self._conninfo), problem) from None


def _parameters(groups: Sequence[Group]) -> dict[str, Any]:
    expected = [(i, key, v) for i, g in enumerate(groups) for key, v in g.expected.items()]
    written = [
        (i, key, g.due.get(key, 0), value)
        for i, g in enumerate(groups)
        for key, value in g.values.items()
    ]
    audit = [(i, line.decode()) for i, g in enumerate(groups) for line in g.audit]
    return {
        "e_group": [e[0] for e in expected],
        "e_key": [e[1] for e in expected],
        "e_version": [e[2] for e in expected],
        "w_group": [w[0] for w in written],
        "w_key": [w[1] for w in written],
        "w_due": [w[2] for w in written],
        "w_value": [w[3] for w in written],
        "a_group": [a[0] for a in audit],
        "a_line": [a[1] for a in audit],
    }


def _place(conninfo: str) -> str:
    """Return where a database is, without its password."""
    parts = urlsplit(conninfo)
    user = f"{parts.username}@" if parts.username else ""
    port = f":{parts.port}" if parts.port else ""
    query = dict(parse_qsl(parts.query))
    host = parts.hostname or query.get("host", "the local socket")
    return f"{user}{host}{port}{parts.path}"


def _in_words(place: str, problem: psycopg.Error) -> LedgerError:
    first = (str(problem).splitlines() or [type(problem).__name__])[0]
    if isinstance(problem, pg_errors.DiskFull | pg_errors.ReadOnlySqlTransaction):
        return LedgerFull(
            f"the ledger at {place} cannot be written ({first}): nothing was admitted; free some "
            "space, or point to the primary"
        )
    if isinstance(problem, pg_errors.LockNotAvailable | pg_errors.QueryCanceled):
        return LedgerUnavailable(
            f"the ledger at {place} is busy ({first}): nothing was admitted; try again"
        )
    if isinstance(problem, pg_errors.InsufficientPrivilege | pg_errors.InvalidPassword):
        return LedgerUnavailable(
            f"the ledger at {place} refuses this role ({first}): grant it rights on its schema, or "
            "run the statements of `fencekit ledger migrate --print` as its owner"
        )
    return LedgerUnavailable(
        f"the ledger at {place} cannot be reached ({first}): nothing was admitted; check the "
        "server and the URL, then try again"
    )


def open_url(url: str) -> ConditionalLedger:
    """Open the ledger of a `postgresql://` URL; `?schema=NAME` chooses the schema."""
    parts = urlsplit(url)
    query = dict(parse_qsl(parts.query, keep_blank_values=True))
    schema = query.pop("schema", "fencekit")
    password_file = query.pop("password_file", None)
    conninfo = urlunsplit(parts._replace(query=urlencode(query)))
    if password_file is not None:
        try:
            with open(password_file, encoding="utf-8") as file:
                os.environ.setdefault("PGPASSWORD", file.read().strip())
        except OSError as problem:
            raise InvalidRequest(
                f"password_file {password_file} cannot be read ({problem.strerror})"
            ) from None
    return ConditionalLedger(
        f"postgresql://{_place(conninfo)}", PostgresStore(conninfo, schema), secrets.token_hex(16)
    )
