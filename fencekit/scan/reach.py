"""What an expression hangs on in its function: the parameters and the loops it is made from.

Two activations of a function that differ only in what an expression does not hang on give it the
same values, so they share the work (`evaluate.Evaluator.eval`).
"""

from __future__ import annotations

from fencekit.scan.facts import Binding, Expr, Function, Lambda, Name, Param, Result, Scope
from fencekit.scan.scopes import scope_of, walk_expr

SELF_NAMES = frozenset({"self", "cls", "this", "Self"})


def reach(function: Function, expr: Expr) -> frozenset[int] | None:
    """Return the ids of the parameters and loop iterables an expression is made from.

    None where it holds or names a function of the body: that function keeps the whole activation.
    """
    scope = scope_of(function)
    key = id(expr)
    if key not in scope.reach:
        scope.reach[key] = _reach(scope, expr)
    return scope.reach[key]


def _reach(scope: Scope, expr: Expr) -> frozenset[int] | None:
    out: set[int] = set()
    seen: set[str] = set()
    todo = [expr]
    while todo:
        for here in walk_expr(todo.pop()):
            if isinstance(here, Lambda):
                return None
            if isinstance(here, Result):
                todo.append(here.of)
            if not isinstance(here, Name) or here.id in seen:
                continue
            seen.add(here.id)
            for binding in scope.names.get(here.id, ()):
                if binding.kind in ("def", "class"):
                    return None
                out |= _own(binding)
                if binding.value is not None:
                    todo.append(binding.value)
            for change in scope.changes.get(here.id, ()):
                todo.append(change.value)
                if change.key is not None:
                    todo.append(change.key)
    return frozenset(out)


def _own(binding: Binding) -> set[int]:
    if isinstance(binding.item, Param):
        return set() if binding.item.name in SELF_NAMES else {id(binding.item)}
    if binding.kind == "loop" and binding.value is not None:
        return {id(binding.value)}
    return set()
