"""Retry safety for MCP tool calls: find double-fires, fence them, publish the evidence."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

__version__ = "0.1.0"

if TYPE_CHECKING:
    from fencekit.aio import AsyncFence
    from fencekit.core.certificate import EffectCert, ReadSetEntry
    from fencekit.core.clock import VectorClock
    from fencekit.core.config import FenceConfig
    from fencekit.core.errors import (
        AlreadyEnded,
        CausalConflict,
        DomainRace,
        Expired,
        FenceError,
        IntentFailed,
        IntentInFlight,
        IntentMismatch,
        InvalidRequest,
        LedgerError,
        ReadSetStale,
        Refused,
        ResultDiffers,
        StaleHolder,
    )
    from fencekit.core.messages import Admission, Fresh, Replay
    from fencekit.core.request import EffectRequest
    from fencekit.core.state import PreparedEffect
    from fencekit.core.stats import FenceStats
    from fencekit.fence import Fence

# Public name -> the module that defines it; imported when first used, so that `import fencekit`
# costs nothing.
_PUBLIC = {
    "Admission": "core.messages",
    "AlreadyEnded": "core.errors",
    "AsyncFence": "aio",
    "CausalConflict": "core.errors",
    "DomainRace": "core.errors",
    "EffectCert": "core.certificate",
    "EffectRequest": "core.request",
    "Expired": "core.errors",
    "Fence": "fence",
    "FenceConfig": "core.config",
    "FenceError": "core.errors",
    "FenceStats": "core.stats",
    "Fresh": "core.messages",
    "IntentFailed": "core.errors",
    "IntentInFlight": "core.errors",
    "IntentMismatch": "core.errors",
    "InvalidRequest": "core.errors",
    "LedgerError": "core.errors",
    "PreparedEffect": "core.state",
    "ReadSetEntry": "core.certificate",
    "ReadSetStale": "core.errors",
    "Refused": "core.errors",
    "Replay": "core.messages",
    "ResultDiffers": "core.errors",
    "StaleHolder": "core.errors",
    "VectorClock": "core.clock",
}

__all__ = [
    "Admission",
    "AlreadyEnded",
    "AsyncFence",
    "CausalConflict",
    "DomainRace",
    "EffectCert",
    "EffectRequest",
    "Expired",
    "Fence",
    "FenceConfig",
    "FenceError",
    "FenceStats",
    "Fresh",
    "IntentFailed",
    "IntentInFlight",
    "IntentMismatch",
    "InvalidRequest",
    "LedgerError",
    "PreparedEffect",
    "ReadSetEntry",
    "ReadSetStale",
    "Refused",
    "Replay",
    "ResultDiffers",
    "StaleHolder",
    "VectorClock",
    "__version__",
]


def __getattr__(name: str) -> object:
    if name not in _PUBLIC:
        raise AttributeError(f"module 'fencekit' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"fencekit.{_PUBLIC[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
