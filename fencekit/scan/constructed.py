"""Tools made by a constructor that no registration led to: `NewTool(…)`, and wrappers around it."""

from __future__ import annotations

from fencekit.scan import words
from fencekit.scan.beside import handler_beside
from fencekit.scan.facts import Call, Expr, Function, Member, Module
from fencekit.scan.registrar import Registrar, from_sdk
from fencekit.scan.scopes import scope_of
from fencekit.scan.toolspec import Tool, hints, name_of, plausible, read_options
from fencekit.scan.values import Ext, Func, Value

CONSTRUCT = frozenset(
    {"NewTool", "NewToolWithRawSchema", "Tool", "new_tool", "create_tool", "NewServerTool"}
)

# What is done to a tool that somebody else made.
USES = frozenset({
    "call", "execute", "run", "use", "invoke", "get", "find", "list", "remove", "delete", "enable",
    "disable", "is", "has", "handle", "on", "select", "load", "fetch", "test", "validate", "parse",
    "render", "show", "log", "track", "mock", "with", "update", "unregister", "dispatch", "check",
})  # fmt: skip
# What a name speaks of when it only has to do with tools: `create_tool_names_mapping`.
ABOUT_TOOLS = frozenset({
    "name", "names", "mapping", "result", "results", "error", "call", "calls", "response",
    "message", "list", "executor", "runner", "context", "prompt", "choice", "use", "event", "id",
    "ids",
})  # fmt: skip


class Constructed(Registrar):
    """Reads tools from constructors."""

    def _constructed(self) -> None:
        known = {t.name for t in self.tools}
        for name in sorted(self.project.callers):
            if "tool" not in name.lower() or not _constructor_name(name):
                continue
            for path in self.project.callers[name]:
                module = self.project.module(path)
                if module is None:
                    continue
                for offset in self.project.facts[path].calls[name]:
                    holder = self.project.function_at(path, offset)
                    for call in scope_of(holder).calls if holder is not None else ():
                        if name_of(call.callee) == name and holder is not None:
                            self._one_constructed(call, holder, module, known)

    def _built(self) -> None:
        """Read tools from the SDK's builders: `Tool.builder().name("…").build()`."""
        known = {t.name for t in self.tools}
        for path in self.project.callers.get("build", ()):
            module = self.project.module(path)
            for offset in self.project.facts[path].calls["build"] if module is not None else ():
                holder = self.project.function_at(path, offset)
                for call in scope_of(holder).calls if holder is not None else ():
                    if name_of(call.callee) == "build" and holder is not None:
                        self._one_built(call, holder, module, known)

    def _one_built(
        self, call: Call, holder: Function, module: Module | None, known: set[str]
    ) -> None:
        """Read one builder, whose steps name the fields of the tool."""
        env = self.ev.open_env(holder)
        steps: dict[str, Call] = {}
        here: Expr = call.callee
        while isinstance(here, Member | Call):
            if isinstance(here, Call):
                steps.setdefault(name_of(here.callee), here)
            here = here.callee if isinstance(here, Call) else here.obj
        if not {"builder", "name"} <= set(steps) or module is None or not steps["name"].args:
            return
        of_sdk = [
            v
            for v in self.ev.eval(steps["builder"].callee, env)
            if isinstance(v, Ext) and from_sdk(v.root) and "Tool" in (*v.steps, v.root)
        ]
        told = [t for t in self.ev.texts(steps["name"].args[0].value, env) if not t.holes]
        if not of_sdk or len(told) != 1 or not plausible(str(told[0].value)):
            return
        if str(told[0].value) in known:
            return
        line = steps["name"].line
        tool = Tool(str(told[0].value), env.file, line, name_place=(told[0].file, told[0].line))
        for key, step in steps.items():
            for arg in step.args[:1]:
                texts = self.ev.texts(arg.value, env)
                if key == "description" and texts:
                    tool.description = str(texts[0].value)
                elif key == "annotations":
                    tool.annotations.update(hints(self.ev, self.ev.eval(arg.value, env)))
        tool.handler = self._beside(call, holder)
        tool.language, tool.sdk, tool.style = module.language, self._sdk_near(env), "builder"
        self.tools.append(tool)

    def _one_constructed(
        self, call: Call, holder: Function, module: Module, known: set[str]
    ) -> None:
        env = self.ev.open_env(holder)
        self.ev.fresh(100_000)
        if not call.args:
            return
        told = [t for t in self.ev.texts(call.args[0].value, env) if not t.holes]
        if len(told) != 1 or str(told[0].value) in known or not plausible(str(told[0].value)):
            return
        callee = self.ev.eval(call.callee, env)
        if not any(self._builds_tool(v, 0) for v in callee):
            return
        tool = Tool(
            str(told[0].value), env.file, call.line, name_place=(told[0].file, told[0].line)
        )
        read_options(self.ev, call, env, tool)
        tool.handler = tool.handler or self._beside(call, holder)
        tool.language, tool.sdk, tool.style = module.language, self._sdk_near(env), "constructor"
        self.tools.append(tool)

    def _beside(self, call: Call, holder: Function) -> Func | None:
        """Return the handler beside a description, also where its function is called for it."""
        found = handler_beside(self.ev, call, holder, self.ev.open_env(holder))
        if found is not None or len(scope_of(holder).returns) > 2:
            return found
        for around, env in self.ev.callers(holder)[:4]:
            found = found or handler_beside(self.ev, around, env.function, env)
        return found

    def _builds_tool(self, value: Value, depth: int) -> bool:
        """Tell whether calling a value makes a tool of an MCP SDK,
        directly or through a wrapper."""
        if isinstance(value, Ext):
            return from_sdk(value.root) and not _makes_an_answer(value)
        if not isinstance(value, Func) or depth > 3:
            return False
        env = self.ev.open_env(value.function)
        module = value.function.module
        for call in scope_of(value.function).calls:
            if "tool" in name_of(call.callee).lower():
                found = self.ev.eval(call.callee, env)
                if any(self._builds_tool(v, depth + 1) for v in found):
                    return True
        returned = "".join(words.split(value.function.returns))
        fact = self.project.facts.get(module.path) if module else None
        sdk_here = any(from_sdk(n) for n in fact.imports) if fact else False
        return "tool" in returned and (sdk_here or (depth == 0 and self._package_uses_sdk(module)))

    def _package_uses_sdk(self, module: Module | None) -> bool:
        if module is None:
            return False
        return any(
            from_sdk(name)
            for m in self.project.package(module)
            for name in self.project.facts[m.path].imports
        )


def _makes_an_answer(value: Ext) -> bool:
    """Tell whether a constructor makes an answer: `NewToolResultText`, `ToolError`."""
    named = value.path.rpartition(".")[2]
    return any(word in named for word in ("Result", "Error", "Response"))


def _constructor_name(name: str) -> bool:
    """Tell whether a function's name says that it makes a tool rather than uses one."""
    parts = words.split(name)
    if "tool" not in parts:
        return False
    if set(parts[parts.index("tool") + 1 :]) & ABOUT_TOOLS:
        return False
    makes = parts[0] in ("new", "create", "make", "define", "build", "tool", "register")
    return makes or (parts[-1] == "tool" and parts[0] not in USES)
