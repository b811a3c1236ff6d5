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
    """A view that notes which keys a decision looked at; made once for a whole batch."""

    def __init__(self, view: View) -> None:
        self.keys: set[bytes] = set()
        self._whole = view
        super().__init__(
            _Noted(view.intents, self, intent_key),
            _Noted(view.domains, self, domain_key),
            None,
            view.liveness,
        )

    def begin(self) -> Watched:
        """Forget what the last decision looked at, and take over what it wrote."""
        self.floor, self.marker = self._whole.floor, self._whole.marker
        self.keys = {MARKER_KEY} if self.floor is None else {MARKER_KEY, FLOOR_KEY}
        return self


class _Noted(dict[Any, Any]):
    """A dictionary that notes what is asked of the one below."""

    def __init__(
        self, below: dict[Any, Any], watched: Watched, key: Callable[[Any], bytes]
    ) -> None:
        self._below, self._watched, self._key = below, watched, key

    def __missing__(self, name: Any) -> Any:
        self._watched.keys.add(self._key(name))
        return self._below[name]


class Groups:
    """Decisions that share a key belong together: what one wrote the next one read."""

    def __init__(self) -> None:
        self._groups: dict[int, Group] = {}
        self._of: dict[bytes, Group] = {}

    def add(
        self, index: int, keys: set[bytes], decision: Decision, versions: dict[bytes, int]
    ) -> None:
        """Add one decision, joining the groups that it ties together."""
        writes = decision.writes
        # What this batch has written, the decisions after it have read: they stand or fall with it.
        shared = keys - _COMPARED | {k for k in _COMPARED & keys if k in self._of}
        if writes.floor is not None:
            shared.add(FLOOR_KEY)
        if writes.marker is not None:
            shared.add(MARKER_KEY)
        group = self._joined(shared)
        group.members.append(index)
        if writes or group.values:
            for key in keys:
                group.expected[key] = versions[key]
        for intent, record in writes.intents.items():
            key = intent_key(intent)
            group.values[key] = None if record is None else codec.encode_intent(record)
            group.due[key] = 0 if record is None else due_of(record)
        for domain, head in writes.domains.items():
            group.values[domain_key(domain)] = None if head is None else codec.encode_domain(head)
        if writes.floor is not None:
            group.values[FLOOR_KEY] = codec.encode_floor(writes.floor)
        if writes.marker is not None:
            group.values[MARKER_KEY] = codec.encode_marker(writes.marker)
        group.audit += map(orjson.dumps, decision.audit)
        for key in shared:
            self._of[key] = group

    def _joined(self, shared: set[bytes]) -> Group:
        """Return the group of these keys: a new one, the only one, or several made into one."""
        found = {id(g): g for k in shared if (g := self._of.get(k)) is not None}
        if len(found) == 1:
            return next(iter(found.values()))
        group = Group()
        for joined in found.values():
            group.expected |= joined.expected
            group.values |= joined.values
            group.due |= joined.due
            group.audit += joined.audit
            group.members += joined.members
            del self._groups[id(joined)]
        for key, of in self._of.items() if found else ():
            if id(of) in found:
                self._of[key] = group
        self._groups[id(group)] = group
        return group

    def all(self) -> list[Group]:
        """Return the groups."""
        return list(self._groups.values())


def common_to(groups: Sequence[Group]) -> dict[bytes, int]:
    """Return what everybody compares and nobody in this batch writes, to be compared once."""
    common: dict[bytes, int] = {}
    for key in _COMPARED:
        if any(key in group.values for group in groups):
            continue
        for group in groups:
            if key in group.expected:
                common[key] = group.expected[key]
    return common


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
