"""A synchronous standby: nothing is answered that it does not have, also when asked again."""

from __future__ import annotations

from pathlib import Path

import psutil
import pytest

from fencekit import Fence, FenceConfig, Fresh
from fencekit.core.errors import LedgerUnavailable
from fencekit.fence import Calls
from fencekit.ledger.conditional import ConditionalLedger
from fencekit.ledger.postgres import PostgresStore
from tests.chaos import nemesis
from tests.ledger.servers import stopped


@pytest.fixture
def server():
    with nemesis.folder_for_a_server() as place:
        server = nemesis.PostgresWithStandby(Path(place))
        server.start()
        yield server
        server.close()


def opened(server):
    url = f"postgresql://postgres:@127.0.0.1:{server.port}/postgres?sslmode=disable"
    store = PostgresStore(url, "app", limit=0.5)
    ledger = ConditionalLedger("postgresql://", store, "p" * 32, deadline=0.1)
    return Fence(calls=Calls(ledger, FenceConfig()))


@pytest.mark.slow
def test_a_commit_that_was_given_up_is_not_answered_before_the_standby_has_it(server):
    """The server keeps such a commit and shows it to everybody, although no standby has it."""
    first, second = opened(server), opened(server)
    assert first.ledger.describe().details["synchronous standbys"] == "*"
    standby = psutil.Process(server.standing_by.pid)
    with stopped(standby.pid, *(child.pid for child in standby.children(recursive=True))):
        for _ in range(2):
            with pytest.raises(LedgerUnavailable):
                first.prepare("pay", "t", attempt="a" * 32)
        with pytest.raises(LedgerUnavailable):
            opened(server)
    assert isinstance(first.prepare("pay", "t", attempt="a" * 32), Fresh)
    server.fail_over()
    third = opened(server)
    assert third.ledger.peek(third.calls.draw.key("pay")) == 1
    assert third.ledger.describe().details["synchronous standbys"] == "none"
    for fence in (first, second, third):
        fence.ledger._deadline = 0
        fence.close()
