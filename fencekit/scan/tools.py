"""Finds the tools of a repository in every style in which servers declare them.

This module asks each style for its tools, gives them the names under which they are advertised,
and each declaration a place of its own.
"""

from __future__ import annotations

from fencekit.scan.answered import Answered
from fencekit.scan.classed import Classed
from fencekit.scan.constructed import CONSTRUCT, Constructed
from fencekit.scan.decorated import Decorated, is_tool_mark
from fencekit.scan.described import Described
from fencekit.scan.facts import Call, Module
from fencekit.scan.generated import CONVERTERS, Generated
from fencekit.scan.implemented import Implemented
from fencekit.scan.listed import LISTERS
from fencekit.scan.registered import REGISTER, Registered
from fencekit.scan.registrar import classes_of, functions_of
from fencekit.scan.scopes import scope_of
from fencekit.scan.toolspec import Tool, name_of
from fencekit.scan.typed import Typed
from fencekit.scan.values import Env, Ext, Inst

SAME_CALL = 3  # lines within which two finds of one name are one declaration


class Finder(
    Decorated, Registered, Described, Classed, Constructed, Generated, Answered, Typed, Implemented
):
    """Collects the tools of one project."""

    def find(self) -> list[Tool]:
        """Return all tools, in order of file and line."""
        if self.sdk_present:
            self._declared()
        self._answered()
        self._typed()
        if self.sdk_present or any(f.protocol for f in self.project.facts.values()):
            self._implemented()
        self._look_up()
        return self._unique()

    def _declared(self) -> None:
        """Collect the tools that are declared to an SDK."""
        for path, fact in sorted(self.project.facts.items()):
            calls = fact.calls
            marked = any(is_tool_mark(mark) for mark in fact.marks)
            lists = (
                "setRequestHandler" in calls
                or bool(LISTERS.intersection(fact.marks))
                or bool(LISTERS.intersection(fact.functions))
                or "Server" in calls  # `Server(…, on_list_tools=…)`
            )
            registers = REGISTER.intersection(calls)
            constructs = CONSTRUCT.intersection(calls) or any("Tool" in c for c in calls)
            converts = CONVERTERS.intersection(calls)
            if not (marked or lists or registers or constructs or converts):
                continue
            module = self.project.module(path)
            if module is None:
                continue
            self.ev.fresh(600_000)
            try:
                self._declared_in(module, marked, lists, registers, converts)
            except RecursionError:  # the rest of the repository is read all the same
                self.cut.append(path)
        for step in (self._described, self._classed, self._constructed, self._built, self._mount):
            try:
                step()
            except RecursionError:
                self.cut.append(".")

    def _declared_in(
        self,
        module: Module,
        marked: bool,
        lists: bool,
        registers: frozenset[str],
        converts: frozenset[str],
    ) -> None:
        if marked:
            for function in functions_of(module.top):
                self._marked(function, module)
            for cls in classes_of(module.top):
                self._marked_class(cls, module)
        if registers:
            self._calls(module, registers)
        if lists:
            self._lists(module)
        if converts:
            self._converted(module, converts)

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
        self.tools = [t for t in self.tools if t.file and not _is_wrapper(t)]
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
        kept: list[Tool] = []
        last: dict[tuple[str, str], Tool] = {}
        for tool in sorted(out.values(), key=lambda t: (t.file, t.line, t.name)):
            declared = (tool.declared_name or tool.name, tool.file)
            known = last.get(declared)
            if known is not None and tool.line - known.line <= SAME_CALL:
                known.handler = known.handler or tool.handler  # a wrapper's call and what it holds
                if not tool.declared_name or known.declared_name:
                    continue
                kept.remove(known)  # the one that bears its server's prefix is advertised
            last[declared] = tool
            kept.append(tool)
        return kept


def _is_wrapper(tool: Tool) -> bool:
    """Tell whether a name is that of a decorator's inner function, which bears another's."""
    function = tool.handler.function if tool.handler is not None else None
    if function is None or tool.name != function.name:
        return False
    return any(name_of(m.callee if isinstance(m, Call) else m) == "wraps" for m in function.marks)
