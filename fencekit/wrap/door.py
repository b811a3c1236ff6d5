"""The door of the HTTP front: where it listens, whom it lets in, and how it is served.

It stands before either application (`front` for a child, `relay` for an HTTP server): health,
who may come in and as whom, and sessions that have ended or are another's.
"""

from __future__ import annotations

import contextlib
import socket
from collections import OrderedDict
from collections.abc import Callable, MutableMapping
from dataclasses import dataclass
from typing import Any, Protocol

import uvicorn
from mcp.server.transport_security import TransportSecuritySettings

from fencekit.wrap.clients import EVERYBODY, Guests

MAX_BODY = 64 * 1024 * 1024  # bytes of one request
IDLE_END = 1800.0  # seconds
SESSIONS_KNOWN = 100_000  # whose owners are remembered
PRINCIPAL = "fencekit.principal"
"""Where the door says in the scope of a request as whom it comes."""
LOOPBACK = ("127.0.0.1", "localhost", "::1")

Scope = MutableMapping[str, Any]


class Behind(Protocol):
    """What stands behind the door."""

    @property
    def busy(self) -> bool:
        """Whether an admitted call runs."""

    def web(self, listen: Listen) -> Any:
        """Return the ASGI application to serve."""

    def sessions(self, listen: Listen) -> str:
        """Say whose the sessions are, for the line at start."""

    def gone(self, session: str | None) -> bool:
        """Whether a session has ended, so that its client must begin anew."""

    async def close(self) -> None:
        """End every server and session within bounds."""


@dataclass(frozen=True, slots=True)
class Listen:
    """Where the front listens, and whom it lets in."""

    host: str
    port: int
    guests: Guests = EVERYBODY
    allowed_hosts: tuple[str, ...] = ()
    max_sessions: int = 32

    def check(self) -> None:
        """Raise ValueError for an address that may not be served like this."""
        if self.host not in LOOPBACK and not self.guests.clients:
            raise ValueError(
                f"--http {self.host} can be reached from other machines: give a token with "
                "--front-token-env or --front-token-file or name [clients] in fencekit.toml, or "
                "listen on 127.0.0.1"
            )

    def security(self) -> TransportSecuritySettings:
        """Return which Host and Origin headers are accepted."""
        names = [*LOOPBACK[:2], "[::1]"] if self.host in LOOPBACK else [self.host]
        names += self.allowed_hosts
        hosts = [f"{name}:*" for name in names] + names
        origins = [f"{scheme}://{host}" for host in hosts for scheme in ("http", "https")]
        return TransportSecuritySettings(
            enable_dns_rebinding_protection=True, allowed_hosts=hosts, allowed_origins=origins
        )


def serve(behind: Behind, listen: Listen, ready: Callable[[str], None]) -> None:
    """Serve until a signal comes; `ready` gets the address.

    Raises ValueError where the address cannot be had.
    """
    sock = _bound(listen)
    shown = f"[{listen.host}]" if ":" in listen.host else listen.host
    door = Door(behind.web(listen), behind, listen.guests)
    config = uvicorn.Config(door, log_level="warning", timeout_graceful_shutdown=2, lifespan="on")
    ready(f"http://{shown}:{sock.getsockname()[1]}/mcp")
    with contextlib.suppress(KeyboardInterrupt):
        uvicorn.Server(config).run(sockets=[sock])


def _bound(listen: Listen) -> socket.socket:
    family = socket.AF_INET6 if ":" in listen.host else socket.AF_INET
    sock = socket.socket(family, socket.SOCK_STREAM)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        sock.bind((listen.host, listen.port))
        sock.listen(128)
    except OSError as error:
        sock.close()
        raise ValueError(f"--http {listen.host}:{listen.port}: {error.strerror}") from None
    return sock


class Door:
    """What stands before either application: health, the token, and sessions that ended."""

    def __init__(self, web: Any, behind: Behind, guests: Guests) -> None:
        self._web = web
        self._behind = behind
        self._guests = guests
        self._owners: OrderedDict[str, str] = OrderedDict()

    async def __call__(self, scope: Scope, receive: Any, send: Any) -> None:
        """Let one request in, or not."""
        if scope["type"] == "lifespan":
            await self._web(scope, receive, self._closing(send))
            return
        headers = {name.lower(): value for name, value in scope.get("headers", [])}
        session = headers.get(b"mcp-session-id", b"").decode("latin-1") or None
        principal = self._guests.admit(headers)
        if scope["path"] == "/health":
            await say_status(send, 200, b'{"status":"ok"}')
        elif principal is None:
            await say_status(
                send, 401, b'{"detail":"unauthorized"}', (b"www-authenticate", b"Bearer")
            )
        elif session is not None and self._owners.get(session, principal) != principal:
            await say_status(send, 404, b'{"detail":"there is no such session"}')
        elif self._behind.gone(session):
            await say_status(send, 404, b'{"detail":"the server of this session has ended"}')
        else:
            scope[PRINCIPAL] = principal
            await self._web(scope, receive, self._owning(send, principal))

    def _owning(self, send: Any, principal: str) -> Any:
        """Bind every session to the principal that it was given to."""

        async def sent(message: Any) -> None:
            if message["type"] == "http.response.start":
                for name, value in message.get("headers", ()):
                    if name.lower() == b"mcp-session-id":
                        self._owners.setdefault(value.decode("latin-1"), principal)
                        if len(self._owners) > SESSIONS_KNOWN:
                            self._owners.popitem(last=False)
            await send(message)

        return sent

    def _closing(self, send: Any) -> Any:
        async def sent(message: Any) -> None:
            if message["type"] == "lifespan.shutdown.complete":
                await self._behind.close()
            await send(message)

        return sent


async def say_status(send: Any, status: int, body: bytes, *more: tuple[bytes, bytes]) -> None:
    """Answer with a status and a JSON body."""
    headers = [(b"content-type", b"application/json"), *more]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
