"""What a caller asks the fence to admit: one logical action, and what its decision was based on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from fencekit.core.canonical import canonical_bytes, fingerprint_from_bytes, parse_json
from fencekit.core.certificate import ReadSetEntry
from fencekit.core.clock import NO_CLOCK, VectorClock
from fencekit.core.errors import InvalidRequest
from fencekit.core.state import IntentKey

# Names travel through ledgers, terminals and pages; a bound keeps every key indexable.
MAX_NAME = 1024

# Who ticks the vector clock where nobody is named.
ANONYMOUS = "anonymous"


@dataclass(frozen=True, slots=True)
class EffectRequest:
    """One logical action. Build it with `make`, which checks everything before anything happens.

    `intent` is the stable name of the action; attempts that share it are the same action.
    `args_json` is the canonical JSON (RFC 8785) of the arguments. `domain` is the scope of
    contention, or None for none. `read_set` holds what the decision was based on. `parent` is the
    hash of the certificate that this effect follows from. `known_clock` is what the caller has
    seen; with `causal` it must not be behind or beside the domain's clock.
    """

    intent: str
    tool: str
    args_json: str
    fingerprint: str
    domain: str | None = None
    agent: str = ANONYMOUS
    read_set: tuple[ReadSetEntry, ...] = ()
    parent: str | None = None
    known_clock: VectorClock = NO_CLOCK
    causal: bool = False
    principal: str = ""
    # Asked for many times in one decision, so it is made once.
    key: IntentKey = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "key", IntentKey(self.principal, self.intent))

    @classmethod
    def make(  # noqa: PLR0913 - the fields of a request
        cls,
        intent: str,
        tool: str = "",
        args: Mapping[str, Any] | None = None,
        *,
        domain: str | None = None,
        agent: str = ANONYMOUS,
        read_set: Iterable[ReadSetEntry | tuple[str, int]] = (),
        parent: str | None = None,
        known_clock: VectorClock | Mapping[str, int] | None = None,
        causal: bool = False,
        principal: str = "",
    ) -> EffectRequest:
        """Check and build a request; raises `InvalidRequest` (or its `CanonicalError`)."""
        check_name("intent", intent)
        for label, text in (("tool", tool), ("agent", agent), ("principal", principal)):
            check_name(label, text, may_be_empty=True)
        if domain is not None:
            check_name("domain", domain)
        if causal and domain is None:
            raise InvalidRequest("causal=True needs a domain whose clock can be compared")
        if parent is not None:
            check_name("parent", parent)
        if args is not None and not isinstance(args, Mapping):
            raise InvalidRequest(f"args must be an object, not {type(args).__name__}")
        args_bytes = b"{}" if not args else canonical_bytes(dict(args))
        return cls(
            intent=intent,
            tool=tool,
            args_json=args_bytes.decode(),
            fingerprint=fingerprint_from_bytes(tool, args_bytes),
            domain=domain,
            agent=agent or ANONYMOUS,
            read_set=_read_set(read_set) if read_set else (),
            parent=parent,
            known_clock=_clock(known_clock),
            causal=causal,
            principal=principal,
        )

    @property
    def args(self) -> Any:
        """The arguments as a new JSON object."""
        return parse_json(self.args_json)


def check_name(label: str, text: object, *, may_be_empty: bool = False) -> None:
    """Refuse a name that is not text, too long, empty where it must not be, or not Unicode."""
    if type(text) is str and 0 < len(text) <= MAX_NAME and text.isascii() and "\0" not in text:
        return
    if not isinstance(text, str):
        raise InvalidRequest(f"{label} must be text, not {type(text).__name__}")
    if not text and not may_be_empty:
        raise InvalidRequest(f"{label} must not be empty")
    if len(text) > MAX_NAME:
        raise InvalidRequest(f"{label} is {len(text)} characters long; at most {MAX_NAME} are kept")
    if any("\ud800" <= ch <= "\udfff" for ch in text):
        raise InvalidRequest(f"{label} holds a lone surrogate, which is not Unicode text")
    if "\0" in text:
        raise InvalidRequest(f"{label} holds a NUL character, which not every ledger can keep")


def _read_set(entries: Iterable[ReadSetEntry | tuple[str, int]]) -> tuple[ReadSetEntry, ...]:
    made = tuple(e if isinstance(e, ReadSetEntry) else ReadSetEntry(*e) for e in entries)
    for entry in made:
        check_name("read_set domain", entry.domain)
    seen: dict[str, int] = {}
    for entry in made:
        if seen.setdefault(entry.domain, entry.seq) != entry.seq:
            raise InvalidRequest(f"read_set cites domain {entry.domain!r} at two numbers")
    return tuple(sorted(set(made), key=lambda entry: entry.domain))


def _clock(clock: VectorClock | Mapping[str, int] | None) -> VectorClock:
    if clock is None:
        return NO_CLOCK
    return clock if isinstance(clock, VectorClock) else VectorClock(clock)
