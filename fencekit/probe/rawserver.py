"""The least an MCP server needs, on raw frames in both eras: base of the built-in servers.

No SDK, so that it starts at once, and each call runs in a thread of its own, so that calls really
overlap.
"""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, TextIO

from fencekit import __version__
from fencekit.wire import frames, protocol


@dataclass(frozen=True)
class Failure:
    """A JSON-RPC error to answer with."""

    code: int
    message: str


class Silence:
    """No answer at all, ever."""


Said = dict[str, Any] | Failure | Silence


def said(value: object, *, error: bool = False) -> dict[str, Any]:
    """Return a tool result that says one thing, as text or as JSON in text."""
    text = value if isinstance(value, str) else json.dumps(value)
    result: dict[str, Any] = {"content": [{"type": "text", "text": text}]}
    return {**result, "isError": True} if error else result


class RawServer:
    """Serves `tools` on a pair of text streams; a subclass says what `call` does."""

    name = "raw"
    tools: Sequence[Mapping[str, Any]] = ()

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._write = threading.Lock()

    def call(self, name: str, arguments: Mapping[str, Any]) -> Said:
        """Run one call and say what to answer."""
        raise NotImplementedError

    def serve(self, lines: TextIO) -> None:
        """Answer until the input ends, and finish what was begun."""
        threads: list[threading.Thread] = []
        for line in lines:
            for frame in frames.parse(line.encode("utf-8", "surrogateescape")):
                if frame.kind is frames.Kind.REQUEST:
                    thread = threading.Thread(target=self._handle, args=(frame,))
                    thread.start()
                    threads.append(thread)
        for thread in threads:
            thread.join()

    def _handle(self, frame: frames.Frame) -> None:
        raw = self.answer(frame)
        if raw is None:
            return
        with self._write:
            self._out.write(raw.decode("utf-8") + "\n")
            self._out.flush()

    def answer(self, frame: frames.Frame) -> bytes | None:
        """Return the bytes to answer a request with, or None for silence."""
        result = self._result(frame)
        if isinstance(result, Silence):
            return None
        if isinstance(result, Failure):
            return frames.error_bytes(frame.id, result.code, result.message)
        return frames.result_bytes(frame.id, frames.encode(result))

    def _result(self, frame: frames.Frame) -> Said:
        info = {"name": self.name, "version": __version__}
        able: dict[str, Any] = {"tools": {}}
        match frame.method:
            case "initialize":
                version = frame.params.get("protocolVersion", protocol.LATEST_HANDSHAKE)
                return {"protocolVersion": version, "capabilities": able, "serverInfo": info}
            case "server/discover":
                found = {"supportedVersions": list(protocol.MODERN_VERSIONS), "capabilities": able}
                return self._finish(frame, {**found, "serverInfo": info})
            case "ping":
                return self._finish(frame, {})
            case "tools/list":
                return self._finish(frame, {"tools": list(self.tools)})
            case "tools/call":
                return self._finish(frame, self._called(frame.params))
        return Failure(protocol.METHOD_NOT_FOUND, f"no such method: {frame.method}")

    def _called(self, params: Mapping[str, Any]) -> Said:
        name, arguments = params.get("name"), params.get("arguments")
        if name not in [tool["name"] for tool in self.tools]:
            return Failure(protocol.INVALID_PARAMS, f"no such tool: {name}")
        return self.call(str(name), arguments if isinstance(arguments, dict) else {})

    @staticmethod
    def _finish(frame: frames.Frame, result: Said) -> Said:
        """Add what the stateless era wants in every result."""
        meta = frame.params.get("_meta")
        modern = isinstance(meta, dict) and protocol.META_PROTOCOL_VERSION in meta
        if modern and isinstance(result, dict):
            return {"resultType": "complete", **result}
        return result


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        frame = frames.parse(body)[0]
        served: RawServer = self.server.served  # type: ignore[attr-defined]
        raw = served.answer(frame) if frame.kind is frames.Kind.REQUEST else b""
        self.send_response(200 if raw else 202)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(raw or b"")))
        self.end_headers()
        self.wfile.write(raw or b"")

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Say nothing."""


class _Listener(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 1024


@contextlib.contextmanager
def over_http(server: RawServer) -> Iterator[str]:
    """Serve over Streamable HTTP on loopback instead, and give the address."""
    listener = _Listener(("127.0.0.1", 0), _Handler)
    listener.served = server  # type: ignore[attr-defined]
    thread = threading.Thread(
        target=listener.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True
    )
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.server_address[1]}/mcp"
    finally:
        listener.shutdown()
        thread.join(5)
        listener.server_close()
