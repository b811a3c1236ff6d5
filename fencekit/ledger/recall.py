"""What this process last saw under some keys, so that it may decide without reading first.

A guess is never answered by itself: it is a decision whose write carries the versions and the clock
that it was made by, and the store compares both. A decision that writes nothing is read for. So a
wrong guess costs one round trip and changes no answer; where guesses go wrong too often they are
left alone for a while.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from fencekit.core.decide import touches
from fencekit.core.draft import View
from fencekit.core.errors import LedgerDamaged
from fencekit.core.messages import Abort, Command, Commit, Heartbeat, Prepare, Release
from fencekit.core.state import Now
from fencekit.ledger.groups import (
    FLOOR_KEY,
    MARKER_KEY,
    Group,
    Stored,
    Watched,
    Written,
    decoded,
    domain_key,
    intent_key,
    put,
    value_of,
)

REMEMBERED = 2048
"""Of how many keys the last value is kept."""
LARGE = 64 * 1024
"""A value of more bytes than this is not kept."""
WORTH = 0.5
"""How many of its guesses must have been right lately for guessing to go on."""
TRY_AGAIN = 50
"""After how many readings it is tried again."""


@dataclass(slots=True)
class Reading:
    """What some decisions are made by: the keys' values and versions, and the clock."""

    now: Now
    view: View = field(default_factory=lambda: View({}, {}, None))
    versions: dict[bytes, int] = field(default_factory=dict)
    # Keys whose value cannot be read: they stop the decisions that need them, and no others.
    damaged: dict[bytes, LedgerDamaged] = field(default_factory=dict)
    large: set[bytes] = field(default_factory=set)
    watched: Watched = field(init=False)

    def __post_init__(self) -> None:
        self.watched = Watched(self.view)

    def add(self, key: bytes, found: Stored) -> None:
        """Take over what the store holds under a key."""
        self.versions[key] = found.version
        try:
            put(self.view, key, decoded(key, found.value))
        except LedgerDamaged as damage:
            self.damaged[key] = damage
        if len(found.value or b"") > LARGE:
            self.large.add(key)


def keys_of(commands: Iterable[Command]) -> list[bytes]:
    """Return the keys that commands almost always need."""
    keys: dict[bytes, None] = {MARKER_KEY: None}
    for command in commands:
        touched = touches(command)
        keys.update((intent_key(k), None) for k in touched.intents)
        keys.update((domain_key(d), None) for d in touched.domains)
        if touched.domains:
            keys[FLOOR_KEY] = None
    return list(keys)


class Recall:
    """The last known value of each key that this process read or wrote, with its version."""

    def __init__(self) -> None:
        self._known: dict[bytes, tuple[int, Any]] = {}
        self._right = 1.0
        self._waited = 0

    def guess(self, commands: Sequence[Command], now: Now) -> Reading | None:
        """Return a reading from memory, or None where reading is better.

        An intent that was never seen is taken for absent by a prepare, and so is its domain.
        """
        if not self._worth_it():
            return None
        reading = Reading(now)
        for command in commands:
            if not isinstance(command, Prepare | Commit | Abort | Release | Heartbeat):
                return None
            for key in keys_of((command,)):
                known = self._known.get(key)
                if known is None:
                    if not isinstance(command, Prepare) or key in (MARKER_KEY, FLOOR_KEY):
                        return None
                    known = (0, None)
                reading.versions[key] = known[0]
                put(reading.view, key, known[1])
        return reading

    def _worth_it(self) -> bool:
        if self._right >= WORTH:
            return True
        self._waited += 1
        if self._waited < TRY_AGAIN:
            return False
        self._waited, self._right = 0, WORTH
        return True

    def judged(self, right: int, wrong: int) -> None:
        """Learn how many decisions a guess was right for."""
        self._right += 0.2 * (right / max(1, right + wrong) - self._right)

    def learn(self, reading: Reading, groups: Sequence[Group], written: Written) -> None:
        """Keep what was read and what was written over it; drop what turned out otherwise."""
        wrong: set[bytes] = set()
        for index, group in enumerate(groups):
            if index in written.failed:
                wrong |= group.expected.keys()
            reading.large.update(k for k, v in group.values.items() if len(v or b"") > LARGE)
        for key, version in reading.versions.items():
            if key in wrong or key in reading.damaged or key in reading.large:
                self._known.pop(key, None)
            else:
                self._keep(key, written.versions.get(key, version), value_of(reading.view, key))

    def _keep(self, key: bytes, version: int, value: Any) -> None:
        if len(self._known) >= REMEMBERED and key not in self._known:
            kept = {k: self._known[k] for k in (MARKER_KEY, FLOOR_KEY) if k in self._known}
            self._known = kept
        self._known[key] = (version, value)
