"""A client process of the chaos run: random verbs over a few intents, every answer written down.

Usage: client URL FOLDER NAME SEED STEPS [FAULT]. A fault is planted in this process only, to show
that the checker finds it.
"""

from __future__ import annotations

import json
import os
import random
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from fencekit import Fence, FenceConfig, FenceError
from fencekit.core import prepare, table
from fencekit.core.messages import Fresh, Replay
from fencekit.core.state import Done, PreparedEffect
from fencekit.core.table import OnPrepare, Situation

# One intent for so many steps: each is asked for several times, by every client.
STEPS_AN_INTENT = 5
ADMITS = {
    "admits in flight": {Situation.OTHERS, Situation.OTHERS_DEAD},
    "frees unknown": {Situation.UNKNOWN_OTHERS},
    "forgets what is done": {Situation.DONE_OTHERS},
}


def plant(fault: str, fence: Fence) -> None:
    """Break one rule, in this process."""
    original = table.row
    rules: Any = prepare
    if fault in ADMITS:

        def row(situation: Situation) -> table.Row:
            cells = original(situation)
            return replace(cells, prepare=OnPrepare.ADMIT) if situation in ADMITS[fault] else cells

        rules.row = row
    if fault == "answers before it is kept":
        tables: Any = fence.ledger
        write = tables._tables.write

        def forgets(writes: Any, audit: Any) -> None:
            records = writes.intents.values()
            if not any(r is not None and isinstance(r.state, Done) for r in records):
                write(writes, audit)

        tables._tables.write = forgets
    if fault == "another's result":
        rules.Replay = lambda sealed, at_ms: Replay(replace(sealed, hash="f" * 64), at_ms)


class Client:
    """Holds some attempts open at a time, as a busy agent does."""

    def __init__(self, fence: Fence, folder: Path, name: str, seed: str, steps: int) -> None:
        self.fence, self.name = fence, name
        self.intents = [f"pay-{n}" for n in range(steps // STEPS_AN_INTENT)]
        self.chance = random.Random(seed)
        self.open: list[PreparedEffect] = []
        flags = os.O_CREAT | os.O_APPEND | os.O_WRONLY
        self.history = os.open(folder / f"{name}.history", flags)
        self.effects = os.open(folder / "effects", flags)

    def say(self, verb: str, intent: str, answer: str, **more: object) -> None:
        """Write down what was heard, in one write."""
        line = {"client": self.name, "verb": verb, "intent": intent, "answer": answer, **more}
        os.write(self.history, json.dumps(line).encode() + b"\n")

    def step(self) -> None:
        """Begin an attempt, or end one that is open."""
        if self.open and (len(self.open) > 2 or self.chance.random() < 0.4):
            self.end(self.open.pop(self.chance.randrange(len(self.open))))
        else:
            self.begin(self.chance.choice(self.intents))

    def begin(self, intent: str) -> None:
        """Ask; if admitted, run the effect at once."""
        try:
            answer = self.fence.prepare(intent, "pay", {"i": intent}, domain="d", holder="process")
        except FenceError as refused:
            self.say("prepare", intent, "refused", hash=type(refused).__name__)
            return
        if not isinstance(answer, Fresh):
            self.say("prepare", intent, "replay", hash=answer.sealed.hash)
            return
        ticket = answer.ticket
        self.say("prepare", intent, "fresh", generation=ticket.generation, seq=ticket.seq)
        if self.chance.random() < 0.15:
            self.fence.release(ticket, "changed its mind before it ran")
            return
        os.write(self.effects, f"{intent} {ticket.generation}\n".encode())
        self.open.append(ticket)

    def end(self, ticket: PreparedEffect) -> None:
        """Say how an attempt went."""
        try:
            if self.chance.random() < 0.2:
                self.fence.abort(ticket, "lost its answer")
                return
            cert = self.fence.commit(ticket, {"paid": ticket.intent})
        except FenceError as refused:
            self.say("end", ticket.intent, "refused", hash=type(refused).__name__)
        else:
            self.say("commit", ticket.intent, "done", hash=cert.hash)


def main(url: str, folder: str, name: str, seed: str, steps: str, fault: str = "") -> None:
    """Run the client."""
    fence = Fence.open(url, FenceConfig(lease=30))
    client = Client(fence, Path(folder), name, seed, int(steps))
    plant(fault, fence)
    print("ready", flush=True)
    sys.stdin.readline()  # all clients begin together
    for _ in range(int(steps)):
        client.step()
    for ticket in client.open:
        client.end(ticket)
    fence.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
