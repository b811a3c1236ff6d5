"""Members of values: entries of records, what classes and modules hand out, outside paths."""

from __future__ import annotations

from dataclasses import replace

from fencekit.scan import natives
from fencekit.scan.facts import Choice, Class, Dict, Expr, Import, Lit, Mutation, Name
from fencekit.scan.parts import Parts
from fencekit.scan.scopes import ANY, scope_of
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

MAX_STEPS = 40  # members and calls on one outside path


class Members(Parts):
    """The part of the evaluator that looks into values."""

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
                if len(value.steps) > MAX_STEPS or value.last == "lifespan_context":
                    # A loop that feeds itself, or what the server's own start put into its context.
                    return [Unknown(name, **where)]  # type: ignore[arg-type]
                return [Ext(value.root, (*value.steps, name), value.call, value.env, **where)]  # type: ignore[arg-type]
            case Input():
                if name == "lifespan_context":  # no input of the caller
                    return [Unknown(name, **where)]  # type: ignore[arg-type]
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
        out = self._with_inner_changes(record, out)
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

    def _with_inner_changes(
        self, record: Record, entries: list[tuple[list[Value], list[Value], int]]
    ) -> list[tuple[list[Value], list[Value], int]]:
        """Return entries with what is put into their values by the path that leads there."""
        changes = [(c, e) for c, e in record.changes if c.path]
        if not changes:
            return entries
        out: list[tuple[list[Value], list[Value], int]] = []
        for keys, held, line in entries:
            labels = {str(k.value) for k in keys if isinstance(k, Const)}
            inner = [
                (replace(c, path=c.path[1:]), e)
                for c, e in changes
                if c.path[0] in labels or c.path[0] == ANY
            ]
            out.append((keys, natives.with_changes(self, held, inner), line))
        return out

    def entry(self, record: Record, name: str) -> list[Value]:
        """Return the values a record may hold under a key."""
        reading = (id(record), name)
        if reading in self._reading:  # records that spread each other
            return [Unknown(name, file=record.file, line=record.line)]
        self._reading.add(reading)
        try:
            return self._entry(record, name)
        finally:
            self._reading.discard(reading)

    def _entry(self, record: Record, name: str) -> list[Value]:
        out: list[Value] = []
        if record.expr is not None and record.env is not None:
            for entry in record.expr.entries:  # without evaluating the other values
                if entry.key is None:
                    if _cannot_hold(entry.value, name):
                        continue
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
            if change.path[:1] in ((name,), (ANY,)):
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
            held = [v for v in [*known, *out] if isinstance(v, Record | Seq)]
            made = natives.with_changes(self, list(held) or self._missing(inner), inner)
            out = [v for v in out if not isinstance(v, Record | Seq)] + made
            known[:] = [v for v in known if not isinstance(v, Record | Seq)]
        return out

    def _missing(self, changes: list[tuple[Mutation, Env]]) -> list[Value]:
        """Return the empty list that changes fill where nothing is known of what holds them."""
        return [Seq([])] if any(c.key is None and not c.path for c, _ in changes) else []

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
                found = self.eval(cls.fields[name], self.top_env(cls.module))
                found = self._class_assigned(cls, name) or found
                return natives.with_changes(self, found, self._class_changes(cls, name))
            if name in cls.methods:
                method = self.method_of(value.cls, name) or cls.methods[name]
                receiver: Value = (
                    value if method.static else Inst(value.cls, file=value.file, line=value.line)
                )
                return [Func(method, self._outer(method), receiver)]
        if name in ("name", "__name__"):
            return [Const(value.cls.name, file=value.file, line=value.line)]
        return [Unknown(name, file=value.file, line=value.line)]

    def _class_assigned(self, cls: Class, name: str) -> list[Value]:
        """Return what class methods assign to a field of the class: `cls.client = Client()`."""
        out: list[Value] = []
        for method in cls.methods.values():
            for change in scope_of(method).changes.get("cls", ()):
                if not change.path and isinstance(change.key, Lit) and change.key.value == name:
                    out.extend(self.eval(change.value, self.open_env(method)))
        return [v for v in out if not isinstance(v, Unknown | Const)]

    def _class_changes(self, cls: Class, name: str) -> list[tuple[Mutation, Env]]:
        """Return what methods and functions of its file put into a field of a class itself."""
        changes = [
            (change, self.open_env(method))
            for method in cls.methods.values()
            for change in scope_of(method).changes.get("cls", ())
        ]
        if cls.module is not None:
            changes += self.changes_to(cls.name, self.top_env(cls.module))
        return [
            (replace(change, path=change.path[1:]), env)
            for change, env in changes
            if change.path[:1] == (name,)
        ]

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


def _cannot_hold(expr: Expr, name: str) -> bool:
    """Tell whether what is spread is written out and has no such key: `...(x ? { a } : {})`."""
    if isinstance(expr, Choice):
        return all(_cannot_hold(option, name) for option in expr.options)
    if not isinstance(expr, Dict):
        return isinstance(expr, Lit)
    return all(isinstance(e.key, Lit) and str(e.key.value) != name for e in expr.entries)
