"""`EffectCert`: the content-addressed record of one committed effect, chained by `parent`.

Its hash is the SHA-256, in hex, of the RFC 8785 bytes of the ten fields below (integers of any size
exact, see `canonical`). Whoever has the certificate can recompute it, in any language: the test
vectors and a verifier without dependencies are in `fixtures/certificates`.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from typing import Any, TypedDict, Unpack

from fencekit.core.canonical import CanonicalError, Json, canonical_bytes
from fencekit.core.clock import ClockError, VectorClock
from fencekit.core.errors import InvalidRequest

NOT_KEPT = "fencekit/not_kept"
"""The one key of what stands in for a result that was not kept."""

FIELDS = (
    "intent",
    "parent",
    "domain",
    "seq",
    "tool",
    "args",
    "result",
    "vector_clock",
    "read_set",
    "agent",
)
"""What the hash covers."""

_HASH = re.compile(r"[0-9a-f]{64}\Z")


class CertificateError(InvalidRequest):
    """A certificate or read-set entry is malformed; the message names the field."""


@dataclass(frozen=True, slots=True)
class ReadSetEntry:
    """What a decision was based on: `domain` as it stood at sequence number `seq`."""

    domain: str
    seq: int

    def __post_init__(self) -> None:
        if type(self.domain) is not str or not self.domain:
            raise CertificateError("read_set: domain must be a text of at least one letter")
        if type(self.seq) is not int or self.seq < 0:
            raise CertificateError("read_set: seq must be an integer of at least 0")

    def to_json(self) -> dict[str, Json]:
        """Return the entry as an object."""
        return {"domain": self.domain, "seq": self.seq}

    @classmethod
    def from_json(cls, value: Any) -> ReadSetEntry:
        """Read what `to_json` wrote. Raises `CertificateError` naming the field."""
        if not isinstance(value, dict) or value.keys() != {"domain", "seq"}:
            raise CertificateError("read_set: an entry is an object of exactly domain and seq")
        return cls(value["domain"], value["seq"])


class CertFields(TypedDict):
    """The ten fields that a certificate's hash covers."""

    intent: str
    parent: str | None
    domain: str | None
    seq: int | None
    tool: str
    args: dict[str, Json]
    result: Json
    vector_clock: VectorClock
    read_set: tuple[ReadSetEntry, ...]
    agent: str


@dataclass(frozen=True, slots=True)
class EffectCert:
    """One committed effect. `parent` is the hash of the certificate before it, if any.

    `seq` is the number the effect took in `domain`; both are None for an effect outside any domain.
    `args` and `result` are held, not copied: who changes them in place breaks the certificate, and
    `verify` says so.
    """

    intent: str
    parent: str | None
    domain: str | None
    seq: int | None
    tool: str
    args: dict[str, Json]
    result: Json
    vector_clock: VectorClock
    read_set: tuple[ReadSetEntry, ...]
    agent: str
    hash: str

    @classmethod
    def make(cls, **fields: Unpack[CertFields]) -> EffectCert:
        """Seal the fields. Raises `CanonicalError` where one has no canonical JSON."""
        return cls(**fields, hash=hashlib.sha256(canonical_bytes(_plain(fields))).hexdigest())

    @staticmethod
    def hash_of_parts(args_bytes: bytes, result_bytes: bytes, fields: CertFields) -> str:
        """Return the hash of the fields, given the canonical bytes of `args` and `result`.

        For a caller that has them already: big values are hashed, not written once more, and what
        `fields` holds under those two names is not looked at.
        """
        return hashlib.sha256(_splice(args_bytes, result_bytes, fields)).hexdigest()

    def canonical(self) -> bytes:
        """Return the bytes that the hash is taken of. Raises `CanonicalError`."""
        return canonical_bytes(_plain(self._fields()))

    def verify(self) -> bool:
        """Say whether the hash is that of the fields. Nothing else is consulted, nothing raised."""
        try:
            return hashlib.sha256(self.canonical()).hexdigest() == self.hash
        except CanonicalError:
            return False

    @property
    def result_kept(self) -> bool:
        """False where only the digest and size of the result were recorded (`not_kept`)."""
        return not is_not_kept(self.result)

    def to_json(self) -> dict[str, Json]:
        """Return the certificate as an object of the ten fields and `hash`."""
        return {**_plain(self._fields()), "hash": self.hash}

    @classmethod
    def from_json(cls, value: Any) -> EffectCert:
        """Read what `to_json` wrote; shape only, `verify` judges the hash.

        Raises `CertificateError`, which names the field that is missing, unknown or malformed.
        """
        if not isinstance(value, dict):
            raise CertificateError("a certificate is a JSON object")
        for name in (*FIELDS, "hash"):
            if name not in value:
                raise CertificateError(f"{name}: missing from the certificate")
        if extra := value.keys() - {*FIELDS, "hash"}:
            raise CertificateError(f"{ascii(min(extra, key=str))[:60]}: not a certificate's field")
        for name, wanted, is_good in _CHECKS:
            if not is_good(value[name]):
                raise CertificateError(f"{name}: must be {wanted}")
        if (value["domain"] is None) != (value["seq"] is None):
            raise CertificateError("seq: must be there exactly when domain is")
        try:
            clock = VectorClock.from_json(value["vector_clock"])
        except ClockError as error:
            raise CertificateError(f"vector_clock: {error}") from None
        read_set = tuple(map(ReadSetEntry.from_json, value["read_set"]))
        return cls(**{**value, "vector_clock": clock, "read_set": read_set})

    def _fields(self) -> CertFields:
        return CertFields(
            intent=self.intent,
            parent=self.parent,
            domain=self.domain,
            seq=self.seq,
            tool=self.tool,
            args=self.args,
            result=self.result,
            vector_clock=self.vector_clock,
            read_set=self.read_set,
            agent=self.agent,
        )

    def __hash__(self) -> int:
        return hash(self.hash)


def not_kept(text: bytes, why: str) -> dict[str, Json]:
    """Return what a certificate holds in place of a result too big to keep, or not JSON.

    `text` is the result as it came; its SHA-256 and size in bytes are what remains of it, with at
    most 200 letters of the reason. Never raises: the effect already happened.
    """
    reason = why[:200].encode("utf-8", "replace").decode()
    return {
        NOT_KEPT: {
            "digest": hashlib.sha256(text).hexdigest(),
            "size": len(text),
            "why": reason,
        }
    }


def is_not_kept(result: Json) -> bool:
    """Say whether this stands in for a result that was not kept."""
    if not isinstance(result, dict) or result.keys() != {NOT_KEPT}:
        return False
    what = result[NOT_KEPT]
    return (
        isinstance(what, dict)
        and what.keys() == {"digest", "size", "why"}
        and _is_hash(what["digest"])
        and _is_count(what["size"])
        and _is_text(what["why"])
    )


def _plain(fields: CertFields) -> dict[str, Json]:
    """Return the fields as JSON values."""
    return {
        **fields,
        "vector_clock": fields["vector_clock"].to_json(),
        "read_set": [entry.to_json() for entry in fields["read_set"]],
    }


def _splice(args_bytes: bytes, result_bytes: bytes, fields: CertFields) -> bytes:
    """Write the canonical bytes around two values already written; keys stay in sorted order.

    A zero holds the place of each. The first `"args":0,` is the field: inside a text the quotes
    would be escaped, and the one object that may have such a key, the clock, comes later.
    """
    read_set = fields["read_set"]
    text = canonical_bytes(
        {
            "agent": fields["agent"],
            "args": 0,
            "domain": fields["domain"],
            "intent": fields["intent"],
            "parent": fields["parent"],
            "read_set": [entry.to_json() for entry in read_set] if read_set else [],
            "result": 0,
            "seq": fields["seq"],
            "tool": fields["tool"],
            "vector_clock": fields["vector_clock"].to_json(),
        }
    )
    head, _, rest = text.partition(b'"args":0,')
    middle, _, tail = rest.partition(b'"result":0,')
    return b'%b"args":%b,%b"result":%b,%b' % (head, args_bytes, middle, result_bytes, tail)


def _is_text(value: Any) -> bool:
    return type(value) is str


def _is_hash(value: Any) -> bool:
    return type(value) is str and _HASH.match(value) is not None


def _is_count(value: Any) -> bool:
    return type(value) is int and value >= 0


def _or_null(check: Any) -> Any:
    return lambda value: value is None or check(value)


# name, what it must be, and the check; `result` may be any JSON, `vector_clock` checks itself
_CHECKS: tuple[tuple[str, str, Any], ...] = (
    ("intent", "text", _is_text),
    ("parent", "null or the 64 hex digits of a certificate's hash", _or_null(_is_hash)),
    ("domain", "null or text", _or_null(_is_text)),
    ("seq", "null or an integer of at least 0", _or_null(_is_count)),
    ("tool", "text", _is_text),
    ("args", "an object", lambda value: isinstance(value, dict)),
    ("read_set", "an array", lambda value: isinstance(value, (list, tuple))),
    ("agent", "text", _is_text),
    ("hash", "64 hex digits", _is_hash),
)
