"""The tables of the PostgreSQL ledger: made and migrated on open, or by hand from `statements`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from fencekit.core.errors import InvalidRequest, LedgerUnavailable
from fencekit.ledger.server_url import joined, parameters

if TYPE_CHECKING:
    import psycopg

VERSION = 7
DEFAULT = "fencekit"
_NAME = re.compile(r"[a-z_][a-z0-9_]{0,62}\Z")

_TABLES = """
CREATE SEQUENCE IF NOT EXISTS {s}.versions;
CREATE TABLE IF NOT EXISTS {s}.records (
  key bytea PRIMARY KEY,        -- i: an intent, d: a domain, f: the floor
  version bigint NOT NULL,      -- from the sequence: never given twice, also after a deletion
  due bigint NOT NULL,          -- when sweep may look, milliseconds; 0 while there is no outcome
  value bytea NOT NULL
);
CREATE INDEX IF NOT EXISTS records_due ON {s}.records (due) WHERE due > 0;
CREATE TABLE IF NOT EXISTS {s}.audit (n bigserial PRIMARY KEY, line text NOT NULL);
CREATE TABLE IF NOT EXISTS {s}.counters (process text PRIMARY KEY, counts text NOT NULL);
CREATE TABLE IF NOT EXISTS {s}.meta (name text PRIMARY KEY, value text NOT NULL);
INSERT INTO {s}.meta VALUES ('schema', '{v}')
  ON CONFLICT (name) DO UPDATE SET value = excluded.value;
DROP FUNCTION IF EXISTS {s}.compare_and_write(
  int[], bytea[], bigint[], int[], bytea[], bigint[], bytea[], int[], text[]
);
DROP FUNCTION IF EXISTS {s}.compare_and_write(
  int[], bytea[], bigint[], boolean[], int[], bytea[], bigint[], bytea[], int[], text[]
);
DROP FUNCTION IF EXISTS {s}.compare_and_write(
  bigint, int[], bytea[], bigint[], boolean[], int[], bytea[], bigint[], bytea[], int[], text[]
);
-- What stands under some keys, all of one moment (a stable function keeps the snapshot of its
-- caller), after a row with the server's clock. Functions, because their plans are kept by the
-- server where a pooler forbids prepared statements; without sequential scans, because a plan that
-- was made while the table was small would read all of it once it is large.
CREATE OR REPLACE FUNCTION {s}.read(keys bytea[])
RETURNS TABLE (key bytea, version bigint, value bytea, ms bigint)
LANGUAGE plpgsql STABLE SET enable_seqscan = off AS $fn$
#variable_conflict use_column
BEGIN
  ms := extract(epoch FROM clock_timestamp()) * 1000;
  RETURN NEXT;
  FOR i IN 1 .. cardinality(keys) LOOP
    SELECT r.key, r.version, r.value INTO key, version, value FROM {s}.records r
      WHERE r.key = keys[i];
    IF FOUND THEN
      RETURN NEXT;
    END IF;
  END LOOP;
END
$fn$;
-- Lock, compare versions, and write the groups that still hold; `failed` are those that do not, and
-- `versions` what was given to each written key (0 where nothing was written). No transaction waits
-- for a client. A volatile function takes a new snapshot for each of its statements, so what it
-- compares was read after the locks were granted. A key that is only compared is locked in shared
-- mode: its writers wait, its other readers do not. `l_key` are the locks, in ascending order for
-- everybody, and `l_alone` whether each is for a key that is written. `e_now` is the clock by which
-- the decisions were made if that was not read here: all fail where it is more than half a second
-- off.
CREATE OR REPLACE FUNCTION {s}.compare_and_write(
  e_now bigint, l_key bigint[], l_alone boolean[],
  e_group int[], e_key bytea[], e_version bigint[],
  w_group int[], w_key bytea[], w_due bigint[], w_value bytea[],
  a_group int[], a_line text[],
  OUT failed int[], OUT versions bigint[], OUT ms bigint
) LANGUAGE plpgsql SET lock_timeout = '5s' SET enable_seqscan = off AS $fn$
DECLARE
  have bigint;
  done boolean;  -- takes what an expression returns: cheaper than a statement
BEGIN
  failed := '{{}}';
  versions := '{{}}';
  IF current_setting('transaction_isolation') <> 'read committed' THEN
    -- What is compared would be read from before the locks.
    RAISE 'default_transaction_isolation must be read committed for this role and database, not %',
      current_setting('transaction_isolation');
  END IF;
  PERFORM set_config('synchronous_commit', 'on', true);  -- until the commit, not the function's end
  FOR i IN 1 .. cardinality(l_key) LOOP
    IF l_alone[i] THEN
      done := pg_advisory_xact_lock(l_key[i]) IS NULL;
    ELSE
      done := pg_advisory_xact_lock_shared(l_key[i]) IS NULL;
    END IF;
  END LOOP;
  ms := extract(epoch FROM clock_timestamp()) * 1000;
  IF ms - extract(epoch FROM statement_timestamp()) * 1000 > 5000 THEN
    RAISE lock_not_available USING MESSAGE = 'other writers held these keys for five seconds';
  END IF;
  IF e_now > 0 AND abs(ms - e_now) > 500 THEN
    failed := w_group;
    RETURN;
  END IF;
  FOR i IN 1 .. cardinality(e_key) LOOP
    SELECT version INTO have FROM {s}.records WHERE key = e_key[i];
    IF coalesce(have, 0) <> e_version[i] THEN
      IF e_group[i] < 0 THEN  -- compared once for all
        failed := w_group;
        RETURN;
      END IF;
      failed := failed || e_group[i];
    END IF;
  END LOOP;
  FOR i IN 1 .. cardinality(w_key) LOOP
    have := 0;
    IF w_group[i] = ANY (failed) THEN
      NULL;
    ELSIF w_value[i] IS NULL THEN
      DELETE FROM {s}.records WHERE key = w_key[i];
    ELSE
      have := nextval('{s}.versions');
      INSERT INTO {s}.records (key, version, due, value)
      VALUES (w_key[i], have, w_due[i], w_value[i])
      ON CONFLICT (key) DO UPDATE
        SET version = excluded.version, due = excluded.due, value = excluded.value;
    END IF;
    versions := versions || have;
  END LOOP;
  IF cardinality(a_line) > 0 THEN
    -- Says, until the transaction ends, above which number it may still add lines.
    PERFORM pg_advisory_xact_lock_shared(hashtext('{s}.audit'),
      (coalesce(pg_sequence_last_value('{s}.audit_n_seq'), 0) & 2147483647)::int);
  END IF;
  FOR i IN 1 .. cardinality(a_line) LOOP
    CONTINUE WHEN a_group[i] = ANY (failed);
    INSERT INTO {s}.audit (line) VALUES (a_line[i]);
  END LOOP;
END
$fn$;
-- The lines after a number, up to the first that a transaction which has not ended may still
-- precede: numbers are drawn before a commit, and whoever reads on from a number must not have been
-- shown a later one before. A writer that is not seen to hold its lock here draws its numbers after
-- `last` was read, so they are greater.
CREATE OR REPLACE FUNCTION {s}.audit_after(after bigint, many int)
RETURNS TABLE (n bigint, line text) LANGUAGE plpgsql SET enable_seqscan = off AS $fn$
DECLARE
  last bigint := coalesce(pg_sequence_last_value('{s}.audit_n_seq'), 0);
  settled bigint := last;
BEGIN
  SELECT least(last, min(last - ((last - l.objid::bigint) & 2147483647))) INTO settled
    FROM pg_locks l
    WHERE l.locktype = 'advisory' AND l.objsubid = 2 AND l.granted
      AND l.classid = (hashtext('{s}.audit')::bigint & 4294967295)::oid
      AND l.database = (SELECT d.oid FROM pg_database d WHERE d.datname = current_database());
  RETURN QUERY SELECT a.n, a.line FROM {s}.audit a
    WHERE a.n > after AND a.n <= settled ORDER BY a.n LIMIT many;
END
$fn$;
-- Delete what is older than a time among the first lines after a number, but none of the newest
-- `kept`; nobody waits for it. A line's time is read from its text, where a quote inside a value is
-- escaped: as JSON, a line may hold what the server cannot read (a null character).
CREATE OR REPLACE FUNCTION {s}.sweep_audit(
  before_ms bigint, after bigint, many int, kept bigint, OUT swept bigint, OUT last bigint
) LANGUAGE plpgsql SET enable_seqscan = off AS $fn$
DECLARE
  until bigint := coalesce(pg_sequence_last_value('{s}.audit_n_seq'), 0) - kept;
BEGIN
  WITH oldest AS MATERIALIZED (
    SELECT a.n, substring(a.line FROM '"at_ms":([0-9]+)')::bigint AS at_ms FROM {s}.audit a
      WHERE a.n > after AND a.n <= until ORDER BY a.n LIMIT many
  ), gone AS (
    DELETE FROM {s}.audit a USING oldest o WHERE a.n = o.n AND o.at_ms < before_ms RETURNING a.n
  )
  SELECT count(*), coalesce(max(g.n), after) INTO swept, last FROM gone g;
END
$fn$;
"""


def schema_of(url: str) -> str:
    """Return the schema that the URL of a ledger names, else the default one."""
    return parameters(urlsplit(url)).get("schema", DEFAULT)


def with_schema(url: str, schema: str) -> str:
    """Return the URL of the same ledger in another schema."""
    parts = urlsplit(url)
    return joined(parts, {**parameters(parts), "schema": schema})


def check_name(schema: str) -> str:
    """Refuse a schema name that would need quoting."""
    if not _NAME.match(schema):
        raise InvalidRequest(
            f"schema {schema!r} must be lower-case letters, digits and underscores"
        )
    return schema


def statements(schema: str) -> str:
    """Return the statements that make the schema, for those who run migrations by hand."""
    return (
        f"-- Makes schema {check_name(schema)} of version {VERSION}, also of an older one.\n"
        f"CREATE SCHEMA IF NOT EXISTS {schema};" + _TABLES.format(s=schema, v=VERSION)
    )


def rights(schema: str, role: str = "ROLE") -> str:
    """Return what a role that may create nothing needs, as comments to fill in."""
    return (
        f"-- For a role that only fences, and creates nothing:\n"
        f"--   GRANT USAGE ON SCHEMA {schema} TO {role};\n"
        f"--   GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA {schema} TO {role};\n"
        f"--   GRANT USAGE ON ALL SEQUENCES IN SCHEMA {schema} TO {role};"
    )


def migrate(db: psycopg.Connection[Any], schema: str) -> None:
    """Make or check the schema in one transaction; ten processes may do this at once.

    Every statement may be run again, so an older schema is brought up to date by the same ones.
    """
    found = version_of(db, schema)
    if found is None or found < VERSION:
        with db.transaction():
            # One at a time: CREATE … IF NOT EXISTS of two sessions can still collide.
            db.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 1))", (schema,))
            found = version_of(db, schema)
            if found is None or found < VERSION:
                db.execute(statements(schema))
        found = version_of(db, schema)
    if found != VERSION:
        raise LedgerUnavailable(
            f"schema {schema!r} was written by a newer fencekit (version {found}, this one reads "
            f"{VERSION}): upgrade fencekit"
        )


def version_of(db: psycopg.Connection[Any], schema: str) -> int | None:
    """Return the number of a schema, or None where there is none."""
    row = db.execute("SELECT to_regclass(%s)", (f"{schema}.meta",)).fetchone()
    if row is None or row[0] is None:
        return None
    found = db.execute(f"SELECT value FROM {schema}.meta WHERE name = 'schema'").fetchone()
    return None if found is None else int(found[0])
