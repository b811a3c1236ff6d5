"""A process that runs effects behind a ledger and says what it heard, until it is killed.

Usage: worker URL INTENTS EFFECTS. Each effect appends a line to EFFECTS; each answer is printed.
"""

from __future__ import annotations

import os
import sys

from fencekit import Fence
from fencekit.core.messages import Fresh


def main(url: str, count: str, effects: str) -> None:
    fence = Fence.open(url)
    fd = os.open(effects, os.O_CREAT | os.O_APPEND | os.O_WRONLY)
    print("ready", flush=True)
    for i in range(int(count)):
        admission = fence.prepare(f"i{i}", "effect", domain="d", holder="process")
        if isinstance(admission, Fresh):
            print(f"fresh i{i} {admission.ticket.seq}", flush=True)
            os.write(fd, f"i{i}\n".encode())
            cert = fence.commit(admission.ticket, {"i": i})
            print(f"done i{i} {cert.hash}", flush=True)
    fence.close()
    print("closed", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
