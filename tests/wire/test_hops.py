"""Headers of a reverse proxy: what belongs to one connection or to the front goes no further."""

from __future__ import annotations

from fencekit.wire.hops import downward, on_wire, upward


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
        (b"Connection", b"close, X-Hop"), (b"X-Hop", b"1"), (b"Keep-Alive", b"5"),
        (b"Content-Length", b"9"), (b"Content-Encoding", b"gzip"), (b"Set-Cookie", b"a=1"),
        (b"WWW-Authenticate", b"Bearer"), (b"Mcp-Session-Id", b"s"), (b"Date", b"now"),
    ]  # fmt: skip

    assert downward(given) == [("www-authenticate", "Bearer"), ("mcp-session-id", "s")]


def test_every_byte_of_a_value_survives():
    value = bytes(b for b in range(0x20, 0x100) if b != 0x7F)
    assert on_wire(downward([(b"x-all", value)])) == [(b"x-all", value)]
