"""Members of values, instances and their fields, arguments bound to parameters, types as written.

A field of an instance is what its constructor was given, what a method assigns, what its class
declares, or what its declared type says; a method is looked up in the class, its bases, classes
that mix it in, and, for an interface, in what implements it.

Over 400 lines: members, fields and arguments recurse into each other.
"""

from __future__ import annotations

import itertools
import re
from dataclasses import replace
from typing import TYPE_CHECKING

from fencekit.scan import natives
from fencekit.scan.facts import (
    Call,
    Class,
    Dict,
    Function,
    Import,
    Lit,
    Member,
    Name,
    Param,
)
from fencekit.scan.scopes import scope_of
from fencekit.scan.values import (
    ClassRef,
    Const,
    Env,
    Ext,
    Func,
    Input,
    Inst,
    Mod,
    Record,
    Seq,
    Super,
    Unknown,
    Value,
)

if TYPE_CHECKING:
    from fencekit.scan.facts import Expr, Module, Mutation
    from fencekit.scan.project import Project

CONSTRUCTORS = ("__init__", "constructor", "new", "New")
TOKEN = re.compile(r"[A-Za-z_][\w]*(?:(?:\.|::)[A-Za-z_]\w*)*")
# Type names that only wrap another or say nothing about where a value comes from.
WRAPPERS = frozenset({
    "Optional", "Union", "List", "Dict", "Set", "Tuple", "Sequence", "Iterable", "Promise", "Arc",
    "Box", "Rc", "Option", "Vec", "Result", "Annotated", "Literal", "Any", "str", "int", "float",
    "bool", "dict", "list", "tuple", "set", "None", "string", "number", "boolean", "any", "unknown",
    "void", "undefined", "null", "object", "Record", "Array", "Partial", "Readonly", "Awaitable",
    "Coroutine", "AsyncIterator", "Iterator", "Callable", "Type", "type", "Mutex", "RwLock", "dyn",
    "impl", "mut", "error", "bytes", "map", "interface", "Self", "self", "String", "Object",
    "const",
    "Parameters", "ReturnType", "typeof", "keyof", "readonly", "Pick", "Omit", "Json", "Cow", "Ref",
})  # fmt: skip


class Instances:
    """The part of the evaluator that knows objects; the evaluator fills in the rest."""

    if TYPE_CHECKING:  # what `evaluate.Evaluator` adds
        project: Project
        _callers: dict[int, list[tuple[Call, Env]]]
        _param_depth: int

        def eval(self, expr: Expr, env: Env) -> list[Value]: ...  # noqa: D102
        def name(self, name: str, env: Env, line: int = 0) -> list[Value]: ...  # noqa: D102
        def texts(self, expr: Expr | None, env: Env) -> list[Const]: ...  # noqa: D102
        def open_env(self, function: Function) -> Env: ...  # noqa: D102
        def top_env(self, module: Module) -> Env: ...  # noqa: D102
        def contexts(self, expr: Expr, env: Env) -> list[Env]: ...  # noqa: D102
        def result(self, func: Func, env: Env) -> list[Value]: ...  # noqa: D102
        def apply(self, value: Value, call: Call, env: Env) -> list[Value]: ...  # noqa: D102
        def exported(self, module: Module, name: str) -> list[Value]: ...  # noqa: D102

    def member(self, value: Value, name: str, env: Env, line: int) -> list[Value]:
        """Return what `value.name` may stand for."""
        where = {"file": env.file, "line": line}
        match value:
            case Record():
                return self._read(value, name, env, line)
            case Inst():
                return self.inst_member(value, name, env, line)
            case Super():
                return self.super_member(value, name)
            case ClassRef():
                return self.class_member(value, name)
            case Mod():
                return self.mod_member(value, name)
            case Ext():
                return [Ext(value.root, (*value.steps, name), value.call, value.env, **where)]  # type: ignore[arg-type]
            case Input():
                if value.tool and name == "name":
                    return [Const(value.tool, **where)]  # type: ignore[arg-type]
                keep = value.tool if name in ("params", "request") else ""
                return [Input(name, keep, **where)]  # type: ignore[arg-type]
            case Const():
                return [value] if name in ("value", "_value_") else [Unknown(name, **where)]  # type: ignore[arg-type]
            case Func():
                return (
                    [value] if name in ("default", "fn", "func", "__wrapped__") else [Unknown(name)]
                )
            case Seq():
                if name in ("0", "1", "2", "3") and len(value.items) > int(name):
                    return [value.items[int(name)]]
                return [Unknown(name, **where)]  # type: ignore[arg-type]
            case _:
                return [Unknown(name, **where)]  # type: ignore[arg-type]

    def _read(self, record: Record, name: str, env: Env, line: int) -> list[Value]:
        """Return `record.name`; what a closed literal does not hold is nothing."""
        found = self.entry(record, name)
        closed = record.expr is not None and not record.changes and not record.made
        if closed and record.expr is not None and len(found) == 1 and isinstance(found[0], Unknown):
            keys = [e.key for e in record.expr.entries]
            if all(isinstance(k, Lit) and str(k.value) != name for k in keys):
                return [Const(None, file=env.file, line=line)]
        return found

    def entries(self, record: Record) -> list[tuple[list[Value], list[Value], int]]:
        """Return the entries of a record as (keys, values, line), spreads unfolded."""
        out = list(record.made)
        if record.expr is not None and record.env is not None:
            for entry in record.expr.entries:
                if entry.key is None:
                    for inner in self.eval(entry.value, record.env):
                        if isinstance(inner, Record) and inner is not record:
                            out.extend(self.entries(inner))
                    continue
                keys = self.eval(entry.key, record.env)
                out.append((keys, self.eval(entry.value, record.env), entry.line))
        for change, env in record.changes:
            if change.path:
                continue
            if change.key is None:
                for inner in self.eval(change.value, env):
                    if isinstance(inner, Record) and inner is not record:
                        out.extend(self.entries(inner))
                continue
            for one in self.contexts(change.key, env):
                keys = self.eval(change.key, one)
                out.append((keys, self.eval(change.value, one), change.line))
        return out

    def entry(self, record: Record, name: str) -> list[Value]:
        """Return the values a record may hold under a key."""
        out: list[Value] = []
        if record.expr is not None and record.env is not None:
            for entry in record.expr.entries:  # without evaluating the other values
                if entry.key is None:
                    for inner in self.eval(entry.value, record.env):
                        if inner is not record and not isinstance(inner, Unknown | Const):
                            out.extend(self.member(inner, name, record.env, entry.line))
                elif self._is_key(entry.key, name, record.env):
                    out.extend(self.eval(entry.value, record.env))
        out.extend(self._changed_entry(record, name, out))
        for keys, values, _ in record.made:
            if any(isinstance(k, Const) and k.value == name for k in keys):
                out.extend(values)
        return out or [Unknown(name, file=record.file, line=record.line)]

    def _changed_entry(self, record: Record, name: str, known: list[Value]) -> list[Value]:
        """Return what later changes put under a key, or into the record under it."""
        out: list[Value] = []
        inner: list[tuple[Mutation, Env]] = []
        for change, env in record.changes:
            if change.path[:1] == (name,):
                inner.append((replace(change, path=change.path[1:]), env))
            elif change.key is None and not change.path:
                for value in self.eval(change.value, env):
                    if isinstance(value, Record) and value is not record:
                        out.extend(v for v in self.entry(value, name) if not isinstance(v, Unknown))
        if record.lookup is None:
            record.lookup = {}
            for change, env in record.changes:
                if change.key is not None and not change.path:
                    for one in self.contexts(change.key, env):
                        for key in self.eval(change.key, one):
                            if isinstance(key, Const) and not key.holes:
                                record.lookup.setdefault(str(key.value), []).append((change, one))
        for change, one in record.lookup.get(name, ()):
            out.extend(self.eval(change.value, one))
        if inner:
            held = [v for v in [*known, *out] if isinstance(v, Record)]
            made = natives.with_changes(self, list(held), inner)
            out = [v for v in out if not isinstance(v, Record)] + made
            known[:] = [v for v in known if not isinstance(v, Record)]
        return out

    def _is_key(self, key: object, name: str, env: Env) -> bool:
        if isinstance(key, Lit):
            return str(key.value) == name
        if isinstance(key, Name) and env.function.module and env.function.module.language == "go":
            return key.id == name
        assert hasattr(key, "line")
        return any(
            isinstance(v, Const) and v.value == name and not v.holes
            for v in self.eval(key, env)  # type: ignore[arg-type]
        )

    # Classes.

    def mro(self, cls: Class) -> list[Class]:
        """Return a class and its bases in the repository, nearest first."""
        out: list[Class] = []
        todo = [cls]
        while todo and len(out) < 30:
            here = todo.pop(0)
            if here in out:
                continue
            out.append(here)
            if here.module is None:
                continue
            env = self.open_env(here.parent) if here.parent else self.top_env(here.module)
            for base in here.bases:
                todo += [v.cls for v in self.eval(base, env) if isinstance(v, ClassRef)]
        return out

    def method_of(self, cls: Class, name: str) -> Function | None:
        """Return a method by name from a class or its bases."""
        for here in self.mro(cls):
            if name in here.methods:
                return here.methods[name]
        return None

    def implementers(self, cls: Class, name: str) -> list[Function]:
        """Return the methods with which other classes fill in (or mix into) a class."""
        out: list[Function] = []
        todo, seen = [cls.name], {cls.name}
        while todo and len(seen) < 60:
            for sub in self.project.subclasses(todo.pop()):
                if sub.name not in seen:
                    seen.add(sub.name)
                    todo.append(sub.name)
                    if name in sub.methods:
                        out.append(sub.methods[name])
                    else:
                        inherited = self.method_of(sub, name)
                        if (
                            inherited is not None
                            and inherited not in out
                            and inherited.owner is not cls
                        ):
                            out.append(inherited)
        if not out and cls.abstract and not cls.methods.keys() - {name}:
            return out
        if not out and cls.abstract:
            wanted = set(cls.methods)
            for function in self.project.functions_named(name):
                owner = function.owner
                if owner is not None and owner is not cls and wanted <= set(owner.methods):
                    out.append(function)
        return out[:12]

    def inst_member(self, inst: Inst, name: str, env: Env, line: int) -> list[Value]:
        """Return a method or a field of an instance."""
        if name in inst.fields:
            return inst.fields[name]
        method = self.method_of(inst.cls, name)
        if method is not None:
            return self._methods(inst, method, name)
        inst.fields[name] = [Unknown(name, file=env.file, line=line)]
        found = self._field(inst, name)
        if not found:
            others = self.implementers(inst.cls, name)
            closure = [self.open_env(f.parent) if f.parent else None for f in others]
            found = [
                Func(f, c, inst, certain=len(others) == 1)
                for f, c in zip(others, closure, strict=True)
            ]
        if not found:
            found = self._outside_base(inst, name, env, line)
        inst.fields[name] = found
        return found

    def _methods(self, inst: Inst, method: Function, name: str) -> list[Value]:
        closure = self.open_env(method.parent) if method.parent is not None else None
        owner = method.owner
        if owner is not None and not inst.exact and (owner.abstract or _is_stub(method)):
            others = self.implementers(owner, name)
            if others:
                sure = len(others) == 1
                return [
                    Func(
                        f,
                        self.open_env(f.parent) if f.parent else None,
                        self._as(inst, f),
                        certain=sure,
                    )
                    for f in others
                ]
        return [Func(method, closure, inst, file=inst.file, line=method.line)]

    def _as(self, inst: Inst, method: Function) -> Value:
        if method.owner is None or method.owner is inst.cls:
            return inst
        return Inst(method.owner, file=inst.file, line=inst.line)

    def _outside_base(self, inst: Inst, name: str, env: Env, line: int) -> list[Value]:
        for cls in self.mro(inst.cls):
            if cls.module is None:
                continue
            scope = self.open_env(cls.parent) if cls.parent else self.top_env(cls.module)
            for base in cls.bases:
                for value in self.eval(base, scope):
                    if isinstance(value, Ext) and value.root:
                        return [
                            Ext(value.root, (*value.steps, "()", name), file=env.file, line=line)
                        ]
        return [Unknown(name, file=env.file, line=line)]

    def _field(self, inst: Inst, name: str) -> list[Value]:
        out: list[Value] = []
        if inst.record is not None:
            out = [v for v in self.entry(inst.record, name) if not isinstance(v, Unknown)]
        for cls in self.mro(inst.cls):
            if name in cls.fields and cls.module is not None:
                scope = self.open_env(cls.parent) if cls.parent else self.top_env(cls.module)
                if _is_env_free(cls.fields[name]):
                    out.extend(self.eval(cls.fields[name], scope))
                else:
                    inner = Env(scope.function, scope.args, scope.closure, inst, scope.picks)
                    out.extend(self.eval(cls.fields[name], inner))
            out.extend(self._assigned(inst, cls, name))
            out.extend(self._given(inst, cls, name))
        sure = [v for v in out if not isinstance(v, Unknown | Input) and not _is_none(v)]
        if sure:
            return natives.with_changes(self, sure, self._self_changes(inst, name))
        for cls in self.mro(inst.cls):
            if name in cls.types and cls.module is not None:
                typed = self.from_type(cls.types[name], self.top_env(cls.module))
                if typed:
                    return typed
        return out

    def _self_changes(self, inst: Inst, name: str) -> list[tuple[Mutation, Env]]:
        """Return what methods put into a field that is a record or a list."""
        out: list[tuple[Mutation, Env]] = []
        for cls in self.mro(inst.cls):
            for method in cls.methods.values():
                for me in self._self_names(method):
                    for change in scope_of(method).changes.get(me, ()):
                        if change.path[:1] == (name,):
                            below = replace(change, path=change.path[1:])
                            out.append((below, self._method_env(inst, method)))
        return out

    def _self_names(self, method: Function) -> tuple[str, ...]:
        names = ["self", "this"]
        go = method.module is not None and method.module.language == "go"
        if go and method.params and method.params[0].name not in names:
            names.append(method.params[0].name)
        return tuple(names)

    def _method_env(self, inst: Inst, method: Function) -> Env:
        if method.name in CONSTRUCTORS:
            made = self.constructed(inst, method)
            if made is not None:
                return made
        base = self.open_env(method)
        return Env(method, None, base.closure, inst)

    def _assigned(self, inst: Inst, cls: Class, name: str) -> list[Value]:
        """Return the values methods assign to a field (`self.name = …`)."""
        out: list[Value] = []
        for method in cls.methods.values():
            for me in self._self_names(method):
                for change in scope_of(method).changes.get(me, ()):
                    if change.path or not isinstance(change.key, Lit) or change.key.value != name:
                        continue
                    out.extend(self.eval(change.value, self._method_env(inst, method)))
        return out

    def _given(self, inst: Inst, cls: Class, name: str) -> list[Value]:
        """Return what a parameter property of the constructor was given."""
        ctor = cls.methods.get("constructor")
        if ctor is None or not any(p.keyword and p.name == name for p in ctor.params):
            return []
        return self.name(name, self._method_env(inst, ctor))

    def constructed(self, inst: Inst, ctor: Function) -> Env | None:
        """Return the activation of a constructor (of the class or a base) for an instance."""
        if inst.call is None or inst.env is None:
            return None
        chain = [
            c.methods[n] for c in self.mro(inst.cls) for n in CONSTRUCTORS[:2] if n in c.methods
        ]
        if not chain or ctor not in chain:
            return None
        env = self.bind(Func(chain[0], self._outer(chain[0]), inst), inst.call, inst.env)
        for outer, inner in itertools.pairwise(chain):
            call = _super_call(outer)
            if outer is ctor:
                return env
            if call is None:
                return None
            env = self.bind(Func(inner, self._outer(inner), inst), call, env)
        return env

    def _outer(self, function: Function) -> Env | None:
        return self.open_env(function.parent) if function.parent is not None else None

    def super_member(self, value: Super, name: str) -> list[Value]:
        """Return a member looked up above one class."""
        line = self.mro(value.inst.cls)
        above = line[line.index(value.cls) + 1 :] if value.cls in line else line[1:]
        for cls in above:
            if name in cls.methods:
                found = cls.methods[name]
                return [Func(found, self._outer(found), value.inst)]
        return [Unknown(name)]

    def class_member(self, value: ClassRef, name: str) -> list[Value]:
        """Return a static member, an enum member, or an unbound method."""
        for cls in self.mro(value.cls):
            if name in cls.fields and cls.module is not None:
                return self.eval(cls.fields[name], self.top_env(cls.module))
            if name in cls.methods:
                found = cls.methods[name]
                receiver: Value = (
                    value if found.static else Inst(value.cls, file=value.file, line=value.line)
                )
                return [Func(found, self._outer(found), receiver)]
        if name in ("name", "__name__"):
            return [Const(value.cls.name, file=value.file, line=value.line)]
        return [Unknown(name, file=value.file, line=value.line)]

    def mod_member(self, value: Mod, name: str) -> list[Value]:
        """Return what a module hands out, or a module below it."""
        found = self.exported(value.module, name)
        if found:
            return found
        language = value.module.language
        if language == "python":
            stem = value.module.path.rsplit("/", 1)[0].replace("/", ".")
            item = Import(0, f"{stem}.{name}", None, name)
        elif language == "rust":
            item = Import(0, f"self::{name}", None, name)
        else:
            return [Unknown(name, file=value.file, line=value.line)]
        for path in self.project.resolve(value.module, item):
            module = self.project.module(path)
            if module is not None and module is not value.module:
                return [Mod(module, file=path, line=1)]
        return [Unknown(name, file=value.file, line=value.line)]

    # Types as written.

    def from_type(self, text: str, env: Env) -> list[Value]:
        """Return an instance of the first type in an annotation that is known by name."""
        text = text.strip()
        if not text or text.startswith(("{", "[", "list[", "List[", "Array<", "Vec<", "dict[")):
            return []
        if text.endswith("[]"):
            return []
        for token in TOKEN.findall(text)[:8]:
            parts = re.split(r"\.|::", token)
            if parts[0] in WRAPPERS and len(parts) == 1:
                continue
            module = env.function.module
            scope = self.top_env(module) if module is not None else env  # never a parameter
            for value in self.name(parts[0], scope):
                found: list[Value] = [value]
                for part in parts[1:]:
                    found = [m for v in found for m in self.member(v, part, env, value.line)]
                for made in found:
                    where = {"file": made.file, "line": made.line}
                    if isinstance(made, ClassRef):
                        return [Inst(made.cls, **where)]  # type: ignore[arg-type]
                    if isinstance(made, Ext) and made.root:
                        return [Ext(made.root, (*made.steps, "()"), **where)]  # type: ignore[arg-type]
        return []

    # Calls.

    def bind(self, func: Func, call: Call, env: Env) -> Env:
        """Return the activation of `func` for the arguments of `call`."""
        positional: list[list[Value]] = list(func.given)
        named: dict[str, list[Value]] = {}
        for arg in call.args:
            found = self.eval(arg.value, env)
            if arg.spread:
                for value in found:
                    if isinstance(value, Record):
                        for keys, values, _ in self.entries(value):
                            for key in keys:
                                if isinstance(key, Const):
                                    named.setdefault(str(key.value), []).extend(values)
                    elif isinstance(value, Seq):
                        positional.extend([v] for v in value.items)
            elif arg.name is not None:
                named[arg.name] = found
            else:
                positional.append(found)
        return self.enter(func, positional, named, env)

    def enter(
        self,
        func: Func,
        positional: list[list[Value]],
        named: dict[str, list[Value]],
        env: Env | None,
    ) -> Env:
        """Return the activation of `func` for evaluated arguments."""
        function = func.function
        params = list(function.params)
        receiver = func.bound_to
        args: dict[str, list[Value]] = {}
        if params and function.owner is not None and not function.static and _takes_self(params[0]):
            if receiver is not None:
                args[params[0].name] = [receiver]
            params = params[1:]
        for i, param in enumerate(params):
            if param.rest:
                rest = [v for values in positional[i:] for v in values]
                if param.name in ("kwargs", "kw", "options", "params") and named:
                    pairs: list[tuple[list[Value], list[Value], int]] = [
                        ([Const(k)], v, 0) for k, v in named.items()
                    ]
                    args[param.name] = [Record(None, None, made=pairs)]
                else:
                    args[param.name] = [Seq(rest)]
                break
            if param.name in named:
                args[param.name] = named[param.name]
            elif (i < len(positional) and not param.keyword) or i < len(positional):
                args[param.name] = positional[i]
        depth = (env.depth if env is not None else 0) + 1
        closure = func.closure or self._outer(function)
        return Env(function, args, closure, receiver, {}, depth)

    def entered(self, function: Function) -> list[Env]:
        """Return an activation per known call of a function whose callers are looked up."""
        return [
            self.bind(Func(function, self._outer(function), self._receiver(function)), call, env)
            for call, env in self.callers(function)
        ]

    def _receiver(self, function: Function) -> Value | None:
        return Inst(function.owner) if function.owner is not None and not function.static else None

    def callers(self, function: Function) -> list[tuple[Call, Env]]:
        """Return the calls that lead to a function, found by name and then checked."""
        known = self._callers.get(id(function))
        if known is not None:
            return known
        self._callers[id(function)] = []
        found: list[tuple[Call, Env]] = []
        name = function.name
        if name in CONSTRUCTORS[:2] and function.owner is not None:
            name = function.owner.name
        if name:
            for path in self.project.callers.get(name, ()):
                for offset in self.project.facts[path].calls[name][:60]:
                    holder = self.project.function_at(path, offset)
                    if holder is not None and len(found) < 80:
                        found.extend(self._calls_in(holder, name, function))
        self._callers[id(function)] = list({id(c): (c, e) for c, e in found}.values())
        return self._callers[id(function)]

    def _calls_in(self, holder: Function, name: str, function: Function) -> list[tuple[Call, Env]]:
        out: list[tuple[Call, Env]] = []
        env = self.open_env(holder)
        for call in scope_of(holder).calls:
            callee = call.callee
            told = callee.name if isinstance(callee, Member) else getattr(callee, "id", "")
            if told == name and self._leads_to(call, env, function):
                out.append((call, env))
        return out

    def _leads_to(self, call: Call, env: Env, function: Function) -> bool:
        values = self.eval(call.callee, env)
        if any(isinstance(v, Func) and v.function is function for v in values):
            return True
        if any(isinstance(v, ClassRef) and v.cls is function.owner for v in values):
            return True
        unknown = all(isinstance(v, Unknown) for v in values)
        return unknown and len(self.project.functions.get(function.name, ())) == 1


def _takes_self(param: Param) -> bool:
    return (
        param.name in ("self", "cls", "&self", "&mut self", "mut self")
        or param.type_text == "«receiver»"
    )


def _is_stub(function: Function) -> bool:
    from fencekit.scan.facts import Raise, Return

    body = [
        s
        for s in function.body
        if not (hasattr(s, "value") and isinstance(getattr(s, "value", None), Lit))
    ]
    return all(isinstance(s, Raise) or (isinstance(s, Return) and s.value is None) for s in body)


def _is_env_free(expr: object) -> bool:
    return isinstance(expr, Lit | Dict)


def _is_none(value: Value) -> bool:
    return isinstance(value, Const) and value.value is None


def _super_call(ctor: Function) -> Call | None:
    """Return the call with which a constructor enters the one above it."""
    for call in scope_of(ctor).calls:
        callee = call.callee
        if isinstance(callee, Name) and callee.id == "super" and ctor.name == "constructor":
            return call
        if isinstance(callee, Member) and callee.name == "__init__":
            obj = callee.obj
            if isinstance(obj, Call) and isinstance(obj.callee, Name) and obj.callee.id == "super":
                return call
            if isinstance(obj, Name) and call.args:
                return Call(call.line, call.callee, call.args[1:])
    return None
