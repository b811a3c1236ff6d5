"""Regular expressions of a repository, applied to short texts without letting one take long.

A pattern is hostile input: only those run whose work is bounded by their shape (short, no
repeated group, few repetitions), on texts of at most `LONGEST` characters.
"""

from __future__ import annotations

import re
import warnings

LONGEST = 200
MAX_PATTERN = 80
MAX_REPEATS = 3
_REPEATED_GROUP = re.compile(r"\)\s*[*+{]")
_REPEAT = re.compile(r"(?<!\\)[*+{]")
_GROUP = re.compile(r"\$(\d|&)")


def compiled(pattern: str, flags: str = "") -> re.Pattern[str] | None:
    """Return a pattern that may be run, or None."""
    if len(pattern) > MAX_PATTERN or _REPEATED_GROUP.search(pattern):
        return None
    classes = re.sub(r"\[(?:\\.|[^\]\\])*\]", "c", pattern)
    if len(_REPEAT.findall(classes)) > MAX_REPEATS:
        return None
    try:
        with warnings.catch_warnings(action="ignore"):  # about the pattern, which is not ours
            return re.compile(pattern, re.IGNORECASE if "i" in flags else 0)
    except (re.error, OverflowError, RecursionError):
        return None


def search(pattern: str, text: str) -> bool:
    """Tell whether a pattern is found in a text; one that may not run is not."""
    found = compiled(pattern)
    return found is not None and len(text) <= LONGEST and found.search(text) is not None


def replace(
    text: str, pattern: str, by: str, *, flags: str = "", all_of: bool = True
) -> str | None:
    """Return the text with what a pattern matches replaced, or None where it may not run."""
    found = compiled(pattern, flags)
    if found is None or len(text) > LONGEST:
        return None
    try:
        return found.sub(_GROUP.sub(_group, by), text, count=0 if all_of else 1)
    except (re.error, IndexError):
        return None


def _group(match: re.Match[str]) -> str:
    """Spell JavaScript's `$1` and `$&` in Python's way."""
    return r"\g<0>" if match[1] == "&" else rf"\{match[1]}"
