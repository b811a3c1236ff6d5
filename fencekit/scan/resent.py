"""Calls that a function makes a second time: in an error handler, or when the answer displeased.

`axios(config)`, and `axios(config)` again after a 401; `send(a)` in a `try`, and `send(b)` in its
handler; a function that calls itself from its handler. Found by shape, once for a function; which
of them re-send a write, the walk tells. Calls that only clean up are made in both places anyway.
"""

from __future__ import annotations

from fencekit.scan import words
from fencekit.scan.facts import (
    Assign,
    Call,
    Do,
    Expr,
    Function,
    If,
    Index,
    Lit,
    Member,
    Name,
    Return,
    Stmt,
    Try,
)
from fencekit.scan.scopes import bodies, heads, walk_expr

CLEANS = frozenset({
    "unlink", "rm", "remove", "delete", "close", "cleanup", "abort", "rollback", "release", "clear",
    "stop", "end", "kill", "log", "debug", "info", "warn", "warning", "error", "print", "format",
    "stringify", "parse", "json", "dumps", "loads", "exit",
})  # fmt: skip
KEPT = 2000  # functions whose answer is kept

_known: dict[int, tuple[Function, dict[int, tuple[int, ...]]]] = {}


def lines(function: Function) -> dict[int, tuple[int, ...]]:
    """Return, for each call of a function that is made again, the lines where it is."""
    known = _known.get(id(function))
    if known is not None and known[0] is function:
        return known[1]
    if len(_known) > KEPT:
        _known.clear()
    found: dict[int, tuple[int, ...]] = {}
    _in_block(function.body, function, found)
    _known[id(function)] = (function, found)
    return found


def _in_block(body: list[Stmt], function: Function, found: dict[int, tuple[int, ...]]) -> None:
    earlier: list[Call] = []
    for stmt in body:
        if isinstance(stmt, Try):
            _handled(stmt, function, found)
        if isinstance(stmt, If):
            for second in _calls(stmt.then):
                for first in earlier:
                    if first.args and _same(first, second, whole=True):
                        _add(found, first, second.line)
        if isinstance(stmt, Do | Assign | Return) and stmt.value is not None:
            earlier += [c for c in _calls([stmt]) if _sends(c)]
        for inner in bodies(stmt):
            _in_block(inner, function, found)


def _handled(stmt: Try, function: Function, found: dict[int, tuple[int, ...]]) -> None:
    inside = [c for c in _calls(stmt.body) if _sends(c)]
    for handler in stmt.handlers:
        for second in _calls(handler):
            itself = bool(function.name) and _path(second) in (
                function.name, f"self.{function.name}", f"this.{function.name}"
            )  # fmt: skip
            for first in inside:
                if itself or _same(first, second, whole=False):
                    for line in (*(_asked(handler, second) if itself else ()), second.line):
                        _add(found, first, line)


def _asked(body: list[Stmt], call: Call) -> list[int]:
    """Return the lines of the tests about retries under which a call stands."""
    out: list[int] = []
    for stmt in body:
        if any(call is c for c in _calls([stmt])):
            told = [e for h in heads(stmt) for e in walk_expr(h) if isinstance(e, Name | Member)]
            named = {w for e in told for w in words.split(e.id if isinstance(e, Name) else e.name)}
            if isinstance(stmt, If) and named & words.RETRY:
                out.append(stmt.line)
            for inner in bodies(stmt):
                out += _asked(inner, call)
    return out


def _add(found: dict[int, tuple[int, ...]], first: Call, line: int) -> None:
    found[id(first)] = tuple(dict.fromkeys((*found.get(id(first), ()), line)))


def _sends(call: Call) -> bool:
    parts = words.split(_path(call).rsplit(".", 1)[-1])
    return bool(parts) and parts[0] not in CLEANS and parts[0] not in words.READING - {"wait"}


def _same(first: Call, second: Call, *, whole: bool) -> bool:
    """Tell whether two calls call the same thing; `whole`: with the same plain arguments."""
    if first is second or not _path(first) or _path(first) != _path(second):
        return False
    if not whole:
        return True
    told = [dotted(a.value) for a in first.args]
    return "?" not in told and told == [dotted(a.value) for a in second.args]


def _path(call: Call) -> str:
    told = dotted(call.callee)
    return "" if "?" in told else told


def dotted(expr: Expr) -> str:
    """Return a plain expression as text; a `?` in it stands for what is not plain."""
    match expr:
        case Name():
            return expr.id
        case Member():
            return f"{dotted(expr.obj)}.{expr.name}"
        case Lit():
            return repr(expr.value)
        case Index():
            return f"{dotted(expr.obj)}[{dotted(expr.key)}]"
        case _:
            return "?"


def _calls(body: list[Stmt]) -> list[Call]:
    """Return the calls of statements, not those inside closures."""
    out: list[Call] = []
    for stmt in body:
        held = stmt.value if isinstance(stmt, Do | Assign | Return) else None
        for head in [*heads(stmt), *([held] if held is not None else [])]:
            out += [e for e in walk_expr(head) if isinstance(e, Call)]
        for inner in bodies(stmt):
            out += _calls(inner)
    return out
