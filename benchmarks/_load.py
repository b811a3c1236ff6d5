"""Load for the benchmarks of the fence: calls per second of one caller, of threads, and of tasks.

Each takes a function of a number that is never the same twice, and runs it for `SECONDS` (the first
argument of the benchmark, else two).
"""

from __future__ import annotations

import asyncio
import sys
import threading
import time
from collections.abc import Awaitable, Callable

SECONDS = float(sys.argv[1]) if len(sys.argv) > 1 else 2.0
CALLERS = 64
ARGS = {"order": "o-1234567", "amount": 4200, "currency": "EUR", "note": "x" * 60}
RESULT = {"charge": "ch_0123456789", "status": "succeeded"}


def one_caller(call: Callable[[int], object]) -> float:
    """Return how often one thread can call, per second."""
    started, n = time.perf_counter(), 0
    while time.perf_counter() - started < SECONDS:
        call(n)
        n += 1
    return n / (time.perf_counter() - started)


def threads(call: Callable[[int], object]) -> float:
    """Return how often 64 threads can call together, per second."""
    done, barrier = [0] * CALLERS, threading.Barrier(CALLERS + 1)
    stop = threading.Event()

    def work(i: int) -> None:
        barrier.wait()
        while not stop.is_set():
            call(i * 10_000_000 + done[i])
            done[i] += 1

    workers = [threading.Thread(target=work, args=(i,)) for i in range(CALLERS)]
    for worker in workers:
        worker.start()
    barrier.wait()
    started = time.perf_counter()
    stop.wait(SECONDS)
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
