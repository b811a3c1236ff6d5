"""Rust's macros and attributes, whose contents the grammar leaves as token trees.

A token tree is parsed again as expressions, in its place in the file, so that lines and offsets
stay what they are. `json!` is read by its own small grammar; what an unknown macro is given counts
as evaluated, without a meaning of its own.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from fencekit.scan.facts import (
    Arg,
    Assign,
    Call,
    Case,
    Dict,
    Do,
    Entry,
    Expr,
    ListOf,
    Lit,
    Member,
    Name,
    Raise,
    Stmt,
    Switch,
    Template,
)
from fencekit.scan.languages.base import Lowering
from fencekit.scan.languages.rust_types import pattern

if TYPE_CHECKING:
    from tree_sitter import Node

    from fencekit.scan.languages.rust_flow import How

TEXTS = frozenset({"format", "formatdoc", "indoc", "format_args", "format_compact"})
LISTS = frozenset({"vec", "smallvec", "join", "try_join", "array", "hashset"})
MAX_AGAIN = 60  # how often, on average, a byte of a file is parsed again
LEAVING = frozenset({"bail", "panic", "unreachable", "todo", "unimplemented"})
_HOLE = re.compile(r"\{\{|\}\}|\{([^{}]*)\}")


def macro_name(low: Lowering, node: Node) -> str:
    """Return the last name of the macro that is invoked."""
    return low.text(node.child_by_field_name("macro")).rsplit("::", 1)[-1]


def tokens(node: Node) -> Node | None:
    """Return what a macro or an attribute is given."""
    return next((c for c in node.children if c.type == "token_tree"), None)


def macro(low: Lowering, node: Node) -> Expr:
    """Lower a macro by what it makes of its contents."""
    told, tree = macro_name(low, node), tokens(node)
    line = low.line(node)
    if tree is None:
        return Expr(line)
    if told == "json":
        return json_value(low, inner(low, tree), line)
    if told == "concat":
        parts = [low.expr(c) for c in arguments(low, tree)]
        if all(isinstance(p, Lit) for p in parts):
            return Lit(line, "".join(str(p.value) for p in parts if isinstance(p, Lit)))
        return Template(line, parts=parts)
    if told in TEXTS:
        return template(low, arguments(low, tree), line)
    if told in LISTS:
        return ListOf(line, [Arg(low.expr(c)) for c in arguments(low, tree)])
    given = [low.expr(c) for c in arguments(low, tree)]
    if told.startswith("query"):
        where = node.child_by_field_name("macro")
        return Call(line, low.expr(where), [Arg(g) for g in given], False, node.start_byte)
    return Expr(line, parts=given)


def macro_stmt(low: Lowering, node: Node) -> Stmt | list[Stmt]:
    """Lower a macro that stands as a statement."""
    return settled_macro(low, node, Do)[0]


def settled_macro(low: Lowering, node: Node, how: How) -> list[Stmt]:
    """Lower a macro whose value goes where `how` says."""
    told, tree = macro_name(low, node), tokens(node)
    if told in ("select", "select_biased") and tree is not None:
        return [Switch(low.line(node), Expr(low.line(node)), selected(low, tree, how))]
    if told in LEAVING:
        return [Raise(low.line(node), macro(low, node))]
    return [how(low.line(node), macro(low, node))]


def inner(low: Lowering, tree: Node) -> list[Node]:
    """Return the tokens between the delimiters of a token tree."""
    skip = low.language.comment_types
    return [c for c in tree.children[1:-1] if c.type not in skip]


def again(low: Lowering, first: Node, last: Node) -> list[Node]:
    """Parse the source from one token to another again, as expressions."""
    from fencekit.scan.parse import parse_part

    if first == last and first.type != "token_tree":
        return [first]
    low.again[0] += last.end_byte - first.start_byte
    if low.again[0] > MAX_AGAIN * len(low.source):  # macros in macros in macros
        return []
    root = parse_part(low.source, low.language, first, last, b";").root_node
    out: list[Node] = []
    for child in low.named(root):
        inside = child.type in ("expression_statement", "ERROR") and child.named_child_count
        out.append(child.named_children[0] if inside else child)
    return [c for c in out if c.type not in ("ERROR", "empty_statement")]


def arguments(low: Lowering, tree: Node) -> list[Node]:
    """Return the expressions that a macro is given, separated by commas."""
    out: list[Node] = []
    for part in parted(inner(low, tree), ","):
        if part:
            found = again(low, part[0], part[-1])
            out += found[:1] if found else []
    return out


def parted(nodes: list[Node], sign: str) -> list[list[Node]]:
    """Split tokens at a sign."""
    out: list[list[Node]] = [[]]
    for node in nodes:
        if node.type == sign:
            out.append([])
        else:
            out[-1].append(node)
    return out


def json_value(low: Lowering, nodes: list[Node], line: int) -> Expr:
    """Lower one value of a `json!`: an object, a list, a literal, or an expression."""
    if not nodes:
        return Lit(line, None)
    first = nodes[0]
    if len(nodes) == 1:
        if first.type == "token_tree" and first.children[0].type == "{":
            return json_object(low, first)
        if first.type == "token_tree" and first.children[0].type == "[":
            held = [p for p in parted(inner(low, first), ",") if p]
            return ListOf(low.line(first), [Arg(json_value(low, p, line)) for p in held])
        if low.text(first) == "null":
            return Lit(low.line(first), None)
    found = again(low, first, nodes[-1])
    return low.expr(found[0]) if found else Expr(low.line(first))


def json_object(low: Lowering, tree: Node) -> Expr:
    """Lower an object of a `json!`."""
    entries: list[Entry] = []
    for part in parted(inner(low, tree), ","):
        if len(part) < 2:
            continue
        at = next((i for i, c in enumerate(part) if c.type == ":"), 0)
        key = low.expr(part[0])
        if part[0].type == "token_tree":
            found = again(low, part[0], part[0])
            key = low.expr(found[0]) if found else key
        line = low.line(part[0])
        entries.append(Entry(key, json_value(low, part[at + 1 :], line), line))
    return Dict(low.line(tree), entries)


def template(low: Lowering, given: list[Node], line: int) -> Expr:
    """Lower `format!("…{}…{name}", x)`."""
    if not given:
        return Lit(line, "")
    parts: list[Expr] = []
    named: dict[str, Expr] = {}
    plain: list[Expr] = []
    for node in given[1:]:
        if node.type == "assignment_expression":
            label = low.text(node.child_by_field_name("left"))
            named[label] = low.expr(node.child_by_field_name("right"))
        else:
            plain.append(low.expr(node))
    shape = low.expr(given[0])
    if not isinstance(shape, Lit):
        return Template(line, parts=[shape, *plain])
    text, at, count = str(shape.value), 0, 0
    for hole in _HOLE.finditer(text):
        parts.append(Lit(shape.line, text[at : hole.start()]))
        at = hole.end()
        if hole[1] is None:
            parts.append(Lit(shape.line, hole[0][0]))
            continue
        label = hole[1].split(":", 1)[0].strip()
        if label == "" or label.isdigit():
            place = int(label) if label else count
            count += not label
            parts.append(plain[place] if place < len(plain) else Expr(shape.line))
        else:
            parts.append(named.get(label) or Name(shape.line, label))
    parts.append(Lit(shape.line, text[at:]))
    if all(isinstance(p, Lit) for p in parts):
        return Lit(shape.line, "".join(str(p.value) for p in parts if isinstance(p, Lit)))
    return Template(line, parts=[p for p in parts if not isinstance(p, Lit) or p.value])


def selected(low: Lowering, tree: Node, how: How) -> list[Case]:
    """Lower the branches of `select!`: `pattern = future => what is done`."""
    from fencekit.scan.languages.rust_flow import settle

    cases: list[Case] = []
    head: list[Node] = []
    nodes = inner(low, tree)
    at = 0
    while at < len(nodes):
        if nodes[at].type != "=>":
            head.append(nodes[at])
            at += 1
            continue
        end = at + 1
        if end < len(nodes) and nodes[end].type == "token_tree":
            end += 1
        else:
            while end < len(nodes) and nodes[end].type != ",":
                end += 1
        body: list[Stmt] = []
        if end > at + 1:
            for found in again(low, nodes[at + 1], nodes[end - 1]):
                body += settle(low, found, how)
        cases.append(Case([Expr(low.line(tree))], [*_awaited(low, head), *body]))
        at = end + 1 if end < len(nodes) and nodes[end].type == "," else end
        head = []
    return cases


def _awaited(low: Lowering, head: list[Node]) -> list[Stmt]:
    """Lower `pattern = future` with an optional `, if condition` behind it."""
    split = next((i for i, c in enumerate(head) if c.type == "="), None)
    if split is None or split + 1 >= len(head):
        return []
    future = parted(head[split + 1 :], ",")[0]
    found = again(low, future[0], future[-1]) if future else []
    shape = again(low, head[0], head[split - 1]) if split else []
    if not found:
        return []
    value = low.expr(found[0])
    target = shape[0] if shape else None
    while target is not None and target.type == "call_expression":  # `Some(x)` read as a call
        given = target.child_by_field_name("arguments")
        target = next(low.named(given), None) if given is not None else None
    return [Assign(low.line(head[0]), pattern(low, target), value)]


# Attributes.


def attributes(low: Lowering, node: Node) -> list[Expr]:
    """Return the attributes that stand before an item, in order."""
    out: list[Expr] = []
    here = node.prev_sibling
    skip = low.language.comment_types
    while here is not None and (here.type == "attribute_item" or here.type in skip):
        inside = next(low.named(here), None) if here.type == "attribute_item" else None
        if inside is not None:
            out.append(attribute(low, inside))
        here = here.prev_sibling
    return list(reversed(out))


def attribute(low: Lowering, node: Node) -> Expr:
    """Lower `#[name]` to a name and `#[name(…)]` to a call."""
    told = low.expr(next(low.named(node), None))
    tree = node.child_by_field_name("arguments")
    if tree is None:
        value = node.child_by_field_name("value")
        return Call(told.line, told, [Arg(low.expr(value))]) if value is not None else told
    return Call(told.line, told, meta(low, tree))


def meta(low: Lowering, tree: Node) -> list[Arg]:
    """Lower what an attribute is given: `key = value`, `key(…)`, names and literals."""
    out: list[Arg] = []
    for part in parted(inner(low, tree), ","):
        if not part:
            continue
        signs = [c.type for c in part]
        if "=" in signs and signs.index("=") + 1 < len(part):
            at = signs.index("=")
            label = "".join(low.text(c) for c in part[:at])
            found = again(low, part[at + 1], part[-1])
            out.append(Arg(low.expr(found[0]) if found else Expr(low.line(part[0])), label))
        elif part[-1].type == "token_tree" and len(part) > 1:
            below = meta(low, part[-1])
            line = low.line(part[0])
            label = "".join(low.text(c) for c in part[:-1])
            entries = [Entry(Lit(line, a.name), a.value, line) for a in below if a.name]
            plain = [a.value for a in below if not a.name]
            out.append(Arg(Dict(line, entries, parts=plain), label))
        else:
            last = part[-1]
            value = low.expr(last)
            if len(part) > 1 and last.type == "identifier":
                value = Member(low.line(last), Name(low.line(last), ""), low.text(last))
            out.append(Arg(value))
    return out


def documentation(low: Lowering, node: Node) -> str:
    """Return the doc comment before an item."""
    out: list[str] = []
    here = node.prev_sibling
    skip = low.language.comment_types
    while here is not None and (here.type == "attribute_item" or here.type in skip):
        told = low.text(here)
        if told.startswith(("///", "/**")):
            lines = [line.strip().strip("/*").strip() for line in told.splitlines()]
            out.append("\n".join(line for line in lines if line))
        here = here.prev_sibling
    return "\n".join(reversed(out))
