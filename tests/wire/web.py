"""A loopback HTTP server whose every answer is written by the test."""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class Web:
    """What was asked, and the address."""

    url: str
    asked: list[tuple[str, dict[str, str], Any]] = field(default_factory=list)


class Handler(BaseHTTPRequestHandler):
    """Gives each request to the script of the server it belongs to."""

    protocol_version = "HTTP/1.1"

    def json(self, value: object, status: int = 200, **headers: str) -> None:
        body = value if isinstance(value, bytes) else json.dumps(value).encode()
        self.send_response(status)
        for name, text in {"Content-Type": "application/json", **headers}.items():
            self.send_header(name.replace("_", "-"), text)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def sse(self, text: str) -> None:
        """Send events and end the stream by closing the connection."""
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(text.encode())
        self.close_connection = True

    def answer(self, message: Any, result: object) -> None:
        self.json({"jsonrpc": "2.0", "id": message["id"], "result": result})

    def _any(self) -> None:
        length = int(self.headers.get("content-length") or 0)
        body = self.rfile.read(length)
        message = json.loads(body) if body else None
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.server.web.asked.append((self.command, headers, message))  # type: ignore[attr-defined]
        self.server.script(self, message)  # type: ignore[attr-defined]

    do_POST = do_GET = do_DELETE = _any  # noqa: N815

    def log_message(self, *_args: object) -> None:
        """Say nothing."""


class _Server(ThreadingHTTPServer):
    """A server that drops none of many connections that come at one moment."""

    request_queue_size = 128


@contextlib.contextmanager
def web(script: Callable[[Handler, Any], object]) -> Iterator[Web]:
    """Serve `script(handler, message)` on a loopback port."""
    server = _Server(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    it = Web(f"http://127.0.0.1:{server.server_address[1]}/mcp")
    server.web, server.script = it, script  # type: ignore[attr-defined]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield it
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
