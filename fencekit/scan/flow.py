"""What a function hands back along the branches that its tests do not rule out."""

from __future__ import annotations

from fencekit.scan.facts import Block, Expr, If, Loop, Name, Raise, Return, Stmt, Switch, Try
from fencekit.scan.parts import Parts
from fencekit.scan.scopes import bodies, walk_expr
from fencekit.scan.values import Const, Env, Value


def outcomes(
    ev: Parts, body: list[Stmt], env: Env, told: frozenset[str] | None = None
) -> tuple[list[Value], bool]:
    """Return the values handed back, and whether every way through `body` ends in it.

    With `told`, only tests of nothing but these names rule a branch out.
    """
    out: list[Value] = []
    for stmt in body:
        found, ended = _outcome(ev, stmt, env, told)
        out.extend(found)
        if ended:
            return out, True
    return out, False


def _outcome(
    ev: Parts, stmt: Stmt, env: Env, told: frozenset[str] | None
) -> tuple[list[Value], bool]:
    match stmt:
        case Return():
            nothing: list[Value] = [Const(None, file=env.file, line=stmt.line)]
            return (ev.eval(stmt.value, env) if stmt.value is not None else nothing), True
        case Raise():
            return [], True
        case Block():
            return outcomes(ev, stmt.body, env, told)
        case If():
            known = ev.truth(stmt.test, env) if _asks_only(stmt.test, told) else None
            if known is not None:
                return outcomes(ev, stmt.then if known else stmt.orelse, env, told)
            one = outcomes(ev, stmt.then, env, told)
            two = outcomes(ev, stmt.orelse, env, told)
            return [*one[0], *two[0]], one[1] and two[1]
        case Switch() if (
            told is not None and _asks_only(stmt.subject, told) and ev.arm(stmt, env)[0]
        ):
            arm = ev.arm(stmt, env)[1]
            return outcomes(ev, arm.body, env, told) if arm is not None else ([], False)
        case Loop() | Switch() | Try():
            parts = [outcomes(ev, body, env, told) for body in bodies(stmt)]
            ended = isinstance(stmt, Try) and parts[0][1] and all(p[1] for p in parts[1:-1])
            return [v for p in parts for v in p[0]], ended
        case _:
            return [], False


def _asks_only(test: Expr, told: frozenset[str] | None) -> bool:
    """Tell whether a test speaks of nothing but the names in `told`, where there are such."""
    return told is None or {e.id for e in walk_expr(test) if isinstance(e, Name)} <= told


def told_names(env: Env) -> frozenset[str]:
    """Return the parameters of which an activation knows the text it was given."""
    return frozenset(
        name
        for name, values in (env.args or {}).items()
        if len(values) == 1
        and isinstance(values[0], Const)
        and isinstance(values[0].value, str)
        and not values[0].holes
    )
