"""What a function hands back along the branches that its tests do not rule out."""

from __future__ import annotations

from fencekit.scan.evaluate import Evaluator
from fencekit.scan.facts import Block, If, Loop, Raise, Return, Stmt, Switch, Try
from fencekit.scan.scopes import bodies
from fencekit.scan.values import Const, Env, Value


def outcomes(ev: Evaluator, body: list[Stmt], env: Env) -> tuple[list[Value], bool]:
    """Return the values handed back, and whether every way through `body` ends in it."""
    out: list[Value] = []
    for stmt in body:
        found, ended = _outcome(ev, stmt, env)
        out.extend(found)
        if ended:
            return out, True
    return out, False


def _outcome(ev: Evaluator, stmt: Stmt, env: Env) -> tuple[list[Value], bool]:
    match stmt:
        case Return():
            nothing: list[Value] = [Const(None, file=env.file, line=stmt.line)]
            return (ev.eval(stmt.value, env) if stmt.value is not None else nothing), True
        case Raise():
            return [], True
        case Block():
            return outcomes(ev, stmt.body, env)
        case If():
            known = ev.truth(stmt.test, env)
            if known is not None:
                return outcomes(ev, stmt.then if known else stmt.orelse, env)
            one, two = outcomes(ev, stmt.then, env), outcomes(ev, stmt.orelse, env)
            return [*one[0], *two[0]], one[1] and two[1]
        case Loop() | Switch() | Try():
            parts = [outcomes(ev, body, env) for body in bodies(stmt)]
            ended = isinstance(stmt, Try) and parts[0][1] and all(p[1] for p in parts[1:-1])
            return [v for p in parts for v in p[0]], ended
        case _:
            return [], False
