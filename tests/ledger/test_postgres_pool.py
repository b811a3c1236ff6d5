"""The connections of one process: never more than the URL says, each waited for a bounded time."""

from __future__ import annotations

import contextlib
import os
import threading

import psycopg
import pytest

from fencekit import Fence, InvalidRequest
from fencekit.core.errors import LedgerUnavailable
from fencekit.core.state import IntentKey
from fencekit.ledger.open import open_ledger
from tests.ledger import servers
from tests.ledger.conformance import url_of

KEY = IntentKey("", "pay")


@pytest.fixture
def url(tmp_path):
    return url_of("postgresql", tmp_path)


@contextlib.contextmanager
def held(pool, many):
    """Keep that many connections of a pool in use."""
    with contextlib.ExitStack() as stack:
        for _ in range(many):
            stack.enter_context(pool.connection())
        yield


def side_of(ledger):
    return ledger._beside()._pool


@pytest.mark.parametrize("most", [2, 4])
def test_no_more_connections_than_the_url_says(url, most):
    """Many look at once: the server sees as many connections as are allowed, and no more."""
    ledger = open_ledger(f"{url}&pool={most}")
    pool, ready, seen = side_of(ledger), threading.Barrier(most - 1), set()

    def look():
        with pool.connection() as db:
            seen.add(db.info.backend_pid)
            ready.wait(30)

    assert ledger.peek(KEY) == 0
    for _ in range(2):
        looking = [threading.Thread(target=look) for _ in range(most - 1)]
        for thread in looking:
            thread.start()
        for thread in looking:
            thread.join(30)
    with ledger._store._pool.connection() as db:
        seen.add(db.info.backend_pid)
    assert len(seen) == most
    ledger.close()


@pytest.mark.parametrize("most", [1, 2, 3])
def test_who_finds_all_in_use_is_told_in_bounded_time(url, most):
    ledger = open_ledger(f"{url}&pool={most}")
    pool = side_of(ledger)
    assert pool.size == max(1, most - 1)
    pool.wait = 0.05
    with held(pool, pool.size), pytest.raises(LedgerUnavailable, match=r"were in use .*\?pool="):
        ledger.peek(KEY)
    assert ledger.peek(KEY) == 0
    ledger.close()


def test_who_looks_keeps_nobody_from_deciding(url):
    with Fence.open(url) as fence, held(side_of(fence.ledger), 1):
        fence.commit(fence.prepare("pay", "t").ticket)


def test_one_connection_is_enough(url):
    with Fence.open(f"{url}&pool=1") as fence:
        fence.commit(fence.prepare("pay", "t").ticket, 7)
        assert len(list(fence.intents())) == 1
        fence.sweep()
        assert fence.ledger._beside()._pool is fence.ledger._store._pool
    # Closed is closed.
    assert fence.ledger._store._pool.idle == []


def test_a_waiter_gets_the_connection_that_comes_free(url):
    ledger = open_ledger(url)
    pool, waiting, got = side_of(ledger), threading.Event(), []
    lend = pool._free.wait

    def wait(timeout):
        waiting.set()
        return lend(timeout)

    pool._free.wait = wait
    with held(pool, 1):
        looking = threading.Thread(target=lambda: got.append(ledger.peek(KEY)))
        looking.start()
        assert waiting.wait(30)
        assert not got
    looking.join(30)
    assert got == [0]
    ledger.close()


def test_a_connection_that_failed_is_not_lent_again(url):
    ledger = open_ledger(url)
    assert ledger.peek(KEY) == 0
    (first,) = side_of(ledger).idle
    with psycopg.connect(servers.postgres("wheel"), autocommit=True) as db:
        db.execute("SELECT pg_terminate_backend(%s)", (first.info.backend_pid,))
    with pytest.raises(LedgerUnavailable, match="cannot be reached"):
        ledger.peek(KEY)
    assert ledger.peek(KEY) == 0
    (second,) = side_of(ledger).idle
    assert second is not first
    ledger.close()


@pytest.mark.parametrize("most", [1, 2, 4])
def test_a_forked_child_has_connections_of_its_own(url, most):
    with Fence.open(f"{url}&pool={most}") as fence:
        fence.prepare("parent", "t")
        assert len(list(fence.intents())) == 1
        child = os.fork()
        if child == 0:
            status = 1
            with contextlib.suppress(BaseException):
                fence.commit(fence.prepare("child", "t").ticket, "c")
                pools = fence.ledger._store._pool, side_of(fence.ledger)
                inside = sum(pool.size for pool in dict.fromkeys(pools))
                status = 0 if len(list(fence.intents())) == 2 and inside == max(1, most) else 2
            os._exit(status)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        fence.commit(fence.prepare("after", "t").ticket)
        assert fence.prepare("child", "t").result == "c"


@pytest.mark.parametrize("most", ["0", "101", "many", "-1", ""])
def test_a_limit_that_is_none_is_refused(url, most):
    with pytest.raises(InvalidRequest, match="pool=NUMBER from 1 to 100"):
        open_ledger(f"{url}&pool={most}")
