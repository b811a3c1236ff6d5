"""A watcher that ends our children's process groups when we die without having said so.

A killed process (SIGKILL, out of memory) can end nobody. Its children see the end of their input,
but one that does not look, or a grandchild that holds nothing of ours, would run on.
PR_SET_PDEATHSIG is no way out: it follows the thread that forked, reaches one generation only, and
Linux alone has it. So one small shell waits on a pipe that only we hold: when that ends, the groups
that were not taken back get a second to end by themselves, SIGTERM and another second, then
SIGKILL (the order in which MCP ends a server on stdio). What left its group (`setsid`, a daemon) is
out of its reach, and so is everybody if the watcher is killed with us.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import threading

_SCRIPT = """
groups=
while read -r what group; do
  if [ "$what" = + ]; then groups="$groups $group"; continue; fi
  left=
  for one in $groups; do [ "$one" = "$group" ] || left="$left $one"; done
  groups=$left
done
[ -n "$groups" ] || exit 0
sleep 1
for one in $groups; do kill -s TERM -- "-$one"; done
sleep 1
for one in $groups; do kill -s KILL -- "-$one"; done
"""


class Guard:
    """The watcher of this process, started with the first group it is given."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._shell: subprocess.Popen[bytes] | None = None
        self._groups: set[int] = set()

    def keep(self, group: int) -> None:
        """End this process group when this process dies. Without a shell, nothing is promised."""
        with self._lock, contextlib.suppress(OSError):
            if self._shell is None:
                self._shell = subprocess.Popen(
                    ["/bin/sh", "-c", _SCRIPT],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    cwd="/",
                    bufsize=0,
                    # A signal to our own group (Ctrl-C, a host that ends all it started) spares it.
                    start_new_session=True,
                )
            self._groups.add(group)
            self._tell(b"+ %d\n" % group)

    def release(self, group: int) -> None:
        """Take a group back: it has ended, and its number may become somebody else's."""
        with self._lock:
            if group not in self._groups:
                return
            self._groups.discard(group)
            with contextlib.suppress(OSError):
                self._tell(b"- %d\n" % group)
            if not self._groups and self._shell is not None:
                shell, self._shell = self._shell, None
                assert shell.stdin is not None
                with contextlib.suppress(OSError):
                    shell.stdin.close()
                with contextlib.suppress(subprocess.TimeoutExpired):
                    shell.wait(1.0)

    def _tell(self, line: bytes) -> None:
        assert self._shell is not None
        assert self._shell.stdin is not None
        os.write(self._shell.stdin.fileno(), line)


GUARD = Guard() if os.name == "posix" else None
"""The one watcher of this process; None where there are no process groups."""
