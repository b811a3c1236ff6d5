"""`VectorClock`: one counter per agent; happened-before is a partial order.

After L. Lamport (1978) for happened-before, C. Fidge and F. Mattern (1988) for the vectors.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, final

from fencekit.core.canonical import digest
from fencekit.core.errors import InvalidRequest

MAX_COUNT = 2**53 - 1
"""The largest counter: what every JSON reader keeps exact."""


class ClockError(InvalidRequest):
    """What was offered as a vector clock is none; the message names the agent."""


@final
class VectorClock:
    """An immutable vector clock: how many events of each agent are known.

    An agent that is absent has counted zero, so zero entries are dropped and two clocks that mean
    the same are equal, hash alike and share their digest. `a <= b` says that b knows everything a
    knows; it is a partial order, and where neither holds the two are `concurrent`.
    """

    __slots__ = ("_counts",)
    _counts: dict[str, int]

    def __init__(self, counts: Mapping[str, int] | None = None) -> None:
        """Copy `counts` (agent to events). Raises `ClockError` for anything but names to ints."""
        checked: dict[str, int] = {}
        for agent, count in (counts or {}).items():
            _check(agent, count)
            if count:
                checked[agent] = count
        object.__setattr__(self, "_counts", checked)

    @classmethod
    def _of(cls, counts: dict[str, int]) -> VectorClock:
        """Wrap counts that are known to be good, without a copy or a look."""
        clock = object.__new__(cls)
        object.__setattr__(clock, "_counts", counts)
        return clock

    def tick(self, agent: str) -> VectorClock:
        """Return this clock after one more event of `agent`. Raises `ClockError` at `MAX_COUNT`."""
        count = self._counts.get(agent, 0) + 1
        _check(agent, count)
        return VectorClock._of({**self._counts, agent: count})

    def merge(self, other: VectorClock) -> VectorClock:
        """Return what both know together: the element-wise maximum."""
        if not other._counts or self is other:
            return self
        merged = dict(self._counts)
        for agent, count in other._counts.items():
            if count > merged.get(agent, 0):
                merged[agent] = count
        return VectorClock._of(merged)

    def concurrent(self, other: VectorClock) -> bool:
        """Say whether each knows something that the other does not."""
        return not self <= other and not other <= self

    def __le__(self, other: VectorClock) -> bool:
        if not isinstance(other, VectorClock):
            return NotImplemented
        theirs = other._counts
        return all(count <= theirs.get(agent, 0) for agent, count in self._counts.items())

    def __lt__(self, other: VectorClock) -> bool:
        if not isinstance(other, VectorClock):
            return NotImplemented
        return self._counts != other._counts and self <= other

    def __ge__(self, other: VectorClock) -> bool:
        if not isinstance(other, VectorClock):
            return NotImplemented
        return other <= self

    def __gt__(self, other: VectorClock) -> bool:
        if not isinstance(other, VectorClock):
            return NotImplemented
        return other < self

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, VectorClock):
            return NotImplemented
        return self._counts == other._counts

    def __hash__(self) -> int:
        return hash(frozenset(self._counts.items()))

    def __getitem__(self, agent: str) -> int:
        """Return the count of an agent; zero for one that was never heard of."""
        return self._counts.get(agent, 0)

    def __iter__(self) -> Iterator[str]:
        return iter(self._counts)

    def __len__(self) -> int:
        return len(self._counts)

    def digest(self) -> str:
        """Return the SHA-256 of the clock's canonical JSON, the same in every process."""
        return digest(self._counts)

    def to_json(self) -> dict[str, int]:
        """Return a fresh object of agent to count."""
        return dict(self._counts)

    @classmethod
    def from_json(cls, value: Any) -> VectorClock:
        """Read what `to_json` wrote. Raises `ClockError` naming what is wrong."""
        if not isinstance(value, dict):
            raise ClockError(f"a vector clock is an object of agent to count, not {_kind(value)}")
        return cls(value)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError("a VectorClock never changes; tick and merge return new ones")

    def __delattr__(self, name: str) -> None:
        raise AttributeError("a VectorClock never changes; tick and merge return new ones")

    def __reduce__(self) -> tuple[type[VectorClock], tuple[dict[str, int]]]:
        return VectorClock, (dict(self._counts),)

    def __repr__(self) -> str:
        return f"VectorClock({self._counts!r})"


def _check(agent: Any, count: Any) -> None:
    if type(agent) is not str or not agent:
        raise ClockError(f"an agent's name is a text of at least one letter, not {_kind(agent)}")
    if not agent.isascii() and any("\ud800" <= letter <= "\udfff" for letter in agent):
        raise ClockError(f"the agent's name {ascii(agent)[:60]} holds a lone surrogate")
    if type(count) is not int or not 0 <= count <= MAX_COUNT:
        shown = "out of range" if type(count) is int else _kind(count)
        raise ClockError(
            f"the count of agent {ascii(agent)[:60]} is an integer from 0 to 2^53-1, not {shown}"
        )


def _kind(value: Any) -> str:
    return "empty" if value == "" else f"of type {type(value).__name__}"


NO_CLOCK = VectorClock()
"""The clock that has heard of nothing."""
