"""Own deduplication by merging: what is not yet in a loaded collection is added to it.

`graph.items.push(...given.filter(g => !graph.items.some(i => i.id === g.id)))` looks up each thing
before it adds it. Found by shape in one function: a collection that is asked in a condition and
then added to. One that the function begins empty, or was given, remembers nothing between calls.
"""

from __future__ import annotations

from collections.abc import Iterator

from fencekit.scan.facts import (
    Binding,
    Call,
    Compare,
    Each,
    Expr,
    Function,
    If,
    Lambda,
    Member,
    Stmt,
)
from fencekit.scan.resent import dotted
from fencekit.scan.scopes import PUT_ONE, bodies, scope_of, walk_expr

ASKS = frozenset({"some", "includes", "has", "find", "any", "contains", "findIndex", "indexOf"})


def lookups(function: Function) -> list[tuple[int, str]]:
    """Return the lines that ask a collection before it is added to, with its name."""
    filled = {
        dotted(c.callee.obj)
        for c in scope_of(function).calls
        if isinstance(c.callee, Member) and c.callee.name in PUT_ONE and c.args
    }
    kept = {name for name in filled if "." in name and _loaded(function, name.split(".")[0])}
    if not kept:
        return []
    found = [(line, name) for line, name in _asked(function) if name in kept]
    return list(dict.fromkeys(found))


def _loaded(function: Function, root: str) -> bool:
    """Tell whether a name holds what was there before: what a call gave, or the object itself."""
    if root in ("self", "this"):
        return True
    here: Function | None = function
    while here is not None:
        bound: list[Binding] = scope_of(here).names.get(root, [])
        if bound:
            return any(b.kind == "value" and isinstance(b.value, Call) for b in bound)
        here = here.parent
    return False


def _asked(function: Function) -> Iterator[tuple[int, str]]:
    for test in _conditions(function):
        for part in walk_expr(test):
            if isinstance(part, Call) and isinstance(part.callee, Member):
                if part.callee.name in ASKS:
                    yield part.line, dotted(part.callee.obj)
            elif isinstance(part, Compare) and part.member:
                for inner in walk_expr(part.right):
                    yield part.line, dotted(inner)


def _conditions(function: Function) -> Iterator[Expr]:
    """Yield the conditions under which a function adds: filters, comprehensions, branches."""
    scope = scope_of(function)
    for call in scope.calls:
        if isinstance(call.callee, Member) and call.callee.name == "filter":
            for arg in call.args:
                if isinstance(arg.value, Lambda):
                    yield from scope_of(arg.value.function).returns
    for root, _ in scope.roots:
        for part in walk_expr(root):
            if isinstance(part, Each):
                yield from part.parts
    yield from _tests(function.body)


def _tests(body: list[Stmt]) -> Iterator[Expr]:
    for stmt in body:
        if isinstance(stmt, If):
            yield stmt.test
        for inner in bodies(stmt):
            yield from _tests(inner)
