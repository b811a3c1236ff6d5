"""The shared ledgers: fencekit on PostgreSQL and Redis against once-kernel and the floor.

One run, the same servers, distinct keys, an effect that does nothing. The floor is one durable
round trip on the same server. `python benchmarks/ledgers.py [SECONDS]`
"""

from __future__ import annotations

import asyncio
import time

import psycopg
import redis

from benchmarks._load import ARGS, RESULT, one_caller, tasks, threads
from fencekit import AsyncFence, Fence
from tests.ledger import servers

rates: dict[str, float] = {}


def fencekit(kind: str, url: str) -> None:
    """Measure one ledger of ours."""
    with Fence.open(url) as fence:

        def pair(n: int) -> None:
            admission = fence.prepare(f"{n:x}-{time.perf_counter_ns()}", "charge", ARGS)
            fence.commit(admission.ticket, RESULT)  # type: ignore[union-attr] # a new intent

        rates[f"fencekit {kind}, 1 caller"] = one_caller(pair)
        rates[f"fencekit {kind}, 64 threads"] = threads(pair)
        fence.commit(fence.prepare("done", "charge", ARGS).ticket, RESULT)  # type: ignore[union-attr]
        replay = threads(lambda _n: fence.prepare("done", "charge", ARGS))
        rates[f"fencekit {kind}, replay, 64 threads"] = replay

    async def measure() -> None:
        async with AsyncFence.open(url) as aio:

            async def pair_async(n: int) -> None:
                admission = await aio.prepare(f"{n:x}+{time.perf_counter_ns()}", "charge", ARGS)
                await aio.commit(admission.ticket, RESULT)  # type: ignore[union-attr]

            rates[f"fencekit {kind}, 64 tasks"] = await tasks(pair_async)

    asyncio.run(measure())


def once(url: str) -> None:
    """Measure once-kernel's PostgresStore on the same server."""
    try:
        from once import Once
        from once.pg import PostgresStore
    except ImportError as missing:
        print(f"once-kernel is not measured: {missing}")
        return
    store = PostgresStore(url, max_size=16)
    kernel = Once(store)

    def pair(n: int) -> None:
        kernel.run(f"{n:x}-{time.perf_counter_ns()}", ARGS, lambda: RESULT)

    rates["once-kernel postgres, 1 caller"] = one_caller(pair)
    rates["once-kernel postgres, 64 threads"] = threads(pair)
    kernel.run("done", ARGS, lambda: RESULT)
    replay = threads(lambda _n: kernel.run("done", ARGS, lambda: RESULT))
    rates["once-kernel postgres, replay, 64 threads"] = replay
    store.close()


def floors(postgres: str, redis_url: str) -> None:
    """Measure one durable round trip on each server."""
    with psycopg.connect(postgres, autocommit=True) as db:
        db.execute("CREATE TABLE IF NOT EXISTS floor (n bigint)")
        rates["floor postgres, 1 caller"] = one_caller(
            lambda n: db.execute("INSERT INTO floor VALUES (%s)", (n,))
        )
    client = redis.Redis.from_url(redis_url)
    rates["floor redis, 1 caller"] = one_caller(lambda n: client.rpush("floor", n))
    client.close()


TARGETS = [
    ("fencekit postgres, 64 tasks", "once-kernel postgres, 64 threads", 5),
    ("fencekit postgres, 64 threads", "once-kernel postgres, 64 threads", 5),
    ("fencekit postgres, 1 caller", "once-kernel postgres, 1 caller", 1.5),
    (
        "fencekit postgres, replay, 64 threads",
        "once-kernel postgres, replay, 64 threads",
        5,
    ),
    ("fencekit postgres, 1 caller", "floor postgres, 1 caller", 0),
    ("fencekit redis, 1 caller", "floor redis, 1 caller", 0),
]


def main() -> None:
    """Measure everything and print rates and ratios."""
    postgres, redis_url = servers.postgres(), servers.redis()
    floors(postgres, redis_url)
    fencekit("postgres", f"{postgres}&schema=bench")
    fencekit("redis", f"{redis_url}?namespace=bench")
    once(postgres)
    for label, rate in rates.items():
        print(f"{label:<46} {rate:10.0f} /s")
    print("ratios")
    for ours, theirs, target in TARGETS:
        if theirs in rates:
            ratio = rates[ours] / rates[theirs]
            wanted = f"target {target:g}" if target else "no target"
            below = "   BELOW" if ratio < target else ""
            print(f"  {ours:<38} / {theirs:<42} {ratio:6.2f}   {wanted}{below}")


if __name__ == "__main__":
    main()
