"""Tools that are objects of a declared tool type, where the registration does not show them.

A container or a plug-in loader may stand between the objects and the call that registers them.
Where some registration of the repository names no tool that the source shows, the objects that
are declared with a type called a tool (`ToolDefinition`, `McpTool`) are what it registers.
"""

from __future__ import annotations

import re

from fencekit.scan import words
from fencekit.scan.facts import Binding, Call, Dict, Module
from fencekit.scan.project import JS_LANGUAGES
from fencekit.scan.registrar import Registrar
from fencekit.scan.scopes import scope_of
from fencekit.scan.toolspec import from_record
from fencekit.scan.values import Record

TYPE_NAME = re.compile(r"[A-Za-z_][\w.]*")
TYPE_ENDS = frozenset({"tool", "definition", "spec", "def", "config"})


class Typed(Registrar):
    """Reads tools from module-level objects of a tool type."""

    def _typed(self) -> None:
        if not self.unshown:
            return
        known = {(t.name, t.file) for t in self.tools}
        for path, fact in sorted(self.project.facts.items()):
            typed = fact.tool_type and fact.language in JS_LANGUAGES
            module = self.project.module(path) if typed else None
            for bindings in scope_of(module.top).names.values() if module is not None else ():
                for binding in bindings:
                    if binding.kind == "value" and is_tool_type(binding.type_text):
                        self._one_typed(binding, module, known)

    def _one_typed(
        self, binding: Binding, module: Module | None, known: set[tuple[str, str]]
    ) -> None:
        if module is None or not isinstance(binding.value, Dict | Call):
            return
        self.ev.fresh(100_000)
        env = self.ev.top_env(module)
        for value in self.ev.eval(binding.value, env):
            tool = from_record(self.ev, value) if isinstance(value, Record) else None
            if tool is None or not tool.description or (tool.name, tool.file) in known:
                continue
            tool.language, tool.sdk, tool.style = module.language, self._sdk_near(env), "typed"
            self.tools.append(tool)


def is_tool_type(text: str) -> bool:
    """Tell whether a type is called a tool: `ToolDefinition<A, B>`, `McpTool`, `Tool`."""
    found = TYPE_NAME.match(text.strip())
    parts = words.split(found.group(0).rpartition(".")[2]) if found else ()
    return "tool" in parts and parts[-1] in TYPE_ENDS
