"""`postgresql://…`: many machines share one fence through a database that they already run.

READ COMMITTED throughout; a batch is two statements, each a transaction of its own. The second
calls `compare_and_write` of the schema, which takes advisory transaction locks on all keys that
the decisions read, absent ones too, in one order for everybody, and then compares and writes:
`FOR UPDATE` on a missing row would lock nothing, and a lock taken in the comparing statement
would read the snapshot from before the wait. No session state, no open transaction that waits for
a client, and no server-side prepared statement is used, so a transaction pooler may stand
between.
"""

from __future__ import annotations

import contextlib
import hashlib
import secrets
from collections.abc import Iterator, Sequence
from typing import Any
from urllib.parse import urlsplit

import psycopg
from psycopg import errors as pg_errors
from psycopg.conninfo import conninfo_to_dict

from fencekit.core.errors import InvalidRequest, LedgerError, LedgerFull, LedgerUnavailable
from fencekit.ledger.base import AUDIT_KEPT, AUDIT_ROWS, Description
from fencekit.ledger.conditional import ConditionalLedger
from fencekit.ledger.groups import Group, Stored, Written, common_to, written
from fencekit.ledger.password import read_password
from fencekit.ledger.postgres_arrays import Booleans, Byteas, Int4s, Int8s, Texts, register
from fencekit.ledger.postgres_pool import STATEMENT_SECONDS, BoundedConnection, Busy, Pool
from fencekit.ledger.postgres_schema import DEFAULT, check_name, migrate, version_of
from fencekit.ledger.server_url import joined, parameters, without_secrets

DEFAULT_PORT = 5432
CONNECT_SECONDS = 5
MOST_CONNECTIONS = 100
CONNECTIONS = 2
"""How many connections a process opens at the most: one that decides, one that looks and sweeps."""
MIGRATE_SECONDS = 30.0
"""The same while the schema is made: other processes may be making it first."""

# What a URL tells this ledger, and not libpq.
_OURS = ("schema", "password_file", "pool")

_ALL = -1
"""Stands for all groups, where something is compared once for all of them."""

_READ = "SELECT key, version, value, ms FROM {}.read(%s)"
# What a commit left behind that was given up while it waited for a synchronous standby, or that a
# crash came between, is visible and not yet there. A commit after it waits for all of it.
_SETTLE = (
    "INSERT INTO {}.meta SELECT 'settled', now()::text "
    "WHERE current_setting('synchronous_standby_names') <> '' "
    "ON CONFLICT (name) DO UPDATE SET value = excluded.value"
)
_WRITE = (
    "SELECT failed, versions, ms FROM {}.compare_and_write("
    "%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s)"
)


class PostgresStore:
    """Opaque values in one table of one schema.

    `limit` bounds each statement and each wait for a connection, in seconds; `made` says that the
    schema is there. `pool` is how many connections this store and its siblings open at the most: it
    keeps one for itself, and they share the others (with a pool of one, they share that).
    """

    def __init__(
        self,
        conninfo: str,
        schema: str,
        password: str | None = None,
        limit: float = STATEMENT_SECONDS,
        *,
        made: bool = False,
        pool: int = CONNECTIONS,
    ) -> None:
        self._conninfo = conninfo
        self._password = password
        self._schema = check_name(schema)
        self._read, self._write = _READ.format(schema), _WRITE.format(schema)
        self._limit = limit
        self._most = pool
        self._made = made
        self._pool = Pool(self._connect_settled, 1, limit)
        self._others = self._pool if pool == 1 else Pool(self._connect, pool - 1, limit)
        if made:
            return
        try:
            with self._connection() as db:
                db.limit = MIGRATE_SECONDS
                migrate(db, self._schema)
                db.limit = limit
                db.execute(_SETTLE.format(schema))
                self._made = True
        except BaseException:
            self.close()
            raise

    def _connect(self) -> BoundedConnection:
        db = BoundedConnection.connect(
            self._conninfo,
            password=self._password,
            autocommit=True,
            prepare_threshold=None,
            connect_timeout=CONNECT_SECONDS,
            application_name="fencekit",
        )
        db.limit = self._limit
        register(db)
        return db

    def _connect_settled(self) -> BoundedConnection:
        """Open a connection by which decisions are made: what it reads, a standby has too."""
        db = self._connect()
        if self._made:
            try:
                db.execute(_SETTLE.format(self._schema))
            except BaseException:
                db.close()
                raise
        return db

    @contextlib.contextmanager
    def _connection(self) -> Iterator[BoundedConnection]:
        """Lend a connection; what fails is told in words."""
        place = _place(self._conninfo)
        try:
            with self._pool.connection() as db:
                yield db
        except Busy:
            raise LedgerUnavailable(
                f"the {self._most} connections of this process to the ledger at {place} were in "
                f"use for {self._pool.wait:g} s: nothing was admitted; allow more with ?pool= in "
                "the URL, or look at what holds them"
            ) from None
        except psycopg.Error as problem:
            raise _in_words(place, problem) from None

    def read(self, keys: Sequence[bytes]) -> tuple[dict[bytes, Stored], int]:
        """Return what stands under each key, and the server's clock."""
        (_, _, _, ms), *rows = self._fetch(self._read, (Byteas(keys),))
        return {key: Stored(version, value) for key, version, value, _ in rows}, ms

    def compare_and_write(self, groups: Sequence[Group], now_ms: int = 0) -> Written:
        """Lock, compare, write; see `Store.compare_and_write`."""
        ((failed, versions, ms),) = self._fetch(
            self._write, _parameters(self._schema, groups, now_ms)
        )
        return written(groups, failed, versions, ms)

    def _fetch(self, query: str, parameters: Sequence[Any]) -> list[tuple[Any, ...]]:
        with self._connection() as db:
            return db.execute(query, parameters, binary=True).fetchall()

    def scan(self, prefix: bytes, after: bytes, limit: int) -> list[tuple[bytes, Stored]]:
        """Return values in the order of their keys."""
        end = prefix[:-1] + bytes([prefix[-1] + 1])
        return self._rows(
            "SELECT key, version, value FROM {}.records WHERE key > %s AND key < %s "
            "ORDER BY key LIMIT %s",
            (after, end, limit),
        )

    def due(self, since_ms: int, until_ms: int, limit: int) -> list[tuple[bytes, Stored]]:
        """Return values that sweep may look at; what was deleted before `since_ms` is passed by."""
        return self._rows(
            "SELECT key, version, value FROM {}.records WHERE due > 0 AND due >= %s AND due <= %s "
            "ORDER BY due LIMIT %s",
            (since_ms, until_ms, limit),
        )

    def unfinished(self, after: bytes, limit: int) -> tuple[list[tuple[bytes, Stored]], bytes]:
        """Return the intents without an outcome among the next ones; the others are not sent."""
        query = (
            "WITH page AS MATERIALIZED (SELECT key, version, due, value FROM {}.records "
            "WHERE key > %s AND key < %s ORDER BY key LIMIT %s) "
            "SELECT key, version, value, 0::bigint FROM page WHERE due = 0 UNION ALL "
            "(SELECT key, 0, NULL, (SELECT count(*) FROM page) FROM page ORDER BY key DESC LIMIT 1)"
        )
        found = self._fetch(query.format(self._schema), (after, b"j", limit))
        rows = [(key, Stored(version, value)) for key, version, value, n in found if n == 0]
        last = [key for key, _, _, n in found if n == limit]
        return rows, last[0] if last else b""

    def _rows(self, query: str, parameters: tuple[Any, ...]) -> list[tuple[bytes, Stored]]:
        rows = self._fetch(query.format(self._schema), parameters)
        return [(key, Stored(version, value)) for key, version, value in rows]

    def audit(self, after: int, limit: int) -> list[tuple[int, bytes]]:
        """Return audit lines with their numbers, which grow and may have gaps."""
        query = f"SELECT n, line FROM {self._schema}.audit_after(%s, %s)"
        return [(number, line.encode()) for number, line in self._fetch(query, (after, limit))]

    def sweep_audit(self, before_ms: int, after: int) -> tuple[int, int]:
        """Delete some old audit lines; see `Store.sweep_audit`."""
        query = f"SELECT swept, last FROM {self._schema}.sweep_audit(%s, %s, %s, %s)"
        ((swept, last),) = self._fetch(query, (before_ms, after, AUDIT_ROWS, AUDIT_KEPT))
        return swept, last

    def counters(self) -> list[bytes]:
        """Return the counters that processes saved."""
        with self._connection() as db:
            rows = db.execute(f"SELECT counts FROM {self._schema}.counters")
            return [row[0].encode() for row in rows.fetchall()]

    def save_counters(self, process: str, counts: bytes) -> None:
        """Replace the counters of one process."""
        with self._connection() as db:
            db.execute(
                f"INSERT INTO {self._schema}.counters VALUES (%s, %s) "
                "ON CONFLICT (process) DO UPDATE SET counts = excluded.counts",
                (process, counts.decode()),
            )

    def describe(self) -> Description:
        """Say where this is, and whether a lost server loses what was acknowledged."""
        with self._connection() as db:
            row = db.execute(
                "SELECT current_setting('server_version'), current_setting('fsync'), "
                "current_setting('full_page_writes'), "
                "current_setting('synchronous_standby_names')"
            ).fetchone()
        assert row is not None
        version, fsync, pages, standby = row
        synced = fsync == "on" and pages == "on"
        durability = "synced by the server before every answer" if synced else "WEAK: fsync is off"
        if not standby:
            durability += "; a failover to an asynchronous standby may lose the newest outcomes"
        details = {
            "server": f"PostgreSQL {version}",
            "schema": self._schema,
            "synchronous standbys": standby or "none",
        }
        return Description("postgresql", _place(self._conninfo), durability, details)

    def is_made(self) -> bool:
        """Whether the schema is there; makes nothing."""
        self._made = False  # as far as is known yet, there is nothing to settle
        with self._connection() as db:
            self._made = version_of(db, self._schema) is not None
        return self._made

    def sibling(self) -> PostgresStore:
        """Return a store of the same schema over the other connections."""
        sibling = PostgresStore(
            self._conninfo,
            self._schema,
            self._password,
            self._limit,
            made=True,
            pool=self._most,
        )
        sibling._pool, sibling._others = self._others, self._pool
        return sibling

    def close(self) -> None:
        """Close the connections."""
        self._pool.close()


def lock_of(schema: str, key: bytes) -> int:
    """Return the number of the advisory lock of a key; keys that share one merely wait longer."""
    digest = hashlib.blake2b(key, digest_size=8, key=schema.encode()).digest()
    return int.from_bytes(digest, "big", signed=True)


def _parameters(schema: str, groups: Sequence[Group], now_ms: int) -> list[Any]:
    common = common_to(groups)
    expected = [(_ALL, key, version) for key, version in common.items()]
    expected += [
        (i, key, version)
        for i, g in enumerate(groups)
        for key, version in g.expected.items()
        if key not in common
    ]
    alone = {key for g in groups for key in g.values}
    keys = {key: key in alone for _, key, _ in expected} | dict.fromkeys(alone, True)
    locks: dict[int, bool] = {}
    for key, exclusive in keys.items():
        lock = lock_of(schema, key)
        locks[lock] = exclusive or locks.get(lock, False)
    ordered = sorted(locks.items())
    put = [
        (i, key, g.due.get(key, 0), value)
        for i, g in enumerate(groups)
        for key, value in g.values.items()
    ]
    audit = [(i, line) for i, g in enumerate(groups) for line in g.audit]
    return [
        now_ms,
        Int8s([lock for lock, _ in ordered]),
        Booleans([exclusive for _, exclusive in ordered]),
        Int4s([e[0] for e in expected]),
        Byteas([e[1] for e in expected]),
        Int8s([e[2] for e in expected]),
        Int4s([p[0] for p in put]),
        Byteas([p[1] for p in put]),
        Int8s([p[2] for p in put]),
        Byteas([p[3] for p in put]),
        Int4s([a[0] for a in audit]),
        Texts([a[1] for a in audit]),
    ]


def _place(conninfo: str) -> str:
    """Return where a database is, without its password."""
    parts = urlsplit(conninfo)
    user = f"{parts.username}@" if parts.username else ""
    port = f":{parts.port}" if parts.port else ""
    host = parts.hostname or parameters(parts).get("host", "the local socket")
    return f"{user}{host}{port}{parts.path}"


def _in_words(place: str, problem: psycopg.Error) -> LedgerError:
    first = (str(problem).splitlines() or [type(problem).__name__])[0]
    if isinstance(problem, pg_errors.DiskFull | pg_errors.ReadOnlySqlTransaction):
        return LedgerFull(
            f"the ledger at {place} cannot be written ({first}): nothing was admitted; free some "
            "space, or point to the primary"
        )
    if isinstance(problem, pg_errors.RaiseException):
        return LedgerError(f"the ledger at {place} cannot be used: {first}; nothing was admitted")
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
    """Open the ledger of a `postgresql://` URL.

    `?schema=NAME` chooses the schema, `?pool=N` how many connections this process opens at the
    most, `?password_file=PATH` where the password is.
    """
    return ConditionalLedger(without_secrets(url), _store(url), secrets.token_hex(16))


def is_made(url: str) -> bool:
    """Whether the schema of a URL is there; makes nothing.

    Raises `LedgerError` if none can tell.
    """
    with contextlib.closing(_store(url, made=True)) as store:
        return store.is_made()


def _store(url: str, *, made: bool = False) -> PostgresStore:
    parts = urlsplit(url)
    query = parameters(parts)
    schema = query.pop("schema", DEFAULT)
    password = read_password(query.pop("password_file", None))
    pool = query.pop("pool", str(CONNECTIONS))
    if not pool.isdecimal() or not 1 <= int(pool) <= MOST_CONNECTIONS:
        raise InvalidRequest(f"postgresql: takes ?pool=NUMBER from 1 to {MOST_CONNECTIONS}")
    return PostgresStore(joined(parts, query), schema, password, made=made, pool=int(pool))


def addresses(url: str) -> list[tuple[str, int]]:
    """Return the hosts (or folders of sockets) and ports of a URL, as libpq reads it."""
    parts = urlsplit(url)
    asked = {k: v for k, v in parameters(parts).items() if k not in _OURS}
    told = conninfo_to_dict(joined(parts, asked))
    hosts = str(told.get("hostaddr") or told.get("host") or "localhost").split(",")
    ports = str(told.get("port") or DEFAULT_PORT).split(",")
    return [(host, int(ports[min(i, len(ports) - 1)])) for i, host in enumerate(hosts)]
