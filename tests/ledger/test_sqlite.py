"""What can happen to the default ledger on a real machine: each is told in words one can act on."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from fencekit import Fence, FenceConfig, Fresh, IntentFailed, IntentInFlight, LedgerError
from fencekit.core.errors import InvalidRequest, LedgerDamaged, LedgerFull, LedgerUnavailable
from fencekit.fence import Calls
from fencekit.ledger import location, sqlite
from fencekit.ledger.clocks import Clocks
from fencekit.ledger.jsonl import JsonlLedger
from fencekit.ledger.location import Location
from fencekit.ledger.sqlite import SqliteLedger
from fencekit.ledger.sqlite_file import connect
from tests.conftest import missing, need

ROOT = Path(__file__).parents[2]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "l.db"


@pytest.fixture
def fence(path):
    with Fence.open(f"sqlite:{path}") as fence:
        yield fence


def test_files_are_private(fence, path):
    folder = path.parent / "made"
    with Fence.open(f"sqlite:{folder / 'l.db'}"):
        assert folder.stat().st_mode & 0o777 == 0o700
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_stopped_process_inside_its_transaction_does_not_hang_the_others(path):
    """SIGSTOP while it holds the write lock: a bounded wait, and an error that names it."""
    program = (
        "import sqlite3, sys, time\n"
        f"db = sqlite3.connect({str(path)!r}, isolation_level=None)\n"
        "db.execute('BEGIN IMMEDIATE'); db.execute('DELETE FROM counters')\n"
        "print('inside', flush=True); time.sleep(60)"
    )
    calls = Calls(SqliteLedger(Location(path), busy=0.2), FenceConfig())
    with Fence(calls=calls) as fence:
        other = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
        try:
            assert other.stdout.readline() == "inside\n"
            other.send_signal(signal.SIGSTOP)
            with pytest.raises(LedgerUnavailable, match=rf"busy.*process {other.pid}"):
                fence.prepare("a", "t")
        finally:
            other.kill()
            other.wait()
            other.stdout.close()
        fence.prepare("a", "t")


def test_a_full_disk_is_told(fence, path):
    fence.prepare("a", "t")
    db = fence.ledger._db
    pages = db.execute("PRAGMA page_count").fetchone()[0]
    db.execute(f"PRAGMA max_page_count = {pages}").fetchall()
    with pytest.raises(LedgerFull, match="free some space"):
        fence.prepare("b", "t", {"x": "y" * 100_000})
    db.execute("PRAGMA max_page_count = 1000000").fetchall()
    fence.prepare("b", "t", {"x": "y" * 100_000})


@pytest.mark.parametrize("how", ["removed", "replaced"])
def test_a_file_that_went_away_stops_admissions(fence, path, how):
    fence.prepare("a", "t")
    path.rename(path.with_name("elsewhere"))
    if how == "replaced":
        path.write_bytes(b"")
    with pytest.raises(LedgerUnavailable, match=r"gone|replaced"):
        fence.prepare("b", "t")


@pytest.mark.parametrize("suffixes", [("-wal", "-shm"), ("-wal",), ("-shm",)])
def test_a_log_that_went_away_stops_admissions(fence, path, suffixes):
    """Without its log the file would be two ledgers: ours, and that of whoever opens it next."""
    fence.prepare("a", "t")
    for suffix in suffixes:
        path.with_name(path.name + suffix).unlink()
    for _ in range(2):
        with pytest.raises(LedgerUnavailable, match=r"gone|replaced"):
            fence.prepare("b", "t")


def test_a_damaged_record_stops_its_own_intent_only(fence, path):
    for name in "ab":
        fence.commit(fence.prepare(name, "t").ticket)
    with sqlite3.connect(path) as db:
        db.execute("UPDATE intents SET record = replace(record, 't', 'u') WHERE key = ?", (b"\0a",))
    db.close()
    fence.ledger._tables._cache.clear()
    with pytest.raises(LedgerDamaged, match="intent 'a'"):
        fence.prepare("a", "t")
    assert fence.prepare("b", "t").result is None
    assert [p.where for p in fence.ledger.verify()] == ["intent 'a'"]


def test_a_damaged_open_record_stops_no_opening(fence, path):
    fence.prepare("a", "t", holder="process")
    fence.close()
    with sqlite3.connect(path) as db:
        db.execute("UPDATE intents SET record = X'00'")
    db.close()
    with Fence.open(f"sqlite:{path}") as again:
        with pytest.raises(LedgerDamaged, match="intent 'a'"):
            again.prepare("a", "t")
        again.prepare("b", "t")
        assert [p.where for p in again.ledger.verify()] == ["intent 'a'"]


def test_a_busy_ledger_leaks_no_descriptors(path):
    holder = sqlite3.connect(path, isolation_level=None)
    calls = Calls(SqliteLedger(Location(path), busy=0.01), FenceConfig())
    with Fence(calls=calls) as fence:
        holder.execute("BEGIN IMMEDIATE")
        counts = []
        for _ in range(5):
            with pytest.raises(LedgerUnavailable, match="busy"):
                fence.prepare("a", "t")
            counts.append(len(os.listdir("/proc/self/fd")))
        holder.execute("ROLLBACK")
        fence.prepare("a", "t")
    holder.close()
    assert counts[1:] == counts[:-1]


def test_a_file_that_is_no_database_is_told(path):
    path.write_bytes(b"not a database at all" * 100)
    with pytest.raises(LedgerDamaged, match="damaged"):
        Fence.open(f"sqlite:{path}")


def test_another_programs_database_is_left_alone(path):
    with sqlite3.connect(path) as db:
        db.execute("CREATE TABLE theirs (x)")
    db.close()
    with pytest.raises(LedgerUnavailable, match="another program"):
        Fence.open(f"sqlite:{path}")


def test_a_newer_schema_is_told(fence, path):
    fence.close()
    with sqlite3.connect(path) as db:
        db.execute("PRAGMA user_version = 99")
    db.close()
    with pytest.raises(LedgerUnavailable, match="newer fencekit"):
        Fence.open(f"sqlite:{path}")


def test_a_symbolic_link_is_refused(fence, path):
    link = path.with_name("link.db")
    link.symlink_to(path)
    with pytest.raises(LedgerUnavailable, match="symbolic link"):
        Fence.open(f"sqlite:{link}")


def test_a_file_system_that_may_be_shared_is_refused_unless_trusted(path, monkeypatch):
    monkeypatch.setattr(location, "file_system", lambda directory: "nfs4")
    with pytest.raises(LedgerUnavailable, match=r"nfs4.*shared_fs=trust"):
        Fence.open(f"sqlite:{path}")
    Fence.open(f"sqlite:{path}?shared_fs=trust").close()


def test_an_option_that_is_not_known_is_refused(path):
    with pytest.raises(InvalidRequest, match="shared_fs"):
        Fence.open(f"sqlite:{path}?durability=none")


def test_a_forked_child_is_another_holder(fence):
    """The child goes on with the ledger; when it dies, its attempt shows, and ours does not."""
    fence.prepare("ours", "t", holder="process")
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            fence.prepare("theirs", "t", holder="process")
            with pytest.raises(IntentInFlight):
                fence.prepare("ours", "t")
            code = 0
        finally:
            os.write(write, b".")
            os._exit(code)
    assert os.read(read, 1) == b"."
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    os.close(read)
    os.close(write)
    with pytest.raises(IntentFailed, match="process ended"):
        fence.prepare("theirs", "t")
    with pytest.raises(IntentInFlight):
        fence.prepare("ours", "t")


@pytest.mark.parametrize("kind", [SqliteLedger, JsonlLedger])
def test_a_jump_of_the_wall_clock_pauses_expiry_until_confirmed(kind, path, caplog):
    """Also over a restart: a clock set ahead must not make every recorded result run again."""
    time = {"wall": 1_800_000_000_000, "lease": 1_000}

    def reopened():
        clocks = Clocks(lambda: time["wall"], lambda: time["lease"], "boot")
        return Fence(calls=Calls(kind(Location(path), clocks), FenceConfig()))

    with reopened() as fence:
        fence.commit(fence.prepare("a", "t").ticket, "ok")
        time["wall"] += 2 * 86_400_000
        assert fence.prepare("a", "t").result == "ok"
        assert fence.sweep() == 0
        assert fence.ledger.now().expiry_paused
        (told,) = caplog.records
        assert told.getMessage().startswith("the wall clock jumped by +2880 minutes")
    with reopened() as fence:
        assert fence.prepare("a", "t").result == "ok"
        assert fence.sweep() == 0
        fence.ledger.confirm_clock()
        assert fence.sweep() == 1
    with reopened() as fence:
        assert not fence.ledger.now().expiry_paused


def test_a_clock_that_another_process_confirmed_is_taken_over(path):
    time = {"wall": 1_800_000_000_000, "lease": 1_000}

    def opened():
        clocks = Clocks(lambda: time["wall"], lambda: time["lease"], "boot")
        return Fence(calls=Calls(SqliteLedger(Location(path), clocks), FenceConfig()))

    with opened() as fence, opened() as other:
        fence.commit(fence.prepare("a", "t").ticket, "ok")
        time["wall"] += 2 * 86_400_000
        assert fence.prepare("a", "t").result == "ok"
        other.ledger.confirm_clock()
        assert isinstance(fence.prepare("a", "t"), Fresh)


@pytest.mark.parametrize("kind", [SqliteLedger, JsonlLedger])
def test_a_child_that_never_uses_the_ledger_does_not_hide_its_parents_death(kind, path):
    """The parent forks, is killed, and the child lives on: the attempt must read as dead."""
    program = (
        "import os, signal, sys\n"
        "from fencekit import Fence\n"
        f"fence = Fence.open({kind.__module__.rpartition('.')[2]!r} + ':' + {str(path)!r})\n"
        "fence.prepare('a', 't', holder='process')\n"
        "if os.fork():\n"
        "    signal.pause()\n"
        "print('forked', flush=True)\n"
        "sys.stdin.read()\n"
    )
    # The child holds the other ends; it ends when we close its input.
    with subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as parent:
        assert parent.stdout.readline() == b"forked\n"
        parent.kill()
        parent.wait()
        with (
            Fence(calls=Calls(kind(Location(path)), FenceConfig())) as fence,
            pytest.raises(IntentFailed, match="process ended"),
        ):
            fence.prepare("a", "t")
        parent.stdin.close()


def test_a_folder_in_which_others_may_replace_the_file_is_refused(tmp_path):
    folder = tmp_path / "open"
    folder.mkdir()
    folder.chmod(0o777)
    with pytest.raises(LedgerUnavailable, match=r"every user may replace.*chmod o-w"):
        Fence.open(f"sqlite:{folder / 'l.db'}")
    assert not any(folder.iterdir())
    folder.chmod(0o1777)
    Fence.open(f"sqlite:{folder / 'l.db'}").close()


def test_a_file_that_others_may_write_is_refused_and_one_they_may_read_is_made_private(path):
    Fence.open(f"sqlite:{path}").close()
    path.chmod(0o646)
    with pytest.raises(LedgerUnavailable, match="every user may write"):
        Fence.open(f"sqlite:{path}")
    path.chmod(0o644)
    Fence.open(f"sqlite:{path}").close()
    assert path.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("whose", ["file", "folder"])
def test_what_another_user_owns_is_refused(path, monkeypatch, whose):
    Fence.open(f"sqlite:{path}").close()
    me = os.getuid()
    monkeypatch.setattr(os, "getuid", lambda: me + 1)
    if whose == "file":
        monkeypatch.setattr(location, "_refuse_foreign_folder", lambda folder: None)
    elif me == 0:
        os.chown(path.parent, 4242, -1)  # what root owns is trusted
    with pytest.raises(LedgerUnavailable, match="another user"):
        Fence.open(f"sqlite:{path}")


def test_opening_takes_the_same_steps_however_much_is_finished(path, monkeypatch):
    """Counted in steps of SQLite's machine, which no other load on this computer changes."""
    steps = []

    def counting(where, busy):
        db = connect(where, busy)
        db.set_progress_handler(lambda: steps.append(1) and None, 1)
        return db

    def finish(count):
        with Fence.open(f"sqlite:{path}") as fence:
            for i in range(count):
                fence.commit(fence.prepare(f"{count}-{i}", "t").ticket, "ok")
        steps.clear()
        with monkeypatch.context() as patch:
            patch.setattr(sqlite, "connect", counting)
            Fence.open(f"sqlite:{path}").close()
        return len(steps)

    few, many = finish(5), finish(500)
    assert few > 20
    assert many < few * 1.2


def test_sweep_gives_the_space_back(path):
    config = FenceConfig(result_ttl=0.001)
    clocks = {"ms": 0}
    ledger = SqliteLedger(
        Location(path), Clocks(lambda: 1_800_000_000_000 + clocks["ms"], lambda: clocks["ms"], "b")
    )
    with Fence(calls=Calls(ledger, config)) as fence:
        for i in range(300):
            fence.commit(fence.prepare(f"i{i}", "t").ticket, "x" * 4000)
        fence.ledger._db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        before = path.stat().st_size
        clocks["ms"] += 3 * 3_600_000
        assert fence.sweep() == 300
        fence.ledger._db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        assert path.stat().st_size < before / 4


def test_counters_of_ended_processes_add_up(path):
    for _ in range(3):
        with Fence.open(f"sqlite:{path}") as fence:
            fence.prepare(f"i{_}", "t")
    with Fence.open(f"sqlite:{path}") as fence:
        assert fence.ledger.counters() == {"admitted": 3}


def test_an_unwritable_folder_is_told(tmp_path, monkeypatch):
    def refused(*_args, **_kwargs):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "mkdir", refused)
    with pytest.raises(LedgerError, match=r"Permission denied.*--ledger"):
        Fence.open(f"sqlite:{tmp_path / 'no' / 'l.db'}")


def test_two_pid_namespaces_of_one_kernel_see_each_other_die(path):
    """As two containers that share a volume: pids mean nothing there, the kernel's locks do."""
    program = (
        "import sys; from fencekit import Fence\n"
        f"fence = Fence.open('sqlite:{path}')\n"
        "fence.prepare('held', 't', holder='process')\n"
        "print('held', flush=True); sys.stdin.read()"
    )
    inside = [need("unshare"), "--pid", "--fork", "--kill-child", sys.executable, "-c", program]
    if subprocess.run([*inside[:3], "true"], capture_output=True, check=False).returncode:
        missing("this system lets nobody make a pid namespace")
    other = subprocess.Popen(
        inside, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert other.stdout.readline() == "held\n"
    with Fence.open(f"sqlite:{path}") as fence:
        with pytest.raises(IntentInFlight):
            fence.prepare("held", "t")
        other.kill()
        other.wait()
        # The kernel ends the child of a killed `unshare`; its lock goes with it, a moment later.
        other.stdout.read()
        with pytest.raises(IntentFailed, match="process ended"):
            fence.prepare("held", "t")
    other.stdout.close()
    other.stdin.close()
