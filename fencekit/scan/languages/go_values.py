"""Go's values: literals, slices that grow, and what functions hand back together."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fencekit.scan.facts import (
    Arg,
    Assign,
    Call,
    Cast,
    Dict,
    Do,
    Entry,
    Expr,
    Lambda,
    ListOf,
    Lit,
    Member,
    Name,
    Result,
    Stmt,
)
from fencekit.scan.languages.base import Lowering, call, field_of, lower_args

if TYPE_CHECKING:
    from tree_sitter import Node

_plain_call = call("function", "arguments", spread=("variadic_argument",))


def called(low: Lowering, node: Node) -> Expr:
    """Lower a call; `make` and `append` give a list or a mapping."""
    made = _plain_call(low, node)
    if not isinstance(made, Call) or not isinstance(made.callee, Name) or not made.args:
        return made
    if made.callee.id == "append":
        first, *rest = made.args
        return ListOf(made.line, [Arg(first.value, spread=True), *rest])
    arguments = node.child_by_field_name("arguments")
    first_type = next(low.named(arguments), None) if arguments is not None else None
    if made.callee.id == "make" and first_type is not None:
        return empty(low, first_type) or made
    return made


def asserted(low: Lowering, node: Node) -> Expr:
    """Lower `x.(T)`."""
    of = low.expr(node.child_by_field_name("operand"))
    return Cast(of.line, of=of, type_text=low.text(node.child_by_field_name("type")))


def empty(low: Lowering, of_type: Node | None) -> Expr | None:
    """Return the empty list or mapping of a type, None for any other type."""
    if of_type is None:
        return None
    if of_type.type == "slice_type":
        return ListOf(low.line(of_type), [])
    return Dict(low.line(of_type), []) if of_type.type == "map_type" else None


def composite(low: Lowering, node: Node) -> Expr:
    """Lower a composite literal: a struct or map is a record, a slice a list."""
    of_type = node.child_by_field_name("type")
    kind = of_type.type if of_type is not None else ""
    body = node.child_by_field_name("body")
    if kind in ("slice_type", "array_type", "implicit_length_array_type"):
        inner = of_type.child_by_field_name("element") if of_type is not None else None
        return literal_list(low, body, inner)
    made = literal_value(low, body)
    if isinstance(made, Dict) and kind in ("type_identifier", "qualified_type"):
        made.type_name = low.expr(of_type)
    return made


def literal_list(low: Lowering, body: Node | None, element: Node | None) -> Expr:
    """Lower the elements of a slice literal; a struct's type may be left out in them."""
    out: list[Arg] = []
    for child in low.named(body) if body is not None else ():
        inner = field_of(child, None) if child.type == "literal_element" else child
        made = literal_value(low, inner) if inner is not None else Lit(0, None)
        if isinstance(made, Dict) and element is not None and element.type in (
            "type_identifier", "qualified_type",
        ):  # fmt: skip
            made.type_name = made.type_name or low.expr(element)
        out.append(Arg(made))
    return ListOf(low.line(body) if body is not None else 0, out)


def literal_value(low: Lowering, node: Node | None) -> Expr:
    """Lower what stands between braces."""
    if node is None or node.type != "literal_value":
        return low.expr(node)
    keyed = [c for c in low.named(node) if c.type == "keyed_element"]
    if keyed or not node.named_child_count:
        entries: list[Entry] = []
        for child in keyed:
            parts = list(low.named(child))
            key = field_of(parts[0], None) if parts[0].type == "literal_element" else parts[0]
            value = field_of(parts[-1], None) if parts[-1].type == "literal_element" else parts[-1]
            made: Expr = low.expr(key)
            if key is not None and key.type in ("identifier", "field_identifier"):
                made = field_key(low, key)
            entries.append(Entry(made, literal_value(low, value), low.line(child)))
        return Dict(low.line(node), entries)
    return literal_list(low, node, None)


def field_key(low: Lowering, node: Node) -> Expr:
    """Lower a struct's field name to text; a constant as a map's key stays a name."""
    text = low.text(node)
    return Name(low.line(node), text) if text.isupper() else Lit(low.line(node), text)


def declare(low: Lowering, node: Node) -> list[Stmt]:
    """Lower `a, b := x, y`, assignments and their kin."""
    left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
    return pair(
        low, node, list(low.named(left)) if left else [], list(low.named(right)) if right else []
    )


def pair(low: Lowering, node: Node, left: list[Node], right: list[Node]) -> list[Stmt]:
    """Bind several names to several values, or to the parts of one."""
    line, rebinds = low.line(node), node.type == "assignment_statement"
    if len(left) == len(right) == 1 and rebinds:
        grown = grows(low, left[0], right[0])
        if grown:
            return grown
    if len(left) == len(right):
        return [
            Assign(line, low.expr(a), low.expr(b), rebinds=rebinds)
            for a, b in zip(left, right, strict=True)
        ]
    if len(right) != 1:
        return []
    value = low.expr(right[0])
    # A call's first result is its value; the others are looked up in what it hands back.
    out: list[Stmt] = [Assign(line, low.expr(left[0]), value, rebinds=rebinds)] if left else []
    if isinstance(value, Call):
        out += [
            Assign(line, low.expr(one), Result(line, of=value, at=at), rebinds=rebinds)
            for at, one in enumerate(left[1:], start=1)
        ]
    return out


def grows(low: Lowering, left: Node, right: Node) -> list[Stmt]:
    """Lower `x = append(x, a, b)` to what is put into x."""
    if right.type != "call_expression":
        return []
    made = _plain_call(low, right)
    if not isinstance(made, Call) or not isinstance(made.callee, Name) or len(made.args) < 2:
        return []
    arguments = right.child_by_field_name("arguments")
    first = next(low.named(arguments), None) if arguments is not None else None
    if made.callee.id != "append" or first is None or low.text(first) != low.text(left):
        return []
    target = low.expr(left)
    return [
        Do(
            made.line,
            Call(made.line, Member(made.line, target, "extend" if a.spread else "append"), [a]),
        )
        for a in made.args[1:]
    ]


def spec(low: Lowering, node: Node) -> list[Stmt]:
    """Lower `const` and `var` blocks."""
    out: list[Stmt] = []
    stack = list(low.named(node))
    while stack:
        child = stack.pop(0)
        if child.type == "var_spec_list":
            stack = [*low.named(child), *stack]
            continue
        names = child.children_by_field_name("name")
        value = child.child_by_field_name("value")
        of_type = low.text(child.child_by_field_name("type"))
        values = list(low.named(value)) if value is not None else []
        for at, one in enumerate(n for n in names if n.type == "identifier"):
            none = empty(low, child.child_by_field_name("type")) or Lit(0, None)
            held = low.expr(values[at]) if at < len(values) else none
            out.append(Assign(low.line(child), low.expr(one), held, of_type))
    return out


def expression_list(low: Lowering, node: Node) -> Expr:
    """Lower a list of results: the first is the value, the error beside it is not."""
    found = list(low.named(node))
    first = low.expr(found[0]) if found else Lit(0, None)
    if len(found) < 2:
        return first
    rest = [low.expr(c) for c in found[1:]]
    if any(
        isinstance(r, Name | Lambda | Call) and getattr(r, "id", "") not in ("nil", "err")
        for r in rest
    ):
        return ListOf(low.line(node), lower_args(low, node), results=True)
    return first
