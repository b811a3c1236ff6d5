"""The handler that stands beside a tool's description: in the same call, struct or pair of results.

A description that no registration leads to still says who runs it: a function among the other
arguments of the call it is given to, a field of the struct around it, or the second of two results.
"""

from __future__ import annotations

from collections.abc import Iterator

from fencekit.scan.evaluate import Evaluator
from fencekit.scan.facts import Call, Dict, Expr, Function, ListOf, Lit, Name, Scope
from fencekit.scan.scopes import children, scope_of
from fencekit.scan.toolspec import HANDLER_KEYS, run_by
from fencekit.scan.values import Env, Func


def handler_beside(ev: Evaluator, expr: Expr, holder: Function, env: Env) -> Func | None:
    """Return the handler beside an expression, directly or where the name it is given is used."""
    above = _above(scope_of(holder))
    if id(expr) not in above:
        return None
    found = _among(ev, expr, _ancestors(above, expr), env)
    name = above[id(expr)][1]
    if found is None and name:
        found = _with_name(ev, name, holder, env)
    return found


def _above(scope: Scope) -> dict[int, tuple[Expr | None, str]]:
    """Return what each expression of a body stands in, and the name its root is given."""
    if scope.above is None:
        scope.above = {}
        for root, name in scope.roots:
            stack: list[tuple[Expr, Expr | None]] = [(root, None)]
            while stack:
                here, parent = stack.pop()
                scope.above.setdefault(id(here), (parent, name))
                if isinstance(here, Name):
                    scope.uses.setdefault(here.id, []).append(here)
                stack.extend((child, here) for child in children(here))
    return scope.above


def _ancestors(above: dict[int, tuple[Expr | None, str]], expr: Expr) -> list[Expr]:
    """Return the expressions around one, innermost first."""
    out: list[Expr] = []
    parent = above[id(expr)][0]
    while parent is not None:
        out.append(parent)
        parent = above[id(parent)][0]
    return out


def _among(ev: Evaluator, expr: Expr, around: list[Expr], env: Env) -> Func | None:
    inner = expr
    for outer in around:
        for beside in _others(outer, inner):
            for value in ev.eval(beside, env):
                found = run_by(ev, value)
                if found is not None:
                    return found
        inner = outer
    return None


def _others(outer: Expr, inner: Expr) -> Iterator[Expr]:
    """Yield what stands beside `inner` and may run it."""
    match outer:
        case Call():
            # The last first: a middleware or a predicate stands before the handler.
            yield from (a.value for a in reversed(outer.args) if a.value is not inner)
        case ListOf():
            yield from (i.value for i in outer.items if i.value is not inner)
        case Dict():
            for entry in outer.entries:
                if isinstance(entry.key, Lit) and entry.key.value in HANDLER_KEYS:
                    yield entry.value


def _with_name(ev: Evaluator, name: str, holder: Function, env: Env) -> Func | None:
    """Find `tool := …` again where it is used together with a function."""
    scope = scope_of(holder)
    above = _above(scope)
    for used in scope.uses.get(name, ()):
        found = _among(ev, used, _ancestors(above, used), env)
        if found is not None:
            return found
    return None
