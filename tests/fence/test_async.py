"""`AsyncFence`: the same decisions, and the loop never stands still."""

from __future__ import annotations

import asyncio
import threading

import pytest

from fencekit import AsyncFence, Fence, IntentFailed
from fencekit.core.messages import Prepare
from fencekit.core.state import Unknown


def test_sixteen_at_one_instant_run_once():
    async def scenario():
        ran = []
        async with AsyncFence() as fence:
            inside = asyncio.Event()

            async def charge():
                ran.append(1)
                await inside.wait()
                return len(ran)

            calls = [asyncio.create_task(fence.run("c", charge)) for _ in range(16)]
            while fence.stats().in_flight < 15:
                await asyncio.sleep(0)
            inside.set()
            return await asyncio.gather(*calls), ran

    assert asyncio.run(scenario()) == ([1] * 16, [1])


def test_a_cancelled_caller_leaves_the_intent_unknown():
    async def scenario():
        async with AsyncFence() as fence:
            inside = asyncio.Event()

            async def charge():
                inside.set()
                await asyncio.Event().wait()

            call = asyncio.create_task(fence.run("c", charge))
            await inside.wait()
            call.cancel()
            with pytest.raises(asyncio.CancelledError):
                await call
            (shown,) = await fence.intents()
            assert isinstance(shown.record.state, Unknown)
            with pytest.raises(IntentFailed):
                await fence.run("c", charge)

    asyncio.run(scenario())


def test_a_caller_cancelled_while_asking_gives_the_admission_back(tmp_path):
    async def scenario():
        async with AsyncFence.open(f"sqlite:{tmp_path / 'l.db'}") as fence:
            hold, asked = threading.Event(), threading.Event()
            run = fence.ledger._run

            def slow(commands):
                if isinstance(commands[0], Prepare):
                    asked.set()
                    hold.wait(10)
                return run(commands)

            fence.ledger._group._run = slow

            async def charge():
                raise AssertionError("must not run")

            call = asyncio.create_task(fence.run("c", charge))
            await asyncio.to_thread(asked.wait, 10)
            call.cancel()
            await asyncio.sleep(0)
            hold.set()
            with pytest.raises(asyncio.CancelledError):
                await call
            assert await fence.intents() == []

    asyncio.run(scenario())


def test_the_loop_runs_while_the_ledger_writes(tmp_path):
    async def scenario():
        async with AsyncFence.open(f"sqlite:{tmp_path / 'l.db'}") as fence:
            hold = threading.Event()
            run = fence.ledger._run

            def slow(commands):
                hold.wait(10)
                return run(commands)

            fence.ledger._group._run = slow
            asked = asyncio.create_task(fence.prepare("c", "t"))
            for _ in range(100):
                await asyncio.sleep(0)
            assert not asked.done()
            hold.set()
            return await asked

    assert asyncio.run(scenario()).ticket.intent == "c"


def test_the_decorator_and_the_verbs_agree_with_the_synchronous_fence():
    async def scenario():
        async with AsyncFence() as fence:

            @fence.effect("charge:{order}")
            async def charge(order):
                return {"order": order}

            first, again = await charge("a"), await charge("a")
            fresh = await fence.prepare("x", "t", {"n": 1}, domain="d")
            cert = await fence.commit(fresh.ticket, "ok")
            head = await fence.current("d")
            reserved = await fence.reserve("d", head.seq)
            await fence.evict_domain("d")
            lost = await fence.prepare("y", "t")
            await fence.heartbeat(lost.ticket)
            await fence.abort(lost.ticket, "no answer")
            (shown,) = [s for s in await fence.intents() if s.key.intent == "y"]
            await fence.settle(
                "y", shown.record.state.ticket.id, shown.record.revision, 1, "saw it"
            )
            await fence.forget("y", lost.ticket.id, "again")
            return first == again, cert.verify(), head.seq, reserved.seq, await fence.sweep()

    assert asyncio.run(scenario()) == (True, True, 1, 2, 0)


def test_both_facades_share_one_closed_ledger_error():
    fence = Fence()
    fence.close()
    with pytest.raises(Exception, match="closed"):
        fence.prepare("x")
