"""Arguments bound to parameters, and the calls that lead to a function."""

from __future__ import annotations

from collections.abc import Iterator

from fencekit.scan.facts import Call, Class, Expr, Function, Member, Param
from fencekit.scan.parts import CONSTRUCTORS, Parts
from fencekit.scan.scopes import scope_of
from fencekit.scan.values import ClassRef, Const, Env, Func, Inst, Record, Seq, Unknown, Value


class Activations(Parts):
    """The part of the evaluator that enters functions."""

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
        params = func.function.params
        if _takes_self_first(func) and len(positional) == len(params):
            positional = positional[1:]  # Rust's `Type::method(receiver, …)`
        made = self.enter(func, positional, named, env)
        made.entered_at = (env.file, call.line)
        return made

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
        ] + self.decorations(function)

    def decorations(self, function: Function) -> list[Env]:
        """Return an activation per function or class that `function` decorates."""
        known = self._decorations.get(id(function))
        if known is not None:
            return known
        self._decorations[id(function)] = []
        outer = function.parent.name if function.parent is not None else ""
        out: list[Env] = []
        for name in {function.name, outer} - {""}:  # `@mark`, or `@make(…)` that hands it out
            for module in self.project.modules(self.project.marked.get(name, [])):
                for item, mark in _decorated(module.top, name):
                    env = self.open_env(item.parent) if item.parent else self.top_env(module)
                    value: Value = ClassRef(item) if isinstance(item, Class) else Func(item, env)
                    value.file, value.line = module.path, item.line
                    for func in self.eval(mark, env):
                        if isinstance(func, Func) and func.function is function:
                            made = self.enter(func, [[value]], {}, env)
                            made.entered_at = (module.path, mark.line)
                            out.append(made)
        self._decorations[id(function)] = out
        return out

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


def _decorated(top: Function, name: str) -> Iterator[tuple[Function | Class, Expr]]:
    """Yield the functions and classes below `top` that bear a mark of a name, with the mark."""
    stack = [top]
    while stack:
        here = stack.pop()
        items: list[Function | Class] = [here] if here is not top else []
        for bindings in scope_of(here).names.values():
            items += [b.item for b in bindings if isinstance(b.item, Class)]
        for item in items:
            for mark in item.marks:
                told = mark.callee if isinstance(mark, Call) else mark
                if name in (getattr(told, "name", ""), getattr(told, "id", "")):
                    yield item, mark
        stack.extend(scope_of(here).nested)


def _takes_self_first(func: Func) -> bool:
    """Tell whether a method's receiver may be given as its first argument."""
    function = func.function
    rust = function.module is not None and function.module.language == "rust"
    return rust and bool(function.params) and function.params[0].name == "self"


def _takes_self(param: Param) -> bool:
    return (
        param.name in ("self", "cls", "&self", "&mut self", "mut self")
        or param.type_text == "«receiver»"
    )
