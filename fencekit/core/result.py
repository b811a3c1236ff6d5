"""The result of an effect: the JSON text that replays return, and its canonical form."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from fencekit.core.canonical import canonical_bytes, parse_json
from fencekit.core.certificate import not_kept
from fencekit.core.errors import InvalidRequest


@dataclass(frozen=True, slots=True)
class Result:
    """A result as JSON text; `kept` is False where only its digest and size could be recorded."""

    text: str
    kept: bool = True
    _canonical: bytes | None = field(default=None, compare=False, repr=False)

    @classmethod
    def of(cls, value: Any, max_bytes: int) -> Result:
        """Return the result of a finished effect. It never raises: the effect already happened.

        What is not JSON, or is longer than `max_bytes`, is recorded by digest and size only.
        """
        try:
            canonical = canonical_bytes(value)
        except InvalidRequest as problem:
            return _not_kept(_best_text(value), str(problem))
        except Exception as problem:  # a hostile __str__ or __iter__ must not lose the outcome
            return _not_kept(b"", type(problem).__name__)
        if len(canonical) > max_bytes:
            return _not_kept(canonical, f"over the limit of {max_bytes} bytes")
        return cls(canonical.decode(), True, canonical)

    @classmethod
    def of_text(cls, text: str, max_bytes: int) -> Result:
        """Return the result whose JSON text is already there, kept to the letter."""
        raw = text.encode("utf-8", "surrogatepass")
        if len(raw) > max_bytes:
            return _not_kept(raw, f"over the limit of {max_bytes} bytes")
        try:
            return cls(text, True, canonical_bytes(parse_json(text)))
        except (ValueError, RecursionError) as problem:
            return _not_kept(raw, str(problem))

    @property
    def canonical(self) -> bytes:
        """The canonical JSON (RFC 8785) of the result."""
        if self._canonical is not None:
            return self._canonical
        return canonical_bytes(parse_json(self.text))

    @property
    def value(self) -> Any:
        """The result as a new JSON value."""
        return parse_json(self.text)


def _best_text(value: Any) -> bytes:
    try:
        return repr(value).encode("utf-8", "backslashreplace")
    except Exception:  # the effect already happened: its record must not depend on its repr
        return b""


def _not_kept(raw: bytes, why: str) -> Result:
    canonical = canonical_bytes(not_kept(raw, why))
    return Result(canonical.decode(), False, canonical)
