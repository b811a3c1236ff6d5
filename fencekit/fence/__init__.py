"""The fence for synchronous callers, and what both facades share."""

from fencekit.fence.calls import Calls
from fencekit.fence.sync import Fence

__all__ = ["Calls", "Fence"]
