"""Tools that are types of one trait: each says what it is in one method and runs in another.

Rust servers keep them behind `Box<dyn Tool>` in a registry that is filled at start, so that neither
a list nor a registration names them; what implements the trait does.
"""

from __future__ import annotations

from fencekit.scan.facts import Class
from fencekit.scan.registrar import Registrar
from fencekit.scan.toolspec import Tool, plausible
from fencekit.scan.values import Const, Func, Inst, Value

RUNS = ("execute", "call", "run", "invoke", "handle", "call_tool", "run_tool", "execute_tool")
TELLS = ("definition", "info", "schema", "spec", "tool", "describe", "metadata", "to_tool")


class Implemented(Registrar):
    """Reads tools from the types that implement a trait of tools."""

    def _implemented(self) -> None:
        before = len(self.tools)
        for name in sorted(n for n in self.project.classes if "Tool" in n):
            for cls in self.project.class_named(name):
                rust = cls.module is not None and cls.module.language == "rust"
                runs = next((r for r in RUNS if r in cls.methods), None)
                if not rust or not cls.abstract or runs is None:
                    continue
                for sub in self.project.subclasses(cls.name):
                    self._one_type(sub, runs)
        named = {t.name for t in self.tools[before:]}
        # A loop over the registry shows one of them, at the loop.
        self.tools[:before] = [
            t
            for t in self.tools[:before]
            if t.style not in ("list", "protocol") or t.name not in named or t.language != "rust"
        ]

    def _one_type(self, cls: Class, runs: str) -> None:
        self.ev.fresh(100_000)
        inst = Inst(cls, exact=True)
        tool = self._told(inst)
        run = self.ev.method_of(cls, runs)
        if tool is None or run is None or cls.module is None:
            return
        tool.handler = Func(run, self.ev._outer(run), inst, file=cls.module.path, line=run.line)
        tool.language, tool.style = "rust", "trait"
        tool.sdk = self._sdk_near(self.ev.top_env(cls.module)) if self.sdk_present else ""
        self.tools.append(tool)

    def _told(self, inst: Inst) -> Tool | None:
        """Return what a type says of itself: in one description, or name by name."""
        for method in TELLS:
            for value in self._answer(inst, method):
                made = self.spec_of(value)
                if made is not None:
                    return made
        for value in self._answer(inst, "name"):
            if isinstance(value, Const) and isinstance(value.value, str) and plausible(value.value):
                place = (value.file, value.line)
                made = Tool(value.value, *place, name_place=place)
                for text in self._answer(inst, "description"):
                    made.description = str(text.value) if isinstance(text, Const) else ""
                return made
        return None

    def _answer(self, inst: Inst, name: str) -> list[Value]:
        method = self.ev.method_of(inst.cls, name)
        if method is None:
            return []
        func = Func(method, self.ev._outer(method), inst)
        return self.ev.result(func, self.ev.enter(func, [], {}, None))
