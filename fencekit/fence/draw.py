"""Drawing commands: each gets a random id and the ledger's time, once, on the caller's side."""

from __future__ import annotations

import getpass
import os
from typing import Any, Literal

from fencekit.core.config import FenceConfig
from fencekit.core.messages import (
    Abort,
    Clear,
    Commit,
    Current,
    EvictDomain,
    Forget,
    Heartbeat,
    Look,
    Prepare,
    Release,
    Reserve,
    Settle,
)
from fencekit.core.request import EffectRequest
from fencekit.core.result import Result
from fencekit.core.state import Holder, IntentKey, PreparedEffect
from fencekit.ledger.base import Ledger

HolderKind = Literal["process", "ticket"]


_DRAWN_TOGETHER = 128

_ids: list[str] = []
# A child of fork must not draw what its parent will draw.
os.register_at_fork(after_in_child=_ids.clear)


def new_id() -> str:
    """Return a random id (128 bits, hex).

    Many are drawn at once: asking the system lets go of the interpreter each time, and what waits
    for it then runs first (a seventh of the time of a proxy with 64 calls in flight).
    """
    try:
        return _ids.pop()
    except IndexError:
        drawn = os.urandom(16 * _DRAWN_TOGETHER).hex()
        _ids.extend(drawn[at : at + 32] for at in range(32, len(drawn), 32))
        return drawn[:32]


class Draw:
    """Makes the commands of one fence."""

    def __init__(self, ledger: Ledger, config: FenceConfig) -> None:
        self._ledger = ledger
        self.config = config

    def _now_ms(self) -> int:
        return self._ledger.now().wall_ms

    def request(self, intent: str, tool: str = "", args: Any = None, **more: Any) -> EffectRequest:
        """Return a checked request; principal and agent come from the config where not given."""
        more.setdefault("principal", self.config.principal)
        if more.get("agent") is None:
            more["agent"] = self.config.agent
        return EffectRequest.make(intent, tool, args, **more)

    def prepare(
        self, request: EffectRequest, kind: HolderKind = "ticket", attempt: str | None = None
    ) -> Prepare:
        """Draw a prepare; `attempt` is a ticket id drawn earlier, for asking again."""
        return Prepare(
            id=attempt or new_id(),
            drawn_ms=self._now_ms(),
            request=request,
            holder=self._ledger.holder if kind == "process" else Holder("ticket"),
            lease_ms=self.config.lease_ms,
            lease_expiry=self.config.lease_expiry,
        )

    def commit(self, ticket: PreparedEffect, result: Result) -> Commit:
        """Draw a commit; the certificate is computed here, outside every lock."""
        return Commit.make(new_id(), self._now_ms(), ticket, result, self.config.result_ttl_ms)

    def result(self, value: Any) -> Result:
        """Return a JSON value as a result; never raises, for the effect already happened."""
        return Result.of(value, self.config.max_result_bytes)

    def abort(self, ticket: PreparedEffect, reason: str) -> Abort:
        """Draw an abort."""
        return Abort(new_id(), self._now_ms(), ticket, reason)

    def release(self, ticket: PreparedEffect, reason: str) -> Release:
        """Draw a release."""
        return Release(new_id(), self._now_ms(), ticket, reason)

    def heartbeat(self, ticket: PreparedEffect) -> Heartbeat:
        """Draw a heartbeat."""
        return Heartbeat(new_id(), self._now_ms(), ticket, self.config.lease_ms)

    def key(self, intent: str, principal: str | None = None) -> IntentKey:
        """Return the ledger key of an intent of this fence's principal."""
        return IntentKey(self.config.principal if principal is None else principal, intent)

    def clear(
        self,
        key: IntentKey,
        ticket: str,
        revision: int,
        note: str,
        operator: str | None = None,
        *,
        even_if_alive: bool = False,
    ) -> Clear:
        """Draw a clear of the attempt that was judged at that revision."""
        return Clear(
            new_id(),
            self._now_ms(),
            key,
            ticket,
            revision,
            operator or operator_name(),
            note,
            even_if_alive,
        )

    def settle(
        self,
        key: IntentKey,
        ticket: str,
        revision: int,
        result: Result,
        note: str,
        operator: str | None = None,
    ) -> Settle:
        """Draw a settle of the attempt that was judged at that revision."""
        return Settle(
            new_id(),
            self._now_ms(),
            key,
            ticket,
            revision,
            result,
            self.config.result_ttl_ms,
            operator or operator_name(),
            note,
        )

    def forget(self, key: IntentKey, ticket: str, note: str, operator: str | None = None) -> Forget:
        """Draw a forget."""
        return Forget(new_id(), self._now_ms(), key, ticket, operator or operator_name(), note)

    def reserve(self, domain: str, expected: int, agent: str | None = None) -> Reserve:
        """Draw a reserve."""
        who = agent or self.config.agent
        return Reserve(new_id(), self._now_ms(), domain, expected, who)

    def evict_domain(self, domain: str) -> EvictDomain:
        """Draw an eviction."""
        return EvictDomain(new_id(), self._now_ms(), domain)

    def current(self, domain: str) -> Current:
        """Draw a read of a domain."""
        return Current(new_id(), self._now_ms(), domain)

    def look(self, key: IntentKey) -> Look:
        """Draw a read of an intent."""
        return Look(new_id(), self._now_ms(), key)


def operator_name() -> str:
    """Return the login name of whoever runs this process."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "unknown user"
