"""Which calls and loops send again."""

from __future__ import annotations

from fencekit.scan import words
from fencekit.scan.facts import Call, Expr, If, Lit, Loop, Member, Name, Return, Stmt, Try
from fencekit.scan.scopes import bodies, walk_expr


def last_name(expr: Expr) -> str:
    """Return the last name of a plain or dotted expression."""
    return expr.name if isinstance(expr, Member) else getattr(expr, "id", "")


def is_retry(name: str) -> bool:
    """Tell whether a called name is a retry wrapper (`withRetry`, `retry`, `backoff`)."""
    parts = words.split(name)
    told = bool(set(parts) & words.RETRY) and not set(parts) & words.RETRY_NOT
    return told and parts[0] not in (
        "is", "should", "get", "parse", "max", "can", "calculate", "compute", "has", "log",
        "set", "create", "next"
    )  # fmt: skip


def loop_retries(loop: Loop) -> str:
    """Return what marks a loop as one that tries again, or an empty string."""
    told: set[str] = set()
    for expr in (loop.target, loop.iterable, loop.test):
        if expr is not None:
            for part in walk_expr(expr):
                if isinstance(part, Name):
                    told |= set(words.split(part.id))
                elif isinstance(part, Member):
                    told |= set(words.split(part.name))
    marked = told & words.RETRY
    if marked and (_guarded(loop.body) or "attempt" in marked or "attempts" in marked):
        return sorted(marked)[0]
    endless = loop.iterable is None and (
        loop.test is None or (isinstance(loop.test, Lit) and loop.test.value is True)
    )
    if endless and any(isinstance(s, Try) and s.handlers for s in loop.body):
        return "loop"
    counted = (
        loop.iterable is not None
        and isinstance(loop.iterable, Call)
        and last_name(loop.iterable.callee) == "range"
    )
    if counted and any(isinstance(s, Try) and s.handlers and _returns(s.body) for s in loop.body):
        return "loop"
    return ""


def _guarded(body: list[Stmt]) -> bool:
    return any(isinstance(s, Try | If) for s in body)


def _returns(body: list[Stmt]) -> bool:
    return any(isinstance(s, Return) or any(_returns(b) for b in bodies(s)) for s in body)
