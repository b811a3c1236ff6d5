"""A look at a built site on this machine: static files, loopback only."""

from __future__ import annotations

import functools
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path


class _Handler(SimpleHTTPRequestHandler):
    def end_headers(self) -> None:
        """Add the headers that a careful host would send."""
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("Referrer-Policy", "no-referrer")
        self.send_header("Cache-Control", "no-store")
        super().end_headers()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Say nothing: requests of a look at one's own files are no news."""


def server(site: Path, port: int = 0) -> ThreadingHTTPServer:
    """Return a server of the folder on 127.0.0.1, not yet running. Port 0 takes a free one."""
    handler = functools.partial(_Handler, directory=str(site))
    return ThreadingHTTPServer(("127.0.0.1", port), handler)
