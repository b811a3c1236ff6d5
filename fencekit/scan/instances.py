"""Instances: their methods, and what their fields hold.

A field of an instance is what its constructor was given, what a method assigns, what its class
declares, or what its declared type says; a method is looked up in the class, its bases, classes
that mix it in, and, for an interface, in what implements it.
"""

from __future__ import annotations

import itertools
from dataclasses import replace

from fencekit.scan import natives
from fencekit.scan.facts import (
    Call,
    Class,
    Dict,
    Function,
    Lit,
    Member,
    Mutation,
    Name,
    Raise,
    Return,
)
from fencekit.scan.parts import CONSTRUCTORS, Parts
from fencekit.scan.scopes import scope_of
from fencekit.scan.values import ClassRef, Const, Env, Ext, Func, Input, Inst, Unknown, Value


class Instances(Parts):
    """The part of the evaluator that knows objects."""

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
            todo += self.project.parts_of(here)
            for base in here.bases:
                todo += [v.cls for v in self.eval(base, env) if isinstance(v, ClassRef)]
        return out

    def method_of(self, cls: Class, name: str) -> Function | None:
        """Return a method by name from a class or its bases; one of a trait only where no other."""
        provided: Function | None = None
        for here in self.mro(cls):
            if name in here.methods:
                if name not in here.provided:
                    return (
                        provided if provided is not None and here.abstract else here.methods[name]
                    )
                provided = provided or here.methods[name]
        return provided

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
            if cls.module is None or (cls.module.language == "rust" and name in cls.types):
                continue  # a trait has no fields
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
        """Return what a parameter property, or a field of a data class, was given."""
        ctor = cls.methods.get("constructor")
        if cls is inst.cls and inst.call is not None and name in cls.types:
            found = self._given_data(inst, cls, name)
            if found:
                return found
        if ctor is None or not any(p.keyword and p.name == name for p in ctor.params):
            return []
        return self.name(name, self._method_env(inst, ctor))

    def _given_data(self, inst: Inst, cls: Class, name: str) -> list[Value]:
        """Return what a construction gives for a declared field of a class without constructor."""
        if inst.call is None or inst.env is None or "__init__" in cls.methods:
            return []
        for arg in inst.call.args:
            if arg.name == name:
                return self.eval(arg.value, inst.env)
        given = [a for a in inst.call.args if a.name is None and not a.spread]
        place = list(cls.types).index(name)
        return self.eval(given[place].value, inst.env) if place < len(given) else []

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


def _is_stub(function: Function) -> bool:
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
