"""What the languages' own containers and functions do to values: map, items, partial, get, …

Names are shared by all languages: a `map` over a known list is a `map` everywhere.

Over 400 lines: a table of small functions.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from fencekit.scan.facts import Call, Dict, Expr, Lambda, Lit, Member, Mutation, Name
from fencekit.scan.scopes import scope_of, walk_expr
from fencekit.scan.values import (
    ClassRef,
    Const,
    Env,
    Ext,
    Func,
    Input,
    Inst,
    Record,
    Seq,
    Super,
    Unknown,
    Value,
)

if TYPE_CHECKING:
    from fencekit.scan.instances import Instances

SAME = frozenset({
    "filter", "slice", "sort", "reverse", "toSorted", "iter", "into_iter", "iter_mut", "collect",
    "to_vec", "clone", "cloned", "copy", "concat", "values", "flat", "as_slice", "unwrap", "expect",
    "unwrap_or_default", "to_owned", "as_ref", "as_mut", "borrow", "lock", "read", "await", "push",
    "valueOf", "then", "catch", "finally", "ok", "stream", "toList", "toArray",
})  # fmt: skip
MAPS = frozenset({"map", "flatMap", "flat_map", "filter_map", "forEach", "for_each"})
ONE_OF = frozenset({"find", "at", "pop", "first", "last", "shift", "get", "next", "nth"})
TEXT_SAME = frozenset({
    "as_str", "as_ref", "toString", "String", "clone", "trim", "strip", "to_string", "into",
    "value",
    "to_owned", "as_deref", "unwrap_or", "unwrap", "unwrap_or_default", "describe", "optional",
    "encode", "valueOf", "borrow", "to_lowercase", "to_uppercase", "rstrip", "lstrip", "format",
})  # fmt: skip
PASS = frozenset({
    "list", "tuple", "sorted", "set", "reversed", "iter", "stringify", "dumps", "String", "str",
    "Ok", "Some", "Arc.new", "Box.new", "Set", "freeze", "from", "all", "gather", "to_value", "vec",
    "Number", "Marshal", "cast", "Rc.new", "json", "asList", "of", "to_string", "ToolRouter", "Err",
})  # fmt: skip


def elements(ev: Instances, values: list[Value], *, values_of_records: bool = False) -> list[Value]:
    """Return what a loop over these values meets."""
    out: list[Value] = []
    for value in values:
        if isinstance(value, Seq):
            out.extend(value.items)
        elif isinstance(value, Record):
            for keys, held, _ in ev.entries(value):
                out.extend(held if values_of_records else keys)
        elif isinstance(value, Inst):
            out.extend(_enum_members(ev, value))
        elif isinstance(value, ClassRef):
            out.extend(v for f in value.cls.fields for v in ev.class_member(value, f))
        elif isinstance(value, Ext | Input):
            out.append(value)
    return out


def _enum_members(ev: Instances, value: Inst) -> list[Value]:
    method = ev.method_of(value.cls, "__iter__")
    if method is None:
        return []
    return elements(ev, ev.result(Func(method, ev._outer(method), value), ev.enter(
        Func(method, ev._outer(method), value), [], {}, None)))  # fmt: skip


def call_function(ev: Instances, func: Value, args: list[list[Value]], env: Env) -> list[Value]:
    """Return what a function value gives for evaluated arguments."""
    if isinstance(func, Func):
        return ev.result(func, ev.enter(func, args, {}, env))
    if isinstance(func, ClassRef):
        return [Inst(func.cls, file=func.file, line=func.line, exact=True)]
    return []


def method(ev: Instances, obj: Value, name: str, call: Call, env: Env) -> list[Value] | None:
    """Return the value of `obj.name(…)` for the languages' own objects, or None."""
    match obj:
        case Seq():
            return _seq_method(ev, obj, name, call, env)
        case Record():
            return _record_method(ev, obj, name, call, env)
        case Const() if isinstance(obj.value, str):
            return _text_method(ev, obj, name, call, env)
        case Func():
            return _func_method(ev, obj, name, call, env)
        case Inst() if name in (
            "clone",
            "as_ref",
            "lock",
            "unwrap",
            "borrow",
            "then",
            "read",
            "write",
        ):
            return [obj] if ev.method_of(obj.cls, name) is None else None
        case Input():
            return _input_method(ev, obj, name, call, env)
        case _:
            return None


def _input_method(ev: Instances, obj: Input, name: str, call: Call, env: Env) -> list[Value] | None:
    if obj.tool and name in ("Name", "name", "getName"):
        return [Const(obj.tool, file=env.file, line=call.line)]
    told = [t.value for a in call.args[:2] for t in ev.texts(a.value, env) if t.value]
    label = str(told[0]) if told else obj.name
    return [Input(label, obj.tool, file=env.file, line=call.line)]


def _seq_method(ev: Instances, obj: Seq, name: str, call: Call, env: Env) -> list[Value] | None:
    where = {"file": env.file, "line": call.line}
    if name in MAPS and call.args:
        out: list[Value] = []
        for func in ev.eval(call.args[0].value, env):
            for item in obj.items:
                found = call_function(ev, func, [[item]], env)
                out.extend(elements(ev, found) if name in ("flatMap", "flat_map") else found)
        return [Seq(out, **where)]  # type: ignore[arg-type]
    if name == "concat":
        more = [v for a in call.args for v in elements(ev, ev.eval(a.value, env))]
        return [Seq([*obj.items, *more], **where)]  # type: ignore[arg-type]
    if name in ("includes", "contains", "has", "indexOf") and call.args:
        return _includes(ev, obj, call, env)
    if name in ("find", "filter") and call.args:
        chosen = _chosen(ev, obj, call, env)
        return chosen if name == "find" else [Seq(chosen, obj.open, **where)]  # type: ignore[arg-type]
    if name in ("entries", "enumerate"):
        return [Seq([Seq([Unknown(), item]) for item in obj.items])]
    if name in SAME:
        return [obj]
    if name in ONE_OF:
        return list(obj.items)
    if name == "join":
        return [Const("{}", holes=True, inputs=tuple(obj.items), **where)]  # type: ignore[arg-type]
    return None


def _includes(ev: Instances, obj: Seq, call: Call, env: Env) -> list[Value] | None:
    asked = ev.eval(call.args[0].value, env)
    held = [v.value for v in obj.items if isinstance(v, Const) and not v.holes]
    if len(asked) != 1 or not isinstance(asked[0], Const) or asked[0].holes:
        return None
    if len(held) != len(obj.items) or obj.open:
        return None
    return [Const(asked[0].value in held, file=env.file, line=call.line)]


def _chosen(ev: Instances, obj: Seq, call: Call, env: Env) -> list[Value]:
    """Return the items a predicate does not rule out; only the sure ones where there are any."""
    maybe: list[Value] = []
    sure: list[Value] = []
    for func in ev.eval(call.args[0].value, env):
        for item in obj.items:
            told = call_function(ev, func, [[item]], env)
            flag = told[0].value if len(told) == 1 and isinstance(told[0], Const) else None
            if flag is True:
                sure.append(item)
            elif flag is not False:
                maybe.append(item)
    return sure or maybe or list(obj.items)


def _record_method(
    ev: Instances, obj: Record, name: str, call: Call, env: Env
) -> list[Value] | None:
    if name in ("items", "entries", "iter", "into_iter"):
        pairs: list[Value] = []
        for keys, held, line in ev.entries(obj):
            pairs += [Seq([k, h], file=obj.file, line=line) for k in keys for h in held]
        return [Seq(pairs)]
    if name in ("values", "keys"):
        return [Seq(elements(ev, [obj], values_of_records=name == "values"))]
    if name in ("get", "get_mut", "pop", "Get") and call.args:
        keys = ev.eval(call.args[0].value, env)
        if all(isinstance(k, Const) and not k.holes for k in keys):
            return [v for k in keys if isinstance(k, Const) for v in ev.entry(obj, str(k.value))]
        return elements(ev, [obj], values_of_records=True)
    if name in ("copy", "clone", "unwrap"):
        return [obj]
    return None


def _text_method(ev: Instances, obj: Const, name: str, call: Call, env: Env) -> list[Value] | None:
    text = str(obj.value)
    where = {"file": obj.file, "line": obj.line}
    if name in ("toLowerCase", "lower", "to_lowercase"):
        return [Const(text.lower(), obj.holes, obj.inputs, **where)]  # type: ignore[arg-type]
    if name in ("toUpperCase", "upper", "to_uppercase"):
        return [Const(text.upper(), obj.holes, obj.inputs, **where)]  # type: ignore[arg-type]
    if name in ("startsWith", "startswith", "starts_with", "endsWith", "endswith") and call.args:
        told = ev.texts(call.args[0].value, env)
        if len(told) == 1 and not obj.holes and not told[0].holes:
            part = str(told[0].value)
            hit = text.startswith(part) if name[0] == "s" else text.endswith(part)
            return [Const(hit, **where)]  # type: ignore[arg-type]
        return None
    if name == "format":
        return [Const(text, True, obj.inputs, **where)]  # type: ignore[arg-type]
    if name in ("replace", "replaceAll", "slice", "substring", "removeprefix", "split"):
        return [Const("{}", True, obj.inputs, **where)]  # type: ignore[arg-type]
    return [obj] if name in TEXT_SAME else None


def _func_method(ev: Instances, obj: Func, name: str, call: Call, env: Env) -> list[Value] | None:
    if name == "bind":
        given = [ev.eval(a.value, env) for a in call.args[1:]]
        bound = obj.bound_to
        for value in ev.eval(call.args[0].value, env) if call.args else []:
            bound = value if isinstance(value, Inst) else bound
        return [Func(obj.function, obj.closure, bound, given, file=obj.file, line=obj.line)]
    if name in ("call", "apply"):
        inner = Call(call.line, call.callee, call.args[1:], False, call.offset)
        return ev.apply(obj, inner, env)
    return None


def function(ev: Instances, value: Ext, call: Call, env: Env) -> list[Value] | None:
    """Return the value of calling one of the languages' own functions, or None."""
    name = value.last
    if name in ("partial", "partialmethod") and call.args:
        return _partial(ev, call, env)
    if value.root not in (
        "",
        "functools",
        "asyncio",
        "json",
        "typing",
        "copy",
        "builtins",
        "itertools",
    ):
        wrapped = name in ("Parameters", "Json") and call.args
        return ev.eval(call.args[0].value, env) if wrapped else None
    short = ".".join(value.steps[-2:])
    made = _GLOBAL.get(short) or _GLOBAL.get(name)
    if made is not None:
        return made(ev, call, env)
    if call.args and (short in PASS or name in PASS):
        return [v for a in call.args for v in ev.eval(a.value, env)]
    if name == "super":
        return _super(ev, env)
    return None


def _super(ev: Instances, env: Env) -> list[Value] | None:
    here: Env | None = env
    while here is not None:
        owner = here.function.owner
        if owner is not None:
            receiver = here.self_value
            inst = receiver if isinstance(receiver, Inst) else Inst(owner)
            return [Super(inst, owner)]
        here = here.closure
    return None


def _partial(ev: Instances, call: Call, env: Env) -> list[Value]:
    out: list[Value] = []
    given = [ev.eval(a.value, env) for a in call.args[1:] if a.name is None and not a.spread]
    for func in ev.eval(call.args[0].value, env):
        if isinstance(func, Func):
            out.append(
                Func(func.function, func.closure, func.bound_to, [*func.given, *given],
                     file=func.file, line=func.line)
            )  # fmt: skip
    return out


def _object_pairs(ev: Instances, call: Call, env: Env) -> list[Value]:
    return _first_record(ev, call, env, "entries")


def _object_values(ev: Instances, call: Call, env: Env) -> list[Value]:
    return _first_record(ev, call, env, "values")


def _object_keys(ev: Instances, call: Call, env: Env) -> list[Value]:
    return _first_record(ev, call, env, "keys")


def _first_record(ev: Instances, call: Call, env: Env, what: str) -> list[Value]:
    out: list[Value] = []
    for value in ev.eval(call.args[0].value, env) if call.args else []:
        if isinstance(value, Record):
            out.extend(_record_method(ev, value, what, Call(call.line, call.callee), env) or [])
        elif isinstance(value, ClassRef):
            members = [v for f in value.cls.fields for v in ev.class_member(value, f)]
            out.append(Seq(members))
        elif hasattr(value, "module"):
            out.append(_module_values(ev, value, what))
        else:
            out.append(value)
    return out


def _module_values(ev: Instances, value: Value, what: str) -> Value:
    """Return the values (or entries) of `import * as ns`."""
    from fencekit.scan.values import Mod

    if not isinstance(value, Mod):
        return Unknown()
    out: list[Value] = []
    names = [n for n in scope_of(value.module.top).names if n != "*"]
    for name in names:
        for found in ev.exported(value.module, name):
            key = Const(name, file=value.file)
            out.append(
                Seq([key, found]) if what == "entries" else (key if what == "keys" else found)
            )
    return Seq(out)


def _enumerate(ev: Instances, call: Call, env: Env) -> list[Value]:
    found = elements(ev, ev.eval(call.args[0].value, env)) if call.args else []
    return [Seq([Seq([Unknown(), item]) for item in found])]


def _map(ev: Instances, call: Call, env: Env) -> list[Value]:
    out: list[Value] = []
    if len(call.args) == 2:
        for func in ev.eval(call.args[0].value, env):
            for item in elements(ev, ev.eval(call.args[1].value, env)):
                out.extend(call_function(ev, func, [[item]], env))
    elif call.args:  # new Map([[key, value], …])
        pairs: list[tuple[list[Value], list[Value], int]] = []
        for pair in elements(ev, ev.eval(call.args[0].value, env)):
            if isinstance(pair, Seq) and len(pair.items) >= 2:
                pairs.append(([pair.items[0]], pair.items[1:], pair.line))
        return [Record(None, None, made=pairs, file=env.file, line=call.line)]
    elif call.new:
        return [Record(Dict(call.line, []), env, file=env.file, line=call.line)]
    return [Seq(out)]


def _dict(ev: Instances, call: Call, env: Env) -> list[Value]:
    pairs: list[tuple[list[Value], list[Value], int]] = []
    base: list[Value] = []
    for arg in call.args:
        found = ev.eval(arg.value, env)
        if arg.name is not None:
            pairs.append(([Const(arg.name)], found, call.line))
        else:
            base.extend(v for v in found if isinstance(v, Record))
    for record in base:
        assert isinstance(record, Record)
        pairs.extend(ev.entries(record))
    return [Record(None, None, made=pairs, file=env.file, line=call.line)]


def _assign(ev: Instances, call: Call, env: Env) -> list[Value]:
    return _dict(ev, call, env)


def _from_entries(ev: Instances, call: Call, env: Env) -> list[Value]:
    inner = Call(call.line, call.callee, call.args, True, call.offset)
    return _map(ev, inner, env)


def _getattr(ev: Instances, call: Call, env: Env) -> list[Value]:
    out: list[Value] = []
    if len(call.args) >= 2:
        for key in ev.eval(call.args[1].value, env):
            if isinstance(key, Const) and not key.holes:
                for obj in ev.eval(call.args[0].value, env):
                    out.extend(ev.member(obj, str(key.value), env, call.line))
    return out


def _thread(ev: Instances, call: Call, env: Env) -> list[Value]:
    if not call.args:
        return []
    inner = Call(call.line, call.args[0].value, call.args[1:], False, call.offset)
    return ev.eval(inner, env)


_GLOBAL: dict[str, Callable[[Instances, Call, Env], list[Value]]] = {
    "Object.entries": _object_pairs,
    "Object.values": _object_values,
    "Object.keys": _object_keys,
    "Object.assign": _assign,
    "Object.fromEntries": _from_entries,
    "enumerate": _enumerate,
    "map": _map,
    "Map": _map,
    "dict": _dict,
    "getattr": _getattr,
    "to_thread": _thread,
    "run": _thread,
}


def with_changes(
    ev: Instances, values: list[Value], changes: list[tuple[Mutation, Env]]
) -> list[Value]:
    """Return records and lists with what methods put into the field that holds them."""
    if not changes:
        return values
    out: list[Value] = []
    for value in values:
        if isinstance(value, Record):
            grown = Record(value.expr, value.env, file=value.file, line=value.line)
            grown.made = list(value.made)
            grown.changes = [*value.changes, *changes]
            out.append(grown)
        elif isinstance(value, Seq):
            items = list(value.items)
            for change, env in changes:
                if change.key is None:
                    for one in expand(ev, change.value, env):
                        items.extend(ev.eval(change.value, one))
            out.append(Seq(items, value.open, file=value.file, line=value.line))
        else:
            out.append(value)
    return out


# One activation per element and per call.

MAX_CONTEXTS = 400


def expand(ev: Instances, expr: Expr, env: Env, depth: int = 0) -> list[Env]:
    """Return activations that give the names in `expr` one value at a time."""
    if depth > 5:
        return [env]
    source = _source(ev, expr, env)
    if source is None:
        return [env]
    out: list[Env] = []
    for inner in source:
        out.extend(expand(ev, expr, inner, depth + 1))
        if len(out) > MAX_CONTEXTS:
            break
    return out


def _source(
    ev: Instances, expr: Expr, env: Env, seen: frozenset[str] = frozenset()
) -> list[Env] | None:
    """Find the first loop or parameter the expression hangs on that takes several values."""
    for here in walk_expr(expr):
        if isinstance(here, Lambda) or not isinstance(here, Name) or here.id in seen:
            continue
        found = _binding_source(ev, here.id, env, seen | {here.id})
        if found is not None:
            return found
    return None


def _binding_source(ev: Instances, name: str, env: Env, seen: frozenset[str]) -> list[Env] | None:
    scope = scope_of(env.function)
    for binding in scope.names.get(name, ()):
        if binding.kind == "loop" and binding.value is not None:
            if id(binding.value) in env.picks:
                return None
            inner = _source(ev, binding.value, env, seen)
            if inner is not None:
                return inner
            found = elements(ev, ev.eval(binding.value, env))
            return [env.pick(binding.value, item) for item in found] or None
        if binding.kind == "param" and env.args is None and not env.picks.get(id(env.function)):
            return _entered(ev, env)
        if binding.kind == "value" and binding.value is not None:
            inner = _source(ev, binding.value, env, seen)
            if inner is not None:
                return inner
    if name not in scope.names and env.closure is not None:
        outer = _binding_source(ev, name, env.closure, seen)
        if outer is not None:
            return [_reclose(env, closure) for closure in outer]
    if name in ("self", "this") and env.args is None and env.function.owner is not None:
        return None
    return None


def _reclose(env: Env, closure: Env) -> Env:
    return Env(env.function, env.args, closure, env.self_value, env.picks, env.depth)


def _entered(ev: Instances, env: Env) -> list[Env] | None:
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


def _caller_contexts(ev: Instances, call: Call, caller: Env) -> list[Env]:
    contexts = [caller]
    for arg in call.args:
        if isinstance(arg.value, Lambda | Lit):
            continue
        contexts = [one for c in contexts for one in expand(ev, arg.value, c, 2)]
        if len(contexts) > MAX_CONTEXTS:
            break
    return contexts


def _callback(ev: Instances, function: object, closure: Env | None) -> list[Env] | None:
    """Return activations of a function that is handed to a `forEach`-like call."""
    from fencekit.scan.facts import Function

    assert isinstance(function, Function)
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
