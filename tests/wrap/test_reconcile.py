"""When a server behind a URL says "not there" of a call that it may still be at work on."""

from __future__ import annotations

import pytest

from fencekit.core.state import Holder
from fencekit.ledger.clocks import Clocks
from fencekit.ledger.memory import MemoryLedger
from fencekit.wrap.rules import Reconcile, Rules, ToolKind, ToolRule
from tests.wrap.door import Door, outcome

READ = Reconcile("find_payment", {"order": "$.order"}, "$.count")
RULES = Rules({"create_payment": ToolRule(kind=ToolKind.APPEND, reconcile=READ)})


def paid(door: Door) -> int:
    return [frame.params.get("name") for frame in door.to_server].count("create_payment")


@pytest.mark.parametrize("remote", [True, False])
def test_absent_is_believed_of_a_remote_call_only_after_its_deadline(remote):
    passed: dict[str, int] = {"ms": 0}

    def now() -> int:
        return 1_800_000_000_000 + passed["ms"]

    ledger = MemoryLedger(Clocks(now, now, "boot"))
    ledger.holder = Holder("ticket")  # nobody can tell whether it lives
    Door(RULES, ledger=ledger).call(1)
    passed["ms"] = 61_000
    door = Door(RULES, ledger=ledger, remote=remote)
    absent = {"structuredContent": {"count": 0}, "content": []}
    door.call(2)
    door.answer(door.to_server[-1].id, absent)

    assert paid(door) == (0 if remote else 1)
    if remote:
        assert outcome(door.last)["state"] == "unknown"
        passed["ms"] += 900_000
        door.call(3)
        door.answer(door.to_server[-1].id, absent)
        assert paid(door) == 1
