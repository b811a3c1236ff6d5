"""Tools that are classes of an SDK's own tool type: `class SendNote extends MCPTool`.

A framework that loads its tools from a folder needs no registration, so the type is the sign.
"""

from __future__ import annotations

from fencekit.scan import words
from fencekit.scan.facts import Class, Module
from fencekit.scan.registrar import Registrar, from_sdk
from fencekit.scan.scopes import scope_of
from fencekit.scan.values import Ext, Inst


class Classed(Registrar):
    """Reads tools from classes whose base is an SDK's tool type."""

    def _classed(self) -> None:
        known = {(t.name, t.file) for t in self.tools}
        for path, fact in sorted(self.project.facts.items()):
            if not fact.classes or not any(from_sdk(name) for name in fact.imports):
                continue
            module = self.project.module(path)
            for bindings in scope_of(module.top).names.values() if module is not None else ():
                for binding in bindings:
                    if isinstance(binding.item, Class) and not binding.item.abstract:
                        self._one_classed(binding.item, module, known)

    def _one_classed(self, cls: Class, module: Module | None, known: set[tuple[str, str]]) -> None:
        if module is None or not cls.bases:
            return
        self.ev.fresh(100_000)
        env = self.ev.top_env(module)
        bases = [v for b in cls.bases for v in self.ev.eval(b, env) if isinstance(v, Ext)]
        sdk = next((b for b in bases if from_sdk(b.root) and _is_tool_type(b)), None)
        if sdk is None:
            return
        tool = self._from_instance(Inst(cls, exact=True, file=module.path, line=cls.line))
        if tool is None or tool.handler is None or (tool.name, tool.file) in known:
            return
        tool.language, tool.sdk, tool.style = module.language, sdk.root, "class"
        self.tools.append(tool)


def _is_tool_type(base: Ext) -> bool:
    return words.split(base.last)[-1:] == ("tool",)
