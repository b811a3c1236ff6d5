"""How close together the probe releases its twins, and what it costs itself.

Prints, for 64 and 512 twins on one stdio connection and over HTTP with a connection each, the
spread between the first and the last request leaving, and the probe's own overhead: the time of a
volley against the time of the bare minimum, the same frames in one write to the same server
(stdio), or sent one by one on a warm connection (HTTP).
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from fencekit.probe import fire
from fencekit.wire.client import Client, Target
from fencekit.wire.frames import request_bytes

TWINS = (64, 512)
ROUNDS = 5
# Answers every request at once, so that what is measured is the client.
ECHO = """
import sys
for line in sys.stdin.buffer:
    if b'"id":' not in line: continue
    ident = line.split(b'"id":')[1].split(b",")[0].split(b"}")[0]
    body = b'{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{}}'
    if b'"initialize"' not in line: body = b'{"content":[]}'
    sys.stdout.buffer.write(b'{"jsonrpc":"2.0","id":' + ident + b',"result":' + body + b'}\\n')
    sys.stdout.buffer.flush()
"""
PARAMS = b'{"name":"echo","arguments":{}}'


def best(measure: Callable[[], float]) -> float:
    """Return the median of a few rounds, in milliseconds."""
    return statistics.median(measure() for _ in range(ROUNDS)) * 1000


def bare_stdio(count: int) -> float:
    """Return the seconds for `count` frames in one write and as many lines read back."""
    process = subprocess.Popen(
        [sys.executable, "-c", ECHO], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(request_bytes(0, "initialize", b"{}") + b"\n")
    process.stdin.flush()
    process.stdout.readline()
    frames = b"".join(request_bytes(n, "tools/call", PARAMS) + b"\n" for n in range(1, count + 1))
    began = time.monotonic()
    writer = threading.Thread(target=lambda: (process.stdin.write(frames), process.stdin.flush()))  # type: ignore[union-attr]
    writer.start()
    for _ in range(count):
        process.stdout.readline()
    took = time.monotonic() - began
    writer.join()
    process.stdin.close()
    process.wait()
    process.stdout.close()
    return took


def volley(client: Client, count: int) -> tuple[float, fire.Fired]:
    """Return the seconds of one volley and what it brought."""
    began = time.monotonic()
    fired = fire.volley(fire.Shot("echo", {}), [client], count, fire.Clock())
    took = time.monotonic() - began
    good = sum(call.outcome == "ok" for call in fired.calls)
    assert good == count, f"{good} of {count} answered: {fired.calls[-1]}"
    return took, fired


class Answers(BaseHTTPRequestHandler):
    """Answers every POST at once, in the stateless era."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:  # noqa: D102
        message = json.loads(self.rfile.read(int(self.headers["content-length"])))
        result = {"supportedVersions": ["2026-07-28"], "content": [], "resultType": "complete"}
        body = json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_args: object) -> None:
        """Say nothing."""


class Listener(ThreadingHTTPServer):
    """Lets hundreds of connections wait at once."""

    daemon_threads = True
    request_queue_size = 1024


def bare_http(url: str, count: int) -> float:
    """Return the seconds for `count` POSTs by as many plain threads of the standard library."""
    body = request_bytes(1, "tools/call", PARAMS)
    barrier = threading.Barrier(count + 1)

    def post() -> None:
        barrier.wait()
        request = urllib.request.Request(url, body, {"content-type": "application/json"})
        with urllib.request.urlopen(request, timeout=60) as response:
            response.read()

    threads = [threading.Thread(target=post) for _ in range(count)]
    for thread in threads:
        thread.start()
    barrier.wait()
    began = time.monotonic()
    for thread in threads:
        thread.join()
    return time.monotonic() - began


def report(name: str, count: int, client: Client, bare: Callable[[], float]) -> None:
    """Print one line: spread, volley, bare minimum, ratio."""
    spreads = []

    def one() -> float:
        took, fired = volley(client, count)
        spreads.append(fired.overlap.spread_ms)
        return took

    ours, least = best(one), best(bare)
    spread = statistics.median(spreads)
    print(
        f"{name:<6} {count:>4} twins: spread {spread:8.2f} ms, volley {ours:8.1f} ms, "
        f"bare {least:8.1f} ms, ratio {ours / least:5.2f}, "
        f"overhead {max(0.0, ours - least) / count:6.3f} ms a call"
    )


def main() -> None:
    """Run everything and print it."""
    for count in TWINS:
        client = Target(command=(sys.executable, "-c", ECHO)).connect()
        report("stdio", count, client, lambda count=count: bare_stdio(count))  # type: ignore[misc]
        client.close()
    server = Listener(("127.0.0.1", 0), Answers)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_address[1]}/mcp"
    for count in TWINS:
        client = Target(url=url).connect()
        report("http", count, client, lambda count=count: bare_http(url, count))  # type: ignore[misc]
        client.close()
    server.shutdown()


if __name__ == "__main__":
    main()
