"""What a batch over a shared store reads and writes: keys, and decisions that belong together.

Decisions that share a key are one group: what one wrote, the next one read. A group is written
whole or not at all.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson

from fencekit.core.draft import FLOOR, Decision, NotLoaded, View
from fencekit.core.state import OPEN, Floor, IntentKey
from fencekit.ledger import codec
from fencekit.ledger.due import due_of

FLOOR_KEY = b"f"
MARKER_KEY = b"m"

# Read by everybody and written by hardly anybody: compared, not shared, until a batch writes them.
_COMPARED = frozenset({FLOOR_KEY, MARKER_KEY})


@dataclass(frozen=True, slots=True)
class Stored:
    """One value as read: its version (0: absent) and its bytes."""

    version: int
    value: bytes | None


@dataclass(slots=True)
class Group:
    """What one group of decisions read and writes; written whole or not at all."""

    expected: dict[bytes, int] = field(default_factory=dict)
    values: dict[bytes, bytes | None] = field(default_factory=dict)
    due: dict[bytes, int] = field(default_factory=dict)
    audit: list[bytes] = field(default_factory=list)
    members: list[int] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Written:
    """What became of some groups: those that failed, the versions of what was written, the clock.

    A version of 0 says that the key was deleted.
    """

    failed: set[int]
    versions: dict[bytes, int]
    ms: int


def written(
    groups: Sequence[Group], failed: Sequence[int], versions: Sequence[int], ms: int
) -> Written:
    """Read a store's answer, which gives one version for each value of each group in turn."""
    fell = set(failed)
    keys = ((i, key) for i, group in enumerate(groups) for key in group.values)
    given = {key: n for (i, key), n in zip(keys, versions, strict=False) if i not in fell}
    return Written(fell, given, ms)


class Watched(View):
    """A view that notes which keys a decision looked at."""

    def __init__(self, view: View) -> None:
        self.keys: set[bytes] = set()
        super().__init__(
            _Noted(view.intents, self.keys, intent_key),
            _Noted(view.domains, self.keys, domain_key),
            view.floor,
            view.liveness,
            view.marker,
        )
        self.keys.add(MARKER_KEY)
        if view.floor is not None:
            self.keys.add(FLOOR_KEY)


class _Noted(dict[Any, Any]):
    """A dictionary that notes what is asked of the one below."""

    def __init__(
        self, below: dict[Any, Any], noted: set[bytes], key: Callable[[Any], bytes]
    ) -> None:
        self._below, self._noted, self._key = below, noted, key

    def __missing__(self, name: Any) -> Any:
        self._noted.add(self._key(name))
        return self._below[name]


class Groups:
    """Decisions that share a key belong together: what one wrote the next one read."""

    def __init__(self) -> None:
        self._groups: list[Group] = []
        self._of: dict[bytes, Group] = {}

    def add(
        self, index: int, keys: set[bytes], decision: Decision, versions: dict[bytes, int]
    ) -> None:
        """Add one decision, joining the groups that it ties together."""
        writes = {FLOOR_KEY} if decision.writes.floor is not None else set()
        if decision.writes.marker is not None:
            writes.add(MARKER_KEY)
        # What this batch has written, the decisions after it have read: they stand or fall with it.
        shared = {k for k in keys if k not in _COMPARED or k in writes or k in self._of}
        group = Group()
        for joined in {id(g): g for k in shared if (g := self._of.get(k)) is not None}.values():
            group.expected |= joined.expected
            group.values |= joined.values
            group.due |= joined.due
            group.audit += joined.audit
            group.members += joined.members
            self._groups.remove(joined)
        group.members.append(index)
        if decision.writes or group.values:
            group.expected |= {key: versions[key] for key in keys}
        for intent, record in decision.writes.intents.items():
            key = intent_key(intent)
            group.values[key] = None if record is None else codec.encode_intent(record)
            group.due[key] = 0 if record is None else due_of(record)
        for domain, head in decision.writes.domains.items():
            group.values[domain_key(domain)] = None if head is None else codec.encode_domain(head)
        if decision.writes.floor is not None:
            group.values[FLOOR_KEY] = codec.encode_floor(decision.writes.floor)
        if decision.writes.marker is not None:
            group.values[MARKER_KEY] = codec.encode_marker(decision.writes.marker)
        group.audit += [orjson.dumps(line) for line in decision.audit]
        for key in group.expected.keys() | shared:
            if key not in _COMPARED or key in group.values:
                self._of[key] = group
        self._groups.append(group)

    def all(self) -> list[Group]:
        """Return the groups."""
        return self._groups


def intent_key(key: IntentKey) -> bytes:
    """Return the store's key of an intent; names hold no NUL."""
    return f"i{key.principal}\0{key.intent}".encode()


def key_of_intent(key: bytes) -> IntentKey:
    """Read what `intent_key` wrote."""
    principal, _, intent = key[1:].decode().partition("\0")
    return IntentKey(principal, intent)


def domain_key(name: str) -> bytes:
    """Return the store's key of a domain."""
    return f"d{name}".encode()


def key_of(missing: NotLoaded) -> bytes:
    """Return the store's key of what a decision asked for."""
    if missing.kind == FLOOR:
        return FLOOR_KEY
    if isinstance(missing.key, IntentKey):
        return intent_key(missing.key)
    return domain_key(missing.key)


def decoded(key: bytes, value: bytes | None) -> Any:
    """Return what stands under a key as the rules know it; None and "nothing" are the same."""
    kind = key[:1]
    if kind == b"i":
        return None if value is None else codec.decode_intent(value)
    if kind == b"d":
        return None if value is None else codec.decode_domain(value)
    if key == MARKER_KEY:
        return OPEN if value is None else codec.decode_marker(value)
    return Floor() if value is None else codec.decode_floor(value)


def put(view: View, key: bytes, value: Any) -> None:
    """Put what stands under a key into a view."""
    kind = key[:1]
    if kind == b"i":
        view.intents[key_of_intent(key)] = value
    elif kind == b"d":
        view.domains[key[1:].decode()] = value
    elif key == MARKER_KEY:
        view.marker = value
    else:
        view.floor = value


def value_of(view: View, key: bytes) -> Any:
    """Return what a view holds under a key."""
    kind = key[:1]
    if kind == b"i":
        return view.intents[key_of_intent(key)]
    if kind == b"d":
        return view.domains[key[1:].decode()]
    return view.marker if key == MARKER_KEY else view.floor
