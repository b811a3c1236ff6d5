"""Data documents: JSON and YAML files that code reads, as expressions with their lines.

A document becomes the same neutral tree as a literal in source (`Dict`, `ListOf`, `Lit`), so that
the evaluator treats a value read from a file as one written in the code. Only files that code
names are read; sizes are bounded, and no link out of the tree is followed. JSON goes through the
JavaScript grammar, because the standard library's reader keeps no lines; YAML through PyYAML's
nodes.
"""

from __future__ import annotations

import posixpath
from fnmatch import fnmatch
from pathlib import Path

import yaml

from fencekit.scan.facts import Arg, Dict, Entry, Expr, Function, ListOf, Lit, Module
from fencekit.scan.languages import language_for
from fencekit.scan.languages.base import Lowering
from fencekit.scan.parse import ParseTimeoutError, parse
from fencekit.scan.walk import DATA_SUFFIXES, MAX_BYTES

LANGUAGE = "data"
MAX_MATCHES = 20  # files that one pattern may name
MAX_NODES = 400_000  # nodes of one YAML document
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def is_data(path: str) -> bool:
    """Tell whether a path is one of a data document."""
    return path.lower().endswith(DATA_SUFFIXES)


class Documents:
    """The data documents of one tree, found by the texts with which code names them."""

    def __init__(self, root: Path | None = None, paths: list[str] | None = None) -> None:
        """Know the tree's data files; nothing is read yet."""
        self._root = root
        self._paths = frozenset(paths or ())
        self._read: dict[str, tuple[Expr, Function] | None] = {}

    def find(self, importer: str, text: str) -> list[str]:
        """Return the files that `text`, written in the file `importer`, may name.

        The nearest folder around the importer below which the text leads to a file counts; else
        the one file of the tree that ends so. A `*` in the text may name several.
        """
        tail = text.rsplit("{}", 1)[-1].lstrip("/")
        while tail.startswith(("./", "../")):
            tail = tail.split("/", 1)[1]
        if not is_data(tail) or tail.startswith("."):
            return []
        if "*" in tail:
            return self._matching(importer, tail)
        folder = posixpath.dirname(importer)
        while True:
            path = posixpath.normpath(posixpath.join(folder, tail))
            if self._exists(path):
                return [path]
            if not folder:
                break
            folder = posixpath.dirname(folder)
        ends = [p for p in self._paths if p.endswith("/" + tail)]
        return ends if len(ends) == 1 else []

    def _matching(self, importer: str, pattern: str) -> list[str]:
        folder = posixpath.dirname(importer)
        while True:
            wanted = posixpath.join(folder, pattern)
            depth = wanted.count("/")
            found = [p for p in self._paths if p.count("/") == depth and fnmatch(p, wanted)]
            if found or not folder:
                return sorted(found)[:MAX_MATCHES]
            folder = posixpath.dirname(folder)

    def _exists(self, path: str) -> bool:
        if path in self._paths:
            return True
        if self._root is None or path.startswith(".."):
            return False
        try:  # a document in a folder that is skipped (`spec/`) is read where code names it
            real = (self._root / path).resolve()
            return real.is_file() and real.is_relative_to(self._root.resolve())
        except (OSError, ValueError):
            return False

    def read(self, path: str) -> tuple[Expr, Function] | None:
        """Return a document's content and the function it stands in; None where it cannot be."""
        if path not in self._read:
            self._read[path] = None
            content = self._content(path)
            if content is not None:
                top = Function("", 1, [], lambda _function: [])
                top.module = Module(path, LANGUAGE, top)
                self._read[path] = (content, top)
        return self._read[path]

    def _content(self, path: str) -> Expr | None:
        if self._root is None:
            return None
        try:
            file = self._root / path
            if file.stat().st_size > MAX_BYTES:
                return None
            raw = file.read_bytes().removeprefix(b"\xef\xbb\xbf")
            return of_json(raw, path) if path.lower().endswith(".json") else of_yaml(raw)
        except (OSError, RecursionError, ParseTimeoutError, ValueError, yaml.YAMLError):
            return None


def of_json(raw: bytes, path: str = "x.json") -> Expr | None:
    """Return the content of a JSON text, or None where it is no object or list."""
    language = language_for("x.js")
    assert language is not None
    source = b"(" + raw + b")"  # an object alone would be read as a block
    root = parse(source, language).root_node
    statement = root.named_children[0] if root.named_child_count else None
    low = Lowering(source, language, path)
    inner = statement.named_children[0] if statement and statement.named_child_count else None
    made = low.expr(inner)
    return made if isinstance(made, Dict | ListOf) else None


def of_yaml(raw: bytes) -> Expr | None:
    """Return the content of a YAML text, or None where it is no mapping or sequence."""
    node = yaml.compose(raw, Loader=_LOADER)
    made = _Converter().convert(node) if node is not None else None
    return made if isinstance(made, Dict | ListOf) else None


class _Converter:
    """Turns PyYAML's nodes into expressions; each node once, so aliases cannot multiply."""

    def __init__(self) -> None:
        self._known: dict[int, Expr] = {}

    def convert(self, node: yaml.Node) -> Expr:
        known = self._known.get(id(node))
        if known is not None:
            return known
        line = node.start_mark.line + 1
        self._known[id(node)] = Lit(line, None)  # an alias to what it stands in is nothing
        if len(self._known) > MAX_NODES:
            raise ValueError("too many nodes")
        made = self._made(node, line)
        self._known[id(node)] = made
        return made

    def _made(self, node: yaml.Node, line: int) -> Expr:
        if isinstance(node, yaml.MappingNode):
            entries = []
            for key, value in node.value:
                merged = key.tag == "tag:yaml.org,2002:merge"
                label = Lit(key.start_mark.line + 1, str(key.value))
                entries.append(
                    Entry(None if merged else label, self.convert(value), key.start_mark.line + 1)
                )
            return Dict(line, entries)
        if isinstance(node, yaml.SequenceNode):
            return ListOf(line, [Arg(self.convert(item)) for item in node.value])
        return Lit(line, _scalar(node))


def _scalar(node: yaml.Node) -> str | int | float | bool | None:
    text, kind = str(node.value), node.tag.rsplit(":", 1)[-1]
    if kind == "null":
        return None
    if kind == "bool":
        return text.lower() in ("true", "yes", "on")
    if kind == "int" and text.lstrip("+-").isdigit() and len(text) < 20:
        return int(text)
    return text
