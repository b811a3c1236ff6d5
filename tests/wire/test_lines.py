"""A request's connection can be cut while it waits, and before it stands."""

from __future__ import annotations

import socket

import pytest

from fencekit.wire.lines import Lines

KEY = ("int", "1")


class Stream:
    """What the HTTP library calls a network stream, around one end of a pair."""

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock

    def get_extra_info(self, name: str) -> object:
        assert name == "socket"
        return self.sock


@pytest.fixture
def pair():
    ours, theirs = socket.socketpair()
    theirs.settimeout(5)
    with ours, theirs:
        yield Stream(ours), theirs


@pytest.mark.parametrize("early", [False, True])
def test_the_peer_sees_the_end_whenever_the_cut_comes(pair, early):
    stream, theirs = pair
    lines = Lines()
    with lines.held(KEY):
        if early:
            assert lines.cut(KEY)
        lines.traced(KEY, "connection.connect_tcp.complete", {"return_value": stream})
        if not early:
            assert lines.cut(KEY)

        assert theirs.recv(1) == b""


def test_what_is_over_or_was_never_asked_cannot_be_cut(pair):
    stream, theirs = pair
    lines = Lines()
    with lines.held(KEY):
        lines.traced(KEY, "connection.connect_tcp.complete", {"return_value": stream})
        assert not lines.cut(("str", "1"))
    assert not lines.cut(KEY)
    theirs.setblocking(False)
    with pytest.raises(BlockingIOError):
        theirs.recv(1)
