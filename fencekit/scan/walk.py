"""Walks a tree and decides, for each file, whether it is read, and if not, why.

Skipped is a value with a reason, never silence. Symlinks are never followed out of the tree, nor
into directories (so there are no cycles). Names in PATH itself do not count against a file.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pathspec

from fencekit.scan.languages import SUFFIXES

MAX_BYTES = 5 * 1024 * 1024
DATA_SUFFIXES = (".json", ".yaml", ".yml")
LONG_LINE = 5000

# Directory names by the reason their contents are not read.
SKIP_DIRS: dict[str, str] = {
    **dict.fromkeys(
        (
            "node_modules",
            "vendor",
            "third_party",
            "thirdparty",
            "bower_components",
            "site-packages",
        ),
        "vendored",
    ),
    **dict.fromkeys(("dist", "build", "out", "target", ".next", ".nuxt", "coverage"), "built"),
    **dict.fromkeys((".venv", "venv", "virtualenv", ".tox", ".nox"), "virtual environment"),
    **dict.fromkeys(
        (
            "test",
            "tests",
            "__tests__",
            "__mocks__",
            "mocks",
            "testing",
            "testdata",
            "e2e",
            "spec",
            "specs_test",
            "evals",
            "testhelpers",
            "test-helpers",
            "test_helpers",
            "testutils",
            "test-utils",
            "test_utils",
        ),
        "test",
    ),
    **dict.fromkeys(("fixtures", "__fixtures__", "__mocks__", "mocks"), "fixture"),
    **dict.fromkeys(("example", "examples", "samples", "demo", "demos"), "example"),
    **dict.fromkeys((".git", ".hg", ".svn"), "version control"),
    **dict.fromkeys(
        ("__pycache__", ".mypy_cache", ".ruff_cache", ".pytest_cache", ".turbo", ".cache"), "cache"
    ),
}
PACKAGE_ROOTS = ("src/main/java", "src/main/kotlin", "src/main/scala")  # below: packages only
TEST_FILES = ("test_", "conftest.")
IMITATES = (b"gomock", b"testify/mock", b"MockGen", b"mockery", b"counterfeiter")
TEST_ENDINGS = (
    "_test", "_tests", ".test", ".spec", "_spec", ".stories", ".bench",
)  # fmt: skip


@dataclass(slots=True)
class Skipped:
    """A path that was not read, and why."""

    path: str
    reason: str


@dataclass(slots=True)
class Tree:
    """What there is below one PATH: source files, data files, and what was skipped."""

    root: Path
    sources: list[str] = field(default_factory=list)
    data: list[str] = field(default_factory=list)
    skipped: list[Skipped] = field(default_factory=list)
    scripts: list[str] = field(default_factory=list)


def walk(root: Path, include: tuple[str, ...] = ()) -> Tree:
    """Return the files to read below `root`; `include` patterns bring skipped ones back.

    `include` takes git-style patterns relative to `root`; it overrules every rule but size,
    unreadable files and links that leave the tree.
    """
    tree = Tree(root)
    wanted = pathspec.GitIgnoreSpec.from_lines(include) if include else None
    if root.is_file():
        tree.root = root.parent
        _place(tree, root.name)
        return tree
    for directory, ignore in _directories(root, tree, wanted):
        _files(directory, ignore, tree, wanted)
    tree.sources.sort()
    tree.data.sort()
    tree.skipped.sort(key=lambda s: s.path)
    return tree


Ignore = list[tuple[str, pathspec.GitIgnoreSpec]]


def _directories(
    root: Path, tree: Tree, wanted: pathspec.GitIgnoreSpec | None
) -> Iterator[tuple[str, Ignore]]:
    stack: list[tuple[str, Ignore]] = [("", [])]
    while stack:
        relative, ignore = stack.pop()
        here = root / relative if relative else root
        rules = here / ".gitignore"
        if rules.is_file() and not rules.is_symlink():
            try:
                lines = rules.read_text("utf-8", "replace").splitlines()
                ignore = [*ignore, (relative, pathspec.GitIgnoreSpec.from_lines(lines))]
            except (OSError, ValueError):
                tree.skipped.append(Skipped(_join(relative, ".gitignore"), "unreadable"))
        yield relative, ignore
        try:
            entries = sorted(os.scandir(here), key=lambda e: e.name, reverse=True)
        except OSError:
            tree.skipped.append(Skipped(relative or ".", "unreadable"))
            continue
        for entry in entries:
            path = _join(relative, entry.name)
            try:
                folder = entry.is_dir()
            except OSError:  # a link to itself
                folder = False
            if entry.is_symlink() and folder:
                tree.skipped.append(Skipped(path, "symbolic link to a directory"))
            if entry.is_symlink() or not folder:
                continue
            reason = _directory_reason(entry, path, ignore)
            if reason and not _brings_back(wanted, path):
                tree.skipped.append(Skipped(path, reason))
            else:
                stack.append((path, [] if reason == "ignored by .gitignore" else ignore))


def _directory_reason(entry: os.DirEntry[str], path: str, ignore: Ignore) -> str:
    name = entry.name
    package = any(f"/{root}/" in f"/{path}" for root in PACKAGE_ROOTS)  # `org/example` is a name
    if name.lower() in SKIP_DIRS and not package:
        return SKIP_DIRS[name.lower()]
    if os.path.exists(os.path.join(entry.path, "pyvenv.cfg")):
        return "virtual environment"
    if name.endswith((".egg-info", ".dist-info")):
        return "built"
    return "ignored by .gitignore" if _ignored(path + "/", ignore) else ""


def _brings_back(wanted: pathspec.GitIgnoreSpec | None, path: str) -> bool:
    if wanted is None:
        return False
    if wanted.match_file(path + "/") or wanted.match_file(path):
        return True
    return any(
        str(p.pattern).lstrip("/").startswith(path + "/") for p in wanted.patterns if p.include
    )


def _ignored(path: str, ignore: Ignore) -> bool:
    for base, spec in ignore:
        inner = path[len(base) + 1 :] if base else path
        if spec.match_file(inner):
            return True
    return False


def _join(relative: str, name: str) -> str:
    return f"{relative}/{name}" if relative else name


def _files(
    relative: str, ignore: Ignore, tree: Tree, wanted: pathspec.GitIgnoreSpec | None
) -> None:
    here = tree.root / relative if relative else tree.root
    try:
        entries = sorted(os.scandir(here), key=lambda e: e.name)
    except OSError:
        return
    for entry in entries:
        path = _join(relative, entry.name)
        kind = _kind(entry.name)
        if not kind:
            continue
        reason = _file_reason(entry, path, ignore, tree.root)
        hard = reason in ("larger than 5 MB", "unreadable", "symbolic link out of the tree")
        if reason and (hard or wanted is None or not wanted.match_file(path)):
            if kind == "source" or hard:
                tree.skipped.append(Skipped(path, reason))
        else:
            (tree.sources if kind == "source" else tree.data).append(path)


def _kind(name: str) -> str:
    lower = name.lower()
    dot = lower.rfind(".")
    suffix = lower[dot:] if dot > 0 else ""
    if suffix in SUFFIXES:
        return "source"
    return "data" if suffix in DATA_SUFFIXES else ""


def _place(tree: Tree, name: str) -> None:
    (tree.sources if _kind(name) == "source" else tree.data).append(name)


def _file_reason(entry: os.DirEntry[str], path: str, ignore: Ignore, root: Path) -> str:
    try:
        if entry.is_symlink():
            target = Path(entry.path).resolve()
            inside = target.is_relative_to(root.resolve())
            return "symbolic link into the tree" if inside else "symbolic link out of the tree"
        if not entry.is_file():
            return "not a regular file"
        size = entry.stat().st_size
    except (OSError, RuntimeError):  # the latter for a link to itself
        return "unreadable"
    if size > MAX_BYTES:
        return "larger than 5 MB"
    stem = entry.name.rsplit(".", 1)[0].lower()
    if entry.name.lower().endswith((".min.js", ".bundle.js", ".min.mjs")):
        return "minified"
    if entry.name.endswith(".d.ts"):
        return "declarations only"
    rust = entry.name.endswith(".rs") and stem == "tests"
    if rust or stem.startswith(TEST_FILES) or stem.endswith(TEST_ENDINGS):
        return "test"
    if entry.name.endswith(".go") and "mock" in stem and _imitates(Path(entry.path)):
        return "test"
    return "ignored by .gitignore" if _ignored(path, ignore) else ""


def _imitates(entry: Path) -> bool:
    """Tell whether a file says at its beginning that a tool wrote it to stand for another."""
    try:
        with entry.open("rb") as file:
            head = file.read(4096)
    except OSError:
        return False
    return any(sign in head for sign in IMITATES)


def read_source(path: Path) -> tuple[bytes, str]:
    """Read a source file as UTF-8 bytes; the second part is a reason where it is not readable.

    Latin-1 is converted; a file with NUL bytes is binary; one with a line over `LONG_LINE` bytes
    on average is minified.
    """
    try:
        raw = path.read_bytes()
    except OSError:
        return b"", "unreadable"
    if raw.startswith(b"\xef\xbb\xbf"):
        raw = raw[3:]
    if b"\0" in raw[:8192]:
        if raw[:2] in (b"\xff\xfe", b"\xfe\xff"):
            return raw.decode("utf-16", "replace").encode("utf-8", "replace"), ""
        return b"", "binary"
    if len(raw) > 20_000 and len(raw) / (raw.count(b"\n") + 1) > LONG_LINE:
        return b"", "minified"
    try:
        raw.decode("utf-8")
    except UnicodeDecodeError:
        raw = raw.decode("latin-1").encode("utf-8")
    return raw, ""
