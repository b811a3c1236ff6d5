"""The shared ledgers: fencekit on PostgreSQL and Redis against once-kernel and the floor.

One run, the same servers, distinct keys, an effect that does nothing. The floor is one durable
round trip on the same server. `python benchmarks/ledgers.py [SECONDS]`
"""

from __future__ import annotations

import asyncio
import sys
import threading
import time
from collections.abc import Awaitable, Callable

import psycopg
import redis

from fencekit import AsyncFence, Fence
from tests.ledger import servers

SECONDS = float(sys.argv[1]) if len(sys.argv) > 1 else 2.0
CALLERS = 64
ARGS = {"order": "o-1234567", "amount": 4200, "currency": "EUR", "note": "x" * 60}
RESULT = {"charge": "ch_0123456789", "status": "succeeded"}

rates: dict[str, float] = {}


def one_caller(call: Callable[[int], object]) -> float:
    """Return how often one thread can call, per second."""
    started, n = time.perf_counter(), 0
    while time.perf_counter() - started < SECONDS:
        call(n)
        n += 1
    return n / (time.perf_counter() - started)


def threads(call: Callable[[int], object]) -> float:
    """Return how often 64 threads can call together, per second."""
    done, stop = [0] * CALLERS, threading.Event()

    def work(i: int) -> None:
        while not stop.is_set():
            call(i * 10_000_000 + done[i])
            done[i] += 1

    workers = [threading.Thread(target=work, args=(i,)) for i in range(CALLERS)]
    started = time.perf_counter()
    for worker in workers:
        worker.start()
    time.sleep(SECONDS)
    stop.set()
    for worker in workers:
        worker.join()
    return sum(done) / (time.perf_counter() - started)


async def tasks(call: Callable[[int], Awaitable[object]]) -> float:
    """Return how often 64 tasks of one loop can call together, per second."""
    started = time.perf_counter()

    async def work(i: int) -> int:
        n = 0
        while time.perf_counter() - started < SECONDS:
            await call(i * 10_000_000 + n)
            n += 1
        return n

    return sum(await asyncio.gather(*map(work, range(CALLERS)))) / (time.perf_counter() - started)


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
