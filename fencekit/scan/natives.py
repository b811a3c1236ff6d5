"""What the languages' own containers and texts do: `map`, `items`, `get`, `filter`, `bind`, …

Names are shared by all languages: a `map` over a known list is a `map` everywhere.
"""

from __future__ import annotations

from fencekit.scan import texts
from fencekit.scan.facts import Call, Compare, Member, Mutation, Name
from fencekit.scan.parts import Parts
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
    Unknown,
    Value,
)

SAME = frozenset({
    "filter", "slice", "sort", "reverse", "toSorted", "iter", "into_iter", "iter_mut", "collect",
    "to_vec", "clone", "cloned", "copy", "concat", "values", "flat", "as_slice", "unwrap", "expect",
    "unwrap_or_default", "to_owned", "as_ref", "as_mut", "borrow", "lock", "read", "await", "push",
    "valueOf", "then", "catch", "finally", "ok", "stream", "toList", "toArray",
})  # fmt: skip
# Methods that hand on an object, or one of a map of such objects.
SAME_OBJECT = frozenset({
    "clone", "as_ref", "lock", "unwrap", "borrow", "then", "read", "write", "get_mut", "values",
    "next", "get",
})  # fmt: skip
MAPS = frozenset({"map", "flatMap", "flat_map", "filter_map", "forEach", "for_each"})
ONE_OF = frozenset({"find", "at", "pop", "first", "last", "shift", "get", "next", "nth"})


def elements(ev: Parts, values: list[Value], *, values_of_records: bool = False) -> list[Value]:
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


def _enum_members(ev: Parts, value: Inst) -> list[Value]:
    method = ev.method_of(value.cls, "__iter__")
    if method is None:
        return []
    return elements(ev, ev.result(Func(method, ev._outer(method), value), ev.enter(
        Func(method, ev._outer(method), value), [], {}, None)))  # fmt: skip


def call_function(ev: Parts, func: Value, args: list[list[Value]], env: Env) -> list[Value]:
    """Return what a function value gives for evaluated arguments."""
    if isinstance(func, Func):
        return ev.result(func, ev.enter(func, args, {}, env))
    if isinstance(func, ClassRef):
        return [Inst(func.cls, file=func.file, line=func.line, exact=True)]
    return []


def method(ev: Parts, obj: Value, name: str, call: Call, env: Env) -> list[Value] | None:
    """Return the value of `obj.name(…)` for the languages' own objects, or None."""
    match obj:
        case Seq():
            return _seq_method(ev, obj, name, call, env)
        case Record():
            return record_method(ev, obj, name, call, env)
        case Const() if isinstance(obj.value, str):
            return texts.method(ev, obj, name, call, env)
        case Func():
            return _func_method(ev, obj, name, call, env)
        case Inst() if name in SAME_OBJECT:
            return [obj] if ev.method_of(obj.cls, name) is None else None
        case Input():
            return _input_method(ev, obj, name, call, env)
        case ClassRef() if name == "__subclasses__":
            below = [c for c in ev.project.subclasses(obj.cls.name) if obj.cls in ev.mro(c)]
            refs: list[Value] = [ClassRef(c, file=env.file, line=c.line) for c in below]
            return [Seq(refs, file=env.file, line=call.line)]
        case _:
            return None


def _input_method(ev: Parts, obj: Input, name: str, call: Call, env: Env) -> list[Value] | None:
    if obj.tool and name in ("Name", "name", "getName"):
        return [Const(obj.tool, file=env.file, line=call.line)]
    told = [t.value for a in call.args[:2] for t in ev.texts(a.value, env) if t.value]
    label = str(told[0]) if told else obj.name
    if obj.tool and name == "get" and told:
        if label == "name":
            return [Const(obj.tool, file=env.file, line=call.line)]
        inside = obj.tool if label in ("params", "request") else ""
        return [Input(label, inside, file=env.file, line=call.line)]
    return [Input(label, obj.tool, file=env.file, line=call.line)]


def _seq_method(ev: Parts, obj: Seq, name: str, call: Call, env: Env) -> list[Value] | None:
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
        return (chosen or [Const(None)]) if name == "find" else [Seq(chosen, obj.open, **where)]  # type: ignore[arg-type]
    if name in ("entries", "enumerate"):
        return [Seq([Seq([Unknown(), item]) for item in obj.items])]
    if name in SAME:
        return [obj]
    if name in ONE_OF:
        return list(obj.items)
    if name == "join":
        return texts.joined(ev, obj, call, env)
    return None


def _includes(ev: Parts, obj: Seq, call: Call, env: Env) -> list[Value] | None:
    asked = ev.eval(call.args[0].value, env)
    held = [v.value for v in obj.items if isinstance(v, Const) and not v.holes]
    if len(asked) != 1 or not isinstance(asked[0], Const) or asked[0].holes:
        return None
    if len(held) != len(obj.items) or obj.open:
        return None
    return [Const(asked[0].value in held, file=env.file, line=call.line)]


def result_at(values: list[Value], at: int) -> list[Value]:
    """Return one of the results that a call hands back together; a value alone is the first."""
    out: list[Value] = []
    for value in values:
        if isinstance(value, Seq) and value.results is not None:
            out += value.results[at] if at < len(value.results) else []
        else:  # a way on which only the first of them is known
            out.append(value if at == 0 else Unknown(file=value.file, line=value.line))
    # What stands beside an error is nothing.
    return [v for v in out if not (isinstance(v, Const) and v.value is None)] or out


def _chosen(ev: Parts, obj: Seq, call: Call, env: Env) -> list[Value]:
    """Return the items a predicate does not rule out; only the sure ones where there are any.

    Where it rules out every item, the result is empty; where nothing is known of it, all.
    """
    maybe: list[Value] = []
    sure: list[Value] = []
    funcs = ev.eval(call.args[0].value, env)
    for func in funcs:
        asked = _asked_key(ev, func, env)
        known = _by_key(ev, obj, asked[0]) if asked is not None else None
        if asked is not None and known is not None:
            sure += known.get(asked[1], [])
            continue
        for item in obj.items:
            told = call_function(ev, func, [[item]], env)
            flag = told[0].value if len(told) == 1 and isinstance(told[0], Const) else None
            if flag is True:
                sure.append(item)
            elif flag is not False:
                maybe.append(item)
    if funcs and all(isinstance(f, Func) for f in funcs):
        return sure or maybe
    return sure or maybe or list(obj.items)


def _asked_key(ev: Parts, func: Value, env: Env) -> tuple[str, object] | None:
    """Return key and value where a predicate is `item => item.key === value`."""
    if not isinstance(func, Func) or len(func.function.params) != 1 or func.given:
        return None
    param = func.function.params[0]
    returns = scope_of(func.function).returns
    if param.pattern is not None or len(returns) != 1 or not isinstance(returns[0], Compare):
        return None
    test = returns[0]
    if test.negated or test.member:
        return None
    for side, other in ((test.left, test.right), (test.right, test.left)):
        if (
            isinstance(side, Member)
            and isinstance(side.obj, Name)
            and side.obj.id == param.name
            and not any(isinstance(e, Name) and e.id == param.name for e in walk_expr(other))
        ):
            told = ev.eval(other, ev.enter(func, [], {}, env))
            if len(told) == 1 and isinstance(told[0], Const) and not told[0].holes:
                return (side.name, told[0].value) if told[0].value is not None else None
    return None


def _by_key(ev: Parts, obj: Seq, key: str) -> dict[object, list[Value]] | None:
    """Return the items by what they hold under a key; None where that is not known of one."""
    if obj.lookup is None:
        obj.lookup = {}
    if key not in obj.lookup:
        found: dict[object, list[Value]] | None = {}
        for item in obj.items:
            told = ev.entry(item, key) if isinstance(item, Record) else []
            if len(told) != 1 or not isinstance(told[0], Const) or told[0].holes:
                found = None
                break
            assert found is not None
            found.setdefault(told[0].value, []).append(item)
        obj.lookup[key] = found
    return obj.lookup[key]


def record_method(ev: Parts, obj: Record, name: str, call: Call, env: Env) -> list[Value] | None:
    """Return the value of a method of a mapping, or None."""
    if name in ("items", "entries", "iter", "into_iter"):
        if obj.pairs is None:
            pairs: list[Value] = []
            for keys, held, line in ev.entries(obj):
                pairs += [Seq([k, h], file=obj.file, line=line) for k in keys for h in held]
            if ev.spent:
                return [Seq(pairs)]
            obj.pairs = Seq(pairs)
        return [obj.pairs]
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


def _func_method(ev: Parts, obj: Func, name: str, call: Call, env: Env) -> list[Value] | None:
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


def with_changes(
    ev: Parts, values: list[Value], changes: list[tuple[Mutation, Env]]
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
                if change.key is None and not change.path:
                    for one in ev.contexts(change.value, env):
                        found = ev.eval(change.value, one)
                        spread: list[Value] = [v for v in found if isinstance(v, Seq)]
                        items.extend(elements(ev, spread) if spread else found)
            out.append(Seq(items, value.open, file=value.file, line=value.line))
        else:
            out.append(value)
    return out
