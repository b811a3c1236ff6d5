"""The journal survives what a crash or a disk does to it, or says what is wrong: twice over."""

from __future__ import annotations

import os

import pytest

from fencekit import Fence, LedgerError
from fencekit.core.errors import LedgerDamaged, LedgerFull, LedgerLocked, LedgerUnavailable
from fencekit.core.state import Unknown
from fencekit.ledger import journal, jsonl
from fencekit.ledger.jsonl import JsonlLedger
from fencekit.ledger.location import Location


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """Thirty records: the file's bytes, and after each line what is remembered."""
    path = tmp_path_factory.mktemp("journal") / "l.jsonl"
    fence = Fence.open(f"jsonl:{path}")
    for i in range(15):
        fence.commit(fence.prepare(f"i{i}", "t", {"n": i}, domain="d").ticket, {"r": i})
    data = path.read_bytes()
    fence.close()
    assert data.count(b"\n") == 32
    ends = [0]
    while ends[-1] < len(data):
        ends.append(data.index(b"\n", ends[-1]) + 1)
    states = [journal.read(data[:end]).intents for end in ends]
    return data, ends, states


def test_cut_at_every_byte(written):
    """What ends before the cut is there, what the cut tore is gone, and nothing else."""
    data, ends, states = written
    for cut in range(len(data) + 1):
        whole = max(n for n, end in enumerate(ends) if end <= cut)
        once = journal.read(data[:cut])
        again = journal.read(data[: once.end])

        assert once.intents == again.intents == states[whole]
        assert once.end == again.end == ends[whole]


def test_any_page_of_an_unsynced_batch_lost(written):
    """The last batch was never answered: lines before it stand, whatever its pages hold."""
    data, _, _ = written
    writer = journal.Writer()
    synced = journal.read(data)
    writer.number, writer.last_sum = synced.number, synced.last_sum
    lines, records = [], list(synced.intents.items())
    for key, record in records * 2:
        lines.append(
            writer.line(1, len(data), jsonl.Writes(intents={key: record}), [{"event": "x"}])
        )
    whole = data + b"".join(lines)
    for start in range(len(data) // 4096 * 4096, len(whole), 4096):
        first, end = max(start, len(data)), min(start + 4096, len(whole))
        damaged = whole[:first] + bytes(end - first) + whole[end:]
        for _ in range(2):
            read = journal.read(damaged)
            assert read.end >= len(data)
            assert read.intents == synced.intents
            damaged = damaged[: read.end]


def test_every_flipped_bit_of_a_short_journal_is_told(written):
    """All eight bits of every byte of two synced lines with one behind them.

    A short journal, because each of its bits costs a read of the whole: the thirty lines below are
    tried at every third byte, and a line is the same wherever it stands.
    """
    data, ends, states = written
    short = data[: ends[3]]
    told = 0
    for at in range(ends[2]):
        for bit in range(8):
            damaged = bytearray(short)
            damaged[at] ^= 1 << bit
            try:
                read = journal.read(bytes(damaged))
            except LedgerDamaged:
                told += 1
            else:
                # The case of a digit of a checksum means nothing.
                assert (read.end, read.intents) == (ends[3], states[3]), (at, bit)
    assert told > ends[2] * 8 - 20


def test_a_flipped_bit_of_a_long_journal_is_told(written):
    """One bit of every third byte but the last line's: damage, or the very same records."""
    data, ends, states = written
    told = 0
    for at in range(0, ends[-2], 3):
        damaged = bytearray(data)
        damaged[at] ^= 1 << (at % 8)
        for _ in range(2):
            try:
                read = journal.read(bytes(damaged))
            except LedgerDamaged:
                told += 1
            else:
                # Only the last batch may read as torn: no later line says that it was synced.
                assert read.end >= ends[-3]
                assert read.intents in states[-3:]
    assert told > len(data) / 3


def test_a_line_deleted_by_an_editor_is_noticed(written):
    data, ends, _ = written
    for n in range(28):
        without = data[: ends[n]] + data[ends[n + 1] :]
        with pytest.raises(LedgerDamaged, match=f"line {n + 1} "):
            journal.read(without)


def test_opening_sets_the_torn_part_aside_twice(written, tmp_path):
    data, ends, _ = written
    path = tmp_path / "l.jsonl"
    for n in (1, 2):
        path.write_bytes(data[: ends[22]] + b'{"half": ')
        with Fence.open(f"jsonl:{path}") as fence:
            assert len(list(fence.intents())) == 10
        assert (tmp_path / f"l.jsonl.torn-{n}").read_bytes() == b'{"half": '


def test_a_clean_close_claims_everything(written, tmp_path):
    path = tmp_path / "l.jsonl"
    with Fence.open(f"jsonl:{path}") as fence:
        fence.commit(fence.prepare("a", "t").ticket)
    data = bytearray(path.read_bytes())
    lines = data.split(b"\n")
    data[len(lines[0]) + 30] ^= 1

    with pytest.raises(LedgerDamaged):
        journal.read(bytes(data))


def test_a_failed_sync_ends_the_use_of_the_file_and_recovery_fences(tmp_path, monkeypatch):
    path = tmp_path / "l.jsonl"
    fence = Fence.open(f"jsonl:{path}")
    fence.commit(fence.prepare("before", "t").ticket)
    ticket = fence.prepare("during", "t").ticket

    def fails(fd):
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(jsonl, "sync", fails)
    with pytest.raises(LedgerUnavailable, match="did not keep"):
        fence.commit(ticket)
    monkeypatch.undo()
    with pytest.raises(LedgerUnavailable, match="did not keep"):
        fence.prepare("after", "t")
    fence.close()

    for _ in range(2):
        with Fence.open(f"jsonl:{path}") as fence:
            states = {s.key.intent: s.record.state for s in fence.intents()}
            assert set(states) == {"before", "during"}
            assert isinstance(states["during"], Unknown)
            assert list(fence.ledger.verify()) == []


def test_a_full_disk_is_told_and_nothing_is_lost(tmp_path, monkeypatch):
    with Fence.open(f"jsonl:{tmp_path / 'l.jsonl'}") as fence:
        fence.commit(fence.prepare("a", "t").ticket)
        write = os.write

        def half(fd, data):
            if len(data) > 20:
                return write(fd, data[:20])
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(os, "write", half)
        with pytest.raises(LedgerFull, match="free some space"):
            fence.prepare("b", "t")
        monkeypatch.undo()
        fence.commit(fence.prepare("b", "t").ticket)
        assert list(fence.ledger.verify()) == []


def test_a_second_process_is_told_who_holds_it(tmp_path):
    held = rf"process {os.getpid()}.*sqlite:"
    with Fence.open(f"jsonl:{tmp_path / 'l.jsonl'}"), pytest.raises(LedgerLocked, match=held):
        JsonlLedger(Location(tmp_path / "l.jsonl"))


@pytest.mark.parametrize("how", ["removed", "replaced"])
def test_a_file_that_went_away_stops_admissions(how, tmp_path):
    path = tmp_path / "l.jsonl"
    with Fence.open(f"jsonl:{path}") as fence:
        fence.prepare("a", "t")
        path.rename(tmp_path / "elsewhere")
        if how == "replaced":
            path.write_bytes(b"")
        with pytest.raises(LedgerError, match=r"gone|replaced"):
            fence.prepare("b", "t")


def test_what_was_in_flight_at_open_is_unknown(tmp_path):
    url = f"jsonl:{tmp_path / 'l.jsonl'}"
    with Fence.open(url) as fence:
        fence.prepare("by process", "t", holder="process")
        fence.prepare("by ticket", "t")
    with Fence.open(url) as fence:
        causes = {s.key.intent: getattr(s.record.state, "cause", None) for s in fence.intents()}

    assert causes == {"by process": "died", "by ticket": None}


def test_counters_that_cannot_be_kept_stop_nothing(tmp_path, monkeypatch):
    """A full disk at the end of a process is no traceback: the counters are made good later."""
    fence = Fence.open(f"jsonl:{tmp_path / 'l.jsonl'}")
    fence.prepare("a", "t")

    def full(self, data):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(type(tmp_path), "write_bytes", full)
    fence.close()
