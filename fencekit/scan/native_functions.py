"""What the languages' own functions give: `partial`, `Object.entries`, `map`, `getattr`, `super`, …

Names are shared by all languages, as in `natives`.
"""

from __future__ import annotations

from collections.abc import Callable

from fencekit.scan import loading, texts
from fencekit.scan.facts import Call, Dict, Import
from fencekit.scan.natives import call_function, elements, record_method
from fencekit.scan.parts import Parts
from fencekit.scan.scopes import scope_of
from fencekit.scan.values import (
    ClassRef,
    Const,
    Env,
    Ext,
    Func,
    Inst,
    Mod,
    Record,
    Seq,
    Super,
    Unknown,
    Value,
)

PASS = frozenset({
    "list", "tuple", "sorted", "set", "reversed", "iter", "stringify", "dumps", "String", "str",
    "Ok", "Some", "Arc.new", "Box.new", "Set", "freeze", "from", "all", "gather", "to_value", "vec",
    "Number", "Marshal", "cast", "Rc.new", "json", "asList", "of", "to_string", "ToolRouter", "Err",
})  # fmt: skip


# What is given back does what the function does that it is given, if not as often.
SAME_FUNCTION = frozenset({
    "OnceValue", "OnceValues", "OnceFunc", "once", "memoize", "memoizeOne", "pMemoize", "debounce",
    "throttle",
})  # fmt: skip


def function(ev: Parts, value: Ext, call: Call, env: Env) -> list[Value] | None:
    """Return the value of calling one of the languages' own functions, or None."""
    name = value.last
    read = loading.of_call(ev, value, call, env)
    if read is not None:
        return read
    if name in ("import", "require") and not value.root and len(value.steps) == 1 and call.args:
        return _imported(ev, call, env)
    if name in ("partial", "partialmethod") and call.args:
        return _partial(ev, call, env)
    if name in SAME_FUNCTION and value.root and call.args:
        return ev.eval(call.args[0].value, env)
    spelled = texts.respelled(ev, name, call, env)
    if spelled is not None:
        return spelled
    if value.root == "re" and name == "sub":
        return texts.substituted(ev, call, env)
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
    if not call.args and value.steps in (("set",), ("list",), ("tuple",)):
        return [Seq([], file=env.file, line=call.line)]
    if call.args and (short in PASS or name in PASS):
        return [v for a in call.args for v in ev.eval(a.value, env)]
    if name == "super":
        return _super(ev, env)
    return None


def _imported(ev: Parts, call: Call, env: Env) -> list[Value] | None:
    """Return the module that `await import("./x.js")` gives."""
    out: list[Value] = []
    for text in ev.texts(call.args[0].value, env):
        out += ev._import(Import(call.line, str(text.value), None, ""), env)
    return out or None


def _super(ev: Parts, env: Env) -> list[Value] | None:
    here: Env | None = env
    while here is not None:
        owner = here.function.owner
        if owner is not None:
            receiver = here.self_value
            inst = receiver if isinstance(receiver, Inst) else Inst(owner)
            return [Super(inst, owner)]
        here = here.closure
    return None


def _partial(ev: Parts, call: Call, env: Env) -> list[Value]:
    out: list[Value] = []
    given = [ev.eval(a.value, env) for a in call.args[1:] if a.name is None and not a.spread]
    for func in ev.eval(call.args[0].value, env):
        if isinstance(func, Func):
            out.append(
                Func(func.function, func.closure, func.bound_to, [*func.given, *given],
                     file=func.file, line=func.line)
            )  # fmt: skip
    return out


def _object_pairs(ev: Parts, call: Call, env: Env) -> list[Value]:
    return _first_record(ev, call, env, "entries")


def _object_values(ev: Parts, call: Call, env: Env) -> list[Value]:
    return _first_record(ev, call, env, "values")


def _object_keys(ev: Parts, call: Call, env: Env) -> list[Value]:
    return _first_record(ev, call, env, "keys")


def _first_record(ev: Parts, call: Call, env: Env, what: str) -> list[Value]:
    out: list[Value] = []
    for value in ev.eval(call.args[0].value, env) if call.args else []:
        if isinstance(value, Record):
            out.extend(record_method(ev, value, what, Call(call.line, call.callee), env) or [])
        elif isinstance(value, ClassRef):
            members = [v for f in value.cls.fields for v in ev.class_member(value, f)]
            out.append(Seq(members))
        elif hasattr(value, "module"):
            out.append(_module_values(ev, value, what))
        else:
            out.append(value)
    return out


def _module_values(ev: Parts, value: Value, what: str) -> Value:
    """Return the values (or entries) of `import * as ns`."""
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


def _enumerate(ev: Parts, call: Call, env: Env) -> list[Value]:
    found = elements(ev, ev.eval(call.args[0].value, env)) if call.args else []
    return [Seq([Seq([Unknown(), item]) for item in found])]


def _map(ev: Parts, call: Call, env: Env) -> list[Value]:
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


def _dict(ev: Parts, call: Call, env: Env) -> list[Value]:
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


def _assign(ev: Parts, call: Call, env: Env) -> list[Value]:
    return _dict(ev, call, env)


def _from_entries(ev: Parts, call: Call, env: Env) -> list[Value]:
    inner = Call(call.line, call.callee, call.args, True, call.offset)
    return _map(ev, inner, env)


def _getattr(ev: Parts, call: Call, env: Env) -> list[Value]:
    out: list[Value] = []
    if len(call.args) >= 2:
        for key in ev.eval(call.args[1].value, env):
            if isinstance(key, Const) and not key.holes:
                for obj in ev.eval(call.args[0].value, env):
                    out.extend(ev.member(obj, str(key.value), env, call.line))
    return out


def _thread(ev: Parts, call: Call, env: Env) -> list[Value]:
    if not call.args:
        return []
    inner = Call(call.line, call.args[0].value, call.args[1:], False, call.offset)
    return ev.eval(inner, env)


_GLOBAL: dict[str, Callable[[Parts, Call, Env], list[Value]]] = {
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
