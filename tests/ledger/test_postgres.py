"""PostgreSQL: the true answer after any failure of server or connection, and never a second run."""

from __future__ import annotations

import os
import socket
import threading
import time

import psycopg
import pytest

from fencekit import Fence, FenceConfig
from fencekit.core.errors import InvalidRequest, LedgerError, LedgerUnavailable
from fencekit.core.messages import Fresh
from fencekit.core.state import IntentKey
from fencekit.fence import Calls
from fencekit.ledger.conditional import ConditionalLedger
from fencekit.ledger.groups import intent_key
from fencekit.ledger.open import open_ledger
from fencekit.ledger.postgres import CONNECT_SECONDS, PostgresStore, lock_of
from fencekit.ledger.postgres_arrays import Booleans, Byteas, Int4s, Int8s, Texts, register
from fencekit.ledger.postgres_schema import statements
from tests.ledger import servers


@pytest.fixture(params=["wheel", "debian"], scope="module")
def server(request):
    return servers.postgres(request.param)


@pytest.fixture
def schema(tmp_path):
    return servers.name_for(tmp_path)


@pytest.fixture
def url(schema, server):
    return f"{server}&schema={schema}"


class CuttingStore(PostgresStore):
    """Loses the connection before, or right after, a write; as often as it is told."""

    def __init__(self, *args):
        self.cuts = []
        super().__init__(*args)

    def compare_and_write(self, groups, *now):
        when = self.cuts.pop(0) if self.cuts else None
        if when == "before":
            raise LedgerUnavailable("cut before COMMIT")
        failed = super().compare_and_write(groups, *now)
        if when == "after":
            raise LedgerUnavailable("cut after COMMIT: nobody heard the answer")
        return failed


@pytest.mark.parametrize("cuts", [["before"], ["after"], ["after", "before", "after"]])
def test_a_cut_connection_gets_the_true_answer(cuts, schema, server):
    store = CuttingStore(server, schema)
    ledger = ConditionalLedger("postgresql://", store, "p" * 32)
    with Fence(calls=Calls(ledger, FenceConfig())) as fence:
        store.cuts = list(cuts)
        admission = fence.prepare("pay", "t", domain="d")
        assert isinstance(admission, Fresh)
        store.cuts = list(cuts)
        cert = fence.commit(admission.ticket, "ok")
        store.cuts = list(cuts)
        assert fence.prepare("pay", "t", domain="d").cert == cert
        assert fence.current("d").seq == 1
        assert len(list(fence.ledger.audit())) == 2


def test_a_server_that_stays_away_stops_admissions_in_bounded_time(schema, server):
    store = CuttingStore(server, schema)
    ledger = ConditionalLedger("postgresql://", store, "p" * 32, deadline=0.05)
    with Fence(calls=Calls(ledger, FenceConfig())) as fence:
        store.cuts = ["before"] * 100_000
        with pytest.raises(LedgerUnavailable, match="cut"):
            fence.prepare("pay", "t")
        store.cuts = []
        fence.prepare("pay", "t")


@pytest.fixture
def impatient(schema, server):
    """A ledger that waits a fifth of a second for each statement."""
    store = PostgresStore(server, schema, limit=0.2)
    ledger = ConditionalLedger("postgresql://", store, "p" * 32, deadline=0.5)
    with Fence(calls=Calls(ledger, FenceConfig())) as fence:
        yield fence


def test_a_stopped_server_stops_admissions_in_bounded_time(impatient, server):
    impatient.prepare("before", "t")
    with servers.stopped(*servers.postgres_pids(server)):
        began = time.monotonic()
        with pytest.raises(LedgerUnavailable, match="cannot be reached"):
            impatient.prepare("pay", "t", attempt="a" * 32)
        took = time.monotonic() - began
    # The deadline, and one more connection that is waited for.
    assert took < 0.5 + CONNECT_SECONDS + 2
    assert isinstance(impatient.prepare("pay", "t", attempt="a" * 32), Fresh)
    assert len(list(impatient.ledger.audit())) == 2


def test_a_backend_stopped_in_the_middle_of_a_write_admits_once(impatient, schema, server):
    """It holds the intent's lock and never says so; awake, it has written or never will."""
    heard = []

    def ask():
        try:
            impatient.prepare("pay", "t", attempt="a" * 32)
        except LedgerUnavailable as problem:
            heard.append(problem)

    with psycopg.connect(server) as other:
        other.execute(
            "SELECT pg_advisory_xact_lock(%s)", (lock_of(schema, intent_key(IntentKey("", "pay"))),)
        )
        impatient.ledger._store._pool.idle[0].limit = 2.0
        asking = threading.Thread(target=ask)
        asking.start()
        backend = _waiting_for_a_lock(server, schema)
        with servers.stopped(backend):
            other.rollback()
            asking.join(30)
            impatient.prepare("another", "t")
    assert len(heard) == 1
    while _alive(server, backend):
        time.sleep(0.01)
    assert isinstance(impatient.prepare("pay", "t", attempt="a" * 32), Fresh)
    told = [(e["intent"], e["event"]) for _, e in impatient.ledger.audit()]
    assert sorted(told) == [("another", "admitted"), ("pay", "admitted")]


def _waiting_for_a_lock(server, schema):
    with psycopg.connect(server, autocommit=True) as db:
        while True:
            row = db.execute(
                "SELECT pid FROM pg_stat_activity WHERE wait_event = 'advisory' AND query LIKE %s",
                (f"%{schema}%",),
            ).fetchone()
            if row is not None:
                return row[0]


def _alive(server, backend):
    with psycopg.connect(server) as db:
        query = "SELECT 1 FROM pg_stat_activity WHERE pid = %s"
        return db.execute(query, (backend,)).fetchone() is not None


def test_a_terminated_backend_is_replaced(url, schema, server):
    with Fence.open(url) as fence:
        fence.prepare("a", "t")
        with psycopg.connect(server, autocommit=True) as other:
            other.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                "WHERE application_name = 'fencekit' AND query LIKE %s",
                (f"%{schema}%",),
            )
        fence.prepare("b", "t")
        assert {s.key.intent for s in fence.intents()} == {"a", "b"}


def test_two_processes_worth_of_ledgers_admit_once(url):
    """Two connections race for each of fifty intents; each is admitted exactly once."""
    fences = [Fence.open(url) for _ in range(2)]
    admitted, barrier = [], threading.Barrier(2)

    def race(fence):
        for n in range(50):
            barrier.wait(30)
            try:
                if isinstance(fence.prepare(f"i{n}", "t", domain="d"), Fresh):
                    admitted.append(n)
            except Exception:
                continue

    threads = [threading.Thread(target=race, args=(f,)) for f in fences]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert sorted(admitted) == list(range(50))
    assert fences[0].current("d").seq == 0
    assert len(fences[0].current("d").open) == 50
    for fence in fences:
        fence.close()


def test_ten_open_at_once(url):
    barrier, errors = threading.Barrier(10), []

    def open_one():
        barrier.wait(30)
        try:
            open_ledger(url).close()
        except Exception as problem:
            errors.append(problem)

    threads = [threading.Thread(target=open_one) for _ in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert errors == []


def test_an_ordinary_role_with_rights_on_its_schema_only(schema, server):
    with psycopg.connect(server, autocommit=True) as admin:
        admin.execute(statements(schema))
        admin.execute(f"CREATE ROLE {schema} LOGIN")
        admin.execute(f"GRANT USAGE ON SCHEMA {schema} TO {schema}")
        for what in ("TABLES", "SEQUENCES"):
            admin.execute(f"GRANT ALL ON ALL {what} IN SCHEMA {schema} TO {schema}")
    as_role = server.replace("postgres:@", f"{schema}:@", 1)
    with Fence.open(f"{as_role}&schema={schema}") as fence:
        fence.commit(fence.prepare("a", "t").ticket)


def test_a_null_character_and_big_integers_survive(url):
    with Fence.open(url) as fence:
        ticket = fence.prepare("a", "t", {"n": 2**80, "s": "\u0000"}).ticket
        fence.commit(ticket, {"n": 2**80, "s": "\u0000"})
        replay = fence.prepare("a", "t", {"n": 2**80, "s": "\u0000"})
        assert replay.result == {"n": 2**80, "s": "\u0000"}
        assert replay.cert.verify()


def test_asking_creates_no_rows(url, schema, server):
    with Fence.open(url) as fence:
        fence.current("d")
        list(fence.intents())
        with psycopg.connect(server) as db:
            assert db.execute(f"SELECT count(*) FROM {schema}.records").fetchone() == (0,)


def test_a_dead_server_and_a_wrong_schema_are_told_without_the_password(server):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with pytest.raises(LedgerUnavailable, match="cannot be reached") as told:
        Fence.open(f"postgresql://me:s3cret@127.0.0.1:{port}/x")
    assert "s3cret" not in str(told.value)
    with pytest.raises(InvalidRequest, match="lower-case"):
        Fence.open(f"{server}&schema=Drop;Table")


def test_a_password_from_a_file_stands_in_no_environment(url, tmp_path, server):
    """A wrapped server inherits the environment: the ledger's password must not be there."""
    secret = tmp_path / "password"
    secret.write_text("s3cret\n", encoding="utf-8")
    before = dict(os.environ)
    with Fence.open(f"{url}&password_file={secret}") as fence:
        fence.prepare("a", "t")
        assert "s3cret" not in fence.ledger.url
        assert fence.ledger._store._password == "s3cret"
    assert dict(os.environ) == before
    with pytest.raises(InvalidRequest, match="cannot be read"):
        Fence.open(f"{url}&password_file={tmp_path / 'none'}")


def test_the_audit_waits_for_a_line_that_commits_late(url, schema, server):
    """Numbers are drawn before a commit: whoever follows is shown no line before an earlier one."""
    store = PostgresStore(server, schema)
    ledger = ConditionalLedger("postgresql://", store, "p" * 32)
    with Fence(calls=Calls(ledger, FenceConfig())) as fence, Fence.open(url) as other:
        follower = other.ledger.audit
        fence.prepare("first", "t")
        (db,) = store._pool.idle
        db.autocommit = False
        fence.prepare("late", "t")
        other.prepare("early", "t")
        seen = list(follower())
        assert [event["intent"] for _, event in seen] == ["first"]
        db.commit()
        db.autocommit = True
        seen += follower(seen[-1][0])
        assert [event["intent"] for _, event in seen] == ["first", "late", "early"]
        assert [number for number, _ in seen] == [1, 2, 3]
        db.autocommit = False
        fence.prepare("never", "t")
        other.prepare("last", "t")
        db.rollback()
        db.autocommit = True
        assert [(n, e["intent"]) for n, e in follower(3)] == [(5, "last")]


@pytest.mark.parametrize(
    ("kind", "type_", "values"),
    [
        (Int4s, "int[]", [0, -1, 2**31 - 1]),
        (Int8s, "bigint[]", [0, -1, 2**63 - 1]),
        (Booleans, "boolean[]", [True, False]),
        (Byteas, "bytea[]", [b"", b"\x00\xff,{}", None, b"x" * 70_000]),
        (Texts, "text[]", ["", 'é,{}"\\', "NULL"]),
        (Byteas, "bytea[]", []),
        (Int4s, "int[]", []),
    ],
)
def test_packed_arrays_arrive_as_they_are(kind, type_, values, server):
    with psycopg.connect(server) as db:
        register(db)
        packed = kind([v.encode() for v in values] if kind is Texts else values)
        assert db.execute(f"SELECT (%s)::{type_}", (packed,), binary=True).fetchone() == (values,)


@pytest.mark.parametrize("level", ["repeatable read", "serializable"])
def test_a_role_that_reads_from_before_the_locks_is_refused_at_once(server, schema, level):
    """In these levels a comparison would not see what was written while it waited."""
    with psycopg.connect(server, autocommit=True) as admin:
        admin.execute(f"CREATE ROLE {schema} LOGIN SUPERUSER")
        admin.execute(f"ALTER ROLE {schema} SET default_transaction_isolation = '{level}'")
    as_role = server.replace("postgres:@", f"{schema}:@", 1)
    began = time.monotonic()
    with Fence.open(f"{as_role}&schema={schema}") as fence:
        with pytest.raises(LedgerError, match="must be read committed") as told:
            fence.prepare("pay", "t")
        assert "\n" not in str(told.value)
        assert list(fence.ledger.records()) == []
    assert time.monotonic() - began < 5
