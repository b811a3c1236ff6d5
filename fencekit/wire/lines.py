"""The connections on which requests wait for their answers, so that one of them can be cut.

In the stateless era of MCP over HTTP a request is cancelled by closing its connection (MCP
2026-07-28, Streamable HTTP). Closing a socket does not wake a thread that reads from it; shutting
it down does.
"""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator, Mapping
from typing import Any

from fencekit.wire.frames import IdKey

_CONNECTED = ("connection.connect_tcp.complete", "connection.start_tls.complete")


class Lines:
    """Requests under way, each on a connection of its own."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._streams: dict[IdKey, Any] = {}
        self._cut: set[IdKey] = set()

    @contextlib.contextmanager
    def held(self, key: IdKey) -> Iterator[None]:
        """Let a request be cut while this lasts."""
        with self._lock:
            self._streams[key] = None
        try:
            yield
        finally:
            with self._lock:
                self._streams.pop(key, None)
                self._cut.discard(key)

    def traced(self, key: IdKey, name: str, info: Mapping[str, Any]) -> None:
        """Take what the HTTP library tells of a request's connection (httpcore's `trace`)."""
        if name in _CONNECTED:
            with self._lock:
                if key in self._streams:
                    self._streams[key] = info.get("return_value")
                cut = key in self._cut
            if cut:
                self.cut(key)

    def cut(self, key: IdKey) -> bool:
        """End a request's connection, now or as soon as it stands; says whether there is one."""
        with self._lock:
            if key not in self._streams:
                return False
            self._cut.add(key)
            stream = self._streams[key]
        if stream is not None:
            with contextlib.suppress(OSError, AttributeError):
                stream.get_extra_info("socket").shutdown(socket.SHUT_RDWR)
        return True
