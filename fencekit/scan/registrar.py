"""Whose tool is it: which registrations go to an MCP SDK, and what describes a tool.

A registration counts only where its object comes from an MCP SDK, or is of this repository and the
SDK is imported somewhere; other agent frameworks do not count.
"""

from __future__ import annotations

from collections.abc import Iterator

from fencekit.scan import words
from fencekit.scan.effect import from_library
from fencekit.scan.evaluate import Evaluator
from fencekit.scan.facts import Call, Class, Expr, Function, Member
from fencekit.scan.project import Project
from fencekit.scan.scopes import scope_of
from fencekit.scan.toolspec import Tool, from_call, from_record, parameters, plausible, text_of
from fencekit.scan.values import Env, Ext, Func, Inst, Record, Unknown, Value


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
        or _is_named_after_it(low)
    )


def _is_named_after_it(package: str) -> bool:
    """Tell whether a JavaScript package is called an MCP framework: `@acme/mcp-core`."""
    if package.startswith((".", "@/", "#", "~")) or not ("-" in package or package[:1] == "@"):
        return False
    parts = set(words.split(package))
    return "mcp" in parts and not parts & words.MCP_CALLERS


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


def classes_of(top: Function) -> Iterator[Class]:
    """Yield the classes a module declares."""
    for bindings in list(scope_of(top).names.values()):
        yield from (b.item for b in bindings if isinstance(b.item, Class))


class Registrar:
    """What the styles share: the project, the tools found so far, whose SDK a registration is."""

    def __init__(self, ev: Evaluator) -> None:
        """Prepare to look through the evaluator's project."""
        self.ev = ev
        self.project = ev.project
        self.tools: list[Tool] = []
        self.cut: list[str] = []  # files whose reading was given up half way
        self.unshown: list[tuple[str, int]] = []  # registrations that show no tool
        self.sdk_present = uses_sdk(ev.project)

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
