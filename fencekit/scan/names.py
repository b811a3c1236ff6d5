"""What a name stands for: bindings, parameters, imports and exports, types as written."""

from __future__ import annotations

import re

from fencekit.scan import loading, natives, words
from fencekit.scan.changes import is_empty
from fencekit.scan.documents import is_data
from fencekit.scan.facts import Binding, Cast, Class, Function, Import, Module, Param
from fencekit.scan.parts import MAX_VALUES, Parts
from fencekit.scan.reach import SELF_NAMES
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
    Unknown,
    Value,
)

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


class Names(Parts):
    """The part of the evaluator that resolves names."""

    def name(self, name: str, env: Env, line: int = 0) -> list[Value]:
        """Return what a name stands for in an activation."""
        here: Env | None = env
        module = env.function.module
        if name in SELF_NAMES and module is not None:
            found = self._self(name, env)
            if found is not None:
                return [found]
        while here is not None:
            scope = scope_of(here.function)
            bindings = scope.names.get(name)
            if bindings:
                return self._bound(name, nearest(bindings, line), here)
            here = here.closure or (
                self.open_env(here.function.parent) if here.function.parent is not None else None
            )
        if module is not None and module.language == "java":
            owned = self._member_around(name, env, line)
            if owned:
                return owned
        if module is not None:
            found_outside = self._from_package(name, module)
            if found_outside:
                return found_outside
        return [Ext("", (name,), file=env.file, line=line)]

    def _member_around(self, name: str, env: Env, line: int) -> list[Value]:
        """Return the member of the class around that a name without an object means."""
        around = self._self("this", env)
        cls = getattr(around, "cls", None)
        if around is None or not isinstance(cls, Class):
            return []
        for here in self.mro(cls):
            if name in here.methods or name in here.types or name in here.fields:
                return self.member(around, name, env, line)
        return []

    def _self(self, name: str, env: Env) -> Value | None:
        here: Env | None = env
        while here is not None:
            if name in scope_of(here.function).names and name not in ("self", "cls"):
                return None
            value = here.self_value
            if value is not None:
                if name in ("cls", "Self") and isinstance(value, Inst):
                    return ClassRef(value.cls, file=value.file, line=value.line)
                return value
            if here.function.owner is not None:
                owner = here.function.owner
                if name in ("cls", "Self") or here.function.static:
                    return ClassRef(owner, file=here.file, line=owner.line)
                return Inst(owner, file=here.file, line=owner.line)
            here = here.closure
        return None

    def _from_package(self, name: str, module: Module) -> list[Value]:
        out: list[Value] = []
        for sibling in self.project.package(module):
            if sibling is module:
                continue
            bindings = scope_of(sibling.top).names.get(name)
            if bindings and bindings[0].kind != "import":
                out.extend(self._bound(name, bindings, self.top_env(sibling)))
        for binding in scope_of(module.top).names.get("*", ()):
            if isinstance(binding.item, Import):
                for path in self.project.resolve(module, binding.item):
                    source = self.project.module(path)
                    if source is not None and source is not module:
                        out.extend(self.exported(source, name))
        if not out and module.language in ("java", "rust") and name[:1].isupper():
            return self._from_wildcard(name, module)
        return out

    def _from_wildcard(self, name: str, module: Module) -> list[Value]:
        """Return what the only import of everything in an outside package may stand for.

        Where several are imported, those of libraries without effects stand back.
        """
        items = [b.item for b in scope_of(module.top).names.get("*", ())]
        outside = [
            i
            for i in items
            if isinstance(i, Import)
            and not i.module.startswith(("java.", "std::", "super", "crate", "self"))
            and not self.project.resolve(module, i)
        ]
        if len(outside) > 1 and name not in words.SDK_TYPES:
            first = re.compile(r"[:.]")
            outside = [i for i in outside if first.split(i.module)[0] not in words.QUIET_LIBRARIES]
        if len(outside) != 1:
            return []
        return [Ext(outside[0].module, (name,), file=module.path, line=outside[0].line)]

    def _bound(self, name: str, bindings: list[Binding], env: Env) -> list[Value]:
        out: list[Value] = []
        picked = [b for b in bindings if b.kind == "loop" and id(b.value) in env.picks]
        for binding in picked or bindings:  # one loop's variable, not that of another loop
            out.extend(self._binding(binding, env))
        if all(is_empty(v) for v in out):
            out.extend(self._given_later(name, bindings, env))
        told = [v for v in out if not (isinstance(v, Const) and v.line == 0 and v.value is None)]
        out = told or out
        return self._changed(name, out, env)

    def _binding(self, binding: Binding, env: Env) -> list[Value]:
        item = binding.item
        if binding.kind == "param" and isinstance(item, Param):
            return self.apply_path(self._param(item, env), binding.path, env)
        if isinstance(item, Import):
            return self._import(item, env)
        if isinstance(item, Function):
            owner = None if item.owner is None else env.self_value
            return [Func(item, env, owner, file=env.file, line=item.line)]
        if isinstance(item, Class):
            return [ClassRef(item, file=env.file, line=item.line)]
        if binding.value is None:
            return [Unknown(file=env.file, line=binding.line)]
        if binding.kind == "loop":
            picked = env.picks.get(id(binding.value))
            found = [picked] if picked is not None else self._loop_values(binding, env)
            return self.apply_path(found, binding.path, env)
        found = self.apply_path(
            natives.result_at(self.eval(binding.value, env), 0), binding.path, env
        )
        module = env.function.module
        given = any(isinstance(v, Input) for v in found)
        if given and module is not None and module.language == "rust":
            return found  # `let args: Args = from_value(input)` is still the input
        if binding.type_text and all(isinstance(v, Unknown | Input) for v in found):
            return self.from_type(binding.type_text, env) or found
        return found

    def _loop_values(self, binding: Binding, env: Env) -> list[Value]:
        assert binding.value is not None
        return natives.elements(self, self.eval(binding.value, env))

    def _changed(self, name: str, values: list[Value], env: Env) -> list[Value]:
        """Attach the changes a body (or its module) makes to a record or a list."""
        if not any(isinstance(v, Record | Seq) for v in values):
            return values
        changes = self.changes_to(name, env)
        if not changes:
            return values
        out: list[Value] = []
        for value in values:
            where = {"file": value.file, "line": value.line}
            if isinstance(value, Record):
                grown = Record(value.expr, value.env, **where)  # type: ignore[arg-type]
                grown.changes = [*value.changes, *changes]
                grown.made = value.made
                out.append(grown)
            elif isinstance(value, Seq):
                items = list(value.items)
                for change, inner in changes:
                    if change.key is None and not change.path:
                        for added in self.contexts(change.value, inner):
                            found = self.eval(change.value, added)
                            spread = [v for v in found if isinstance(v, Seq)]
                            items.extend(natives.elements(self, list(spread)) if spread else found)
                out.append(Seq(items, value.open, **where))  # type: ignore[arg-type]
            else:
                out.append(value)
        return out

    def apply_path(self, values: list[Value], path: tuple[str | int, ...], env: Env) -> list[Value]:
        """Take values apart along a destructuring path."""
        for step in path:
            key = Const(step, file=env.file)
            values = [part for v in values for part in self.item(v, key, env, v.line)]
        return values

    def _param(self, param: Param, env: Env) -> list[Value]:
        if env.args is not None:
            given = env.args.get(param.name)
            if given:
                unsure = all(isinstance(v, Unknown) for v in given)
                typed = self.from_type(param.type_text, env) if unsure else []
                return typed or given
            if param.default is not None:
                return self.eval(param.default, env)
        else:
            picked = env.picks.get(id(param))
            if picked is not None:
                return [picked]
            typed = self.from_type(param.type_text, env)
            described = "openapi" in param.type_text.lower()  # the document says more than its type
            shape = bool(typed) and all(_holds_tools(v) for v in typed)
            if typed and not shape and not (described and all(isinstance(v, Ext) for v in typed)):
                return typed
            found = self._from_callers(param, env)
            if found and (not shape or all(isinstance(v, Record) for v in found)):
                return found
        typed = self.from_type(param.type_text, env)
        return typed or [Unknown(param.name, file=env.file, line=param.line)]

    def _from_callers(self, param: Param, env: Env) -> list[Value]:
        if self._param_depth > 5:
            return []
        self._param_depth += 1
        try:
            out: list[Value] = []
            for inner in self.entered(env.function):
                out.extend(inner.args.get(param.name, []) if inner.args else [])
            return [v for v in dict.fromkeys(out) if not isinstance(v, Unknown)][:MAX_VALUES]
        finally:
            self._param_depth -= 1

    def _import(self, item: Import, env: Env) -> list[Value]:
        module = env.function.module
        if module is None:
            return [Unknown(item.local)]
        paths = self.project.resolve(module, item)
        out: list[Value] = []
        if not paths and item.name in (None, "default", "*") and is_data(item.module):
            read = loading.named(self, [item.module], module.path)
            if read:
                return read
        for path in paths:
            source = self.project.module(path)
            if source is None:
                continue
            if item.name is None:
                out.append(Mod(source, file=path, line=1))
                break
            out.extend(self.exported(source, item.name))
            if out:
                break
        if not out and item.name is not None and module.language == "python":
            joined = f"{item.module}.{item.name}" if item.module else item.name
            inner = Import(item.line, joined, None, item.local, item.level)
            for path in self.project.resolve(module, inner):
                source = self.project.module(path)
                if source is not None:
                    return [Mod(source, file=path, line=1)]
        if out or paths:
            return out or [Unknown(item.local, file=env.file, line=item.line)]
        steps = () if item.name in (None, "default", "*") else (str(item.name),)
        return [Ext("." * item.level + item.module, steps, file=env.file, line=item.line)]

    def exported(
        self, module: Module, name: str, seen: frozenset[str] = frozenset()
    ) -> list[Value]:
        """Return what a module hands out under a name, through re-exports."""
        if module.path in seen:
            return []
        scope = scope_of(module.top)
        local = module.exports.get(name, name)
        bindings = scope.names.get(local)
        if bindings:
            key = (module.path, local)
            if key in self._exporting:  # modules that import a name from each other
                return []
            self._exporting.add(key)
            try:
                return self._bound(local, bindings, self.top_env(module))
            finally:
                self._exporting.discard(key)
        seen = seen | {module.path}
        for binding in scope.names.get("*", ()):
            if isinstance(binding.item, Import):
                for path in self.project.resolve(module, binding.item):
                    source = self.project.module(path)
                    found = self.exported(source, name, seen) if source is not None else []
                    if found:
                        return found
        for sibling in self.project.package(module):
            if sibling.path not in seen:
                bindings = scope_of(sibling.top).names.get(name)
                if bindings and bindings[0].kind != "import":
                    return self._bound(name, bindings, self.top_env(sibling))
        return []

    # Types as written.

    def cast(self, expr: Cast, env: Env) -> list[Value]:
        """Return what a value is said to be, where no more is known of it."""
        found = self.eval(expr.of, env)
        if all(isinstance(v, Unknown | Input | Ext) for v in found):
            return self.from_type(expr.type_text, env) or found
        return found

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


def _holds_tools(value: Value) -> bool:
    """Tell whether a type only says that a record holds tools: `{ tools: ToolDefinition[] }`."""
    if not isinstance(value, Inst) or value.cls.methods:
        return False
    return any({"tool", "tools"} & set(words.split(text)) for text in value.cls.types.values())


def nearest(bindings: list[Binding], line: int) -> list[Binding]:
    """Return, of a name that a body binds in several places, the place a line belongs to.

    Of several loops, or of several declarations that nothing assigns anew (`const` in the arms of
    a switch), that is the last one that begins at or before the line.
    """
    if len(bindings) < 2 or not line or any(b.kind != "loop" and not b.final for b in bindings):
        return bindings
    return [b for b in bindings if b.line <= line][-1:] or bindings
