"""Redis: refused where it could forget, and never asked to know a rule."""

from __future__ import annotations

import functools
import time
from urllib.parse import urlsplit

import pytest
import redis

from fencekit import Fence, FenceConfig, IntentInFlight
from fencekit.core.errors import InvalidRequest, LedgerUnavailable
from fencekit.core.messages import Fresh
from fencekit.fence import Calls
from fencekit.ledger.conditional import ConditionalLedger
from fencekit.ledger.redis import RedisStore
from tests.ledger import servers


@pytest.fixture(params=["wheel", "debian"], scope="module")
def server(request):
    return servers.redis(kind=request.param)


@pytest.fixture
def namespace(tmp_path):
    return servers.name_for(tmp_path)


@pytest.fixture
def url(namespace, server):
    return f"{server}?namespace={namespace}"


class CuttingStore(RedisStore):
    """Loses the connection before, or right after, a write."""

    cuts = ()

    def compare_and_write(self, groups, *now):
        when, self.cuts = (self.cuts[0], self.cuts[1:]) if self.cuts else (None, ())
        if when == "before":
            raise LedgerUnavailable("cut before")
        failed = super().compare_and_write(groups, *now)
        if when == "after":
            raise LedgerUnavailable("cut after")
        return failed


@pytest.mark.parametrize("cuts", [("before",), ("after",), ("after", "before", "after")])
def test_a_cut_connection_gets_the_true_answer(cuts, namespace, server):
    store = CuttingStore(server, namespace)
    ledger = ConditionalLedger("redis://", store, "p" * 32)
    with Fence(calls=Calls(ledger, FenceConfig())) as fence:
        store.cuts = cuts
        admission = fence.prepare("pay", "t", domain="d")
        assert isinstance(admission, Fresh)
        store.cuts = cuts
        cert = fence.commit(admission.ticket, {"n": 2**80, "s": "\u0000", "e": []})
        replay = fence.prepare("pay", "t", domain="d")
        assert (replay.cert, replay.result) == (cert, {"n": 2**80, "s": "\u0000", "e": []})
        assert fence.current("d").seq == 1


def test_a_stopped_server_stops_admissions_in_bounded_time(namespace, server):
    """The command may have reached it: asked again with the same id, it is admitted once."""
    store = RedisStore(server, namespace, limit=0.2)
    ledger = ConditionalLedger("redis://", store, "p" * 32, deadline=0.5)
    with Fence(calls=Calls(ledger, FenceConfig())) as fence:
        fence.prepare("before", "t")
        with servers.stopped(servers.redis_pid(server)):
            began = time.monotonic()
            with pytest.raises(LedgerUnavailable, match="cannot be used"):
                fence.prepare("pay", "t", attempt="a" * 32)
            took = time.monotonic() - began
        assert took < 3
        assert isinstance(fence.prepare("pay", "t", attempt="a" * 32), Fresh)
        assert len(list(fence.ledger.audit())) == 2


def test_a_server_that_may_forget_is_refused_unless_accepted():
    lazy = servers.redis("everysec")
    with pytest.raises(LedgerUnavailable, match=r"appendfsync is everysec.*durability=weak"):
        Fence.open(lazy)
    with Fence.open(f"{lazy}?durability=weak") as fence:
        fence.prepare("a", "t")
        assert "WEAK" in fence.ledger.describe().durability


@pytest.mark.parametrize(
    ("setting", "value", "back"),
    [
        ("appendonly", "no", "yes"),
        ("no-appendfsync-on-rewrite", "yes", "no"),
        ("maxmemory-policy", "allkeys-lru", "noeviction"),
    ],
)
def test_each_weaker_setting_is_named(setting, value, back, url, server):
    admin = redis.Redis.from_url(server)
    admin.config_set(setting, value)
    try:
        with pytest.raises(LedgerUnavailable, match=f"{setting} is {value}"):
            Fence.open(url)
    finally:
        admin.config_set(setting, back)
        admin.close()


def test_a_setting_that_cannot_be_read_counts_as_weaker(url, namespace, server):
    admin = redis.Redis.from_url(server)
    admin.acl_setuser(
        namespace, enabled=True, passwords=["+pw"], keys=["*"], commands=["+@all", "-config"]
    )
    as_user = url.replace("redis://", f"redis://{namespace}:pw@")
    try:
        with pytest.raises(LedgerUnavailable, match="not readable") as told:
            Fence.open(as_user)
        assert ":pw@" not in str(told.value)
    finally:
        admin.acl_deluser(namespace)
        admin.close()


def test_the_settings_are_read_again_on_every_reconnect(url, server):
    admin = redis.Redis.from_url(server)
    fence = Fence.open(url)
    fence.prepare("a", "t")
    admin.config_set("appendfsync", "everysec")
    try:
        admin.client_kill_filter(_type="normal", skipme=True)
        fence.ledger._deadline = 0.05
        with pytest.raises(LedgerUnavailable, match="everysec"):
            fence.prepare("b", "t")
    finally:
        admin.config_set("appendfsync", "always")
        admin.close()
    fence.prepare("b", "t")
    fence.close()


def test_too_few_replicas_never_admit(url):
    """WAIT falls short: the answer is that the ledger is unavailable, also when asked again."""
    fence = Fence.open(f"{url}&wait=1")
    fence.ledger._deadline = 0.05
    for _ in range(2):
        with pytest.raises(LedgerUnavailable, match="0 of 1 replicas"):
            fence.prepare("a", "t", attempt="a" * 32)
    fence.close()


@pytest.fixture
def following(server, request):
    """A replica of the server, of the same version, and its process."""
    kind = request.node.callspec.params["server"]
    replica, primary = servers.redis.__wrapped__(kind=kind), urlsplit(server)
    db = redis.Redis.from_url(replica)
    db.replicaof("127.0.0.1", primary.port)
    for _ in range(1000):
        if db.info("replication")["master_link_status"] == "up":
            break
        time.sleep(0.01)
    yield servers.redis_pid(replica)
    db.replicaof("NO", "ONE")
    db.close()


def test_a_new_connection_does_not_forget_that_a_replica_owes(url, following):
    """WAIT counts what its own connection wrote: on a new one it would say yes at once."""
    ledgers = [Fence.open(f"{url}&wait=1") for _ in range(2)]
    for fence in ledgers:
        fence.ledger._deadline = 0.05
    prepare = functools.partial(ledgers[0].prepare, "a", "t", attempt="a" * 32)
    with servers.stopped(following):
        with pytest.raises(LedgerUnavailable, match="0 of 1 replicas"):
            prepare()
        ledgers[0].ledger._store.close()
        with pytest.raises(LedgerUnavailable, match="0 of 1 replicas"):
            prepare()
        # Nor is another process told what might be lost.
        with pytest.raises(LedgerUnavailable, match="0 of 1 replicas"):
            ledgers[1].prepare("a", "t")
    assert isinstance(prepare(), Fresh)
    with pytest.raises(IntentInFlight):
        ledgers[1].prepare("a", "t")
    for fence in ledgers:
        fence.close()


def test_nothing_expires_and_all_keys_share_a_slot(url, namespace, server):
    with Fence.open(url) as fence:
        fence.prepare("a", "t", domain="d")
        fence.commit(fence.prepare("b", "t").ticket)
    db = redis.Redis.from_url(server)
    keys = db.keys(f"*{namespace}*")
    assert keys
    assert {db.ttl(key) for key in keys} == {-1}
    assert all(key.startswith(f"{{{namespace}}}:".encode()) for key in keys)
    db.close()


def test_wrong_options_and_dead_servers_are_told(url):
    with pytest.raises(InvalidRequest, match="wait=NUMBER"):
        Fence.open(f"{url}&wait=many")
    with pytest.raises(LedgerUnavailable, match="cannot be used") as told:
        Fence.open(f"redis://:s3cret@127.0.0.1:{servers.free_port()}/0")
    assert "s3cret" not in str(told.value)
