"""The only door to tree-sitter: bytes to a syntax tree, captures, and a lowered module.

A file that takes longer than `PARSE_SECONDS` is given up on and reported; a tree with errors is
used for what it holds, and the broken line ranges are reported.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable
from typing import Any

from tree_sitter import Language as Grammar
from tree_sitter import Node, Parser, Query, QueryCursor, Range, Tree

from fencekit.scan.facts import FileFacts, Function, Module, Stmt
from fencekit.scan.languages.base import Language, Lowering

PARSE_SECONDS = 10.0
CHUNK = 65536
MAX_RANGES = 20
SCHEMA_WORDS = (b"inputSchema", b"input_schema", b"InputSchema", b"RawInputSchema")


class ParseTimeoutError(Exception):
    """A file was given up on after `PARSE_SECONDS`."""


@functools.cache
def _tools(language_name: str, grammar: Callable[[], object], query: str) -> tuple[Parser, Query]:
    loaded = Grammar(grammar())
    return Parser(loaded), Query(loaded, query)


def parse(source: bytes, language: Language, seconds: float = PARSE_SECONDS) -> Tree:
    """Parse bytes into a tree; raises `ParseTimeoutError` after `seconds`."""
    parser, _ = _tools(language.name, language.grammar, language.query)
    if len(source) < CHUNK * 4:  # small files cannot take long; skip the callbacks
        return parser.parse(source)
    end = time.monotonic() + seconds

    def read(offset: int, _point: Any) -> bytes:
        if time.monotonic() > end:
            raise ParseTimeoutError
        return source[offset : offset + CHUNK]

    try:
        tree = parser.parse(read)
    finally:
        parser.reset()
    if time.monotonic() > end:
        raise ParseTimeoutError
    return tree


@functools.cache
def _part_parser(language_name: str, grammar: Callable[[], object]) -> Parser:
    return Parser(Grammar(grammar()))


def parse_part(source: bytes, language: Language, first: Node, last: Node, end: bytes) -> Tree:
    """Parse what stands between two nodes again, as if `end` stood behind it.

    Positions stay those of the whole source; `end` is taken from where it comes next in it.
    """
    parser = _part_parser(language.name, language.grammar)
    ranges = [Range(first.start_point, last.end_point, first.start_byte, last.end_byte)]
    at = source.find(end, last.end_byte)
    if at >= 0:
        row = last.end_point[0] + source.count(b"\n", last.end_byte, at)
        column = at - (source.rfind(b"\n", 0, at) + 1)
        ranges.append(Range((row, column), (row, column + len(end)), at, at + len(end)))
    parser.included_ranges = ranges
    return parser.parse(source)


def captures(tree: Tree, language: Language) -> dict[str, list[Node]]:
    """Run the language's index query once over a tree."""
    _, query = _tools(language.name, language.grammar, language.query)
    return QueryCursor(query).captures(tree.root_node)


def index_file(path: str, source: bytes, language: Language, tree: Tree) -> FileFacts:
    """Build the index of one file from one query pass."""
    facts = FileFacts(path, language.name)
    found = captures(tree, language)
    tables = (("function", facts.functions), ("class", facts.classes), ("call", facts.calls))
    for label, table in tables:
        for node in found.get(label, ()):
            start = node.start_byte
            told = source[start : node.end_byte].decode("utf-8", "replace").strip("\"'")
            table.setdefault(told, []).append(start)
    facts.schema = any(word in source for word in SCHEMA_WORDS)
    facts.tool_type = b"Tool" in source
    facts.protocol = b"tools/list" in source
    for label, names in (("import", facts.imports), ("mark", facts.marks)):
        texts = {source[n.start_byte : n.end_byte] for n in found.get(label, ())}
        names.extend(sorted(t.decode("utf-8", "replace").strip("\"'`") for t in texts))
    if tree.root_node.has_error:
        facts.partial = broken_ranges(tree.root_node)
    return facts


def broken_ranges(root: Node) -> list[tuple[int, int]]:
    """Return the line ranges of the errors in a tree, at most `MAX_RANGES` of them."""
    out: list[tuple[int, int]] = []
    stack = [root]
    while stack and len(out) < MAX_RANGES:
        node = stack.pop()
        if node.is_error or node.is_missing:
            span = (node.start_point[0] + 1, node.end_point[0] + 1)
            if not out or out[-1] != span:
                out.append(span)
        elif node.has_error:
            stack.extend(reversed(node.children))
    return sorted(out)


def lower_module(path: str, source: bytes, language: Language, tree: Tree) -> Module:
    """Lower the top level of a file; function bodies wait until they are asked for."""
    low = Lowering(source, language, path)
    root = tree.root_node

    def body(_function: Function) -> list[Stmt]:
        return []

    top = Function("", 1, [], body, start=0, end=root.end_byte)
    low.function = None
    top._body, cut = [], []
    for child in low.named(root):
        try:
            top._body.extend(low.stmt(child))
        except RecursionError:
            cut.append(("", low.line(child)))
    module = Module(path, language.name, top, low.exports, low.package, cut)
    top.module = module
    if language.finish is not None:
        top._body.extend(language.finish(low) or ())
    from fencekit.scan.facts import Define

    for made in low.classes.values():
        top._body.append(Define(made.line, made))
    return module
