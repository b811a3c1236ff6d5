"""Tools described in place by a literal of the SDK's own type, `mcp.Tool{Name: …}`.

However the description travels to the server (a table, an own wrapper, a list of a package that is
filtered at start), the literal says what the tool is.
"""

from __future__ import annotations

from fencekit.scan.beside import handler_beside
from fencekit.scan.facts import Dict, Function, Module
from fencekit.scan.registrar import Registrar, from_sdk, functions_of
from fencekit.scan.scopes import scope_of
from fencekit.scan.toolspec import from_record
from fencekit.scan.values import Env, Ext, Record


class Described(Registrar):
    """Reads tools from literals of the SDK's type."""

    def _described(self) -> None:
        known = {(t.name, t.file) for t in self.tools}
        for path, fact in sorted(self.project.facts.items()):
            if not any(from_sdk(name) for name in fact.imports):
                continue
            module = self.project.module(path)
            for holder in [module.top, *functions_of(module.top)] if module is not None else ():
                for literal in scope_of(holder).typed:
                    self._one_described(literal, holder, module, known)

    def _one_described(
        self, literal: Dict, holder: Function, module: Module | None, known: set[tuple[str, str]]
    ) -> None:
        env = self.ev.open_env(holder)
        self.ev.fresh(100_000)
        if module is None or not self._is_tool(literal, env):
            return
        for value in self.ev.eval(literal, env):
            tool = from_record(self.ev, value) if isinstance(value, Record) else None
            if tool is None or (tool.name, tool.file) in known:
                continue
            tool.handler = tool.handler or handler_beside(self.ev, literal, holder, env)
            tool.language, tool.sdk = module.language, self._sdk_near(env)
            tool.style = "description"
            self.tools.append(tool)

    def _is_tool(self, literal: Dict, env: Env) -> bool:
        if literal.type_name is None:
            return False
        return any(
            isinstance(value, Ext) and from_sdk(value.root) and value.last == "Tool"
            for value in self.ev.eval(literal.type_name, env)
        )
