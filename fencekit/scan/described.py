"""Tools described in place, by an object that no registration call leads to.

However the description travels to the server (a table, an own wrapper, an injected list that is
filtered at start), the object says what the tool is: a literal of the SDK's own type or of a like
one of this repository (`mcp.Tool{Name: …}`), or one with the protocol's own keys.
"""

from __future__ import annotations

from fencekit.scan.beside import handler_beside
from fencekit.scan.facts import Dict, Function, Lit
from fencekit.scan.registrar import Registrar, from_sdk, functions_of
from fencekit.scan.scopes import scope_of
from fencekit.scan.toolspec import HANDLER_KEYS, Tool, from_record
from fencekit.scan.values import ClassRef, Env, Ext, Inst, Record

# A type of this repository that the server turns into the SDK's.
OWN_TYPES = frozenset({"Tool", "ToolDefinition", "ToolDef", "ToolSpec", "ToolInfo", "MCPTool"})
# The protocol's key; other names for it count where the object also says who runs it.
SCHEMA = "inputSchema"
OTHER_SCHEMAS = frozenset({
    "parameters", "schema", "paramsSchema", "argsSchema", "inputShape", "input", "paramsShape",
})  # fmt: skip


class Described(Registrar):
    """Reads tools from descriptions."""

    def _described(self) -> None:
        names = {t.name for t in self.tools}
        places = {(t.name, t.file) for t in self.tools}
        for path, fact in sorted(self.project.facts.items()):
            if not (fact.schema or any(from_sdk(name) for name in fact.imports)):
                continue
            module = self.project.module(path)
            for holder in [module.top, *functions_of(module.top)] if module is not None else ():
                for literal in scope_of(holder).described:
                    # Where tools were found by what is done with them, an object that nothing
                    # leads to is one that is not advertised; a literal of a type still counts.
                    if literal.type_name is None and names:
                        continue
                    tool = self._one_described(literal, holder)
                    if tool is not None and (tool.name, tool.file) not in places:
                        tool.language = fact.language
                        self.tools.append(tool)

    def _one_described(self, literal: Dict, holder: Function) -> Tool | None:
        env = self.ev.open_env(holder)
        self.ev.fresh(100_000)
        if not (self._is_tool(literal, env) if literal.type_name else _has_keys(literal)):
            return None
        for value in self.ev.eval(literal, env):
            record = value.record if isinstance(value, Inst) else value
            tool = from_record(self.ev, record) if isinstance(record, Record) else None
            if tool is not None:
                tool.handler = tool.handler or handler_beside(self.ev, literal, holder, env)
                tool.sdk, tool.style = self._sdk_near(env), "description"
                return tool
        return None

    def _is_tool(self, literal: Dict, env: Env) -> bool:
        assert literal.type_name is not None
        for value in self.ev.eval(literal.type_name, env):
            if isinstance(value, Ext) and from_sdk(value.root) and value.last == "Tool":
                return True
            if isinstance(value, ClassRef) and value.cls.name in OWN_TYPES:
                return any("schema" in name.lower() for name in value.cls.types)
        return False


def _has_keys(literal: Dict) -> bool:
    keys = {e.key.value for e in literal.entries if isinstance(e.key, Lit)}
    return SCHEMA in keys or bool(keys & OTHER_SCHEMAS and keys & set(HANDLER_KEYS))
