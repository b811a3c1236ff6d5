"""What a function body binds, changes and hands back, collected in one walk of its statements.

Flow-insensitive: every value a name is given in a body counts. Nested functions have scopes of
their own; their closures look outwards.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from fencekit.scan.facts import (
    Assign,
    Binding,
    Block,
    Call,
    Cast,
    Choice,
    Class,
    Compare,
    Define,
    Dict,
    Do,
    Each,
    Expr,
    Function,
    If,
    Import,
    Index,
    Lambda,
    ListOf,
    Lit,
    Loop,
    Member,
    Mutation,
    Name,
    Outward,
    Raise,
    Return,
    Scope,
    Stmt,
    Switch,
    Try,
)

# Methods that put (key, value) or one value into the object they are called on.
PUT_PAIR = frozenset({
    "set", "append", "header", "insert", "Set", "Add", "add", "put", "setHeader", "put_header",
    "SetHeader", "query", "arg", "setdefault", "addHeader",
})  # fmt: skip
ANY = "*"  # a step of a change's path that may be any key
PUT_ONE = frozenset({"update", "push", "append", "add", "extend", "unshift", "concat", "push_back"})


def children(expr: Expr) -> Iterator[Expr]:
    """Yield the direct sub-expressions of an expression (not the bodies of functions)."""
    yield from expr.parts
    match expr:
        case Member():
            yield expr.obj
        case Index():
            yield expr.obj
            yield expr.key
        case Call():
            yield expr.callee
            for arg in expr.args:
                yield arg.value
        case Dict():
            for entry in expr.entries:
                if entry.key is not None:
                    yield entry.key
                yield entry.value
        case ListOf():
            for item in expr.items:
                yield item.value
        case Cast():
            yield expr.of
        case Choice():
            if expr.test is not None:
                yield expr.test
            yield from expr.options
        case Compare():
            yield expr.left
            yield expr.right
        case Each():
            yield expr.iterable
            yield expr.item
            if expr.value is not None:
                yield expr.value
        case _:
            pass


def walk_expr(expr: Expr) -> Iterator[Expr]:
    """Yield an expression and all below it, outermost first, without function bodies."""
    stack = [expr]
    while stack:
        here = stack.pop()
        yield here
        stack.extend(reversed(list(children(here))))


def scope_of(function: Function) -> Scope:
    """Return the scope of a function, built at the first use."""
    if function.scope is None:
        scope = Scope()
        function.scope = scope
        for param in function.params:
            if param.pattern is not None:
                _bind(scope, param.pattern, Binding("param", param.line, item=param))
            else:
                binding = Binding("param", param.line, item=param, type_text=param.type_text)
                scope.names.setdefault(param.name, []).append(binding)
        with contextlib.suppress(RecursionError):  # nested too deep: what was met so far counts
            _statements(function, scope, function.body)
        _keep_rebound(scope)
    return function.scope


def _keep_rebound(scope: Scope) -> None:
    """Settle which names of scopes further out a body gives a value: none that it declares."""
    for name, bindings in list(scope.rebound.items()):
        own = scope.names.get(name, [])
        if not bindings:  # told to be outward, whatever assigns it
            scope.rebound[name] = own
        elif len(own) > len(bindings):
            del scope.rebound[name]


def _bind(scope: Scope, target: Expr, binding: Binding) -> None:
    """Bind a target, a plain name or a pattern, to (a part of) what `binding` holds."""
    match target:
        case Name():
            scope.names.setdefault(target.id, []).append(binding)
        case ListOf():
            for i, item in enumerate(target.items):
                part = _part(binding, i)
                _bind(scope, item.value, binding if item.spread else part)
        case Dict():
            for entry in target.entries:
                if isinstance(entry.key, Lit):
                    _bind(scope, entry.value, _part(binding, str(entry.key.value)))
                elif entry.key is None:
                    _bind(scope, entry.value, binding)
        case Member() | Index():
            _change(scope, target, binding)
        case Choice() if target.options:
            _bind(scope, target.options[0], binding)
        case _:
            pass


def _part(binding: Binding, step: str | int) -> Binding:
    path = (*binding.path, step)
    return Binding(binding.kind, binding.line, binding.value, path, binding.item, "", binding.final)


def _change(scope: Scope, target: Member | Index, binding: Binding) -> None:
    """Note `name.a.b = value` or `name[key] = value` as a change to the outermost name."""
    if binding.value is None or binding.path:
        return
    path: list[str] = []
    key: Expr = Lit(target.line, target.name) if isinstance(target, Member) else target.key
    obj = target.obj
    while isinstance(obj, Member | Index):
        if isinstance(obj, Member):
            path.append(obj.name)
        elif isinstance(obj.key, Lit):
            path.append(str(obj.key.value))
        obj = obj.obj
    if isinstance(obj, Name):
        change = Mutation(key, binding.value, binding.line, tuple(reversed(path)))
        scope.changes.setdefault(obj.id, []).append(change)


def _expression(function: Function, scope: Scope, expr: Expr, name: str = "") -> None:
    scope.roots.append((expr, name))
    for here in walk_expr(expr):
        if isinstance(here, Lambda):
            _nest(function, scope, here.function)
        elif isinstance(here, Call):
            scope.calls.append(here)
            _call_change(scope, here)
        elif isinstance(here, Dict) and (here.type_name is not None or _describes(here)):
            scope.described.append(here)
        elif isinstance(here, Each):
            _bind(scope, here.target, Binding("loop", here.line, here.iterable))


def _describes(literal: Dict) -> bool:
    """Tell whether an object has a name and a description, as whatever is advertised has."""
    keys = {e.key.value for e in literal.entries if isinstance(e.key, Lit)}
    return "name" in keys and "description" in keys


def _call_change(scope: Scope, call: Call) -> None:
    callee = call.callee
    if not isinstance(callee, Member) or not call.args:
        return
    obj: Expr = callee.obj
    path: list[str] = []
    while isinstance(obj, Member | Index | Call):
        if isinstance(obj, Member):
            path.append(obj.name)
            obj = obj.obj
        elif isinstance(obj, Index):
            path.append(str(obj.key.value) if isinstance(obj.key, Lit) else ANY)
            obj = obj.obj
        elif isinstance(obj.callee, Member):
            if obj.callee.name == "setdefault":
                path.append(ANY)
            obj = obj.callee.obj  # a builder chain
        else:
            return
    if not isinstance(obj, Name):
        return
    args = call.args
    where = tuple(reversed(path))
    if len(args) == 2 and callee.name in PUT_PAIR:
        change = Mutation(args[0].value, args[1].value, call.line, where)
    elif len(args) == 1 and callee.name in PUT_ONE:
        change = Mutation(None, args[0].value, call.line, where)
    elif obj.id == "Object" and callee.name == "assign" and isinstance(args[0].value, Name):
        for arg in args[1:]:
            made = Mutation(None, arg.value, call.line)
            scope.changes.setdefault(args[0].value.id, []).append(made)
        return
    else:
        return
    scope.changes.setdefault(obj.id, []).append(change)


def _nest(function: Function, scope: Scope, inner: Function) -> None:
    inner.parent = function
    inner.module = function.module
    scope.nested.append(inner)


def _define(function: Function, scope: Scope, item: Function | Class) -> None:
    if isinstance(item, Function):
        _nest(function, scope, item)
        for mark in item.marks:
            _expression(function, scope, mark)
        scope.names.setdefault(item.name, []).append(Binding("def", item.line, item=item))
        return
    item.module, item.parent = function.module, function
    scope.names.setdefault(item.name, []).append(Binding("class", item.line, item=item))
    for method in item.methods.values():
        _nest(function, scope, method)
        method.owner = item
        for mark in method.marks:
            _expression(function, scope, mark)
    for value in item.fields.values():
        _expression(function, scope, value)
    for mark in item.marks:
        _expression(function, scope, mark)


def _statements(function: Function, scope: Scope, body: list[Stmt]) -> None:
    for stmt in body:
        _statement(function, scope, stmt)


def _statement(function: Function, scope: Scope, stmt: Stmt) -> None:
    match stmt:
        case Do():
            _expression(function, scope, stmt.value)
        case Assign():
            name = stmt.target.id if isinstance(stmt.target, Name) else ""
            _expression(function, scope, stmt.value, name)
            _expression(function, scope, stmt.target)
            binding = Binding("value", stmt.line, stmt.value, type_text=stmt.type_text)
            binding.final = stmt.final
            _bind(scope, stmt.target, binding)
            if name and stmt.rebinds:
                scope.rebound.setdefault(name, []).append(binding)
        case Outward():
            scope.rebound.update((name, []) for name in stmt.names)
        case Return() | Raise():
            if stmt.value is not None:
                _expression(function, scope, stmt.value)
                if isinstance(stmt, Return):
                    scope.returns.append(stmt.value)
        case Define():
            _define(function, scope, stmt.item)
        case Import():
            scope.names.setdefault(stmt.local, []).append(Binding("import", stmt.line, item=stmt))
        case _:
            for expr in heads(stmt):
                _expression(function, scope, expr)
            if isinstance(stmt, Loop) and stmt.target is not None:
                binding = Binding("loop", stmt.line, stmt.iterable)
                _bind(scope, stmt.target, binding)
            for inner in bodies(stmt):
                _statements(function, scope, inner)


def heads(stmt: Stmt) -> list[Expr]:
    """Return the expressions a compound statement evaluates itself."""
    match stmt:
        case If():
            return [stmt.test]
        case Switch():
            return [stmt.subject, *(v for case in stmt.cases for v in case.values)]
        case Loop():
            return [e for e in (stmt.iterable, stmt.test) if e is not None]
        case _:
            return []


def bodies(stmt: Stmt) -> list[list[Stmt]]:
    """Return the statement lists inside a compound statement."""
    match stmt:
        case If():
            return [stmt.then, stmt.orelse]
        case Switch():
            return [case.body for case in stmt.cases]
        case Loop() | Block():
            return [stmt.body]
        case Try():
            return [stmt.body, *stmt.handlers, stmt.final]
        case _:
            return []
