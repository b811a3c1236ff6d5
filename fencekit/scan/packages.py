"""The names by which code of a repository imports its own packages.

A workspace member is imported by the name in its `package.json`, a Go package by the module path in
its `go.mod`, a folder by an alias in `tsconfig.json`, a crate by the name in its `Cargo.toml`
(`crate name`, with dashes); none of these says where the folder is.
"""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

MAX_BYTES = 200_000
GO_MODULE = "go module"  # a name that no package has: there is a go.mod
_CRATE = re.compile(r"^\[package\][^\[]*?^name\s*=\s*\"([\w-]+)\"", re.MULTILINE | re.DOTALL)
_GO_MODULE = re.compile(r"^module\s+\"?([^\s\"]+)", re.MULTILINE)
# A string, which stays as it is (`"@app/*"` begins no comment), or a comment.
_COMMENT = re.compile(r'("(?:\\.|[^"\\])*")|//[^\n]*|/\*.*?\*/', re.DOTALL)
_LAST_COMMA = re.compile(r",(\s*[}\]])")


def packages_of(root: Path, sources: Iterable[str]) -> dict[str, str]:
    """Return the folder of every package and alias that the folders of `sources` declare.

    Folders are relative to `root`, `""` for the root itself; an alias ends with a slash where it
    stands for whatever comes after it. `GO_MODULE` is among the names where a go.mod is.
    """
    folders = {""}
    for path in sources:
        folder = posixpath.dirname(path)
        while folder and folder not in folders:
            folders.add(folder)
            folder = posixpath.dirname(folder)
    found: dict[str, str] = {}
    for folder in sorted(folders):
        name = _GO_MODULE.search(_text(root / folder / "go.mod"))
        if name is not None:
            found[name[1]] = folder
            found.setdefault(GO_MODULE, folder)
        crate = _CRATE.search(_text(root / folder / "Cargo.toml"))
        if crate is not None:
            found[f"crate {crate[1].replace('_', '-')}"] = folder
        told = _json(root / folder / "package.json").get("name")
        if isinstance(told, str) and told:
            found.setdefault(told, folder)
        found |= _aliases(_json(root / folder / "tsconfig.json"), folder)
    return found


def _aliases(config: dict[str, Any], folder: str) -> dict[str, str]:
    options = config.get("compilerOptions")
    options = options if isinstance(options, dict) else {}
    paths, base = options.get("paths"), options.get("baseUrl")
    found: dict[str, str] = {}
    for alias, targets in paths.items() if isinstance(paths, dict) else ():
        target = targets[0] if isinstance(targets, list) and targets else None
        if isinstance(target, str) and isinstance(alias, str):
            start = posixpath.join(folder, base if isinstance(base, str) else "")
            place = posixpath.normpath(posixpath.join(start, target.removesuffix("*")))
            if not place.startswith(".."):
                found[alias.removesuffix("*")] = "" if place == "." else place
    return found


def _text(path: Path) -> str:
    try:
        if path.is_symlink() or not path.is_file() or path.stat().st_size > MAX_BYTES:
            return ""
        return path.read_text("utf-8", "replace")
    except OSError:
        return ""


def _json(path: Path) -> dict[str, Any]:
    """Read an object; comments and last commas, which TypeScript allows, are taken out."""
    text = _text(path)
    for tidy in (text, _LAST_COMMA.sub(r"\1", _COMMENT.sub(r"\1", text))):
        try:
            value = json.loads(tidy)
        except (ValueError, RecursionError):
            continue
        return value if isinstance(value, dict) else {}
    return {}
