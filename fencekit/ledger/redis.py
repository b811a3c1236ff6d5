"""`redis://…`, `rediss://…`: many machines share one fence through a Redis that keeps what it says.

One small script compares versions and writes opaque bytes; it knows no rules. All keys of a ledger
carry one hash tag, so they live in one cluster slot. Nothing ever gets an expiry of Redis's own. A
server that could lose an acknowledged write is refused, at open and at every reconnect, unless the
URL says `?durability=weak`.
"""

from __future__ import annotations

import contextlib
import secrets
import threading
from collections.abc import Iterator, Sequence
from typing import Any
from urllib.parse import urlsplit

import orjson
import redis
from redis.backoff import NoBackoff
from redis.exceptions import NoPermissionError
from redis.retry import Retry

from fencekit.core.errors import InvalidRequest, LedgerError, LedgerFull, LedgerUnavailable
from fencekit.ledger.base import AUDIT_KEPT, AUDIT_ROWS, Description
from fencekit.ledger.conditional import ConditionalLedger
from fencekit.ledger.due import old_among
from fencekit.ledger.groups import Group, Stored, Written, common_to, written
from fencekit.ledger.password import read_password
from fencekit.ledger.redis_durability import weaknesses_of
from fencekit.ledger.redis_format import Layout
from fencekit.ledger.server_url import joined, parameters, without_secrets

DEFAULT_PORT = 6379
TIMEOUT = 5.0
"""For how long, in seconds, a connection or an answer is waited for."""
WAIT_MS = 1_000

# KEYS: records, versions, index, due, audit, last version. ARGV: the clock by which the decisions
# were made (0: read here), what is compared once for all groups, then the groups, each counted.
# Returns the clock, which groups failed, and after -1 the versions given, one for each value, 0
# where nothing was written.
_SCRIPT = """
local at = 1
local function nextarg() at = at + 1; return ARGV[at] end
local time = redis.call('TIME')
local ms = time[1] * 1000 + math.floor(time[2] / 1000)
local stale = ARGV[1] ~= '0' and math.abs(ms - ARGV[1]) > 500
for _ = 1, tonumber(nextarg()) do
  local key, version = nextarg(), nextarg()
  if (redis.call('HGET', KEYS[2], key) or '0') ~= version then stale = true end
end
local failed, given = {ms}, {}
for group = 0, tonumber(nextarg()) - 1 do
  local ok = not stale
  for _ = 1, tonumber(nextarg()) do
    local key, version = nextarg(), nextarg()
    if (redis.call('HGET', KEYS[2], key) or '0') ~= version then ok = false end
  end
  for _ = 1, tonumber(nextarg()) do
    local key, due, kept, value = nextarg(), nextarg(), nextarg(), nextarg()
    local version = 0
    if ok and kept == '1' then
      version = redis.call('INCR', KEYS[6])
      redis.call('HSET', KEYS[1], key, value)
      redis.call('HSET', KEYS[2], key, version)
      redis.call('ZADD', KEYS[3], 0, key)
      if due == '0' then redis.call('ZREM', KEYS[4], key)
      else redis.call('ZADD', KEYS[4], due, key) end
    elseif ok then
      redis.call('HDEL', KEYS[1], key)
      redis.call('HDEL', KEYS[2], key)
      redis.call('ZREM', KEYS[3], key)
      redis.call('ZREM', KEYS[4], key)
    end
    given[#given + 1] = version
  end
  for _ = 1, tonumber(nextarg()) do
    local line = nextarg()
    if ok then redis.call('RPUSH', KEYS[5], line) end
  end
  if not ok then failed[#failed + 1] = group end
end
failed[#failed + 1] = -1
for i = 1, #given do failed[#failed + 1] = given[i] end
return failed
"""


class RedisStore:
    """Opaque values in hashes of one namespace; `limit` bounds each exchange, in seconds.

    `later` leaves connecting to the first use.
    """

    def __init__(
        self,
        url: str,
        namespace: str = "fencekit",
        *,
        weak: bool = False,
        wait: int = 0,
        limit: float = TIMEOUT,
        later: bool = False,
    ) -> None:
        if not namespace or any(c in namespace for c in "{}\0\n"):
            raise InvalidRequest(f"namespace {namespace!r} must not be empty or hold braces")
        self._url = url
        self._place = _place(url)
        self._weak = weak
        self._wait = wait
        self._limit = limit
        self._lock = threading.Lock()
        self._db: redis.Redis | None = None
        self._layout = Layout(namespace)
        self._keys = self._layout.keys
        self._namespace = namespace
        if not later:
            with self._connected():
                pass

    @contextlib.contextmanager
    def _connected(self) -> Iterator[redis.Redis]:
        with self._lock:
            try:
                if self._db is None:
                    self._db = self._connect()
                yield self._db
            except redis.RedisError as problem:
                if isinstance(problem, redis.ConnectionError | redis.TimeoutError):
                    with contextlib.suppress(redis.RedisError):
                        if self._db is not None:
                            self._db.close()
                    self._db = None
                raise _in_words(self._place, problem) from None

    def is_made(self) -> bool:
        """Whether the namespace is there; makes nothing."""
        try:
            with contextlib.closing(self._client()) as db:
                return self._layout.is_made(db)
        except redis.RedisError as problem:
            raise _in_words(self._place, problem) from None

    def _client(self) -> redis.Redis:
        return redis.Redis.from_url(
            self._url,
            socket_timeout=self._limit,
            socket_connect_timeout=self._limit,
            # The ledger asks again itself, and knows why that is harmless.
            retry=Retry(NoBackoff(), 0),
            single_connection_client=True,
        )

    def _connect(self) -> redis.Redis:
        db = self._client()
        weaknesses = weaknesses_of(db)
        if weaknesses and not self._weak:
            raise LedgerUnavailable(
                f"the Redis at {self._place} may lose what it acknowledged "
                f"({'; '.join(weaknesses)}): set appendonly yes and appendfsync always, or accept "
                "that with ?durability=weak"
            )
        self._layout.check(db, self._place)
        self._script = db.register_script(_SCRIPT)
        return db

    def read(self, keys: Sequence[bytes]) -> tuple[dict[bytes, Stored], int]:
        """Return what stands under each key, all of one moment, and the server's clock.

        With `?wait=N`, N replicas have what was read: another process may have written it, or this
        one over a connection that is lost.
        """
        with self._connected() as db:
            found, ms = self._look(db, keys, noting=bool(keys and self._wait))
            if keys and self._wait:
                self._confirm(db)
        return found, ms

    def _look(
        self, db: redis.Redis, keys: Sequence[bytes], *, noting: bool = False
    ) -> tuple[dict[bytes, Stored], int]:
        """Read some keys; `noting` leaves a write behind, by which WAIT covers all before it."""
        pipe = db.pipeline(transaction=True)
        pipe.time()
        if keys:
            pipe.hmget(self._layout.records, list(keys))
            pipe.hmget(self._layout.versions, list(keys))
        if noting:
            pipe.set(self._layout.noted, 1)
        answers = pipe.execute()
        seconds, micros = answers[0]
        found = {}
        if keys:
            for key, value, version in zip(keys, answers[1], answers[2], strict=True):
                if version is not None:
                    found[key] = Stored(int(version), value)
        return found, seconds * 1000 + micros // 1000

    def compare_and_write(self, groups: Sequence[Group], now_ms: int = 0) -> Written:
        """Compare and write in one script; see `Store.compare_and_write`."""
        with self._connected() as db:
            answer = self._script(keys=self._keys, args=_arguments(groups, now_ms), client=db)
            if self._wait:
                self._confirm(db)
        ms, *rest = map(int, answer)
        end = rest.index(-1)
        return written(groups, rest[:end], rest[end + 1 :], ms)

    def _confirm(self, db: redis.Redis) -> None:
        """Wait until enough replicas have what was written up to this connection's last write."""
        have = db.wait(self._wait, WAIT_MS)
        if have < self._wait:
            raise LedgerUnavailable(
                f"only {have} of {self._wait} replicas of {self._place} have what was written: "
                "nothing is answered before they do; check the replicas"
            )

    def scan(self, prefix: bytes, after: bytes, limit: int) -> list[tuple[bytes, Stored]]:
        """Return values in the order of their keys."""
        end = prefix[:-1] + bytes([prefix[-1] + 1])
        with self._connected() as db:
            keys = db.zrangebylex(self._layout.index, b"(" + after, b"(" + end, 0, limit)
        return self._values(keys)

    def due(self, since_ms: int, until_ms: int, limit: int) -> list[tuple[bytes, Stored]]:
        """Return values that sweep may look at, in the order of when it may."""
        with self._connected() as db:
            keys = db.zrangebyscore(self._layout.due, since_ms, until_ms, 0, limit)
        return self._values(keys)

    def unfinished(self, after: bytes, limit: int) -> tuple[list[tuple[bytes, Stored]], bytes]:
        """Return the intents without an outcome among the next ones: sweep never looks at them."""
        with self._connected() as db:
            keys: Any = db.zrangebylex(self._layout.index, b"(" + after, b"(j", 0, limit)
            due: Any = db.zmscore(self._layout.due, keys) if keys else ()
        open_still = [key for key, at in zip(keys, due, strict=True) if at is None]
        rows: list[tuple[bytes, Stored]] = []
        for start in range(0, len(open_still), 500):
            rows += self._values(open_still[start : start + 500])
        return rows, bytes(keys[-1]) if len(keys) == limit else b""

    def _values(self, keys: Any) -> list[tuple[bytes, Stored]]:
        wanted = [bytes(key) for key in keys]
        if not wanted:
            return []
        with self._connected() as db:
            found, _ = self._look(db, wanted)
        return [(key, found[key]) for key in wanted if key in found]

    def audit(self, after: int, limit: int) -> list[tuple[int, bytes]]:
        """Return audit lines with their numbers."""
        with self._connected() as db:
            return self._layout.audit_lines(db, after, limit)[0]

    def sweep_audit(self, before_ms: int, after: int) -> tuple[int, int]:
        """Delete some old audit lines; see `Store.sweep_audit`."""
        with self._connected() as db:
            lines, newest = self._layout.audit_lines(db, after, AUDIT_ROWS)
            early = (line for number, line in lines if number <= newest - AUDIT_KEPT)
            old = old_among(map(orjson.loads, early), before_ms)
            if not old:
                return 0, after
            return self._layout.drop_audit(db, lines[0][0], old), lines[old - 1][0]

    def counters(self) -> list[bytes]:
        """Return the counters that processes saved."""
        with self._connected() as db:
            saved: Any = db.hvals(self._layout.counters)
        return list(saved)

    def save_counters(self, process: str, counts: bytes) -> None:
        """Replace the counters of one process."""
        with self._connected() as db:
            db.hset(self._layout.counters, process, counts)

    def describe(self) -> Description:
        """Say where this is and what its answers rest on."""
        with self._connected() as db:
            info: Any = db.info("server")
            weaknesses = weaknesses_of(db)
        durability = "synced by the server before every answer"
        if weaknesses:
            durability = f"WEAK: {'; '.join(weaknesses)}"
        replicas = f"; waits for {self._wait} replicas" if self._wait else ""
        details = {
            "server": f"Redis {info.get('redis_version', '?')}",
            "namespace": self._namespace,
        }
        return Description("redis", self._place, durability + replicas, details)

    def sibling(self) -> RedisStore:
        """Return another connection to the same namespace."""
        return RedisStore(
            self._url,
            self._namespace,
            weak=self._weak,
            wait=self._wait,
            limit=self._limit,
            later=True,
        )

    def close(self) -> None:
        """Close the connection."""
        with self._lock:
            if self._db is not None:
                self._db.close()
                self._db = None


def _arguments(groups: Sequence[Group], now_ms: int) -> list[bytes | str | int]:
    common = common_to(groups)
    args: list[bytes | str | int] = [now_ms, len(common)]
    for key, version in common.items():
        args += (key, version)
    args.append(len(groups))
    for group in groups:
        own = {key: version for key, version in group.expected.items() if key not in common}
        args.append(len(own))
        for key, version in own.items():
            args += (key, version)
        args.append(len(group.values))
        for key, value in group.values.items():
            args += (key, group.due.get(key, 0), 0 if value is None else 1, value or b"")
        args.append(len(group.audit))
        args += group.audit
    return args


def _place(url: str) -> str:
    """Return where a server is, without its password."""
    parts = urlsplit(url)
    return f"{parts.hostname or 'localhost'}:{parts.port or DEFAULT_PORT}{parts.path}"


def _in_words(place: str, problem: redis.RedisError) -> LedgerError:
    first = (str(problem).splitlines() or [type(problem).__name__])[0][:200]
    if isinstance(problem, redis.OutOfMemoryError):
        return LedgerFull(
            f"the Redis at {place} has no memory left: nothing was admitted; free some or raise "
            "maxmemory"
        )
    if isinstance(problem, redis.AuthenticationError | NoPermissionError):
        return LedgerUnavailable(
            f"the Redis at {place} refuses this user ({first}): check the password and its rights"
        )
    return LedgerUnavailable(
        f"the Redis at {place} cannot be used ({first}): nothing was admitted; check the server "
        "and the URL, then try again"
    )


def open_url(url: str) -> ConditionalLedger:
    """Open the ledger of a Redis URL.

    `?namespace=NAME`, `?durability=weak`, `?wait=N` (replicas that must have a write before it is
    answered), `?password_file=PATH`.
    """
    return ConditionalLedger(without_secrets(url), _store(url), secrets.token_hex(16))


def is_made(url: str) -> bool:
    """Whether the namespace of a URL is there; makes nothing.

    Raises `LedgerError` if none can tell.
    """
    with contextlib.closing(_store(url, later=True)) as store:
        return store.is_made()


def addresses(url: str) -> list[tuple[str, int]]:
    """Return the host and port of a URL."""
    parts = urlsplit(url)
    return [(parts.hostname or "localhost", parts.port or DEFAULT_PORT)]


def _store(url: str, *, later: bool = False) -> RedisStore:
    parts = urlsplit(url)
    query = parameters(parts)
    namespace = query.pop("namespace", "fencekit")
    durability = query.pop("durability", "strong")
    wait = query.pop("wait", "0")
    if durability not in ("strong", "weak") or not wait.isdecimal():
        raise InvalidRequest("redis: takes ?durability=weak and ?wait=NUMBER of replicas")
    netloc = parts.netloc
    password = read_password(query.pop("password_file", None))
    if password is not None:
        netloc = f"{parts.username or ''}:{password}@{netloc.rpartition('@')[2]}"
    plain = joined(parts._replace(netloc=netloc), query)
    weak = durability == "weak"
    return RedisStore(plain, namespace, weak=weak, wait=int(wait), later=later)
