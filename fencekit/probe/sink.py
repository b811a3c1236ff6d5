"""The third counter: an HTTP recorder on loopback that stands in for the API behind the server.

The server under test is pointed to it by an environment variable. It answers every request from a
small script, records what was asked, and on demand plays the failure that retries are made of:
the effect is recorded, then the answer is a 503, never comes, or the connection closes. TLS is
not intercepted: a server that insists on HTTPS or on its own address does not reach it.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import threading
import uuid
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Literal

from fencekit.probe.model import SinkReading

Fault = Literal["", "after-effect-503", "hang", "close"]
WRITES = frozenset({"POST", "PUT", "PATCH", "DELETE"})
HTTP_IDEMPOTENT = frozenset({"PUT", "DELETE"})  # RFC 9110, section 9.2.2
KEY_HEADERS = (
    "Idempotency-Key",
    "X-Idempotency-Key",
    "Idempotence-Key",
    "PayPal-Request-Id",
    "X-Idempotency-Token",
    "X-Unique-Transaction-Id",
)
KEY_MEMBERS = ("idempotency_key", "idempotencyKey", "idempotence_key", "client_token")
MAX_BODY = 8 * 1024 * 1024  # bytes; more is read and forgotten
HANG_LIMIT = 300.0  # seconds that a hanging answer is held at most


@dataclass(frozen=True)
class Reply:
    """One line of the script: what to answer to a method and path (shell patterns).

    `{id}` in a text of the body becomes a new id.
    """

    method: str = "*"
    path: str = "*"
    status: int = 200
    body: Any = field(default_factory=lambda: {"id": "{id}"})
    headers: Mapping[str, str] = field(default_factory=dict)


def read_script(value: object) -> tuple[Reply, ...]:
    """Return the replies of a script: a JSON list of `{method, path, status, body, headers}`.

    Raises ValueError naming the entry and the member that is wrong.
    """
    if not isinstance(value, list):
        raise ValueError("the sink's script is not a JSON list of replies")
    known = set(Reply.__dataclass_fields__)
    replies = []
    for at, entry in enumerate(value):
        if not isinstance(entry, dict) or (extra := set(entry) - known):
            what = (
                f"unknown member {sorted(extra)[0]!r}" if isinstance(entry, dict) else "no object"
            )
            raise ValueError(f"reply {at + 1} of the sink's script: {what}; known: {sorted(known)}")
        reply = Reply(**entry)
        if not isinstance(reply.status, int) or not 100 <= reply.status <= 599:
            raise ValueError(f"reply {at + 1} of the sink's script: status is no HTTP status")
        replies.append(reply)
    return tuple(replies)


@dataclass(frozen=True)
class Received:
    """One request as it was recorded."""

    method: str
    path: str
    digest: str
    key_name: str = ""
    key: str = ""
    inside: int = 1

    @property
    def target(self) -> str:
        """Method and path, without the query."""
        return f"{self.method} {self.path}"

    @property
    def writes(self) -> bool:
        """Whether its method asks for a change."""
        return self.method in WRITES


class Sink:
    """A running recorder. Use as a context manager; `url` is its address."""

    def __init__(
        self,
        replies: Sequence[Reply] = (),
        *,
        fault: Fault = "",
        only: str = "",
    ) -> None:
        self._replies = (*replies, Reply())
        self._fault = fault
        self._only = only
        self._lock = threading.Lock()
        self._received: list[Received] = []
        self._first: dict[str, tuple[int, bytes, Mapping[str, str]]] = {}
        self._minted: set[str] = set()
        self._inside = 0
        self._faults = 0
        self._let_go = threading.Event()
        self._server = _Listener(("127.0.0.1", 0), _Handler)
        self._server.sink = self  # type: ignore[attr-defined]
        self._thread = threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True
        )

    @property
    def url(self) -> str:
        """The address to give to the server under test."""
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> Sink:
        self._thread.start()
        return self

    def __exit__(self, *_exc: object) -> None:
        self._let_go.set()
        self._server.shutdown()
        self._thread.join(5)
        self._server.server_close()

    def seen(self) -> int:
        """Return how many requests were recorded so far."""
        with self._lock:
            return len(self._received)

    def written(self) -> int:
        """Return how many writes were recorded so far."""
        with self._lock:
            return sum(map(self._counts, self._received))

    def _counts(self, request: Received) -> bool:
        if self._only:
            return fnmatchcase(request.target, self._only)
        return request.writes

    def reading(self, since: int = 0) -> SinkReading:
        """Return what was recorded since the given number of requests (from `seen`)."""
        with self._lock:
            recent = self._received[since:]
            minted, faults = frozenset(self._minted), self._faults
        writes = [request for request in recent if self._counts(request)]
        groups: dict[str, list[Received]] = {}
        for request in writes:
            groups.setdefault(request.target, []).append(request)
        read = [_read_target(target, group) for target, group in groups.items()]
        most = max(read, key=lambda r: (r.effects, r.writes), default=SinkReading())
        return SinkReading(
            target=most.target,
            key_name=most.key_name,
            keys=most.keys,
            unkeyed=most.unkeyed,
            conditional=most.conditional,
            reads=len(recent) - len(writes),
            others={r.target: r.writes for r in read if r is not most},
            overlap=max((request.inside for request in writes), default=0),
            minted=minted,
            faults=faults,
        )

    @contextlib.contextmanager
    def taking(
        self, method: str, path: str, headers: Mapping[str, str], body: bytes
    ) -> Iterator[tuple[int, bytes, Mapping[str, str], Fault]]:
        """Record a request and give (status, body, headers, fault) to answer it with."""
        key_name, key = _key_of(headers, body)
        digest = hashlib.sha256(body).hexdigest()
        with self._lock:
            self._inside += 1
            got = Received(method, path, digest, key_name, key, self._inside)
            self._received.append(got)
            fault: Fault = ""
            if self._fault and self._counts(got) and self._faults == 0:
                self._faults, fault = 1, self._fault
            answer = self._answer(got)
        if fault == "after-effect-503":
            answer = (503, b'{"error":"unavailable"}', {"Retry-After": "0"})
        try:
            yield (*answer, fault)
        finally:
            with self._lock:
                self._inside -= 1

    def hold(self) -> None:
        """Wait as a hanging answer does: until the sink is closed."""
        self._let_go.wait(HANG_LIMIT)

    def _answer(self, got: Received) -> tuple[int, bytes, Mapping[str, str]]:
        if got.key and got.key in self._first:
            return self._first[got.key]
        reply = next(r for r in self._replies if fnmatchcase(got.method, r.method)
                     and fnmatchcase(got.path, r.path))  # fmt: skip
        ident = f"sink_{uuid.uuid4().hex[:16]}"
        body = json.dumps(reply.body).replace("{id}", ident).encode("utf-8")
        if ident.encode() in body:
            self._minted.add(ident)
        answer = (reply.status, body, reply.headers)
        if got.key:
            self._first[got.key] = answer
        return answer


def _read_target(target: str, group: Sequence[Received]) -> SinkReading:
    keyed = [request for request in group if request.key]
    bare = [request for request in group if not request.key]
    repeatable = group[0].method in HTTP_IDEMPOTENT
    return SinkReading(
        target=target,
        key_name=keyed[0].key_name if keyed else "",
        keys=dict(Counter(request.key for request in keyed)),
        unkeyed=0 if repeatable else len(bare),
        conditional=dict(Counter(request.digest for request in bare)) if repeatable else {},
    )


def _key_of(headers: Mapping[str, str], body: bytes) -> tuple[str, str]:
    """Return the name and value of the idempotency key in the headers or the JSON body."""
    lower = {name.lower(): value for name, value in headers.items()}
    for name in KEY_HEADERS:
        if value := lower.get(name.lower()):
            return name, value
    if body.startswith(b"{"):
        with contextlib.suppress(ValueError, RecursionError):
            parsed = json.loads(body)
            for name in KEY_MEMBERS:
                if isinstance(value := parsed.get(name), str) and value:
                    return name, value
    return "", ""


class _Listener(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 1024  # hundreds of twins may connect at one instant


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = 60

    def _any(self) -> None:
        body = self._read_body()
        path = self.path.partition("?")[0]
        headers = dict(self.headers.items())
        sink: Sink = self.server.sink  # type: ignore[attr-defined]
        with sink.taking(self.command, path, headers, body) as (status, answer, extra, fault):
            if fault == "hang":
                sink.hold()
            if fault in ("hang", "close"):
                self.close_connection = True
                return
            self.send_response(status)
            for name, value in {"Content-Type": "application/json", **extra}.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(answer)

    do_GET = do_HEAD = do_POST = do_PUT = do_PATCH = do_DELETE = do_OPTIONS = _any  # noqa: N815

    def _read_body(self) -> bytes:
        if "chunked" in self.headers.get("transfer-encoding", "").lower():
            return self._read_chunks()
        length = int(self.headers.get("content-length") or 0)
        body = self.rfile.read(min(length, MAX_BODY))
        left = length - len(body)
        while left > 0 and (more := self.rfile.read(min(65_536, left))):
            left -= len(more)
        return body

    def _read_chunks(self) -> bytes:
        body = bytearray()
        while size := int(self.rfile.readline(1024).split(b";")[0] or b"0", 16):
            if len(body) + size > MAX_BODY:
                self.close_connection = True
                break
            body += self.rfile.read(size)
            self.rfile.readline(1024)
        else:
            self.rfile.readline(1024)
        return bytes(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Say nothing: what was asked is in the record."""
