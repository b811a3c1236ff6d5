"""Rust's modules and imports, and the crates that paths name without importing them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from fencekit.scan.facts import Call, Expr, Import, Member, Stmt
from fencekit.scan.languages.base import Lowering
from fencekit.scan.languages.rust_macros import attributes

if TYPE_CHECKING:
    from tree_sitter import Node

PRIMITIVES = frozenset({
    "u8", "u16", "u32", "u64", "u128", "usize", "i8", "i16", "i32", "i64", "i128", "isize", "f32",
    "f64", "bool", "char", "str",
})  # fmt: skip
MODULES = frozenset({"fs", "process", "io", "net", "thread", "sync", "time", "env", "task"})
_PATH = re.compile(rb"\b((?:[a-z_]\w*::)+)")


def segments(low: Lowering, node: Node) -> list[str] | None:
    """Return the names of a plain path, or None where a type with arguments is in it."""
    if node.type in ("scoped_identifier", "scoped_type_identifier"):
        before = node.child_by_field_name("path")
        start = segments(low, before) if before is not None else []
        last = low.text(node.child_by_field_name("name"))
        return [*start, last] if start is not None else None
    if node.type in ("identifier", "type_identifier", "crate", "super", "self", "metavariable"):
        return [low.text(node)]
    if node.type in ("generic_type", "generic_type_with_turbofish"):
        inner = node.child_by_field_name("type")
        return segments(low, inner) if inner is not None else None
    return None


def is_test(marks: list[Expr]) -> bool:
    """Tell whether attributes say that an item is compiled for tests only."""
    for mark in marks:
        told = mark.callee if isinstance(mark, Call) else mark
        last = told.name if isinstance(told, Member) else getattr(told, "id", "")
        if last in ("test", "rstest", "bench"):
            return True
        if last == "cfg" and isinstance(mark, Call):
            named = [getattr(a.value, "id", "") for a in mark.args]
            if "test" in named:
                return True
    return False


def module(low: Lowering, node: Node) -> list[Stmt]:
    """Lower `mod x;` to an import; the items of an inline module stand beside the others."""
    if is_test(attributes(low, node)):
        return []
    told, body = low.text(node.child_by_field_name("name")), node.child_by_field_name("body")
    made = Import(low.line(node), "self" if body is not None else f"self::{told}", None, told)
    low.imports[told] = made
    return [made, *(low.statements(body) if body is not None else [])]


def imports(low: Lowering, node: Node) -> list[Stmt]:
    """Lower a `use` with all its branches."""
    out: list[Stmt] = []
    argument = node.child_by_field_name("argument")
    if argument is not None:
        for parts, local in branches(low, argument, []):
            made = imported(low.line(node), parts, local)
            if made.local != "*":
                low.imports[made.local] = made
            out.append(made)
    return out


def branches(low: Lowering, node: Node, before: list[str]) -> list[tuple[list[str], str]]:
    """Return the paths a `use` names, each with the name it is given here."""
    if node.type == "use_as_clause":
        inner = node.child_by_field_name("path")
        found = branches(low, inner, before) if inner is not None else []
        return [(parts, low.text(node.child_by_field_name("alias"))) for parts, _ in found]
    if node.type == "use_wildcard":
        inner = next(low.named(node), None)
        start = segments(low, inner) if inner is not None else []
        return [([*before, *(start or []), "*"], "*")]
    if node.type == "use_list":
        return [b for child in low.named(node) for b in branches(low, child, before)]
    if node.type == "scoped_use_list":
        inner, below = node.child_by_field_name("path"), node.child_by_field_name("list")
        start = segments(low, inner) if inner is not None else []
        return branches(low, below, [*before, *(start or [])]) if below is not None else []
    if node.type == "self" and before:
        return [([*before, "self"], before[-1])]
    told = [*before, *(segments(low, node) or [])]
    return [(told, told[-1])] if told else []


def imported(line: int, parts: list[str], local: str) -> Import:
    """Return the import of one path: of a module, or of a name in one."""
    if parts[-1] == "self" and len(parts) > 1:
        return Import(line, "::".join(parts[:-1]), None, local)
    standard = parts[0] in ("std", "tokio", "async_std") and parts[-1] in MODULES
    if len(parts) == 1 or standard:
        return Import(line, "::".join(parts), None, local)
    return Import(line, "::".join(parts[:-1]), parts[-1], local)


def crate_names(low: Lowering) -> list[Stmt]:
    """Bind the modules at the front of the file's paths that nothing else binds."""
    out: list[Stmt] = []
    found = {m.decode("utf-8", "replace").removesuffix("::") for m in _PATH.findall(low.source)}
    for told in sorted((found | {f.split("::")[0] for f in found}) - PRIMITIVES):
        first, _, rest = told.partition("::")
        known = low.imports.get(first)
        if known is not None and not rest:
            continue
        module = told
        if known is not None:
            start = "::".join(p for p in (known.module, known.name) if p)
            module = f"{start}::{rest}"
        out.append(Import(1, module, None, "self::" if told == "self" else told))
    return out
