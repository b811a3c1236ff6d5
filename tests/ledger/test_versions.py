"""An older ledger is brought up to date by opening it, and a newer one is refused."""

from __future__ import annotations

import functools
import json
import re
import sqlite3
import subprocess
import sys
import zlib
from pathlib import Path

import psycopg
import pytest
import redis

from fencekit import Fence, IntentFailed, Replay
from fencekit.core.errors import LedgerDamaged, LedgerUnavailable
from fencekit.core.state import IntentKey
from fencekit.ledger import codec, journal, postgres_schema, redis_format, sqlite_file
from fencekit.ledger.conditional import ConditionalLedger
from fencekit.ledger.copying import copy
from fencekit.ledger.due import due_of
from fencekit.ledger.open import open_ledger
from fencekit.ledger.redis import RedisStore
from tests.ledger import servers
from tests.ledger.conformance import url_of

ROOT = Path(__file__).parents[2]
KINDS = ["sqlite", "jsonl", "postgresql", "redis"]

# As the number before made them.
SQLITE_1 = """
CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE intents (
  rowid INTEGER PRIMARY KEY, key BLOB NOT NULL UNIQUE, due INTEGER NOT NULL,
  record BLOB NOT NULL, sum INTEGER NOT NULL
);
CREATE INDEX intents_due ON intents (due);
CREATE TABLE domains (
  name TEXT PRIMARY KEY, head BLOB NOT NULL, sum INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE audit (n INTEGER PRIMARY KEY AUTOINCREMENT, line TEXT NOT NULL);
CREATE TABLE counters (process TEXT PRIMARY KEY, counts TEXT NOT NULL) WITHOUT ROWID;
PRAGMA application_id = 1717923427;
PRAGMA user_version = 1;
"""


class OldLayout(redis_format.Layout):
    """The keys of format 1, which looked for no number."""

    def __init__(self, namespace):
        super().__init__(namespace)
        self.keys = [f"{{{namespace}}}:{part}" for part in redis_format._PARTS]
        self.records, self.versions, self.index, self.due, self.audit, _ = self.keys

    def check(self, db, place):
        pass


class OldStore(RedisStore):
    """A Redis as a fencekit of format 1 reads and writes it."""

    def __init__(self, url, namespace, **more):
        super().__init__(url, namespace, **{**more, "later": True})
        self._layout = OldLayout(namespace)
        self._keys = self._layout.keys

    def sibling(self):
        return OldStore(self._url, self._namespace)


def act(fence):
    """One done, one unknown."""
    fence.commit(fence.prepare("done", "t", domain="d").ticket, {"n": 2**70})
    fence.abort(fence.prepare("lost", "t").ticket, "reset by peer")


def check(url):
    """All of it is there, and the ledger goes on."""
    with Fence.open(url) as fence:
        replay = fence.prepare("done", "t", domain="d")
        assert isinstance(replay, Replay)
        assert replay.result == {"n": 2**70}
        with pytest.raises(IntentFailed, match="reset by peer"):
            fence.prepare("lost", "t")
        assert [e["event"] for _, e in fence.ledger.audit()][:2] == ["admitted", "committed"]
        assert fence.current("d").seq == 1
        fence.abort(fence.prepare("later", "t").ticket, "no answer")
        assert list(fence.ledger.verify()) == []


def old_sqlite(path, url):
    with Fence.open("memory:") as fence:
        act(fence)
        with sqlite3.connect(url.removeprefix("sqlite:")) as db:
            db.executescript(SQLITE_1)
            for key, record in fence.ledger.records():
                text = codec.encode_intent(record)
                name = f"{key.principal}\0{key.intent}".encode()
                row = (name, due_of(record), text, zlib.crc32(text))
                db.execute("INSERT INTO intents (key, due, record, sum) VALUES (?, ?, ?, ?)", row)
            for name, head in fence.ledger.domains():
                text = codec.encode_domain(head)
                db.execute("INSERT INTO domains VALUES (?, ?, ?)", (name, text, zlib.crc32(text)))
            lines = [(json.dumps(event),) for _, event in fence.ledger.audit()]
            db.executemany("INSERT INTO audit (line) VALUES (?)", lines)
        db.close()


def old_jsonl(path, url):
    with Fence.open("memory:") as fence:
        act(fence)
        fields = {
            "intents": [
                [key.principal, key.intent, json.loads(codec.encode_intent(record))]
                for key, record in fence.ledger.records()
            ],
            "domains": [
                [name, json.loads(codec.encode_domain(head))]
                for name, head in fence.ledger.domains()
            ],
            "audit": [event for _, event in fence.ledger.audit()],
        }
    last, lines = 0, []
    for n, (name, value) in enumerate(fields.items(), 1):
        head = {"v": 1, "n": n, "at_ms": 1, "synced": 0, "prev": f"{last:08x}", name: value}
        body = json.dumps(head, separators=(",", ":")).encode()[:-1]
        last = zlib.crc32(body)
        lines.append(b'%b,"sum":"%08x"}\n' % (body, last))
    Path(url.removeprefix("jsonl:")).write_bytes(b"".join(lines))


def old_postgresql(path, url):
    """Version 6 had all that this one has but the sweeping of the audit."""
    with Fence.open(url) as fence:
        act(fence)
    schema = servers.name_for(path)
    with psycopg.connect(servers.postgres("wheel"), autocommit=True) as db:
        db.execute(f"DROP FUNCTION {schema}.sweep_audit")
        db.execute(f"UPDATE {schema}.meta SET value = '6' WHERE name = 'schema'")


def old_redis(path, url):
    with Fence_over(OldStore(servers.redis(kind="wheel"), servers.name_for(path))) as fence:
        act(fence)


def Fence_over(store):  # noqa: N802 - stands where Fence.open would
    from fencekit import FenceConfig
    from fencekit.fence import Calls

    return Fence(calls=Calls(ConditionalLedger("redis://", store, "p" * 32), FenceConfig()))


OLD = {"sqlite": old_sqlite, "jsonl": old_jsonl, "postgresql": old_postgresql, "redis": old_redis}


@pytest.fixture(params=KINDS)
def kind(request):
    return request.param


@pytest.fixture
def url(kind, tmp_path):
    return url_of(kind, tmp_path)


def number_of(kind, path, url):
    """The number that a ledger says it has."""
    if kind == "sqlite":
        with sqlite3.connect(url.removeprefix("sqlite:")) as db:
            (found,) = db.execute("PRAGMA user_version").fetchone()
        db.close()
        return found
    if kind == "jsonl":
        return json.loads(Path(url.removeprefix("jsonl:")).read_bytes().splitlines()[0])["v"]
    if kind == "postgresql":
        with psycopg.connect(servers.postgres("wheel")) as db:
            rows = db.execute(f"SELECT value FROM {servers.name_for(path)}.meta").fetchall()
        return int(rows[0][0])
    db = redis.Redis.from_url(servers.redis(kind="wheel"))
    found = db.get(f"{{{servers.name_for(path)}}}:format")
    db.close()
    return int(found or 1)


NUMBERS = {
    "sqlite": sqlite_file.SCHEMA,
    "jsonl": journal.VERSION,
    "postgresql": postgres_schema.VERSION,
    "redis": redis_format.FORMAT,
}


def test_the_number_before_is_brought_up_to_date(kind, url, tmp_path):
    OLD[kind](tmp_path, url)
    assert number_of(kind, tmp_path, url) == NUMBERS[kind] - 1
    check(url)
    assert number_of(kind, tmp_path, url) == NUMBERS[kind]
    check_again(url)


def check_again(url):
    with Fence.open(url) as fence, pytest.raises(IntentFailed, match="no answer"):
        fence.prepare("later", "t")


@pytest.mark.parametrize("kind", ["sqlite", "postgresql", "redis"])
def test_ten_processes_bring_it_up_to_date_at_once(kind, url, tmp_path):
    """A journal has one process at a time."""
    OLD[kind](tmp_path, url)
    program = (
        "import sys; from fencekit import Fence; sys.stdin.readline()\n"
        "print(Fence.open(sys.argv[1]).prepare('done', 't', domain='d').result['n'])"
    )
    opening = [
        subprocess.Popen(
            [sys.executable, "-c", program, url],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=ROOT, text=True,
        )
        for _ in range(10)
    ]  # fmt: skip
    for one in opening:
        one.stdin.write("\n")
        one.stdin.flush()
    said = [one.communicate(timeout=60)[0].strip() for one in opening]
    assert said == [str(2**70)] * 10
    check(url)


def test_a_newer_number_is_refused(kind, url, tmp_path):
    with Fence.open(url) as fence:
        act(fence)
    newer = NUMBERS[kind] + 1
    if kind == "sqlite":
        with sqlite3.connect(url.removeprefix("sqlite:")) as db:
            db.execute(f"PRAGMA user_version = {newer}")
        db.close()
    elif kind == "jsonl":
        path = Path(url.removeprefix("jsonl:"))
        first, *rest = path.read_bytes().splitlines(keepends=True)
        body = first[: first.rindex(b',"sum"')].replace(b'{"v":2', b'{"v":3')
        path.write_bytes(b'%b,"sum":"%08x"}\n' % (body, zlib.crc32(body)) + b"".join(rest))
    elif kind == "postgresql":
        with psycopg.connect(servers.postgres("wheel"), autocommit=True) as db:
            db.execute(f"UPDATE {servers.name_for(tmp_path)}.meta SET value = '{newer}'")
    else:
        db = redis.Redis.from_url(servers.redis(kind="wheel"))
        db.set(f"{{{servers.name_for(tmp_path)}}}:format", newer)
        db.close()
    with pytest.raises(LedgerUnavailable, match=rf"newer fencekit \(\w+ {newer}, this one reads"):
        open_ledger(url)


@pytest.mark.parametrize("new", ["new", "brought up to date"])
def test_version_1_refuses_a_journal_and_sets_nothing_aside(new, tmp_path, monkeypatch):
    """Without the stop line it would take all of it for a torn tail, and begin anew."""
    path = tmp_path / "l.jsonl"
    if new == "new":
        open_ledger(f"jsonl:{path}").close()
    else:
        old_jsonl(tmp_path, f"jsonl:{path}")
        open_ledger(f"jsonl:{path}").close()
    old = functools.partial(journal.parse_alone, readable=(1,))
    monkeypatch.setattr(journal, "parse_alone", old)
    monkeypatch.setattr(journal, "_refuse_newer", lambda data: None)
    before = path.read_bytes()
    with pytest.raises(LedgerDamaged, match="line 1 is damaged"):
        open_ledger(f"jsonl:{path}")
    assert path.read_bytes() == before


def test_a_journal_torn_while_it_was_made_is_made_again(tmp_path):
    path = tmp_path / "l.jsonl"
    open_ledger(f"jsonl:{path}").close()
    whole = path.read_bytes().splitlines(keepends=True)[:2]
    for end in (0, 5, len(whole[0]), len(whole[0]) + 5):
        path.write_bytes(b"".join(whole)[:end])
        open_ledger(f"jsonl:{path}").close()
        first, second = path.read_bytes().splitlines()[:2]
        assert (json.loads(first)["v"], json.loads(second)["v"]) == (2, 1)
        assert json.loads(second)["synced"] == len(first) + 1


def test_a_running_process_of_format_1_is_stopped(tmp_path):
    """It read nothing of a number, so the server refuses what it asks."""
    namespace = servers.name_for(tmp_path)
    old = Fence_over(OldStore(servers.redis(kind="wheel"), namespace))
    ticket = old.prepare("before", "t").ticket
    open_ledger(f"{servers.redis(kind='wheel')}?namespace={namespace}").close()
    old.ledger._deadline = 0
    for ask in (lambda: old.prepare("after", "t"), lambda: old.commit(ticket)):
        with pytest.raises(LedgerUnavailable, match="WRONGTYPE"):
            ask()
    old.close()
    again = Fence_over(OldStore(servers.redis(kind="wheel"), namespace))
    again.ledger._deadline = 0
    with pytest.raises(LedgerUnavailable, match="WRONGTYPE"):
        again.prepare("after", "t")
    again.close()


def test_a_running_process_of_schema_1_writes_nothing_into_a_sealed_file(tmp_path):
    """It reads no marker, so SQLite turns its rows away."""
    paths = tmp_path / "old.db", tmp_path / "new.db"
    old_sqlite(tmp_path, f"sqlite:{paths[0]}")
    running = sqlite3.connect(paths[0], isolation_level=None)
    row = running.execute("SELECT key, due, record, sum FROM intents LIMIT 1").fetchone()
    ledgers = [open_ledger(f"sqlite:{path}") for path in paths]
    copy(*ledgers, 0, lambda text: None)
    insert = (
        "INSERT INTO intents (key, due, record, sum) VALUES (?, ?, ?, ?) "
        "ON CONFLICT (key) DO UPDATE SET record = excluded.record"
    )
    for key in (row[0], b"\0another"):
        with pytest.raises(sqlite3.IntegrityError, match="moved to another ledger"):
            running.execute(insert, (key, *row[1:]))
    with pytest.raises(sqlite3.IntegrityError, match="moved to another ledger"):
        running.execute("DELETE FROM intents")
    running.close()
    for ledger in ledgers:
        assert ledger.peek(IntentKey("", "done")) == 2
        ledger.close()


def test_migrate_prints_the_number(tmp_path):
    printed = postgres_schema.statements("app")
    first = printed.splitlines()[0]
    assert re.search(rf"schema app of version {postgres_schema.VERSION}\b", first)
