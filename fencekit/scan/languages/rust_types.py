"""Rust's types and patterns: what a type hands on, and which names a pattern binds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fencekit.scan.facts import Arg, Dict, Entry, Expr, ListOf, Lit, Name
from fencekit.scan.languages.base import Lowering

if TYPE_CHECKING:
    from tree_sitter import Node

# Types that only hold another: the first of their arguments is what counts.
HOLDING = frozenset({
    "Result", "Option", "Arc", "Rc", "Box", "Mutex", "RwLock", "RefCell", "Cell", "Pin", "Cow",
    "Json", "Parameters", "State", "Extension", "Data", "MutexGuard", "OnceCell", "OnceLock",
    "LazyLock", "Lazy", "LazyCell", "ArcSwap", "Weak", "Query", "Path",
})  # fmt: skip
MAPS = frozenset({"HashMap", "BTreeMap", "DashMap", "IndexMap", "LruCache"})  # the last counts
# Plain data: where it comes from says more than that it is of such a type.
DATA = frozenset({"Value", "JsonValue", "JsonObject", "Map", "String", "Bytes"})
_TYPES = frozenset({"type_identifier", "scoped_type_identifier", "identifier", "scoped_identifier"})


def tail_name(low: Lowering, node: Node | None) -> str:
    """Return the last name of a type, without its arguments."""
    while node is not None and node.type in ("generic_type", "reference_type", "dynamic_type"):
        node = node.child_by_field_name("type") or node.child_by_field_name("trait")
    return low.text(node).rsplit("::", 1)[-1] if node is not None else ""


def type_text(low: Lowering, node: Node | None, bounds: dict[str, str]) -> str:
    """Return the type that counts: `Arc<dyn Store>` is `Store`, `Result<A, E>` is `A`.

    A type parameter stands for its first bound, of which `bounds` tells.
    """
    if node is None:
        return ""
    if node.type in ("reference_type", "pointer_type"):
        return type_text(low, node.child_by_field_name("type"), bounds)
    if node.type in ("dynamic_type", "abstract_type"):
        return type_text(low, node.child_by_field_name("trait"), bounds)
    if node.type in ("bounded_type", "lifetime"):
        inner = [c for c in low.named(node) if c.type != "lifetime"]
        return type_text(low, inner[0], bounds) if inner else ""
    if node.type == "generic_type":
        base = node.child_by_field_name("type")
        told = low.text(base)
        last = told.rsplit("::", 1)[-1]
        if last not in HOLDING | MAPS:
            return told if told != "Vec" else low.text(node)
        given = node.child_by_field_name("type_arguments")
        held = [c for c in low.named(given) if c.type != "lifetime"] if given is not None else []
        at = -1 if last in MAPS else 0
        return type_text(low, held[at], bounds) if held else ""
    if node.type in _TYPES:
        told = low.text(node)
        data = told.rsplit("::", 1)[-1] in DATA
        return "" if data else bounds.get(told, told).removeprefix("self::")
    return ""


def bounds_of(low: Lowering, node: Node) -> dict[str, str]:
    """Return the first bound of every type parameter of an item and of the `impl` around it."""
    out: dict[str, str] = {}
    around = node.parent.parent if node.parent is not None else None
    for here in (around, node):
        if here is None or here.type == "source_file":
            continue
        for given in (here.child_by_field_name("type_parameters"), _where(here)):
            for child in low.named(given) if given is not None else ():
                told = child.child_by_field_name("name") or child.child_by_field_name("left")
                bound = child.child_by_field_name("bounds")
                first = next((c for c in low.named(bound) if c.type != "lifetime"), None) if (
                    bound is not None) else None  # fmt: skip
                if told is not None and first is not None:
                    out[low.text(told)] = tail_name(low, first)
    return out


def _where(node: Node) -> Node | None:
    return next((c for c in node.named_children if c.type == "where_clause"), None)


def pattern(low: Lowering, node: Node | None) -> Expr:
    """Lower a pattern to the names it binds; what wraps one thing binds that thing."""
    if node is None:
        return Lit(0, None)
    line = low.line(node)
    inner = list(low.named(node))
    match node.type:
        case "identifier" | "shorthand_field_identifier":
            told = low.text(node)
            return Lit(line, None) if is_constant(told) else Name(line, told)
        case "tuple_struct_pattern":
            of_type = node.child_by_field_name("type")
            inner = [c for c in inner if c != of_type]
            if len(inner) == 1:
                return pattern(low, inner[0])
            return ListOf(line, [Arg(pattern(low, c)) for c in inner])
        case "tuple_pattern" | "slice_pattern":
            return ListOf(line, [Arg(pattern(low, c)) for c in inner])
        case "struct_pattern":
            return Dict(line, [e for c in inner for e in _field_pattern(low, c)])
        case "captured_pattern" | "or_pattern" | "match_pattern":
            return pattern(low, inner[0]) if inner else Lit(line, None)
        case "mut_pattern" | "ref_pattern" | "reference_pattern":
            found = [c for c in inner if c.type != "mutable_specifier"]
            return pattern(low, found[0]) if found else Lit(line, None)
        case _:
            return Lit(line, None)


def is_constant(told: str) -> bool:
    """Tell whether a name in a pattern is compared with rather than bound."""
    return told == "None" or (told.isupper() and len(told) > 1)


def _field_pattern(low: Lowering, node: Node) -> list[Entry]:
    if node.type != "field_pattern":
        return []
    told = low.text(node.child_by_field_name("name"))
    line = low.line(node)
    given = node.child_by_field_name("pattern")
    return [Entry(Lit(line, told), pattern(low, given) if given else Name(line, told), line)]


def tested(low: Lowering, node: Node | None) -> list[Expr]:
    """Return the values a pattern asks for; none where it takes anything."""
    if node is None:
        return []
    inner = list(low.named(node))
    match node.type:
        case "match_pattern":
            guard = node.child_by_field_name("condition")
            inner = [c for c in inner if c != guard]
            return tested(low, inner[0]) if inner else []
        case "or_pattern":
            return [v for c in inner for v in tested(low, c)]
        case "captured_pattern" | "ref_pattern" | "reference_pattern" | "mut_pattern":
            return tested(low, inner[-1]) if inner else []
        case "tuple_struct_pattern" | "struct_pattern":
            of_type = node.child_by_field_name("type")
            if tail_name(low, of_type) in ("Some", "Ok"):
                return [v for c in inner if c != of_type for v in tested(low, c)]
            return [low.expr(of_type)]
        case "identifier":
            told = low.text(node)
            if told == "None":
                return [Lit(low.line(node), None)]
            return [low.expr(node)] if is_constant(told) else []
        case "scoped_identifier" | "string_literal" | "raw_string_literal" | "integer_literal":
            return [low.expr(node)]
        case "boolean_literal" | "char_literal":
            return [low.expr(node)]
        case _:
            return []
