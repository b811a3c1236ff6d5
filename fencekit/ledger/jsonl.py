"""`jsonl:`: an append-only journal that a person can read with `less` and `jq`; one process a time.

Everything is in memory; the file is what survives. A batch of waiting commands is one write and one
sync, and nothing is answered before it. After a failed sync nothing more is answered from that
file: the next open copies what can be read and makes what was touched since the last good sync
unknown.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from pathlib import Path

import orjson

from fencekit.core.decide import decide
from fencekit.core.draft import Event, Writes
from fencekit.core.errors import (
    LedgerDamaged,
    LedgerError,
    LedgerGone,
    LedgerLocked,
    LedgerUnavailable,
)
from fencekit.core.messages import Answer, Command
from fencekit.core.situation import as_of
from fencekit.core.state import (
    Absent,
    DomainHead,
    Floor,
    Holder,
    IntentKey,
    IntentRecord,
    Marker,
    Now,
)
from fencekit.core.sweep import may_sweep, sweep
from fencekit.ledger import crash, journal, lock_descriptors
from fencekit.ledger.base import (
    AUDIT_KEPT,
    Callback,
    Description,
    Outcome,
    Problem,
    Shown,
    add_counters,
)
from fencekit.ledger.batch import GroupCommit
from fencekit.ledger.clocks import Clocks
from fencekit.ledger.jsonl_audit import all_events, archive, old_until, trim
from fencekit.ledger.jsonl_file import (
    in_words,
    keep_clock,
    read_clock,
    set_aside,
    sync,
    sync_directory,
    take_lock,
    translated,
    write_all,
)
from fencekit.ledger.jsonl_view import (
    JournalView,
    chunks,
    doubt_what_was_touched,
    liveness_of,
    take_over,
)
from fencekit.ledger.location import Location, locate, make_private
from fencekit.ledger.sealing import check_record


class JsonlLedger:
    """A ledger in one journal; a second process is told who holds it."""

    def __init__(self, location: Location, clocks: Clocks | None = None) -> None:
        self.url = f"jsonl:{location.path}"
        self._path = location.path
        self._clocks = clocks if clocks is not None else Clocks()
        self._process = secrets.token_hex(16)
        self.holder = Holder("process", self._process)
        self._pid = os.getpid()
        self._lock = threading.Lock()
        self._counts: dict[str, int] = {}
        self._broken: LedgerError | None = None
        self._group = GroupCommit(self._run)
        make_private(location)
        self._lock_fd = take_lock(self._beside("lock"), self._path)
        try:
            self._open()
        except BaseException:
            lock_descriptors.close(self._lock_fd)
            raise

    def _beside(self, suffix: str) -> Path:
        return self._path.with_name(f"{self._path.name}.{suffix}")

    def _open(self) -> None:
        with translated(self._path):
            flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
            self._fd = os.open(self._path, flags, 0o600)
            data = self._path.read_bytes()
            failed = self._beside("failed")
            good = int(failed.read_text(encoding="ascii")) if failed.exists() else None
            self._journal = journal.read(data, good)
            if self._journal.end < len(data):
                set_aside(self._path, data[self._journal.end :])
                crash.point("torn set aside")
                os.ftruncate(self._fd, self._journal.end)
            self._end = self._synced = self._journal.end
            self._writer = journal.Writer(self._journal.number, self._journal.last_sum)
            if good is not None:
                self._recover()
                failed.unlink()
            elif self._journal.number < 2 or self._journal.version < journal.VERSION:
                # New, torn while it was made, or of an older fencekit.
                self._rewrite()
            os.fsync(self._fd)
            sync_directory(self._path.parent)
            self._agree_on_clock()

    def _agree_on_clock(self) -> None:
        """Take over the clock that was confirmed in this boot, or confirm the first one."""
        kept = read_clock(self._beside("clock"))
        if kept is not None:
            self._clocks.expect(*kept)
        if kept is None or kept[0] != self._clocks.boot:
            self.confirm_clock()

    def confirm_clock(self) -> None:
        """Accept the present wall time after a jump: expiry goes on."""
        with translated(self._path):
            keep_clock(self._beside("clock"), self._clocks.boot, self._clocks.confirm())

    def _recover(self) -> None:
        """After a failed sync: what was touched since the last good one is unknown."""
        doubt_what_was_touched(self._journal, self._clocks.now())
        self._rewrite()

    # --- asking ------------------------------------------------------------------------------

    def now(self) -> Now:
        """Return the machine's clocks."""
        return self._clocks.now()

    def call(self, command: Command) -> Answer:
        """Decide one command; this thread writes if no other does."""
        return self._group.call(command)

    def submit(self, command: Command) -> Future[Answer]:
        """Decide one command in the ledger's thread."""
        return self._group.submit(command)

    def enqueue(self, command: Command, done: Callback) -> None:
        """Decide one command in the ledger's thread and call back there."""
        self._group.enqueue(command, done)

    def _run(self, commands: Sequence[Command]) -> list[Outcome]:
        with self._lock, translated(self._path):
            self._refuse_if_unusable()
            now, view = self._clocks.now(), JournalView(self._journal, self._process)
            lines: list[bytes] = []
            answers: list[Outcome] = []
            before = (self._writer.number, self._writer.last_sum)
            noted = 0
            for command in commands:
                decision = decide(view, command, now)
                answers.append(decision.answer)
                if decision.writes:
                    view.apply(decision.writes)
                    lines.append(
                        self._writer.line(
                            now.wall_ms, self._synced, decision.writes, decision.audit
                        )
                    )
                    noted += len(decision.audit)
            crash.point("decided")
            if lines:
                try:
                    self._append(b"".join(lines))
                except BaseException:
                    self._writer.number, self._writer.last_sum = before
                    raise
                take_over(self._journal, view)
                self._journal.audit_number += noted
            return answers

    def _refuse_if_unusable(self) -> None:
        if self._broken is not None:
            raise self._broken
        if os.getpid() != self._pid:
            raise LedgerLocked(
                f"the ledger {self._path} belongs to the parent process: open the default ledger "
                "(sqlite:), which processes can share"
            )
        try:
            here, there = os.fstat(self._fd), os.stat(self._path)
        except OSError:
            raise LedgerGone(f"the ledger {self._path} is gone: put it back and restart") from None
        if (here.st_dev, here.st_ino) != (there.st_dev, there.st_ino):
            raise LedgerGone(
                f"the ledger {self._path} was replaced by another file: restart to use that one"
            )

    def _append(self, data: bytes) -> None:
        """Write and sync; a failed write is taken back, a failed sync ends this file's use."""
        try:
            write_all(self._fd, data)
        except OSError as problem:
            with contextlib.suppress(OSError):
                os.ftruncate(self._fd, self._end)
            if os.fstat(self._fd).st_size != self._end:
                self._broken = in_words(self._path, problem)
            raise
        crash.point("written")
        try:
            sync(self._fd)
        except OSError as problem:
            self._broken = LedgerUnavailable(
                f"the disk did not keep what was written to the ledger {self._path} "
                f"({problem.strerror}): nothing more is answered from it; open it again, and "
                "reconcile what it then calls unknown"
            )
            with contextlib.suppress(OSError):
                self._beside("failed").write_text(str(self._synced), encoding="ascii")
            raise self._broken from None
        self._end += len(data)
        self._synced = self._end
        crash.point("synced")

    # --- reading -----------------------------------------------------------------------------

    def records(self) -> Iterator[tuple[IntentKey, IntentRecord]]:
        """Yield every record."""
        with self._lock:
            return iter(list(self._journal.intents.items()))

    def floor(self) -> Floor:
        """Return where absent domains start."""
        return self._journal.floor

    def marker(self) -> Marker:
        """Return whether this ledger is open."""
        return self._journal.marker

    def intents(self) -> Iterator[Shown]:
        """Yield every intent that is not absent, as it stands now."""
        now = self.now()
        for key, record in self.records():
            alive = liveness_of(record, self._process)
            seen = as_of(record, now, alive)
            if not isinstance(seen.state, Absent):
                yield Shown(key, seen, alive)

    def domains(self) -> Iterator[tuple[str, DomainHead]]:
        """Yield every domain."""
        with self._lock:
            heads = sorted(self._journal.domains.items())
        return iter(heads)

    def audit(self, after: int = 0) -> Iterator[tuple[int, Event]]:
        """Yield the audit lines after number `after`, those before a compaction included."""
        yield from all_events((self._beside("audit"), self._path), after)

    def peek(self, key: IntentKey) -> int:
        """Return the revision of an intent's record."""
        record = self._journal.intents.get(key)
        return 0 if record is None else record.revision

    def verify(self) -> Iterator[Problem]:
        """Read the file again from its first line, and recompute every certificate."""
        with self._lock:
            data = self._path.read_bytes()
        try:
            read = journal.read(data)
        except LedgerDamaged as damage:
            yield Problem(str(self._path), str(damage))
            return
        if read.end < len(data):
            yield Problem(str(self._path), f"line {read.number + 1} is not whole")
        for key, record in read.intents.items():
            yield from check_record(key, record)

    def describe(self) -> Description:
        """Say what this ledger is and what its answers rest on."""
        details = {"bytes": self._end, "lines": self._writer.number}
        return Description("jsonl", str(self._path), "synced before every answer", details)

    # --- keeping -----------------------------------------------------------------------------

    def sweep(self) -> int:
        """Delete what has expired and give the space back."""
        now, changed = self.now(), 0
        with self._lock, translated(self._path):
            self._refuse_if_unusable()
            if not may_sweep(self._journal.marker):
                return 0
            for key, record in list(self._journal.intents.items()):
                left = sweep(record, now)
                changed += left is not record
                if left is None:
                    del self._journal.intents[key]
                else:
                    self._journal.intents[key] = left
            if changed:
                self._rewrite()
        return changed

    def sweep_audit(self, before_ms: int) -> int:
        """Delete old audit lines: from the journal by compaction, from the archive by a copy."""
        with self._lock, translated(self._path):
            self._refuse_if_unusable()
            if self.now().expiry_paused:
                return 0
            until, archived = self._journal.audit_number - AUDIT_KEPT, self._beside("audit")
            if old_until(all_events((archived, self._path), 0), until, before_ms) == 0:
                return 0
            self._rewrite()
            return trim(archived, until, before_ms)

    def compact(self) -> None:
        """Rewrite what is live to a new file; the audit stays, in a file beside it."""
        with self._lock, translated(self._path):
            self._refuse_if_unusable()
            self._rewrite()

    def _rewrite(self) -> None:
        archive(self._path, self._beside("audit"))
        crash.point("audit archived")
        now = self._clocks.now()
        writer, new = journal.Writer(), self._beside("new")
        fd = os.open(new, os.O_CREAT | os.O_TRUNC | os.O_WRONLY | os.O_NOFOLLOW, 0o600)
        try:
            size = 0
            number: int | None = self._journal.audit_number
            for writes in chunks(self._journal):
                line = writer.line(now.wall_ms, 0, writes, [], number)
                if number is not None:
                    line += writer.stop(now.wall_ms, len(line))
                write_all(fd, line)
                size, number = size + len(line), None
            crash.point("rewritten")
            os.fsync(fd)
        finally:
            os.close(fd)
        crash.point("rewrite synced")
        os.rename(new, self._path)
        crash.point("renamed")
        sync_directory(self._path.parent)
        crash.point("directory synced")
        old = self._fd
        self._fd = os.open(self._path, os.O_RDWR | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW)
        os.close(old)
        self._writer = writer
        self._journal.number, self._journal.last_sum = writer.number, writer.last_sum
        self._end = self._synced = size

    def save_counters(self, counters: dict[str, int]) -> None:
        """Keep this process's counters beside the journal, added to those of earlier processes."""
        if not self._counts:
            self._counts = self._earlier_counters()
        total = add_counters((self._counts, counters))
        new = self._beside("counters.new")
        with translated(self._path):
            new.write_bytes(orjson.dumps(total))
            new.replace(self._beside("counters"))

    def _earlier_counters(self) -> dict[str, int]:
        try:
            loaded = orjson.loads(self._beside("counters").read_bytes())
        except (OSError, ValueError):
            return {"admitted": 0}
        return {str(k): int(v) for k, v in loaded.items()}

    def counters(self) -> dict[str, int]:
        """Return the sum over all processes."""
        return self._earlier_counters()

    def close(self) -> None:
        """Answer what waits, say that all of it is synced, and drop the lock."""
        if os.getpid() != self._pid or self._lock_fd < 0:
            return
        self._group.close()
        if self._broken is None and self._writer.number:
            with contextlib.suppress(OSError, LedgerError):
                self._append(self._writer.line(self.now().wall_ms, self._synced, Writes(), []))
        os.close(self._fd)
        lock_descriptors.close(self._lock_fd)
        self._lock_fd = -1


def open_url(url: str) -> JsonlLedger:
    """Open the journal of a `jsonl:` URL or a path; without a path, the user's own."""
    return JsonlLedger(locate(url, "jsonl"))
