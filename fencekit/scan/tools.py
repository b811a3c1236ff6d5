"""Finds the tools of a repository in every style in which servers declare them.

Decorators and attributes on functions and methods; registration calls, alone, in loops and
through wrappers; lists returned to the protocol's list request, with their dispatchers; tools
generated from data. A registration counts only where its object comes from an MCP SDK, or is of
this repository and the SDK is imported somewhere; other agent frameworks do not count.

Over 400 lines: one finder whose styles share its state.
"""

from __future__ import annotations

from collections.abc import Iterator

from fencekit.scan import natives, words
from fencekit.scan.effects import from_library
from fencekit.scan.evaluate import Evaluator
from fencekit.scan.facts import Call, Expr, Function, Lambda, Member, Module, Name
from fencekit.scan.project import Project
from fencekit.scan.scopes import scope_of
from fencekit.scan.toolspec import (
    Tool,
    from_call,
    from_record,
    function_parameters,
    hints,
    name_of,
    parameters,
    plausible,
    text_of,
)
from fencekit.scan.values import Const, Env, Ext, Func, Input, Inst, Record, Seq, Unknown, Value

MARKS = frozenset({"tool", "Tool", "McpTool", "mcp_tool", "MCPTool"})
REGISTER = frozenset({
    "tool", "registerTool", "addTool", "add_tool", "AddTool", "AddTools", "register_tool",
    "RegisterTool",
    "registerToolTask", "addTools", "add_tools", "registerAppTool", "defineTool", "server_tool",
})  # fmt: skip
CONSTRUCT = frozenset(
    {"NewTool", "NewToolWithRawSchema", "Tool", "new_tool", "create_tool", "NewServerTool"}
)
LISTERS = frozenset({"list_tools", "ListToolsRequestSchema", "on_list_tools", "tools/list"})
CALLERS = frozenset({"call_tool", "CallToolRequestSchema", "on_call_tool", "tools/call"})


def uses_sdk(project: Project) -> bool:
    """Tell whether anything in the repository imports an MCP SDK."""
    return any(from_sdk(name) for fact in project.facts.values() for name in fact.imports)


def from_sdk(root: str) -> bool:
    """Tell whether a module is an MCP SDK (or a part of one)."""
    low = root.lower()
    return (
        any(
            low == s.lower() or low.startswith((s.lower() + "/", s.lower() + ".", s.lower() + "::"))
            for s in words.SDK_ROOTS
        )
        or "mcp-go" in low
        or "modelcontextprotocol" in low
        or low.split("/")[0] in ("@rekog",)
    )


def _makes_an_answer(value: Ext) -> bool:
    """Tell whether a constructor makes an answer: `NewToolResultText`, `ToolError`."""
    named = value.path.rpartition(".")[2]
    return any(word in named for word in ("Result", "Error", "Response"))


class Finder:
    """Collects the tools of one project."""

    def __init__(self, ev: Evaluator) -> None:
        """Prepare to look through the evaluator's project."""
        self.ev = ev
        self.project = ev.project
        self.tools: list[Tool] = []
        self.mounts: list[tuple[Value, str]] = []
        self.sdk_present = uses_sdk(ev.project)
        self.unknowns: list[tuple[str, str, int]] = []

    def find(self) -> list[Tool]:
        """Return all tools, in order of file and line."""
        if not self.sdk_present:
            return []
        for path, fact in sorted(self.project.facts.items()):
            calls = fact.calls
            marked = bool(MARKS.intersection(fact.marks))
            lists = (
                "setRequestHandler" in calls
                or bool(LISTERS.intersection(fact.marks))
                or bool(LISTERS.intersection(fact.functions))
                or "Server" in calls  # `Server(…, on_list_tools=…)`
            )
            registers = REGISTER.intersection(calls)
            constructs = CONSTRUCT.intersection(calls) or any("Tool" in c for c in calls)
            if not (marked or lists or registers or constructs):
                continue
            module = self.project.module(path)
            if module is None:
                continue
            self.ev.fresh(600_000)
            if marked:
                for function in functions_of(module.top):
                    self._marked(function, module)
            if registers:
                self._calls(module, registers)
            if lists:
                self._lists(module)
        self._constructed()
        self._mount()
        return self._unique()

    # Decorators.

    def _marked(self, function: Function, module: Module) -> None:
        env = self.ev.open_env(function.parent) if function.parent else self.ev.top_env(module)
        for mark in function.marks:
            if name_of(mark) not in MARKS:
                continue
            callee = mark.callee if isinstance(mark, Call) else mark
            sdk = self._registrar(callee, env)
            if sdk is None:
                continue
            tool = self._from_mark(mark, function, env)
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
                elif arg.name == "description":
                    told = text_of(self.ev, values)
                    tool.description = str(told.value) if told is not None else tool.description
                elif arg.name == "annotations":
                    tool.annotations.update(hints(self.ev, values))
        return tool

    def _spec(self, record: Record, tool: Tool) -> None:
        told = text_of(self.ev, self.ev.entry(record, "description"))
        tool.description = str(told.value) if told is not None else tool.description
        tool.annotations.update(hints(self.ev, self.ev.entry(record, "annotations")))
        for key in ("parameters", "inputSchema", "schema"):
            tool.parameters = tool.parameters or parameters(self.ev, self.ev.entry(record, key))

    def _registrar(self, callee: Expr, env: Env) -> str | None:
        """Return the SDK a registration goes to, or None where it goes elsewhere."""
        inner = callee
        while isinstance(inner, Call):
            inner = inner.callee
        target = inner.obj if isinstance(inner, Member) else inner
        values = self.ev.eval(target, env)
        for value in values:
            if isinstance(value, Ext) and value.root:
                if from_sdk(value.root):
                    return value.root
                if from_library(value.root, words.AGENT_FRAMEWORKS):
                    return None
        outside = [v for v in values if isinstance(v, Ext) and (v.root or "()" in v.steps)]
        if outside and len(outside) == len(values):
            root = outside[0].root
            known = (words.HTTP_LIBRARIES, words.QUIET_LIBRARIES)
            return None if any(from_library(root, k) for k in known) else root
        names = [v for v in values if isinstance(v, Ext) and not v.root]
        if names and len(names) == len(values) and env.function.module is not None:
            return self._sdk_near(env) if env.function.module.language == "rust" else None
        for value in values:
            if isinstance(value, Inst):
                for base in self._outside_bases(value):
                    if from_sdk(base):
                        return base
        return self._sdk_near(env)

    def _outside_bases(self, inst: Inst) -> Iterator[str]:
        for cls in self.ev.mro(inst.cls):
            if cls.module is None:
                continue
            env = self.ev.top_env(cls.module)
            for base in cls.bases:
                yield from (v.root for v in self.ev.eval(base, env) if isinstance(v, Ext))

    def _sdk_near(self, env: Env) -> str:
        module = env.function.module
        fact = self.project.facts.get(module.path) if module else None
        for name in fact.imports if fact else ():
            if from_sdk(name):
                return name
        return "mcp"

    # Registration calls.

    def _calls(self, module: Module, names: frozenset[str]) -> None:
        done: set[int] = set()
        fact = self.project.facts[module.path]
        for name in sorted(names):
            for offset in fact.calls[name]:
                holder = self.project.function_at(module.path, offset)
                if holder is None or id(holder) in done:
                    continue
                done.add(id(holder))
                for call in scope_of(holder).calls:
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
        for context in self._contexts(call, env):
            for tool in self._interpret_all(call, context):
                self._add(tool, module, sdk, call)

    def _contexts(self, call: Call, env: Env) -> list[Env]:
        contexts = [env]
        for arg in call.args:
            if isinstance(arg.value, Lambda):
                continue
            contexts = [one for c in contexts for one in natives.expand(self.ev, arg.value, c)]
            if len(contexts) > natives.MAX_CONTEXTS:
                break
        return contexts

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

    def spec_of(self, value: Value) -> Tool | None:
        """Read a tool from any value that may describe one."""
        if isinstance(value, Inst) and value.record is not None:
            value = value.record
        if isinstance(value, Record):
            made = from_record(self.ev, value)
            if made is not None:
                return made
            inner: Tool | None = None
            for key in ("Tool", "tool", "definition", "schema", "config", "spec"):
                for held in self.ev.entry(value, key):
                    inner = inner or (self.spec_of(held) if not isinstance(held, Unknown) else None)
            if inner is not None and inner.handler is None:
                for key in ("Handler", "handler", "execute", "run", "callback"):
                    for held in self.ev.entry(value, key):
                        if isinstance(held, Func):
                            inner.handler = held
            return inner
        if isinstance(value, Ext):
            return from_call(self.ev, value) if value.call is not None else None
        if isinstance(value, Inst):
            return self._from_instance(value)
        return None

    def _from_instance(self, value: Inst) -> Tool | None:
        """Read a tool from an instance of a tool class: its name field and its run method."""
        env = self.ev.top_env(value.cls.module) if value.cls.module else None
        if env is None:
            return None
        for key in ("name", "Name", "toolName", "tool_name"):
            told = text_of(self.ev, self.ev.inst_member(value, key, env, value.line))
            if told is not None and plausible(str(told.value)):
                cls = value.cls
                file = cls.module.path if cls.module else value.file
                tool = Tool(str(told.value), file, cls.line, name_place=(told.file, told.line))
                desc = text_of(self.ev, self.ev.inst_member(value, "description", env, value.line))
                tool.description = str(desc.value) if desc is not None else ""
                for schema in ("schema", "inputSchema", "parameters", "input_schema"):
                    tool.parameters = tool.parameters or parameters(
                        self.ev, self.ev.inst_member(value, schema, env, value.line)
                    )
                for run in (
                    "execute",
                    "run",
                    "handle",
                    "handler",
                    "run_tool",
                    "call",
                    "invoke",
                    "__call__",
                ):
                    method = self.ev.method_of(cls, run)
                    if method is not None and tool.handler is None:
                        tool.handler = Func(method, self.ev._outer(method), value)
                return tool
        return None

    def _interpret(self, call: Call, env: Env) -> Tool | None:
        """Read one registration call in one context."""
        tool: Tool | None = None
        handler: Func | None = None
        for i, arg in enumerate(call.args):
            for value in self.ev.eval(arg.value, env):
                if arg.name == "name" or (
                    arg.name is None
                    and i == 0
                    and isinstance(value, Const)
                    and isinstance(value.value, str)
                ):
                    if isinstance(value, Const) and not value.holes and plausible(str(value.value)):
                        made = Tool(
                            str(value.value),
                            env.file,
                            call.line,
                            name_place=(value.file, value.line),
                        )
                        made.handler = tool.handler if tool else None
                        tool = made
                elif (
                    tool is None
                    and isinstance(value, Record | Ext | Inst)
                    and not (isinstance(value, Ext) and value.call is None)
                ):
                    tool = self.spec_of(value)
                elif isinstance(value, Func):
                    handler = value
        if (
            tool is None
            and handler is not None
            and call.args
            and (handler in self.ev.eval(call.args[0].value, env))
        ):
            function = handler.function
            file = function.module.path if function.module else env.file
            tool = Tool(function.name, file, function.line, name_place=(file, function.line))
        if tool is None or not tool.name:
            return None
        tool.handler = handler or tool.handler
        self._details(call, env, tool)
        return tool

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

    # Lists with a dispatcher.

    def _lists(self, module: Module) -> None:
        lister, caller = self._handlers(module)
        for list_func in lister:
            env = list_func.closure or self.ev.top_env(module)
            results = self.ev.result(list_func, self.ev.enter(list_func, [], {}, env))
            for tool in self._listed(results):
                tool.language = tool.language or module.language
                tool.sdk, tool.style = self._sdk_near(self.ev.top_env(module)), "list"
                if tool.handler is None and caller:
                    tool.handler, tool.dispatch = caller[0], True
                self.tools.append(tool)

    def _handlers(self, module: Module) -> tuple[list[Func], list[Func]]:
        lists: list[Func] = []
        calls: list[Func] = []
        for function in functions_of(module.top):
            env = self.ev.open_env(function.parent) if function.parent else self.ev.top_env(module)
            receiver = self.ev.open_env(function).self_value
            told = {name_of(m) for m in function.marks}
            if told & LISTERS or (function.name == "list_tools" and module.language == "rust"):
                lists.append(Func(function, env, receiver))
            if told & CALLERS or (function.name == "call_tool" and module.language == "rust"):
                calls.append(Func(function, env, receiver))
        for holder in [module.top, *functions_of(module.top)]:
            env = self.ev.open_env(holder)
            for call in scope_of(holder).calls:
                if (
                    name_of(call.callee) in ("setRequestHandler", "set_request_handler")
                    and len(call.args) >= 2
                ):
                    what = name_of(call.args[0].value) or str(
                        getattr(call.args[0].value, "value", "")
                    )
                    found = [
                        v for v in self.ev.eval(call.args[1].value, env) if isinstance(v, Func)
                    ]
                    (lists if what in LISTERS else calls if what in CALLERS else []).extend(found)
                for arg in call.args:
                    if arg.name in ("on_list_tools", "on_call_tool"):
                        found = [v for v in self.ev.eval(arg.value, env) if isinstance(v, Func)]
                        (lists if arg.name == "on_list_tools" else calls).extend(found)
        return lists, calls

    def _listed(self, results: list[Value], depth: int = 0) -> Iterator[Tool]:
        for value in results:
            if isinstance(value, Seq):
                for item in value.items:
                    made = self.spec_of(item)
                    if made is not None:
                        yield made
                    elif isinstance(item, Seq) and depth < 3:
                        yield from self._listed([item], depth + 1)
            elif isinstance(value, Record) and depth < 3:
                yield from self._listed(self.ev.entry(value, "tools"), depth + 1)
            elif isinstance(value, Inst) and value.record is not None and depth < 3:
                yield from self._listed(self.ev.entry(value.record, "tools"), depth + 1)
            elif (
                isinstance(value, Ext)
                and value.call is not None
                and value.env is not None
                and depth < 3
            ):
                for arg in value.call.args:
                    yield from self._listed(self.ev.eval(arg.value, value.env), depth + 1)

    # Constructors that no registration led to.

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
        from fencekit.scan.toolspec import read_options

        read_options(self.ev, call, env, tool)
        tool.language, tool.sdk, tool.style = module.language, self._sdk_near(env), "constructor"
        self.tools.append(tool)

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

    # Names as advertised.

    def _mount(self) -> None:
        """Put the prefix of a mounted server before the names of its tools."""
        prefixes: dict[tuple[str, int], str] = {}
        callers = self.project.callers
        for path in [*callers.get("mount", ()), *callers.get("import_server", ())]:
            for name in ("mount", "import_server"):
                for offset in self.project.facts[path].calls.get(name, ()):
                    holder = self.project.function_at(path, offset)
                    for call in scope_of(holder).calls if holder is not None else ():
                        if name_of(call.callee) == name and holder is not None:
                            self._one_mount(call, self.ev.open_env(holder), prefixes)
        for tool in self.tools:
            place = tool.server.rsplit(":", 1)
            key = (place[0], int(place[1])) if len(place) == 2 and place[1].isdigit() else ("", 0)
            if prefixes.get(key):
                tool.declared_name = tool.name
                tool.name = f"{prefixes[key]}_{tool.name}"

    def _one_mount(self, call: Call, env: Env, prefixes: dict[tuple[str, int], str]) -> None:
        prefix = ""
        for arg in call.args:
            if arg.name in (None, "prefix", "namespace"):
                told = self.ev.texts(arg.value, env)
                prefix = str(told[0].value) if told else prefix
        for arg in call.args:
            for value in self.ev.eval(arg.value, env):
                if isinstance(value, Ext | Inst) and prefix:
                    prefixes[(value.file, value.line)] = prefix.strip("/")

    def _unique(self) -> list[Tool]:
        """Give each declaration its own place, and drop what was found twice."""
        shared: dict[tuple[str, int], set[str]] = {}
        for tool in self.tools:
            shared.setdefault((tool.file, tool.line), set()).add(tool.name)
        out: dict[tuple[str, str, int], Tool] = {}
        for tool in self.tools:
            if len(shared[(tool.file, tool.line)]) > 1 and tool.name_place[0]:
                tool.file, tool.line = tool.name_place
            key = (tool.name, tool.file, tool.line)
            known = out.get(key)
            if known is None or (known.handler is None and tool.handler is not None):
                out[key] = tool
        return sorted(out.values(), key=lambda t: (t.file, t.line, t.name))


def _constructor_name(name: str) -> bool:
    parts = words.split(name)
    return (
        parts[0] in ("new", "create", "make", "define", "build", "tool", "register")
        and "tool" in parts
    )


def functions_of(top: Function) -> Iterator[Function]:
    """Yield every function below another, outermost first."""
    stack = list(scope_of(top).nested)
    seen: set[int] = set()
    while stack:
        here = stack.pop(0)
        if id(here) in seen:
            continue
        seen.add(id(here))
        yield here
        stack.extend(scope_of(here).nested)


def _server_of(ev: Evaluator, callee: Expr, env: Env) -> str:
    """Return the place where the server a decorator belongs to is made, as `file:line`."""
    if isinstance(callee, Member):
        for value in ev.eval(callee.obj, env):
            if isinstance(value, Ext | Inst) and value.file:
                return f"{value.file}:{value.line}"
    return ""


_ = (Input,)
