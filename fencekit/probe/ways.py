"""The four ways to ask twice, each performed on a rig and handed back as evidence."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from fencekit.probe import fire
from fencekit.probe.model import (
    Call,
    Cut,
    Evidence,
    Observation,
    Outcome,
    Overlap,
    Setting,
    Way,
)
from fencekit.probe.observer import CannotCount, Observer
from fencekit.probe.sink import Sink
from fencekit.wire.carriers import Pending
from fencekit.wire.client import Client
from fencekit.wire.errors import WireError
from fencekit.wire.frames import Frame

CUT_POLL = 0.005  # seconds between two looks for evidence that the first call ran


@dataclass
class Rig:
    """A target that is ready to be fired at, and the counters that watch it.

    `connect` opens one more connection (on stdio, one more process). `cut_after` (seconds) cuts a
    lost answer at that time and not on evidence. `earlier_effects`: what this run counted before.
    """

    shot: fire.Shot
    connect: Callable[[], Client]
    setting: Setting
    calls: int = 12
    connections: int = 1
    observer: Observer | None = None
    sink: Sink | None = None
    cut_after: float | None = None
    clock: fire.Clock = field(default_factory=fire.Clock)
    earlier_effects: int | None = None

    def perform(self, way: Way) -> tuple[Evidence, Overlap]:
        """Ask twice in one way and return what came of it."""
        with contextlib.ExitStack() as stack:
            return _Performance(self, way, stack).run()


@dataclass
class _Performance:
    rig: Rig
    way: Way
    stack: contextlib.ExitStack
    seen: Observation | None = None
    clock: fire.Clock = field(init=False)

    def run(self) -> tuple[Evidence, Overlap]:
        rig, way = self.rig, self.way
        shared = not rig.setting.stdio or (
            way is Way.RETRY or (way is Way.TWINS and rig.connections == 1)
        )
        first = self._open()
        self.seen = seen = self._before(first if shared else None)
        since = rig.sink.seen() if rig.sink is not None else 0
        steps = {
            Way.TWINS: self._twins,
            Way.RETRY: self._retry,
            Way.LOST_ANSWER: self._lost_answer,
            Way.RESTART: self._restart,
        }
        # Times are told from here, so that each way's timeline starts with its first call.
        self.clock = fire.Clock(wall=rig.clock.wall)
        calls, lap, last, cut = steps[way](first)
        if rig.observer is not None and seen is not None:
            with self._reader(last if shared else None) as client:
                seen = rig.observer.after(seen, client)
        evidence = Evidence(
            way=way,
            calls=calls,
            setting=rig.setting,
            connections=rig.connections if way is Way.TWINS else 1,
            observation=seen,
            sink=rig.sink.reading(since) if rig.sink is not None else None,
            cut=cut,
            earlier_effects=rig.earlier_effects,
        )
        return evidence, lap

    def _open(self) -> Client:
        client = self.rig.connect()
        self.stack.callback(client.close)
        return client

    def _before(self, client: Client | None) -> Observation | None:
        observer = self.rig.observer
        if observer is None:
            return None
        with self._reader(client) as reader:
            return observer.before(reader)

    @contextlib.contextmanager
    def _reader(self, client: Client | None) -> Iterator[Client]:
        """Give the connection to count with: where calls go to several processes, a fresh one."""
        if client is not None:
            yield client
            return
        fresh = self.rig.connect()
        try:
            yield fresh
        finally:
            fresh.close()

    def _twins(self, first: Client) -> tuple[tuple[Call, ...], Overlap, Client, None]:
        clients = [first, *(self._open() for _ in range(self.rig.connections - 1))]
        fired = fire.volley(self.rig.shot, clients, self.rig.calls, self.clock)
        return fired.calls, fired.overlap, first, None

    def _retry(self, client: Client) -> tuple[tuple[Call, ...], Overlap, Client, None]:
        shot, clock = self.rig.shot, self.clock
        calls = tuple(fire.one(shot, client, clock, n=n, connection=0) for n in (1, 2))
        return calls, fire.overlap(calls), client, None

    def _restart(self, first: Client) -> tuple[tuple[Call, ...], Overlap, Client, None]:
        shot, clock = self.rig.shot, self.clock
        one = fire.one(shot, first, clock, n=1, connection=0)
        first.close(kill=True)
        second = self._open()
        two = fire.one(shot, second, clock, n=2, connection=1)
        return (one, two), fire.overlap((one, two)), second, None

    def _lost_answer(self, first: Client) -> tuple[tuple[Call, ...], Overlap, Client, Cut]:
        shot, clock = self.rig.shot, self.clock
        pending = shot.load(first)
        written = self.rig.sink.written() if self.rig.sink is not None else 0
        threading.Thread(target=first.send, args=(pending,), daemon=True).start()
        cut = self._await_evidence(pending, written)
        answer, failure = pending.answer, pending.failure  # as they were when it was cut
        first.close(kill=True)
        if not cut.first_ran and self._moved():
            cut = Cut(f"{cut.evidence}; the observer had moved by then", first_ran=True)
        call = _discard(pending, clock, _fate(answer, failure, cut))
        second = self._open()
        two = fire.one(shot, second, clock, n=2, connection=1)
        return (call, two), fire.overlap((call, two)), second, cut

    def _moved(self) -> bool:
        """Whether the observer has moved since before the first call."""
        observer, seen = self.rig.observer, self.seen
        if observer is None or seen is None or seen.before is None:
            return False
        with self._reader(None) as client, contextlib.suppress(CannotCount):
            return observer.counter.read(client) > seen.before
        return False

    def _await_evidence(self, pending: Pending, written: int) -> Cut:
        """Wait until something shows that the call ran, or until the set time has passed."""
        rig, began = self.rig, time.monotonic()
        limit = rig.shot.timeout if rig.cut_after is None else rig.cut_after
        while True:
            over = time.monotonic() - began >= limit
            if over or rig.cut_after is None:
                if rig.sink is not None and rig.sink.written() > written:
                    return Cut("the sink had recorded its write", first_ran=True)
                if pending.done.is_set():
                    ran = pending.answer is not None
                    return Cut("its answer had arrived and was discarded unread", first_ran=ran)
            if over:
                return Cut(f"{limit:g} s after it was sent, unanswered")
            pending.done.wait(CUT_POLL)
            if rig.cut_after is not None and pending.done.is_set():
                time.sleep(CUT_POLL)


def _fate(answer: Frame | None, failure: WireError | None, cut: Cut) -> tuple[Outcome, str]:
    """Return what became of a first call: of its answer only whether it failed is looked at."""
    if answer is None and failure is None:
        text = "the connection was cut"
        return (Outcome.DISCARDED if cut.first_ran else Outcome.UNANSWERED), text
    outcome, detail = fire.classify(answer, failure)
    if outcome is Outcome.OK:
        return Outcome.DISCARDED, "the answer was discarded unread"
    return outcome, detail


def _discard(pending: Pending, clock: fire.Clock, fate: tuple[Outcome, str]) -> Call:
    return Call(
        n=1,
        outcome=fate[0],
        sent_ms=fire.since(pending.sent_at or pending.started_at, clock),
        answered_ms=fire.since(pending.answered_at, clock) if pending.answer else None,
        detail=fate[1],
    )
