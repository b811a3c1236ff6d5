"""The handler that stands beside a tool's description: in the same call, struct or pair of results.

A description that no registration leads to still says who runs it: a function among the other
arguments of the call it is given to, a field of the struct around it, or the second of two results.
"""

from __future__ import annotations

from collections.abc import Iterator

from fencekit.scan.evaluate import Evaluator
from fencekit.scan.facts import Call, Dict, Expr, Function, ListOf, Lit, Name
from fencekit.scan.scopes import children, scope_of
from fencekit.scan.toolspec import HANDLER_KEYS
from fencekit.scan.values import Env, Func


def handler_beside(ev: Evaluator, expr: Expr, holder: Function, env: Env) -> Func | None:
    """Return the handler beside an expression, directly or where the name it is given is used."""
    for root, name in scope_of(holder).roots:
        around = _ancestors(root, expr)
        if around is None:
            continue
        found = _among(ev, expr, around, env)
        if found is None and name:
            found = _with_name(ev, name, holder, env)
        return found
    return None


def _ancestors(root: Expr, wanted: Expr) -> list[Expr] | None:
    """Return the expressions around one, innermost first; None where it is not below the root."""
    if root is wanted:
        return []
    for child in children(root):
        inner = _ancestors(child, wanted)
        if inner is not None:
            return [*inner, root]
    return None


def _among(ev: Evaluator, expr: Expr, around: list[Expr], env: Env) -> Func | None:
    inner = expr
    for outer in around:
        for beside in _others(outer, inner):
            for value in ev.eval(beside, env):
                if isinstance(value, Func):
                    return value
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
    for root, _ in scope_of(holder).roots:
        for used in _uses(root, name):
            around = _ancestors(root, used)
            found = _among(ev, used, around or [], env)
            if found is not None:
                return found
    return None


def _uses(root: Expr, name: str) -> Iterator[Expr]:
    stack = [root]
    while stack:
        here = stack.pop()
        if isinstance(here, Name) and here.id == name:
            yield here
        stack.extend(children(here))
