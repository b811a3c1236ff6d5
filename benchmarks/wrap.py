"""What the proxy costs: latency, throughput, start, memory; against no proxy and against others.

`python -m benchmarks.wrap [--calls N] [--long N]`. The server is a hand-written echo, so that the
proxy is what is measured; every fenced call is a first execution, durable on a SQLite ledger on
this disk before it is sent and before it is answered. `--long` makes so many calls through one
proxy and prints its memory on the way. The other proxies, which record nothing, are measured where
they are found (see `_proxies`).
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from benchmarks._proxies import OTHERS, WANTED, Skipped
from fencekit.core.messages import Commit, Prepare
from fencekit.core.request import EffectRequest
from fencekit.core.result import Result
from fencekit.ledger.open import open_ledger

ECHO = r"""
import sys, json
out = sys.stdout.buffer
TOOLS = [{"name": "append_it", "inputSchema": {"type": "object"}},
         {"name": "read_it", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": True}}]
for line in sys.stdin.buffer:
    m = json.loads(line)
    if "id" not in m:
        continue
    if m["method"] == "tools/call":
        r = {"content": [{"type": "text", "text": "ok"}]}
    elif m["method"] == "tools/list":
        r = {"tools": TOOLS}
    elif m["method"] == "initialize":
        r = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "e", "version": "1"}}
    else:
        r = {}
    out.write(json.dumps({"jsonrpc": "2.0", "id": m["id"], "result": r}).encode() + b"\n")
    out.flush()
"""  # noqa: E501 - a server in a string

HELD = r"""
import sys, json
for line in sys.stdin:
    m = json.loads(line)
    if "id" not in m:
        continue
    if m["method"] == "tools/call":
        open(sys.argv[1]).close()
    r = {"tools": [{"name": "append_it"}], "content": [{"type": "text", "text": "ok"}]}
    print(json.dumps({"jsonrpc": "2.0", "id": m["id"], "result": r}), flush=True)
"""


@dataclass
class Measured:
    """Seconds to the first list, milliseconds of one call at a time, calls a second at 64."""

    start: float
    median_ms: float
    rate_64: float
    rss_mib: float


class Connection:
    """A bare pipelining client."""

    def __init__(self, command: list[str]) -> None:
        self.began = time.perf_counter()
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self._in, self._out = self.process.stdin, self.process.stdout
        self._number = 0

    def send(self, method: str, params: dict[str, Any]) -> int:
        """Write a request; returns its id."""
        self._number += 1
        message = {"jsonrpc": "2.0", "id": self._number, "method": method, "params": params}
        self._in.write(json.dumps(message).encode() + b"\n")
        self._in.flush()
        return self._number

    def read(self) -> Any:
        """Return the next answer, whatever is told in between."""
        while True:
            line = self._out.readline()
            if not line:
                raise RuntimeError("the connection closed")
            message = json.loads(line)
            if "method" not in message:
                return message

    def open(self) -> float:
        """Initialize and list; returns the seconds since the start."""
        client = {"name": "bench", "version": "1"}
        self.send(
            "initialize",
            {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client},
        )
        self.read()
        self._in.write(b'{"jsonrpc":"2.0","method":"notifications/initialized"}\n')
        self.send("tools/list", {})
        self.read()
        return time.perf_counter() - self.began

    def call(self, tool: str, number: int) -> None:
        """Call a tool without waiting."""
        self.send("tools/call", {"name": tool, "arguments": {"n": number}})

    def answered_at(self) -> float:
        """Read the next answer and return when it was here."""
        self.read()
        return time.perf_counter()

    def close(self) -> None:
        """End the process."""
        self._in.close()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self._out.close()


def measure(command: list[str], tool: str, calls: int, first: int = 0) -> Measured:
    """Measure one connection; no call is equal to one with a number below `first`."""
    connection = Connection(command)
    start = connection.open()
    times = []
    for number in range(first, first + calls):
        began = time.perf_counter()
        connection.call(tool, number)
        answer = connection.read()
        times.append(time.perf_counter() - began)
        if "error" in answer or answer["result"].get("isError"):
            raise RuntimeError(f"a call failed: {answer}")
    rate = _concurrent(connection, tool, first + calls, calls * 4)
    rss = psutil.Process(connection.process.pid).memory_info().rss / 2**20
    connection.close()
    return Measured(start, statistics.median(times) * 1000, rate, rss)


def _concurrent(connection: Connection, tool: str, first: int, total: int) -> float:
    """Keep 64 calls in flight; returns calls a second."""
    window = threading.Semaphore(64)
    began = time.perf_counter()

    def write() -> None:
        for number in range(first, first + total):
            window.acquire()
            connection.call(tool, number)

    writer = threading.Thread(target=write)
    writer.start()
    for _ in range(total):
        connection.read()
        window.release()
    writer.join()
    return total / (time.perf_counter() - began)


def durable_commit_ms(folder: Path, calls: int) -> float:
    """Measure what one durable command of the same ledger takes, alone, in milliseconds."""
    ledger = open_ledger(f"sqlite:{folder}/commits.db")
    times = []
    for number in range(calls):
        request = EffectRequest.make(f"bench-{number}", "append_it", {"n": number})
        now = ledger.now().wall_ms
        began = time.perf_counter()
        fresh: Any = ledger.call(Prepare(f"t{number}", now, request, ledger.holder, 60_000))
        result = Result.of({"content": []}, 1000)
        ledger.call(Commit.make(f"c{number}", now, fresh.ticket, result, 86_400_000))
        times.append((time.perf_counter() - began) / 2)
    ledger.close()
    return statistics.median(times) * 1000


def seen_elsewhere_ms(server: list[str], wrap: list[str], folder: Path) -> float:
    """Measure when a waiter in another process hears an outcome, after the first caller has."""
    gate = folder / "gate"
    os.mkfifo(gate)
    held = [*wrap, server[0], "-c", HELD, str(gate)]
    first, second = Connection(held), Connection(held)
    for connection in (first, second):
        connection.open()
        connection.call("append_it", -1)
    time.sleep(1.0)  # both are in the ledger, and the second looks at its longest pauses
    gate.write_bytes(b"")  # opens only when the one server that got the call waits at it
    with ThreadPoolExecutor(2) as pool:
        first_at, second_at = pool.map(Connection.answered_at, (first, second))
    first.close()
    second.close()
    return abs(second_at - first_at) * 1000


def long_run(command: list[str], total: int) -> None:
    """Make many fenced calls through one proxy and print its memory on the way."""
    connection = Connection(command)
    connection.open()
    process = psutil.Process(connection.process.pid)
    sizes, done = [], 0
    for _ in range(10):
        rate = _concurrent(connection, "append_it", done, total // 10)
        done += total // 10
        sizes.append(process.memory_info().rss / 2**20)
        print(f"  {done:>9,} calls   {rate:8.0f}/s   {sizes[-1]:5.1f} MiB")
    connection.close()
    print(
        f"resident after {done:,} calls: {sizes[-1]:.1f} MiB (target 40); "
        f"since the first tenth {sizes[-1] - sizes[0]:+.1f} MiB"
    )


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--calls", type=int, default=500)
    parser.add_argument("--long", type=int, default=0, metavar="N")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        script = folder / "echo.py"
        script.write_text(ECHO)
        server = [sys.executable, "-S", str(script)]
        run = "from fencekit.cli.main import main; main()"
        ledger = f"sqlite:{folder}/ledger.db"
        wrap = [sys.executable, "-c", run, "wrap", "--ledger", ledger, "--scope", "bench", "--"]
        if given.long:
            long_run([*wrap, *server], given.long)
            return
        fenced = _report(server, [*wrap, *server], folder, given.calls)
        seen = seen_elsewhere_ms(server, wrap, folder)
        print(f"an outcome is seen in another process after {seen:.0f} ms (target 300)")
        _against(server, [*wrap, *server], folder, given.calls, fenced)


def _row(label: str, m: Measured) -> None:
    print(
        f"{label:<24} start {m.start:6.3f} s   median {m.median_ms:7.3f} ms   "
        f"64 in flight {m.rate_64:8.0f}/s   {m.rss_mib:5.1f} MiB"
    )


def _report(server: list[str], wrapped: list[str], folder: Path, calls: int) -> Measured:
    commit = durable_commit_ms(folder, min(calls, 300))
    direct = measure(server, "append_it", calls)
    fenced = measure(wrapped, "append_it", calls)
    passing = measure(wrapped, "read_it", calls)
    _row("direct", direct)
    _row("wrap, passing", passing)
    _row("wrap, fenced, durable", fenced)
    print(f"one durable commit alone: {commit:.3f} ms")
    print(f"passing adds {passing.median_ms - direct.median_ms:+.3f} ms (target 0.15)")
    over = fenced.median_ms - direct.median_ms
    print(f"fenced adds {over:+.3f} ms (target {2 * commit + 0.5:.3f}: two commits and 0.5)")
    print(f"start adds {fenced.start - direct.start:+.3f} s (target 0.3)")
    return fenced


def _against(
    server: list[str], wrapped: list[str], folder: Path, calls: int, fenced: Measured
) -> None:
    """Measure the other proxies, and the fenced one again beside each."""
    first = calls * 5
    for label, start in OTHERS.items():
        try:
            with start(server, folder) as command:
                other = measure(command, "append_it", calls)
        except Skipped as why:
            print(f"{label}: skipped ({why})")
            continue
        except RuntimeError as problem:
            print(f"{label}: not measured ({problem})")
            continue
        _row(label, other)
        again = measure(wrapped, "append_it", calls, first=first)
        first += calls * 5
        rate = max(fenced.rate_64, again.rate_64)
        wanted = f" (target {WANTED[label]:g})" if label in WANTED else ""
        print(f"64 in flight, fenced against {label}: {rate / other.rate_64:.2f} times{wanted}")


if __name__ == "__main__":
    main()
