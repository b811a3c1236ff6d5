"""Headers of a reverse proxy: what belongs to one connection or to the front goes no further."""

from __future__ import annotations

from fencekit.wire.hops import downward, upward


def test_what_concerns_the_front_alone_does_not_go_up():
    given = [
        (b"Host", b"127.0.0.1:1"), (b"Authorization", b"Bearer front"), (b"Cookie", b"a=1"),
        (b"Connection", b"keep-alive, X-Private"), (b"X-Private", b"1"), (b"TE", b"trailers"),
        (b"Transfer-Encoding", b"chunked"), (b"Content-Length", b"3"), (b"Expect", b"100-continue"),
        (b"Fencekit-Token", b"front"), (b"X-Forwarded-For", b"10.0.0.1"), (b"Origin", b"http://x"),
        (b"X-Many", b"1"), (b"X-Many", b"2"), (b"Mcp-Session-Id", b"s"),
    ]  # fmt: skip

    assert upward(given, {"Mcp-Session-Id": "ours", "X-Key": "k"}) == [
        ("x-many", "1"),
        ("x-many", "2"),
        ("mcp-session-id", "ours"),
        ("x-key", "k"),
        ("accept-encoding", "identity"),
    ]


def test_what_concerns_the_servers_connection_alone_does_not_come_down():
    given = [
        ("Connection", "close, X-Hop"), ("X-Hop", "1"), ("Keep-Alive", "5"), ("Date", "now"),
        ("Content-Length", "9"), ("Content-Encoding", "gzip"), ("Set-Cookie", "a=1"),
        ("WWW-Authenticate", "Bearer"), ("Mcp-Session-Id", "s"),
    ]  # fmt: skip

    assert downward(given) == [("www-authenticate", "Bearer"), ("mcp-session-id", "s")]
