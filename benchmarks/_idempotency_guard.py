"""The load of `ledgers.py` on the IdempotencyGuard of the PyPI package `fencekit`, a name-sake.

Run by the Python of a virtual environment that has that package and `redis`, for both projects use
one import name: `PYTHON benchmarks/_idempotency_guard.py SECONDS REDIS_URL`. Prints rates as JSON.
"""

from __future__ import annotations

import importlib
import json
import sys
import time
from datetime import timedelta
from typing import Any

import redis
from _load import RESULT, one_caller, threads  # type: ignore[import-not-found] # beside this file

TTL = timedelta(hours=24)


def main() -> None:
    """Measure first executions and replays."""
    client = redis.Redis.from_url(sys.argv[2])
    other: Any = importlib.import_module("fencekit")
    guard = other.IdempotencyGuard(client)

    def pair(n: int) -> None:
        key = f"{n:x}-{time.perf_counter_ns()}"
        assert guard.try_begin(key, ttl=TTL)
        guard.mark_done(key, result=RESULT, ttl=TTL)

    done = f"done-{time.perf_counter_ns()}"

    def replay(_n: int) -> None:
        assert not guard.try_begin(done, ttl=TTL)
        guard.get_result(done)

    guard.try_begin(done, ttl=TTL)
    guard.mark_done(done, result=RESULT, ttl=TTL)
    rates = {
        "PyPI fencekit redis, 1 caller": one_caller(pair),
        "PyPI fencekit redis, 64 threads": threads(pair),
        "PyPI fencekit redis, replay, 64 threads": threads(replay),
    }
    print(json.dumps(rates))


if __name__ == "__main__":
    main()
