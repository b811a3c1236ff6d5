"""`FenceConfig`: how long a holder is believed, how long a result is replayed, what is kept."""

from __future__ import annotations

from dataclasses import dataclass

from fencekit.core.errors import InvalidRequest
from fencekit.core.request import ANONYMOUS, check_name
from fencekit.core.state import LeaseExpiry


@dataclass(frozen=True, slots=True)
class FenceConfig:
    """Settings of one fence; all times in seconds.

    `lease`: how long an attempt is believed without a heartbeat. `result_ttl`: how long a duplicate
    gets the recorded result; written into each outcome, so that everybody agrees. `lease_expiry`:
    `"fence"` makes an attempt whose lease ended unknown; `"reclaim"` lets a new attempt take over,
    so the effect may then run twice. `max_result_bytes`: longer results are recorded by digest and
    size only. `audit_ttl`: how long lines of the audit are kept; sweeping deletes older ones, but
    never the newest thousand. `principal`: whose intents these are; results never cross principals.
    `agent`: who ticks the vector clock where a request names nobody.
    """

    lease: float = 60.0
    result_ttl: float = 86_400.0
    lease_expiry: LeaseExpiry = "fence"
    max_result_bytes: int = 16 * 1024 * 1024
    audit_ttl: float = 30 * 86_400.0
    principal: str = ""
    agent: str = ANONYMOUS

    def __post_init__(self) -> None:
        for label in ("lease", "result_ttl", "audit_ttl"):
            seconds = getattr(self, label)
            if not isinstance(seconds, int | float) or not 0.001 <= seconds <= 10 * 365 * 86_400:
                raise InvalidRequest(
                    f"{label} must be a number of seconds from 0.001 to ten years, not {seconds!r}"
                )
        if self.lease_expiry not in ("fence", "reclaim"):
            raise InvalidRequest(
                f"lease_expiry must be 'fence' or 'reclaim', not {self.lease_expiry!r}"
            )
        if not isinstance(self.max_result_bytes, int) or self.max_result_bytes < 0:
            raise InvalidRequest("max_result_bytes must be a number of bytes, 0 or more")
        check_name("principal", self.principal, may_be_empty=True)
        check_name("agent", self.agent)

    @property
    def lease_ms(self) -> int:
        """The lease in milliseconds."""
        return round(self.lease * 1000)

    @property
    def audit_ttl_ms(self) -> int:
        """The retention of the audit in milliseconds."""
        return round(self.audit_ttl * 1000)

    @property
    def result_ttl_ms(self) -> int:
        """The retention of results in milliseconds."""
        return round(self.result_ttl * 1000)
