"""A client process of the chaos run: random verbs over a few intents, everything written down.

Usage: client URL FOLDER NAME SEED THREADS [FAULT [NEXT]]. It runs until its standard input says
"stop"; a line "step MS" steps its clocks. Several threads are several callers of one ledger. NEXT
is the ledger that URL is moved to, for whoever is told so.
"""

from __future__ import annotations

import itertools
import random
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from fencekit import Fence, FenceConfig
from fencekit.core.clock import NO_CLOCK, VectorClock
from fencekit.core.errors import FenceError, LedgerError, LedgerMoved
from fencekit.core.messages import Fresh, Head, Prepare, Seen
from fencekit.core.state import Done, IntentKey, PreparedEffect, Unknown
from fencekit.fence.draw import HolderKind
from fencekit.ledger.open import scheme_of
from tests.chaos.faults import FAULTS, step_clock
from tests.chaos.linear import by_intent
from tests.chaos.record import Held, Recorder, effects, told

LEASE_S = 1.0
EPOCH_S = 0.4
"""For how long three intents are the present ones; older ones are asked for more rarely."""
PAUSE_S = 0.008
DOMAINS = ("d0", "d1")
ASIDE = "d2"
"""A domain that nobody reserves for an attempt, so that it can be evicted."""
PRINCIPALS = ("", "alice")


class Client:
    """What the callers of one process share."""

    def __init__(self, fence: Fence, recorder: Recorder, following: str = "") -> None:
        self.fence, self.recorder = fence, recorder
        self._following, self._next, self._opening = following, fence, threading.Lock()
        self.stop = threading.Event()
        self.step_ms = 0
        self.numbers = itertools.count()
        self.prepares = 0

    def call(self, command: Any) -> Any:
        """Ask the ledger, or the one that it was moved to."""
        try:
            return self.fence.calls.call(command)
        except LedgerMoved:
            with self._opening:
                if self._following and self._next is self.fence:
                    self._next = Fence.open(self._following, FenceConfig(lease=LEASE_S))
            return self._next.calls.call(command)

    def close(self) -> None:
        """Close what was opened."""
        self.fence.close()
        self._next.close()


class Caller:
    """Holds some attempts open at a time, as a busy agent does, and judges others' as operator."""

    def __init__(self, client: Client, seed: str) -> None:
        self.client, self.chance, self.name = client, random.Random(seed), seed
        self.draw = client.fence.calls.draw
        self.open: list[PreparedEffect] = []
        self.ran: set[str] = set()
        self.adopted: set[str] = set()
        # Attempts that take longer than their lease: not ended before this.
        self.busy: dict[str, float] = {}
        self.unheard: list[Any] = []
        self.sent: list[Any] = []
        self.cited: dict[str, int] = {}
        self.clocks: list[VectorClock] = [NO_CLOCK]

    def run(self) -> None:
        """Do one thing after another until told to stop."""
        verbs = {
            self.begin: 30, self.end: 28, self.beat: 7, self.again: 9, self.judge: 16,
            self.read: 6, self.reserve: 3, self.evict: 2, self.tidy: 2, self.scan: 1,
        }  # fmt: skip
        self.stranger()
        while not self.client.stop.wait(self.chance.expovariate(1 / PAUSE_S)):
            (verb,) = self.chance.choices(list(verbs), list(verbs.values()))
            verb()

    def ask(self, command: Any) -> Any:
        """Ask the ledger; None where it could not answer, so that nobody knows."""
        number = str(next(self.client.numbers))
        self.client.recorder.ask(number, command)
        try:
            answer = self.client.call(command)
        except LedgerError:
            self.unheard.append(command)
            return None
        self.client.recorder.hear(number, answer)
        if not isinstance(command, Prepare) or isinstance(answer, Fresh):
            # Whoever hears a refused prepare never sends that id again.
            self.sent = [*self.sent[-7:], command]
        return answer

    def key(self) -> IntentKey:
        """Choose an intent: mostly a present one, and whose it is."""
        epoch = int(time.monotonic() / EPOCH_S)
        if self.chance.random() < 0.4:
            epoch -= self.chance.randrange(8)
        intent = f"pay-{epoch}-{self.chance.randrange(3)}"
        return self.draw.key(intent, self.chance.choices(PRINCIPALS, (3, 1))[0])

    # --- attempts ----------------------------------------------------------------------------

    def begin(self, key: IntentKey | None = None) -> None:
        """Ask whether an attempt may run."""
        if len(self.open) >= 6 and key is None:
            return
        key = key or self.key()
        domain = self.chance.choice((None, *DOMAINS))
        cites = self.cited.items() if self.chance.random() < 0.3 else ()
        causal = domain is not None and self.chance.random() < 0.2
        # One intent is one action, whoever asks and in whichever domain.
        request = self.draw.request(
            key.intent, "pay", {"i": key.intent}, domain=domain, read_set=list(cites),
            principal=key.principal, causal=causal, agent=self.name,
            known_clock=self.chance.choice(self.clocks) if causal else None,
        )  # fmt: skip
        kind: HolderKind = self.chance.choice(("process", "ticket"))
        command = self.draw.prepare(request, kind)
        if self.chance.random() < 0.1:
            command = replace(command, lease_expiry="reclaim")
        asked = time.monotonic()
        answer = self.ask(command)
        if isinstance(answer, Fresh):
            self.admitted(answer.ticket, time.monotonic() - asked)

    def admitted(self, ticket: PreparedEffect, waited: float) -> None:
        """Run the effect, at once or later; give back what was heard too late."""
        self.adopted.add(ticket.id)
        self.clocks = [*self.clocks[-3:], ticket.clock]
        if waited > LEASE_S / 3:
            self.ask(self.draw.release(ticket, "heard too late"))
            return
        self.open.append(ticket)
        if self.chance.random() < 0.15:
            self.busy[ticket.id] = time.monotonic() + LEASE_S * self.chance.uniform(1.2, 2.5)
        elif self.chance.random() < 0.6:
            self.act(ticket)

    def act(self, ticket: PreparedEffect) -> None:
        """Let the effect happen."""
        self.ran.add(ticket.id)
        self.client.recorder.effect(ticket)

    def end(self) -> None:
        """Say how an attempt went."""
        now = time.monotonic()
        ready = [ticket for ticket in self.open if self.busy.get(ticket.id, now) <= now]
        if not ready:
            return
        ticket = self.chance.choice(ready)
        self.open.remove(ticket)
        if ticket.id not in self.ran and self.chance.random() < 0.4:
            self.ask(self.draw.release(ticket, "changed its mind"))
            return
        if ticket.id not in self.ran:
            self.act(ticket)
        if self.chance.random() < 0.2:
            self.ask(self.draw.abort(ticket, "lost its answer"))
        else:
            self.ask(self.draw.commit(ticket, self.draw.result({"by": ticket.id})))

    def beat(self) -> None:
        """Keep an attempt believed; those that are too busy to end are too busy for this too."""
        quick = [ticket for ticket in self.open if ticket.id not in self.busy]
        if quick:
            self.ask(self.draw.heartbeat(self.chance.choice(quick)))

    def again(self) -> None:
        """Send a command again: first of all one that nobody answered."""
        command = self.unheard.pop() if self.unheard else None
        if command is None and self.sent:
            command = self.chance.choice(self.sent)
        if command is None:
            return
        asked = time.monotonic()
        answer = self.ask(command)
        if isinstance(answer, Fresh) and answer.ticket.id not in self.adopted:
            self.admitted(answer.ticket, time.monotonic() - asked)

    # --- operators, domains, the rest --------------------------------------------------------

    def judge(self) -> None:
        """Look at an intent, find out outside what happened, and say so."""
        slow = [ticket.key for ticket in self.open if ticket.id in self.busy]
        key = self.chance.choice(slow) if slow and self.chance.random() < 0.5 else self.key()
        seen = self.ask(self.draw.look(key))
        if not isinstance(seen, Seen):
            return
        state, revision = seen.record.state, seen.record.revision
        if isinstance(state, Done) and self.chance.random() < 0.1:
            self.ask(self.draw.forget(key, state.ticket.id, "may run again", "op"))
        if not isinstance(state, Unknown) or self.chance.random() < 0.3:
            return
        happened = {ran for ran, _, _ in effects(self.client.recorder.folder)}
        ticket = state.ticket.id
        if ticket in happened:
            result = self.draw.result({"by": ticket, "settled": True})
            self.ask(self.draw.settle(key, ticket, revision, result, "found", "op"))
        else:
            clear = self.draw.clear(key, ticket, revision, "no", "op", even_if_alive=True)
            self.ask(clear)
            self.begin(key)

    def read(self) -> None:
        """Read a domain, to cite it later."""
        head = self.ask(self.draw.current(self.chance.choice(DOMAINS)))
        if isinstance(head, Head):
            self.cited = {head.domain: head.seq}
            self.clocks = [*self.clocks[-3:], head.clock]

    def reserve(self) -> None:
        """Take a number of a domain."""
        domain = self.chance.choice((*DOMAINS, ASIDE))
        head = self.ask(self.draw.current(domain)) if self.chance.random() < 0.5 else None
        seq = head.seq if isinstance(head, Head) else self.cited.get(domain, 0)
        self.ask(self.draw.reserve(domain, seq))

    def evict(self) -> None:
        """Forget a domain, mostly the one that few use."""
        self.ask(self.draw.evict_domain(self.chance.choice((*DOMAINS, ASIDE, ASIDE))))

    def stranger(self) -> None:
        """Let the result of an attempt that was given back arrive while another one is open.

        Always the same, once for each caller: whoever takes it for the other's is surely found.
        """
        key = self.draw.key(f"stranger-{self.name}", "")
        request = self.draw.request(key.intent, "pay", {"i": key.intent}, principal="")
        given_back = self.ask(self.draw.prepare(request))
        if not isinstance(given_back, Fresh):
            return
        self.ask(self.draw.release(given_back.ticket, "changed its mind"))
        other = self.ask(self.draw.prepare(request))
        if isinstance(other, Fresh):
            late = self.draw.result({"by": given_back.ticket.id})
            self.ask(self.draw.commit(given_back.ticket, late))
            self.ask(self.draw.look(key))

    def tidy(self) -> None:
        """Sweep: nobody may see it."""
        try:
            self.client.fence.sweep()
        except LedgerError:
            return

    def scan(self) -> None:
        """Read what the ledger shows of everything, and the counters."""
        try:
            for shown in self.client.fence.intents():
                assert shown.record.revision > 0
            self.client.fence.ledger.counters()
        except FenceError:
            return


def main(url: str, folder: str, name: str, seed: str, threads: str, *more: str) -> None:
    """Run the client."""
    fault, following = (*more, "", "")[:2]
    shared = scheme_of(url) in ("postgresql", "redis")
    recorder = Recorder(Path(folder), name, shared)
    fence = opened(url)
    client = Client(fence, recorder, following)
    if fault:
        FAULTS[fault][0](client)
    recorder.say("holder", fence.ledger.holder.process)
    callers = [Caller(client, f"{seed}-{n}") for n in range(int(threads))]
    working = [threading.Thread(target=caller.run) for caller in callers]
    print("ready", flush=True)
    for thread in working:
        thread.start()
    for line in sys.stdin:
        if line.startswith("step"):
            step_clock(client, int(line.split()[1]))
        else:
            break
    client.stop.set()
    for thread in working:
        thread.join()
    recorder.say("stats", fence.stats())
    if url == "memory:":
        look_at_all(fence, recorder)
        recorder.say("final", held(fence))
    client.close()


def opened(url: str) -> Fence:
    """Open the ledger; while the network is cut or the server is dead, try again."""
    until = time.monotonic() + 30
    while True:
        try:
            return Fence.open(url, FenceConfig(lease=LEASE_S))
        except LedgerError:
            if time.monotonic() > until:
                raise
            time.sleep(0.1)


def look_at_all(fence: Fence, recorder: Recorder) -> None:
    """Ask once more for every intent that anybody asked for: the end of every history."""
    for number, key in enumerate(sorted(by_intent(told(recorder.folder).operations))):
        command = fence.calls.draw.look(key)
        recorder.ask(f"last {number}", command)
        recorder.hear(f"last {number}", fence.calls.call(command))


def held(fence: Fence) -> Held:
    """Return what a ledger holds."""
    ledger = fence.ledger
    audit = [event for _, event in ledger.audit()]
    problems = [f"{problem.where}: {problem.what}" for problem in ledger.verify()]
    return Held(dict(ledger.records()), dict(ledger.domains()), audit, problems)


if __name__ == "__main__":
    main(*sys.argv[1:])
