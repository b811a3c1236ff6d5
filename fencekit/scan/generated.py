"""Tools made from an OpenAPI document that the repository holds: one for each operation.

Two ways lead there. An SDK's own converter (`FastMCP.from_openapi`) names the tools by its rule;
the document, the name map and the filters are read from the call. A converter written in the
repository is evaluated like any other code, with the document as a value: a tool whose name is
made of the document's texts is looked up in it afterwards.

A document that no code turns into tools makes none.
"""

from __future__ import annotations

import re
from collections import Counter

from fencekit.scan import bounded
from fencekit.scan.documents import is_data
from fencekit.scan.facts import Call, Expr, Function, Module
from fencekit.scan.flow import outcomes
from fencekit.scan.openapi import Operation, is_openapi, operations
from fencekit.scan.registrar import Registrar
from fencekit.scan.scopes import scope_of
from fencekit.scan.toolspec import Parameter, Tool, name_of
from fencekit.scan.values import Const, Env, Ext, Func, Record, Seq, Value

CONVERTERS = frozenset({"from_openapi", "OpenAPIProvider", "FastMCPOpenAPI"})
LONGEST = 56  # characters of a name, by FastMCP's rule


class Generated(Registrar):
    """Reads tools from OpenAPI documents."""

    def _converted(self, module: Module, names: frozenset[str]) -> None:
        offsets = [o for n in sorted(names) for o in self.project.facts[module.path].calls[n]]
        holders = [self.project.function_at(module.path, offset) for offset in offsets]
        for holder in {id(h): h for h in holders if h is not None}.values():
            for call in scope_of(holder).calls:
                if name_of(call.callee) in names:
                    self._one_converted(call, holder, module)

    def _one_converted(self, call: Call, holder: Function, module: Module) -> None:
        env = self.ev.open_env(holder)
        if self._registrar(call.callee, env) is None:
            return
        given = {a.name: a.value for a in call.args if a.name}
        positional = [a.value for a in call.args if a.name is None]
        spec = given.get("openapi_spec") or (positional[0] if positional else None)
        for value in self.ev.eval(spec, env) if spec is not None else ():
            if isinstance(value, Record) and is_data(value.file):
                self._from_document(value.file, given, call, env, module)

    def _from_document(
        self, path: str, given: dict[str, Expr], call: Call, env: Env, module: Module
    ) -> None:
        read = self.project.documents.read(path)
        if read is None or not is_openapi(read[0]):
            return
        used: Counter[str] = Counter()
        for operation in operations(read[0]):
            if not self._becomes_tool(operation, given, env):
                continue
            name = self._named(operation, path, given.get("mcp_names"), env)
            used[str(name.value)] += 1
            if used[str(name.value)] > 1:
                name.value = f"{name.value}_{used[str(name.value)]}"
            tool = Tool(str(name.value), name.file, name.line, name_place=(name.file, name.line))
            tool.language, tool.style = module.language, "openapi"
            tool.sdk = self._registrar(call.callee, env) or ""
            tool.server = f"{env.file}:{call.line}"
            tool.executor = (call, env)
            describe(tool, operation, path)
            self.tools.append(tool)

    # FastMCP's rules, from its documentation: names, route maps, the function over routes.

    def _named(self, operation: Operation, path: str, names: Expr | None, env: Env) -> Const:
        """Return the name of an operation's tool, at the place where it finally stands."""
        base = Const(operation.id.split("__")[0], file=path, line=operation.name_line)
        if not operation.id:
            base.value = operation.summary or f"{operation.verb}_{operation.path}"
        for value in self.ev.eval(names, env) if names is not None and operation.id else ():
            if isinstance(value, Record):
                told = [v for v in self.ev.entry(value, operation.id) if isinstance(v, Const)]
                base = told[0] if told else base
        slug = re.sub(r"[\s\-.]+", "_", str(base.value))
        slug = re.sub(r"_+", "_", re.sub(r"[^a-zA-Z0-9_]", "", slug)).strip("_")
        return Const(slug[:LONGEST], file=base.file, line=base.line)

    def _becomes_tool(self, operation: Operation, given: dict[str, Expr], env: Env) -> bool:
        kind = self._mapped(operation, given.get("route_maps"), env)
        chosen = given.get("route_map_fn")
        for func in self.ev.eval(chosen, env) if chosen is not None else ():
            if not isinstance(func, Func):
                continue
            route = _route(operation, env)
            inner = self.ev.enter(func, [[route], [Const(kind)]], {}, env)
            told = {_kind(v) for v in outcomes(self.ev, func.function.body, inner)[0]}
            told.discard("")
            kind = next(iter(told)) if len(told) == 1 else kind
        return kind == "TOOL"

    def _mapped(self, operation: Operation, maps: Expr | None, env: Env) -> str:
        """Return what the first route map that fits makes of an operation."""
        for listed in self.ev.eval(maps, env) if maps is not None else ():
            for item in listed.items if isinstance(listed, Seq) else ():
                if not isinstance(item, Ext) or item.call is None or item.env is None:
                    continue
                told = {a.name: self.ev.eval(a.value, item.env) for a in item.call.args if a.name}
                if _fits(operation, told):
                    kinds = [_kind(v) for v in told.get("mcp_type", told.get("route_type", []))]
                    return kinds[0] if kinds else "TOOL"
        return "TOOL"

    # Converters written in the repository.

    def _look_up(self) -> None:
        """Give each tool whose name is made of a document's texts its operation."""
        known: dict[str, list[Operation]] = {}
        for tool in self.tools:
            path = tool.name_place[0]
            if tool.data is not None or not is_data(path):
                continue
            if path not in known:
                read = self.project.documents.read(path)
                known[path] = operations(read[0]) if read and is_openapi(read[0]) else []
            found = [o for o in known[path] if o.id and o.id in tool.told] or [
                o for o in known[path] if o.path in tool.told and o.verb.lower() in tool.told
            ]
            if len(found) == 1:
                tool.file, tool.line = path, found[0].name_line
                tool.name_place = (tool.file, tool.line)
                tool.style = "openapi"
                describe(tool, found[0], path)


def describe(tool: Tool, operation: Operation, path: str) -> None:
    """Fill in what an operation says of its tool."""
    tool.description = tool.description or operation.description or operation.summary
    tool.data, tool.data_place = (operation.verb, operation.path), (path, operation.line)
    tool.operation = operation.id
    tool.parameters = [
        Parameter(f.name, path, f.line, f.description) for f in operation.fields
    ]  # fmt: skip


def _route(operation: Operation, env: Env) -> Record:
    """Return the object FastMCP hands to a function over routes."""
    held: dict[str, list[Value]] = {
        "operation_id": [Const(operation.id or None)],
        "path": [Const(operation.path)],
        "method": [Const(operation.verb)],
        "summary": [Const(operation.summary)],
        "description": [Const(operation.description)],
        "tags": [Seq([Const(t) for t in operation.tags])],
        "deprecated": [Const(operation.deprecated)],
    }
    made: list[tuple[list[Value], list[Value], int]] = [
        ([Const(name)], values, 0) for name, values in held.items()
    ]
    return Record(None, None, made=made, file=env.file, line=operation.line)


def _kind(value: Value) -> str:
    """Return the component type a value names: TOOL, RESOURCE, RESOURCE_TEMPLATE, EXCLUDE."""
    told = value.last if isinstance(value, Ext) else str(getattr(value, "value", ""))
    kind = told.upper()
    if kind == "IGNORE":
        return "EXCLUDE"
    return kind if kind in ("TOOL", "RESOURCE", "RESOURCE_TEMPLATE", "EXCLUDE") else ""


def _fits(operation: Operation, told: dict[str, list[Value]]) -> bool:
    """Tell whether a route map is for an operation: its methods, pattern and tags."""
    methods = _texts(told.get("methods", []))
    if methods and "*" not in methods and operation.verb not in {m.upper() for m in methods}:
        return False
    pattern = told.get("pattern", [])
    texts = _texts(pattern)
    if pattern and not any(bounded.search(t, operation.path) for t in texts):
        return False
    return set(_texts(told.get("tags", []))) <= set(operation.tags)


def _texts(values: list[Value]) -> list[str]:
    out: list[str] = []
    for value in values:
        if isinstance(value, Seq):
            out += _texts(value.items)
        elif isinstance(value, Const) and isinstance(value.value, str):
            out.append(value.value)
        elif isinstance(value, Ext) and value.call is not None and value.env is not None:
            continue
    return out
