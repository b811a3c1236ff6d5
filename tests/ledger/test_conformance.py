"""Every ledger answers, remembers and tells exactly what the rules over two dictionaries do."""

from __future__ import annotations

import threading

import pytest

from fencekit import Fence, FenceConfig, ReadSetStale
from fencekit.core.draft import Draft
from fencekit.core.errors import DomainRace, FenceError, LedgerMoved
from fencekit.core.messages import Fresh
from fencekit.core.situation import situation
from fencekit.core.state import NOTHING
from fencekit.core.table import Situation
from fencekit.fence import Calls
from tests.ledger.conformance import DURABLE, LEDGERS, SHARED, Model, TestClock, told
from tests.ledger.situations import KEY, VERBS, Script, T, reach


class Pair:
    """A ledger and the model, asked the same; they may never differ."""

    def __init__(self, name, path):
        self.name, self.path, self.clock = name, path, TestClock()
        self.ledger = LEDGERS[name](path, self.clock)
        self.model = Model(self.clock, self.ledger.holder.process, name not in SHARED)

    def ask(self, command):
        # A ledger reads its boot when it opens; the clock of a test may move to another.
        if self.name not in SHARED:
            self.ledger._clocks.boot = self.clock.boot
        expected = self.model.call(command)
        assert self.answer(command) == expected
        return expected

    def answer(self, command):
        """What the ledger says; that it was moved is an answer of the rules, and raised."""
        try:
            return self.ledger.call(command)
        except LedgerMoved as moved:
            return moved

    def script(self):
        return Script(self.ask, self.clock, self.ledger.holder.process)

    def compare(self):
        assert told(self.ledger.audit()) == self.model.audit
        assert self.ledger.marker() == self.model.view.marker
        assert self.ledger.floor() == self.model.view.floor
        assert dict(self.ledger.records()) == self.model.records()
        for key, record in self.model.records().items():
            assert self.ledger.peek(key) == record.revision

    def reopen(self):
        self.ledger.close()
        self.ledger = LEDGERS[self.name](self.path, self.clock)


@pytest.fixture(params=LEDGERS)
def pair(request, tmp_path):
    pair = Pair(request.param, tmp_path)
    yield pair
    pair.ledger.close()


def seen_by(name):
    """The situations that a ledger can tell: a shared one cannot see a process die."""
    unseen = (Situation.MINE_DEAD, Situation.OTHERS_DEAD) if name in SHARED else ()
    return [s for s in Situation if s not in unseen]


@pytest.mark.parametrize("where", list(Situation), ids=lambda s: s.name)
def test_every_cell_of_the_table(pair, where, tmp_path):
    """All verbs in one situation, each on a ledger of its own."""
    if where not in seen_by(pair.name):
        return
    for verb in VERBS:
        path = tmp_path / verb
        path.mkdir()
        one = Pair(pair.name, path)
        script = one.script()
        reach(where, script)
        record = one.model.records().get(KEY, NOTHING)
        draft = Draft(one.model.view, one.model.now())
        assert situation(draft, record, KEY, T) is where
        getattr(script, verb)(T)
        getattr(script, verb)(T)
        script.current()
        one.compare()
        one.ledger.close()


@pytest.mark.parametrize("name", DURABLE)
@pytest.mark.parametrize("where", list(Situation), ids=lambda s: s.name)
def test_what_was_answered_is_there_after_reopening(name, where, tmp_path):
    if where not in seen_by(name):
        return
    one = Pair(name, tmp_path)
    reach(where, one.script())
    one.reopen()
    one.compare()
    for verb in VERBS:
        getattr(one.script(), verb)(T)
    one.ledger.close()


def test_the_same_command_again_answers_the_same(pair):
    script = pair.script()
    script.prepare(T)
    sent = []
    ask = script.ask

    def record(command):
        sent.append((command, ask(command)))
        return sent[-1][1]

    script.ask = record
    script.abort(T)
    script.settle(T)
    script.forget(T)
    for command, answer in sent:
        if type(command).__name__ != "Look":
            assert pair.ask(command) == answer


def test_sweep_changes_nothing_that_anybody_can_see(pair):
    script = pair.script()
    script.prepare(T)
    script.commit(T)
    pair.clock.ms += 3_600_000 * 3
    before = [s.key for s in pair.ledger.intents()]
    assert pair.ledger.sweep() == 1
    assert ([s.key for s in pair.ledger.intents()], before) == ([], [])
    assert pair.ledger.sweep() == 0
    assert pair.ledger.peek(KEY) == 0
    assert isinstance(script_fresh(pair), Fresh)


def script_fresh(pair):
    """Admit the intent again on the ledger alone: for the model it is merely expired."""
    script = Script(pair.ledger.call, pair.clock, pair.ledger.holder.process)
    return script.prepare("c" * 32)


def test_sweep_keeps_what_has_no_outcome(pair):
    script = pair.script()
    script.prepare(T)
    script.abort(T)
    pair.clock.ms += 3_600_000 * 24 * 365
    pair.ledger.sweep()

    assert [s.key for s in pair.ledger.intents()] == [KEY]


# --- the chaos tests of the field ---------------------------------------------------------------


@pytest.fixture(params=LEDGERS)
def fence(request, tmp_path):
    ledger = LEDGERS[request.param](tmp_path, TestClock())
    with Fence(calls=Calls(ledger, FenceConfig())) as fence:
        yield fence


def _together(count, call):
    barrier, out, errors = threading.Barrier(count), [], []

    def one(i):
        barrier.wait(30)
        try:
            out.append(call(i))
        except FenceError as error:
            errors.append(error)

    threads = [threading.Thread(target=one, args=(i,)) for i in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    return out, errors


def test_a_race_for_one_domain_has_one_winner(fence):
    """Both have read before either reserves: a hundred times, exactly one gets the number."""
    for trial in range(100):
        seq = fence.current(f"d{trial}").seq
        won, lost = _together(
            2,
            lambda i, d=f"d{trial}", s=seq: fence.prepare(
                f"{d}:{i}", "t", domain=d, read_set=[(d, s)]
            ),
        )
        assert (len(won), len(lost)) == (1, 1)
        assert isinstance(lost[0], DomainRace | ReadSetStale)
        fence.commit(won[0].ticket)


def test_sixteen_duplicates_run_once_and_late_ones_replay(fence):
    ran = []

    def charge():
        ran.append(1)
        return {"charge": 7}

    out, errors = _together(16, lambda i: fence.run("charge", charge))
    late = [fence.run("charge", charge) for _ in range(4)]

    assert (ran, errors) == ([1], [])
    assert [*out, *late] == [{"charge": 7}] * 20


def test_no_sequence_number_is_given_twice(fence):
    """Thirty-two threads reserve by prepare; every number from 1 to 128 is given exactly once."""
    out, errors = _together(
        32,
        lambda i: [fence.prepare(f"i{i}:{j}", "t", domain="d").ticket.seq for j in range(4)],
    )

    assert errors == []
    assert sorted(n for numbers in out for n in numbers) == list(range(1, 129))


def test_reserve_is_compare_and_set(fence):
    assert fence.reserve("d", 0).seq == 1
    with pytest.raises(DomainRace):
        fence.reserve("d", 0)
    fence.evict_domain("d")

    assert fence.current("e").seq == 1


def test_counters_are_kept_beside_the_ledger(fence):
    ticket = fence.prepare("a", "t").ticket
    fence.commit(ticket)
    fence.prepare("a", "t")
    fence.calls.save_counters()

    assert fence.ledger.counters()["admitted"] == 1
    assert fence.ledger.counters()["replayed"] == 1


def test_a_sound_ledger_verifies(fence):
    for i in range(3):
        fence.commit(fence.prepare(f"i{i}", "t", domain="d").ticket, {"i": i})

    assert list(fence.ledger.verify()) == []
    assert fence.ledger.describe().kind in LEDGERS
