"""The shared ledgers: fencekit on PostgreSQL and Redis against two others and the floor.

One run, the same servers, distinct keys, an effect that does nothing. The floor is one durable
round trip on the same connection. The others are once-kernel's PostgresStore and, on Redis, the
IdempotencyGuard of the PyPI package `fencekit`, which needs an environment of its own:

    python -m venv /tmp/guard && /tmp/guard/bin/pip install fencekit==0.6.1 redis
    python benchmarks/ledgers.py 3 --guard /tmp/guard/bin/python

`python benchmarks/ledgers.py [SECONDS [--guard PYTHON]]`. Everything is measured twice in turn, and
the better of the two counts, for other programs run on the same machine.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import psycopg
import redis

from benchmarks._load import ARGS, RESULT, SECONDS, one_caller, tasks, threads
from fencekit import AsyncFence, Fence
from tests.ledger import servers

ROUNDS = 2

rates: dict[str, float] = {}


def best(label: str, rate: float) -> None:
    """Keep the better rate."""
    rates[label] = max(rate, rates.get(label, 0.0))


def fencekit(kind: str, url: str) -> None:
    """Measure one ledger of ours."""
    with Fence.open(url) as fence:

        def pair(n: int) -> None:
            admission = fence.prepare(f"{n:x}-{time.perf_counter_ns()}", "charge", ARGS)
            fence.commit(admission.ticket, RESULT)  # type: ignore[union-attr] # a new intent

        best(f"fencekit {kind}, 1 caller", one_caller(pair))
        best(f"fencekit {kind}, 64 threads", threads(pair))
        done = f"done-{time.perf_counter_ns()}"
        fence.commit(fence.prepare(done, "charge", ARGS).ticket, RESULT)  # type: ignore[union-attr]
        replay = threads(lambda _n: fence.prepare(done, "charge", ARGS))
        best(f"fencekit {kind}, replay, 64 threads", replay)

    async def measure() -> None:
        async with AsyncFence.open(url) as aio:

            async def pair_async(n: int) -> None:
                admission = await aio.prepare(f"{n:x}+{time.perf_counter_ns()}", "charge", ARGS)
                await aio.commit(admission.ticket, RESULT)  # type: ignore[union-attr]

            best(f"fencekit {kind}, 64 tasks", await tasks(pair_async))

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

    best("once-kernel postgres, 1 caller", one_caller(pair))
    best("once-kernel postgres, 64 threads", threads(pair))
    kernel.run("done", ARGS, lambda: RESULT)
    replay = threads(lambda _n: kernel.run("done", ARGS, lambda: RESULT))
    best("once-kernel postgres, replay, 64 threads", replay)
    store.close()


def guard(url: str, python: str | None) -> None:
    """Measure the other package of our name, in its own environment."""
    if python is None:
        print("the PyPI package fencekit is NOT measured: say --guard PYTHON", file=sys.stderr)
        return
    program = Path(__file__).with_name("_idempotency_guard.py")
    done = subprocess.run(
        [python, program, str(SECONDS), url],
        check=True,
        stdout=subprocess.PIPE,
        text=True,
        # This project must not be found instead of the other.
        env={name: value for name, value in os.environ.items() if name != "PYTHONPATH"},
    )
    for label, rate in json.loads(done.stdout).items():
        best(label, rate)


def floors(postgres: str, redis_url: str) -> None:
    """Measure one durable round trip on each server."""
    with psycopg.connect(postgres, autocommit=True) as db:
        db.execute("CREATE TABLE IF NOT EXISTS floor (n bigint)")
        insert = one_caller(lambda n: db.execute("INSERT INTO floor VALUES (%s)", (n,)))
        best("floor postgres, 1 caller", insert)
    client = redis.Redis.from_url(redis_url)
    best("floor redis, 1 caller", one_caller(lambda n: client.rpush("floor", n)))
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
    ("fencekit redis, 64 tasks", "PyPI fencekit redis, 64 threads", 3),
    ("fencekit redis, 64 threads", "PyPI fencekit redis, 64 threads", 3),
    ("fencekit redis, replay, 64 threads", "PyPI fencekit redis, replay, 64 threads", 5),
    ("fencekit redis, 1 caller", "PyPI fencekit redis, 1 caller", 0),
    ("fencekit postgres, 1 caller", "floor postgres, 1 caller", 0),
    ("fencekit redis, 1 caller", "floor redis, 1 caller", 0),
]


def main() -> None:
    """Measure everything and print rates and ratios."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("seconds", nargs="?", type=float, help="how long each is measured")
    parser.add_argument("--guard", metavar="PYTHON", help="has the PyPI package fencekit")
    asked = parser.parse_args()
    postgres, redis_url = servers.postgres(), servers.redis()
    for _ in range(ROUNDS):
        floors(postgres, redis_url)
        fencekit("postgres", f"{postgres}&schema=bench")
        once(postgres)
        fencekit("redis", f"{redis_url}?namespace=bench")
        guard(redis_url, asked.guard)
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
