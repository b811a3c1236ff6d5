"""Which HTTP headers a reverse proxy hands on in each direction (RFC 9110, section 7.6.1).

Pure. What belongs to one connection stays on it. The front's own credentials, cookies, and what a
browser says of the page it is on concern the front alone and never reach the server; the encoding
is asked for plain, because the proxy reads what passes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

Headers = list[tuple[str, str]]

_ONE_HOP = frozenset(
    {"connection", "keep-alive", "te", "trailer", "transfer-encoding", "upgrade"}
    | {"proxy-authenticate", "proxy-authorization", "proxy-connection", "content-length"}
)
_OURS_ALONE = frozenset(
    {"host", "authorization", "cookie", "origin", "referer", "accept-encoding", "forwarded"}
    | {"expect"}
)
_OURS_ALONE_PREFIXES = ("sec-", "x-forwarded-", "access-control-request-", "fencekit-")
# The body is handed on decoded, and each server says its own name and time.
_NOT_DOWN = frozenset({"content-encoding", "set-cookie", "server", "date", "alt-svc"})


def on_wire(headers: Headers) -> list[tuple[bytes, bytes]]:
    """Return headers as the bytes that they came in."""
    return [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers]


def _texts(raw: Iterable[tuple[bytes, bytes]]) -> Headers:
    return [(name.decode("latin-1").lower(), value.decode("latin-1")) for name, value in raw]


def _named(headers: Iterable[tuple[str, str]]) -> set[str]:
    """Return the headers that `Connection` names as belonging to it."""
    given = ",".join(value for name, value in headers if name == "connection")
    return {name.strip().lower() for name in given.split(",") if name.strip()}


def upward(raw: Iterable[tuple[bytes, bytes]], own: Mapping[str, str]) -> Headers:
    """Return the headers for the server: the client's without what is not its business, and ours.

    `own` headers take the place of the client's. Repeated headers stay repeated.
    """
    given = _texts(raw)
    ours = {name.lower(): value for name, value in own.items()}
    dropped = _ONE_HOP | _OURS_ALONE | _named(given) | set(ours)
    kept = [(n, v) for n, v in given if n not in dropped and not n.startswith(_OURS_ALONE_PREFIXES)]
    return [*kept, *ours.items(), ("accept-encoding", "identity")]


def downward(raw: Iterable[tuple[bytes, bytes]]) -> Headers:
    """Return the server's headers for the client, without those of its connection."""
    lowered = _texts(raw)
    dropped = _ONE_HOP | _NOT_DOWN | _named(lowered)
    return [(name, value) for name, value in lowered if name not in dropped]
