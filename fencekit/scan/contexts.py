"""One activation per element of a loop and per known call of a function.

So values that belong together (a key and its value, a name and its handler) stay together.
"""

from __future__ import annotations

from fencekit.scan.facts import Call, Expr, Function, Lambda, Lit, Member, Name
from fencekit.scan.names import nearest
from fencekit.scan.natives import MAPS, elements
from fencekit.scan.parts import Parts
from fencekit.scan.scopes import scope_of, walk_expr
from fencekit.scan.values import ClassRef, Env, Func

MAX_CONTEXTS = 2000


def expand(ev: Parts, expr: Expr, env: Env, depth: int = 0) -> list[Env]:
    """Return activations that give the names in `expr` one value at a time."""
    if depth > 5 or ev.spent:
        return [env]
    source = _source(ev, expr, env, frozenset(), set())
    ev.steps += 1
    if source is None or ev.spent:
        return [env]
    ev.steps += len(source)
    out: list[Env] = []
    for inner in source:
        out.extend(expand(ev, expr, inner, depth + 1))
        if len(out) > MAX_CONTEXTS:
            break
    return out


Done = set[tuple[int, str, int]]
"""Uses of names (activation, name, line) from which nothing was found: a text that is put together
over many lines hangs on itself along ever more ways."""


def _source(ev: Parts, expr: Expr, env: Env, seen: frozenset[str], done: Done) -> list[Env] | None:
    """Find the first loop or parameter the expression hangs on that takes several values."""
    for here in walk_expr(expr):
        if isinstance(here, Lambda) or not isinstance(here, Name) or here.id in seen:
            continue
        use = (id(env), here.id, here.line)
        if use in done:
            continue
        done.add(use)
        found = _binding_source(ev, here.id, env, seen | {here.id}, here.line, done)
        if found is not None:
            return found
    return None


def _binding_source(
    ev: Parts, name: str, env: Env, seen: frozenset[str], line: int, done: Done
) -> list[Env] | None:
    scope = scope_of(env.function)
    if name == "cls" and env.function.name == "__init_subclass__":
        return _subclasses(ev, env)
    if env.args is None and env.function.parent is not None:
        decorated = ev.decorations(env.function)
        if decorated:
            return decorated
    for binding in nearest(scope.names.get(name, []), line):
        if binding.kind == "loop" and binding.value is not None:
            if id(binding.value) in env.picks:
                return None
            inner = _source(ev, binding.value, env, seen, done)
            if inner is not None:
                return inner
            found = elements(ev, ev.eval(binding.value, env))
            return [env.pick(binding.value, item) for item in found] or None
        if binding.kind == "param" and env.args is None and not env.picks.get(id(env.function)):
            return _entered(ev, env)
        if binding.kind == "value" and binding.value is not None:
            inner = _source(ev, binding.value, env, seen, done)
            if inner is not None:
                return inner
    if name not in scope.names and env.closure is not None:
        outer = _binding_source(ev, name, env.closure, seen, line, done)
        if outer is not None:
            return [_reclose(env, closure) for closure in outer]
    if name in ("self", "this") and env.args is None and env.function.owner is not None:
        return None
    return None


def _subclasses(ev: Parts, env: Env) -> list[Env] | None:
    """Return one activation of a class's `__init_subclass__` per class below it."""
    owner = env.function.owner
    if owner is None or env.args is not None:
        return None
    out: list[Env] = []
    todo, seen = [owner.name], {owner.name}
    while todo:
        for cls in ev.project.subclasses(todo.pop()):
            if cls.name not in seen and owner in ev.mro(cls):
                seen.add(cls.name)
                todo.append(cls.name)
                file = cls.module.path if cls.module else ""
                value = ClassRef(cls, file=file, line=cls.line)
                out.append(Env(env.function, {}, env.closure, value))
    return out or None


def _reclose(env: Env, closure: Env) -> Env:
    made = Env(env.function, env.args, closure, env.self_value, env.picks, env.depth)
    made.entered_at = env.entered_at
    return made


def _entered(ev: Parts, env: Env) -> list[Env] | None:
    """Return one activation per known call (or per element a callback is given)."""
    function = env.function
    if ev._param_depth > 6:
        return None
    ev._param_depth += 1
    try:
        elementwise = _callback(ev, function, env.closure)
        if elementwise is not None:
            return elementwise or None
        out: list[Env] = []
        for call, caller in ev.callers(function):
            for one in _caller_contexts(ev, call, caller):
                bound = Func(function, env.closure, env.self_value)
                out.append(ev.bind(bound, call, one))
        return out or None
    finally:
        ev._param_depth -= 1


def _caller_contexts(ev: Parts, call: Call, caller: Env) -> list[Env]:
    contexts = [caller]
    for arg in call.args:
        if isinstance(arg.value, Lambda | Lit):
            continue
        contexts = [one for c in contexts for one in expand(ev, arg.value, c, 2)]
        if len(contexts) > MAX_CONTEXTS:
            break
    return contexts


def _callback(ev: Parts, function: Function, closure: Env | None) -> list[Env] | None:
    """Return activations of a function that is handed to a `forEach`-like call."""
    if function.parent is None:
        return None
    outer = closure or ev.open_env(function.parent)
    for call in scope_of(function.parent).calls:
        callee = call.callee
        if not isinstance(callee, Member) or callee.name not in MAPS | {"filter", "some", "reduce"}:
            continue
        if not any(_is_function(arg.value, function) for arg in call.args):
            continue
        out: list[Env] = []
        for context in expand(ev, callee.obj, outer, 2):
            for item in elements(ev, ev.eval(callee.obj, context)):
                made = Func(function, context)
                out.append(ev.enter(made, [[item]], {}, context))
        return out
    return None


def _is_function(expr: Expr, function: object) -> bool:
    if isinstance(expr, Lambda):
        return expr.function is function
    return isinstance(expr, Name) and bool(expr.id) and expr.id == getattr(function, "name", "")
