"""One run: clients, a nemesis that the seed drives, and the history of all of it."""

from __future__ import annotations

import contextlib
import random
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from fencekit import Fence
from tests.chaos import nemesis
from tests.chaos.checker import History
from tests.chaos.client import LEASE_S, held, look_at_all
from tests.chaos.linear import Death, Outside
from tests.chaos.record import Recorder, effects, lease_ms, told
from tests.ledger.servers import name_for, stopped

ROOT = Path(__file__).parents[2]
Servers = dict[str, type[nemesis.Server]]
SERVERS: Servers = {"postgresql": nemesis.Postgres, "redis": nemesis.Redis}
FAILING_OVER: Servers = {
    "postgresql": nemesis.PostgresWithStandby,
    "redis": nemesis.RedisWithReplica,
}
# Processes and callers in each: a journal and memory belong to one process.
CLIENTS = {
    "memory": (1, 5),
    "jsonl": (1, 5),
    "sqlite": (3, 2),
    "postgresql": (3, 2),
    "redis": (3, 2),
}
KILLS = ("kill a client", "stop a client", "step a clock")
TROUBLES = {
    "memory": ("stop a client", "step a clock"),
    "jsonl": KILLS,
    "sqlite": KILLS,
    "postgresql": (*KILLS, "kill the server", "cut the network", "slow the network", "silence"),
    "redis": (*KILLS, "kill the server", "cut the network", "slow the network", "silence"),
}


@dataclass
class Run:
    """The clients of one run and what is done to them."""

    kind: str
    folder: Path
    seed: str
    url: str
    fault: str = ""
    following: str = ""
    server: nemesis.Server | None = None
    network: nemesis.Network | None = None
    deaths: dict[str, Death] = field(default_factory=dict)
    clients: dict[str, subprocess.Popen[str]] = field(default_factory=dict)
    did: list[str] = field(default_factory=list)
    failed_over_ns: int = 0

    def __post_init__(self) -> None:
        self.chance = random.Random(f"nemesis {self.seed}")
        self.shared = self.kind in SERVERS

    def start(self) -> None:
        """Start one more client."""
        name = f"c{len(self.deaths) + len(self.clients)}"
        words = [
            self.url,
            str(self.folder),
            name,
            f"{self.seed}-{name}",
            str(CLIENTS[self.kind][1]),
        ]
        with (self.folder / f"{name}.stderr").open("w") as errors:
            self.clients[name] = subprocess.Popen(
                [sys.executable, "-m", "tests.chaos.client", *words, self.fault, self.following],
                cwd=ROOT,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
            )

    def trouble(self, what: str) -> None:
        """Do one thing to the run."""
        self.did.append(what)
        name = self.chance.choice(sorted(self.clients))
        client = self.clients[name]
        if what == "kill a client":
            self.bury(name, kill=True)
            self.start()
        elif what == "stop a client":
            with stopped(client.pid):
                time.sleep(LEASE_S * 1.3)
        elif what == "step a clock":
            assert client.stdin is not None
            client.stdin.write(f"step {self.chance.randrange(-600_000, 600_000)}\n")
            client.stdin.flush()
        elif what == "kill the server":
            assert self.server is not None
            self.server.kill()
            self.server.start()
        elif what == "fail over":
            assert self.server is not None
            assert self.network is not None
            self.server.fail_over()
            self.network.target = self.server.port
            self.network.cut()
            self.failed_over_ns = time.monotonic_ns()
        else:
            self._network(what)

    def _network(self, what: str) -> None:
        assert self.network is not None
        if what == "cut the network":
            for _ in range(5):
                self.network.cut()
                time.sleep(self.chance.uniform(0.01, 0.1))
        elif what == "slow the network":
            self.network.delay_s = self.chance.uniform(0.02, 0.15)
            time.sleep(0.6)
            self.network.delay_s = 0.0
        else:
            self.network.silent.set()
            time.sleep(LEASE_S * self.chance.uniform(0.3, 1.3))
            # Whoever is killed now leaves a command of which nobody knows whether it arrived.
            name = self.chance.choice(sorted(self.clients))
            self.bury(name, kill=True)
            if self.chance.random() < 0.5:
                self.network.cut()
            self.network.silent.clear()
            self.start()

    def bury(self, name: str, *, kill: bool) -> None:
        """End a client and note when it lived for sure, and since when it is dead for sure."""
        client = self.clients.pop(name)
        alive_until = lease_ms(self.shared)
        if kill:
            client.kill()
        else:
            assert client.stdin is not None
            with contextlib.suppress(OSError):
                client.stdin.write("stop\n")
                client.stdin.flush()
        status = client.wait(90)
        self.deaths[name] = Death(alive_until, lease_ms(self.shared))
        for pipe in (client.stdin, client.stdout):
            assert pipe is not None
            with contextlib.suppress(OSError):
                pipe.close()
        errors = (self.folder / f"{name}.stderr").read_text()
        assert kill or status == 0, errors
        assert "Traceback" not in errors, errors

    def go(self, seconds: float, once: str = "") -> None:
        """Let the clients work and get them into trouble; `once` happens halfway."""
        self.begin()
        self.work(seconds, once)
        self.end()

    def begin(self) -> None:
        """Start the clients."""
        for _ in range(CLIENTS[self.kind][0]):
            self.start()
        for client in self.clients.values():
            assert client.stdout is not None
            assert client.stdout.readline() == "ready\n", "a client did not start"

    def work(self, seconds: float, once: str = "") -> None:
        """Get them into trouble for a time."""
        until, half = time.monotonic() + seconds, time.monotonic() + seconds / 2
        bag: list[str] = []
        while time.monotonic() < until:
            time.sleep(self.chance.uniform(0.1, 0.5))
            if once and time.monotonic() >= half:
                self.trouble(once)
                once = ""
                continue
            # Everything once before anything twice, so that a short run meets all of it.
            bag = bag or self.chance.sample(TROUBLES[self.kind], len(TROUBLES[self.kind]))
            self.trouble(bag.pop())

    def end(self) -> None:
        """Let every client come to its end."""
        for name in list(self.clients):
            self.bury(name, kill=False)

    def history(self) -> History:
        """Return all that is known of the run."""
        recorded = told(self.folder)
        final = recorded.final
        if final is None:
            port = self.server.port if self.server is not None else 0
            url = self.server.url(port, name_for(self.folder)) if self.server else self.url
            with Fence.open(url) as fence:
                look_at_all(fence, Recorder(self.folder, "last", self.shared))
                final = held(fence)
            recorded = told(self.folder)
        by_holder = {
            holder: self.deaths[name]
            for name, holder in recorded.holders.items()
            if self.kind in ("sqlite", "jsonl")
        }
        outside = Outside(not self.shared, by_holder, asks_again=self.shared)
        return History(recorded.operations, effects(self.folder), final, outside, recorded.stats)


@contextlib.contextmanager
def started(
    kind: str, folder: Path, seed: str, fault: str = "", servers: Servers = SERVERS
) -> Iterator[Run]:
    """Make a run, with a server of its own behind a network of its own where the ledger has one."""
    if kind not in SERVERS:
        url = "memory:" if kind == "memory" else f"{kind}:{folder / 'ledger'}"
        yield Run(kind, folder, seed, url, fault)
        return
    with nemesis.folder_for_a_server() as place:
        server = servers[kind](Path(place))
        server.start()
        network = nemesis.Network(server.port)
        try:
            url = server.url(network.port, name_for(folder))
            yield Run(kind, folder, seed, url, fault, server=server, network=network)
        finally:
            network.close()
            server.close()
