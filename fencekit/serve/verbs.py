"""What each tool does: from checked arguments to one verb of the fence to plain JSON.

Tickets travel: an attempt is held by its ticket and lease, not by this process, so it can be
committed through another server, or this one restarted.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from fencekit.aio import AsyncFence
from fencekit.core.certificate import ReadSetEntry
from fencekit.core.errors import FenceError
from fencekit.core.messages import Fresh
from fencekit.core.request import check_name
from fencekit.core.ticket import ticket_from_json, ticket_to_json
from fencekit.serve.arguments import read_arguments, whole
from fencekit.serve.refusals import machine, sentence
from fencekit.serve.schemas import (
    ABORT,
    COMMIT,
    HEARTBEAT,
    OBSERVE,
    PREPARE,
    STATS,
    ToolSpec,
)

Arguments = Mapping[str, Any]
Verb = Callable[[Arguments], Awaitable[dict[str, Any]]]


class ToolRefused(Exception):
    """A tool call that the fence refused; `str()` is for the model, `meta` for machines."""

    def __init__(self, tool: str, error: FenceError) -> None:
        super().__init__(sentence(tool, error))
        self.meta = machine(error)


class Verbs:
    """The six tools over one fence."""

    def __init__(self, fence: AsyncFence) -> None:
        self._fence = fence
        self._verbs: dict[str, tuple[ToolSpec, Verb]] = {
            PREPARE.name: (PREPARE, self._prepare),
            COMMIT.name: (COMMIT, self._commit),
            ABORT.name: (ABORT, self._abort),
            HEARTBEAT.name: (HEARTBEAT, self._heartbeat),
            OBSERVE.name: (OBSERVE, self._observe),
            STATS.name: (STATS, self._stats),
        }

    def __contains__(self, name: str) -> bool:
        return name in self._verbs

    async def call(self, name: str, arguments: Arguments | None) -> dict[str, Any]:
        """Return the structured answer of one tool. Raises `ToolRefused`."""
        spec, verb = self._verbs[name]
        try:
            return await verb(read_arguments(spec.input, arguments))
        except FenceError as error:
            raise ToolRefused(name, error) from None

    async def _prepare(self, given: Arguments) -> dict[str, Any]:
        attempt = given.get("attempt")
        if attempt is not None:
            check_name("attempt", attempt)
        read_set = given.get("read_set", ())
        known = given.get("known_clock")
        admission = await self._fence.prepare(
            given["intent"],
            given["tool"],
            given["args"],
            domain=given["domain"] or None,
            agent=given["agent"],
            read_set=[ReadSetEntry(entry["domain"], whole(entry["seq"])) for entry in read_set],
            parent=given.get("parent"),
            known_clock=known and {agent: whole(count) for agent, count in known.items()},
            causal=given.get("causal", False),
            attempt=attempt,
        )
        if isinstance(admission, Fresh):
            return {
                "status": "fresh",
                "prepared": ticket_to_json(admission.ticket),
                "lease_secs": self._seconds_until(admission.ticket.lease_end_ms),
            }
        return {"status": "already_done", "cert": admission.cert.to_json()}

    async def _commit(self, given: Arguments) -> dict[str, Any]:
        cert = await self._fence.commit(ticket_from_json(given["prepared"]), given["result"])
        return {"status": "committed", "cert": cert.to_json()}

    async def _abort(self, given: Arguments) -> dict[str, Any]:
        await self._fence.abort(ticket_from_json(given["prepared"]), given["reason"])
        return {"status": "aborted"}

    async def _heartbeat(self, given: Arguments) -> dict[str, Any]:
        end_ms = await self._fence.heartbeat(ticket_from_json(given["prepared"]))
        return {"status": "held", "lease_secs": self._seconds_until(end_ms)}

    async def _observe(self, given: Arguments) -> dict[str, Any]:
        head = await self._fence.current(given["domain"])
        own = self._fence.calls.config.principal
        return {
            "domain": head.domain,
            "seq": head.seq,
            "clock": head.clock.to_json(),
            "open": [
                key.intent if key.principal == own else "(an intent of another principal)"
                for key in head.open
            ],
        }

    async def _stats(self, given: Arguments) -> dict[str, Any]:
        return self._fence.stats().to_json()

    def _seconds_until(self, lease_end_ms: int) -> float:
        return max(0, lease_end_ms - self._fence.ledger.now().lease_ms) / 1000
