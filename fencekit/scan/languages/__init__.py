"""What differs per language: one file each with grammar, index query and lowering tables."""

from __future__ import annotations

import functools
from importlib import import_module

from fencekit.scan.languages.base import Language

# suffix -> (module, attribute); a module and its grammar are loaded when a file needs them.
SUFFIXES: dict[str, tuple[str, str]] = {
    **dict.fromkeys((".py", ".pyi"), ("python", "LANGUAGE")),
    **dict.fromkeys((".js", ".mjs", ".cjs", ".jsx"), ("javascript", "JAVASCRIPT")),
    **dict.fromkeys((".ts", ".mts", ".cts"), ("javascript", "TYPESCRIPT")),
    ".tsx": ("javascript", "TSX"),
    ".go": ("go", "LANGUAGE"),
    ".rs": ("rust", "LANGUAGE"),
    ".java": ("java", "LANGUAGE"),
}


@functools.cache
def _load(module: str, attribute: str) -> Language:
    made = getattr(import_module(f"{__name__}.{module}"), attribute)
    assert isinstance(made, Language)
    return made


def language_for(path: str) -> Language | None:
    """Return the language of a path by its suffix, or None for a file that is no source."""
    dot = path.rfind(".")
    found = SUFFIXES.get(path[dot:].lower()) if dot > 0 else None
    return _load(*found) if found else None
