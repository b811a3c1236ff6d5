"""A child on raw frames: what a failed write proves, how a child is ended, what is kept of it."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time

import psutil
import pytest

from fencekit.wire.errors import NeverLeft, TimedOut, Unanswered
from fencekit.wire.stdio import STDERR_TAIL, Child

ECHO = "import sys\nfor l in sys.stdin.buffer: sys.stdout.buffer.write(l); sys.stdout.flush()"


def child(code: str, **options) -> Child:
    return Child([sys.executable, "-c", code], **options)


def ended(pid: int) -> bool:
    """Wait until a process that is not our child is gone, or a zombie that nobody reaps."""
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        try:
            if psutil.Process(pid).status() == psutil.STATUS_ZOMBIE:
                return True
        except psutil.NoSuchProcess:
            return True
        time.sleep(0.01)
    return False


def test_lines_come_back_byte_for_byte():
    with_escape = rb'{"id":1,"method":"tools\/call","x":1.0}'
    it = child(ECHO)
    lines = it.lines()
    it.write(with_escape)
    it.write(b"x" * 2_000_000)

    assert next(lines) == with_escape
    assert len(next(lines)) == 2_000_000
    assert it.close() == 0


def test_a_long_line_is_cut_where_the_caller_says():
    it = child(ECHO)
    it.write(b"x" * 25)

    lines = it.lines(max_line=10)

    assert [next(lines), next(lines), next(lines)] == [b"x" * 10, b"x" * 10, b"x" * 5]
    it.close()


def test_a_program_that_is_not_there_never_left():
    with pytest.raises(NeverLeft, match="no such program"):
        Child(["no-such-program-here"])


def test_a_dead_child_never_gets_a_byte():
    it = child("pass")
    it.process.wait(10)

    with pytest.raises(NeverLeft, match="exit code 0"):
        it.write(b"{}")
    it.close()


def test_a_child_that_reads_nothing_is_unknown_only_once_bytes_left():
    """A full pipe holds bytes that the child may yet read; an untouched one holds none of ours."""
    it = child("import time; time.sleep(60)")

    with pytest.raises(TimedOut, match="bytes left us"):
        it.write(b"x" * 1_000_000, timeout=0.05)
    with pytest.raises(NeverLeft, match="0 bytes left us"):
        it.write(b"{}", timeout=0.05)
    it.kill()


def test_a_child_that_dies_while_reading_leaves_the_request_unknown():
    it = child("import os; os.read(0, 10); os.kill(os.getpid(), 9)")

    with pytest.raises(Unanswered) as caught:
        it.write(b"x" * 5_000_000, timeout=20)

    assert caught.value.may_have_run
    it.close()


def test_close_ends_a_write_that_waits():
    it = child("import time; time.sleep(60)")
    caught: list[Exception] = []

    def write():
        try:
            it.write(b"x" * 1_000_000)
        except Exception as error:
            caught.append(error)

    thread = threading.Thread(target=write)
    thread.start()
    it.kill()
    thread.join(5)

    assert not thread.is_alive()
    assert len(caught) == 1


def test_a_child_that_ignores_the_end_and_sigterm_is_killed_with_its_children():
    code = (
        "import signal,subprocess,sys,time\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "kid = subprocess.Popen([sys.executable,'-c','import time; time.sleep(60)'])\n"
        "print(kid.pid, flush=True)\n"
        "time.sleep(60)"
    )
    it = child(code)
    kid = int(next(it.lines()))

    assert it.close(grace=0.1) == -signal.SIGKILL
    assert ended(kid)


def test_a_child_has_a_process_group_of_its_own_and_the_environment_it_was_given(tmp_path):
    it = child(
        "import os; print(os.environ['MARK'], os.getcwd(), flush=True)",
        env={"MARK": "here"},
        cwd=str(tmp_path),
    )

    assert next(it.lines()).decode() == f"here {tmp_path}"
    assert os.getpgrp() != it.pid
    it.close()


def test_the_end_of_stderr_is_kept_and_bounded():
    code = f"import sys; sys.stderr.write('a' * {STDERR_TAIL * 3} + 'the end')"
    it = child(code, stderr="capture")
    it.close(grace=10)

    assert it.stderr_tail().endswith("the end")
    assert len(it.stderr_tail()) <= STDERR_TAIL
