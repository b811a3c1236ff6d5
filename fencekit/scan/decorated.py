"""Tools declared by a decorator or an attribute on a function or method."""

from __future__ import annotations

from fencekit.scan import words
from fencekit.scan.evaluate import Evaluator
from fencekit.scan.facts import (
    Call,
    Class,
    Dict,
    Entry,
    Expr,
    Function,
    Lit,
    Member,
    Module,
)
from fencekit.scan.registrar import Registrar, from_sdk
from fencekit.scan.toolspec import (
    Tool,
    from_record,
    function_parameters,
    hints,
    model_fields,
    name_of,
    parameters,
    plausible,
    text_of,
)
from fencekit.scan.values import Env, Ext, Func, Inst, Record

MARKS = frozenset({"tool", "Tool", "McpTool", "mcp_tool", "MCPTool"})


def is_tool_mark(name: str) -> bool:
    """Tell whether a decorator's name says that it makes a tool: `tool`, `billing_tool`."""
    return name in MARKS or (words.split(name)[-1:] == ("tool",) and "_" in name)


# The methods in which a type that is a tool runs.
RUNS = ("run_tool", "call_tool", "run", "call", "execute", "handle", "invoke", "process")


class Decorated(Registrar):
    """Reads tools from decorators and attributes."""

    def _marked(self, function: Function, module: Module) -> None:
        env = self.ev.open_env(function.parent) if function.parent else self.ev.top_env(module)
        for mark in function.marks:
            callee = mark.callee if isinstance(mark, Call) else mark
            if name_of(mark) not in MARKS and not self._own_mark(callee, env):
                continue
            sdk = self._registrar(callee, env)
            if sdk is None:
                continue
            inside = function.owner is not None and module.language == "java"
            tool = self._from_mark(mark, function, self.ev.open_env(function) if inside else env)
            if tool is None:
                continue
            tool.language, tool.sdk, tool.style = module.language, sdk, "decorator"
            owner = self.ev.open_env(function)
            tool.handler = Func(
                function, env, owner.self_value, file=module.path, line=function.line
            )
            if not tool.parameters:
                tool.parameters = function_parameters(self.ev, function, env)
            tool.server = _server_of(self.ev, callee, env)
            self.tools.append(tool)
            return

    def _marked_class(self, cls: Class, module: Module) -> None:
        """Read a tool from an attribute on a type, which runs it in a method of its own."""
        env = self.ev.top_env(module)
        for mark in cls.marks:
            if name_of(mark) not in MARKS or not isinstance(mark, Call):
                continue
            sdk = self._registrar(mark.callee, env)
            method = next((m for n in RUNS if (m := self.ev.method_of(cls, n))), None)
            runner = method or Function(cls.name, cls.line, [], lambda _: [], module)
            tool = self._from_mark(mark, runner, env) if sdk is not None else None
            if tool is None or sdk is None:
                continue
            tool.line, tool.name_place = cls.line, (module.path, cls.line)
            tool.language, tool.sdk, tool.style = module.language, sdk, "decorator"
            tool.parameters = tool.parameters or model_fields(self.ev, cls)
            if method is not None:
                tool.handler = Func(method, self.ev._outer(method), Inst(cls), file=module.path)
            self.tools.append(tool)
            return

    def _own_mark(self, callee: Expr, env: Env) -> bool:
        """Tell whether a mark is the repository's own around an SDK's: `@billing_tool(…)`."""
        if not is_tool_mark(name_of(callee)):
            return False
        for value in self.ev.eval(callee, env):
            module = value.function.module if isinstance(value, Func) else None
            if module is not None and self._imports_sdk(module):
                return True
        return False

    def _imports_sdk(self, module: Module) -> bool:
        return any(from_sdk(name) for name in self.project.facts[module.path].imports)

    def _from_mark(self, mark: Expr, function: Function, env: Env) -> Tool | None:
        file = env.file
        tool = Tool(function.name, file, function.line, name_place=(file, function.line))
        tool.description = function.doc
        if isinstance(mark, Call):
            for i, arg in enumerate(mark.args):
                values = self.ev.eval(arg.value, env)
                if arg.name in ("name", "value") or (arg.name is None and i == 0):
                    told = text_of(self.ev, values)
                    record = next((v for v in values if isinstance(v, Record)), None)
                    if record is not None and arg.name is None:
                        made = from_record(self.ev, record)
                        if made is not None:
                            made.file, made.line = file, mark.line
                            return made
                        self._spec(record, tool)
                    elif told is not None:
                        if arg.name in ("value",) and not plausible(str(told.value)):
                            tool.description = str(told.value)
                        elif plausible(str(told.value)):
                            tool.name = str(told.value)
                        elif arg.name is None:
                            tool.description = str(told.value)
                elif arg.name == "description":
                    told = text_of(self.ev, values)
                    tool.description = str(told.value) if told is not None else tool.description
                elif arg.name == "annotations":
                    tool.annotations.update(hints(self.ev, values))
                elif arg.name and arg.name.endswith("_hint"):
                    flag = Dict(mark.line, [Entry(Lit(mark.line, arg.name), arg.value, mark.line)])
                    tool.annotations.update(hints(self.ev, self.ev.eval(flag, env)))
        return tool

    def _spec(self, record: Record, tool: Tool) -> None:
        told = text_of(self.ev, self.ev.entry(record, "description"))
        tool.description = str(told.value) if told is not None else tool.description
        tool.annotations.update(hints(self.ev, self.ev.entry(record, "annotations")))
        for key in ("parameters", "inputSchema", "schema"):
            tool.parameters = tool.parameters or parameters(self.ev, self.ev.entry(record, key))


def _server_of(ev: Evaluator, callee: Expr, env: Env) -> str:
    """Return the place where the server a decorator belongs to is made, as `file:line`."""
    if isinstance(callee, Member):
        for value in ev.eval(callee.obj, env):
            if isinstance(value, Ext | Inst) and value.file:
                return f"{value.file}:{value.line}"
    return ""
