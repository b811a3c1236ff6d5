"""Random histories: after any sequence of commands a ledger is where the rules say it is."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)

from fencekit.core.sweep import sweep
from tests.ledger.conformance import LEDGERS
from tests.ledger.situations import KEY
from tests.ledger.test_conformance import Pair

VERBS = st.sampled_from(["abort", "release", "heartbeat", "clear", "settle", "forget"])
KINDS = st.sampled_from(["ticket", "process"])
EXPIRY = st.sampled_from(["fence", "reclaim"])
TICKETS = st.sampled_from(["a" * 32, "b" * 32, "c" * 32])


class History(RuleBasedStateMachine):
    """Three tickets, every verb, time, sweep, reopening; every answer is compared as it comes."""

    name = "memory"

    @initialize()
    def open(self):
        self.folder = tempfile.TemporaryDirectory()
        self.pair = Pair(self.name, Path(self.folder.name))
        self.script = self.pair.script()

    @rule(
        t=TICKETS,
        kind=st.sampled_from(["ticket", "process"]),
        expiry=st.sampled_from(["fence", "reclaim"]),
    )
    def prepare(self, t, kind, expiry):
        self.script.prepare(t, kind, expiry)

    @rule(t=TICKETS, value=st.sampled_from(["ok", "other"]))
    def commit(self, t, value):
        self.script.commit(t, value)

    @rule(
        t=TICKETS,
        verb=VERBS,
    )
    def end(self, t, verb):
        getattr(self.script, verb)(t)

    @rule(ms=st.sampled_from([1, 1_000, 60_000, 4_000_000]))
    def wait(self, ms):
        self.pair.clock.ms += ms

    @rule()
    def look(self):
        self.script.current()

    @rule()
    def sweep(self):
        """Only what every verb treats as absent goes: no later answer may differ."""
        self.pair.ledger.sweep()
        for key, record in self.pair.model.records().items():
            self.pair.model.view.intents[key] = sweep(record, self.pair.model.now())

    @rule()
    def reopen(self):
        if self.name != "memory":
            self.pair.reopen()
            # Whoever held the ledger before is dead now, in the model too.
            self.pair.model.process = self.pair.ledger.holder.process
            self.script.process = self.pair.ledger.holder.process

    @invariant()
    def tells_the_same(self):
        if hasattr(self, "pair"):
            record = self.pair.model.records().get(KEY)
            assert self.pair.ledger.peek(KEY) == (0 if record is None else record.revision)

    def teardown(self):
        if hasattr(self, "pair"):
            self.pair.compare()
            self.pair.ledger.close()
            self.folder.cleanup()


@pytest.mark.parametrize("name", LEDGERS)
def test_any_history(name):
    machine = type(f"History_{name}", (History,), {"name": name})
    # The same ledger on another server need not be tried as often.
    examples = 25 if "-" in name else 150
    run_state_machine_as_test(
        machine, settings=settings(max_examples=examples, stateful_step_count=30, deadline=None)
    )
