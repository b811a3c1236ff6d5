"""Tools declared by a registration call: alone, in a loop, curried, or through a wrapper."""

from __future__ import annotations

from fencekit.scan import contexts
from fencekit.scan.facts import Call, Function, Lambda, Member, Module, Name
from fencekit.scan.places import home_of_name
from fencekit.scan.reach import SELF_NAMES
from fencekit.scan.registrar import Registrar
from fencekit.scan.scopes import scope_of, walk_expr
from fencekit.scan.toolspec import (
    Tool,
    function_parameters,
    handler_in,
    hints,
    name_of,
    parameters,
    plausible,
    run_by,
    text_of,
)
from fencekit.scan.values import Const, Env, Ext, Func, Inst, Record, Seq

REGISTER = frozenset({
    "tool", "registerTool", "addTool", "add_tool", "AddTool", "AddTools", "register_tool",
    "RegisterTool",
    "registerToolTask", "addTools", "add_tools", "registerAppTool", "defineTool", "server_tool",
})  # fmt: skip
MAX_CLASSES = 1000


class Registered(Registrar):
    """Reads tools from registration calls."""

    def _calls(self, module: Module, names: frozenset[str]) -> None:
        done: set[int] = set()
        fact = self.project.facts[module.path]
        for name in sorted(names):
            for offset in fact.calls[name]:
                holder = self.project.function_at(module.path, offset)
                if holder is None or id(holder) in done:
                    continue
                done.add(id(holder))
                scope = scope_of(holder)
                marks = {id(mark) for inner in scope.nested for mark in inner.marks}
                for call in scope.calls:
                    if id(call) in marks:
                        continue  # a decorator declares the function below it
                    if name_of(call.callee) in names and not isinstance(call.callee, Call):
                        self._registered(call, holder, module)
                    elif isinstance(call.callee, Call) and name_of(call.callee.callee) in names:
                        self._curried(call, call.callee, holder, module)

    def _curried(self, call: Call, inner: Call, holder: Function, module: Module) -> None:
        """Read `server.tool(name="x")(fn)`."""
        env = self.ev.open_env(holder)
        sdk = self._registrar(inner.callee, env)
        if sdk is None:
            return
        merged = Call(inner.line, inner.callee, [*call.args, *inner.args], False, call.offset)
        for context in self._contexts(merged, env):
            self._add(self._interpret(merged, context), module, sdk, inner)

    def _registered(self, call: Call, holder: Function, module: Module) -> None:
        env = self.ev.open_env(holder)
        if not call.args or not isinstance(call.callee, Member | Name):
            return
        sdk = self._registrar(call.callee, env)
        if sdk is None:
            return
        before = len(self.tools)
        for own in self._own_classes(call, holder, env) or [env]:
            shown = len(self.tools)
            for context in self._contexts(call, own):
                for tool in self._interpret_all(call, context):
                    self._add(tool, module, sdk, call)
            if own is not env and len(self.tools) == shown and own.self_value is not None:
                self._add(self.spec_of(own.self_value), module, sdk, call)
        if len(self.tools) == before:
            self.unshown.append((module.path, call.line))

    def _own_classes(self, call: Call, holder: Function, env: Env) -> list[Env]:
        """Return one activation per class that inherits a method which registers its own object.

        `class Base { register(server) { server.registerTool(this.name, …) } }`
        """
        owner = holder.owner
        named = [a.value for a in call.args if a.name in (None, "name")][:1]
        if owner is None or not isinstance(env.self_value, Inst) or not any(
            isinstance(e, Member) and isinstance(e.obj, Name) and e.obj.id in SELF_NAMES
            for value in named
            for e in walk_expr(value)
        ):  # fmt: skip
            return []
        out: list[Env] = []
        todo, seen = [owner.name], {owner.name}
        while todo and len(seen) < MAX_CLASSES:
            for cls in self.project.subclasses(todo.pop()):
                if cls.name in seen:
                    continue
                seen.add(cls.name)
                todo.append(cls.name)
                if not cls.abstract and owner in self.ev.mro(cls):
                    file = cls.module.path if cls.module is not None else ""
                    inst = Inst(cls, exact=True, file=file, line=cls.line)
                    out.append(Env(holder, None, env.closure, inst))
        return out

    def _contexts(self, call: Call, env: Env) -> list[Env]:
        found = [env]
        for arg in call.args:
            if isinstance(arg.value, Lambda):
                continue
            found = [one for c in found for one in contexts.expand(self.ev, arg.value, c)]
            if len(found) > contexts.MAX_CONTEXTS:
                break
        return found

    def _interpret_all(self, call: Call, env: Env) -> list[Tool]:
        """Read one registration; an `addTools([...])` holds several."""
        out: list[Tool] = []
        for arg in call.args:
            for value in self.ev.eval(arg.value, env):
                if isinstance(value, Seq):
                    out += [
                        t for item in value.items for t in [self.spec_of(item)] if t is not None
                    ]
        if out:
            return out
        made = self._interpret(call, env)
        return [made] if made is not None else []

    def _interpret(self, call: Call, env: Env) -> Tool | None:
        """Read one registration call in one context."""
        tool: Tool | None = None
        handler: Func | None = None
        given = self._made_of_function(call, env)
        if given is not None:
            return given
        for i, arg in enumerate(call.args):
            for value in self.ev.eval(arg.value, env):
                if arg.name == "name" or (
                    arg.name is None
                    and i == 0
                    and isinstance(value, Const)
                    and isinstance(value.value, str)
                ):
                    if isinstance(value, Const) and not value.holes and plausible(str(value.value)):
                        home = home_of_name(self.ev, arg.value, env) or (env.file, call.line)
                        place = (value.file, value.line)
                        made = Tool(str(value.value), *home, name_place=place, told=value.told)
                        made.handler = tool.handler if tool else None
                        tool = made
                elif (
                    tool is None
                    and isinstance(value, Record | Ext | Inst)
                    and not (isinstance(value, Ext) and value.call is None)
                ):
                    tool = self.spec_of(value)
                else:
                    handler = run_by(self.ev, value) or handler
        if (
            tool is None
            and handler is not None
            and call.args
            and (handler in self.ev.eval(call.args[0].value, env))
            and not any(arg.name == "name" for arg in call.args)  # a name that is not known
        ):
            function = handler.function
            file = function.module.path if function.module else env.file
            tool = Tool(function.name, file, function.line, name_place=(file, function.line))
        if tool is None or not tool.name:
            return None
        tool.handler = handler or tool.handler
        self._details(call, env, tool)
        return tool

    def _made_of_function(self, call: Call, env: Env) -> Tool | None:
        """Read `Tool.from_function(f, name=…)` where it is given to a registration."""
        for arg in call.args[:1]:
            for value in self.ev.eval(arg.value, env):
                made = isinstance(value, Ext) and value.last == "from_function"
                if made and isinstance(value, Ext) and value.call is not None:
                    return self._interpret(value.call, env)
        return None

    def _details(self, call: Call, env: Env, tool: Tool) -> None:
        """Fill in what stands beside the name: description, schema, annotations."""
        for i, arg in enumerate(call.args):
            values = self.ev.eval(arg.value, env)
            told = text_of(self.ev, values)
            if arg.name == "description" or (i == 1 and arg.name is None and told is not None):
                tool.description = tool.description or (str(told.value) if told is not None else "")
            for value in values:
                if isinstance(value, Record):
                    found = text_of(self.ev, self.ev.entry(value, "description"))
                    if found is not None and not tool.description:
                        tool.description = str(found.value)
                    tool.annotations.update(hints(self.ev, [value]))
                    tool.handler = tool.handler or handler_in(self.ev, value)
                    tool.annotations.update(hints(self.ev, self.ev.entry(value, "annotations")))
                    for key in ("inputSchema", "parameters", "paramsSchema", "schema", "input"):
                        tool.parameters = tool.parameters or parameters(
                            self.ev, self.ev.entry(value, key)
                        )
                    if not tool.parameters and i >= 1 and not tool.annotations:
                        tool.parameters = parameters(self.ev, [value])
                elif (
                    isinstance(value, Ext)
                    and i >= 1
                    and not tool.parameters
                    and value.call is not None
                ):
                    tool.parameters = parameters(self.ev, [value])
            if arg.name == "annotations":
                tool.annotations.update(hints(self.ev, values))
        handler = tool.handler
        if handler is not None and handler.function.module is not None:
            function = handler.function
            if function.module is not None and function.module.language == "python":
                tool.description = tool.description or function.doc
                if not tool.parameters:
                    scope = self.ev.open_env(function)
                    tool.parameters = function_parameters(self.ev, function, scope)

    def _add(self, tool: Tool | None, module: Module, sdk: str, call: Call) -> None:
        if tool is None:
            return
        tool.language, tool.sdk = tool.language or module.language, sdk
        tool.style = tool.style or "registration"
        self.tools.append(tool)
