"""Tools in a list that answers the protocol's list request, with the dispatcher that runs them."""

from __future__ import annotations

from collections.abc import Iterator

from fencekit.scan.facts import Module
from fencekit.scan.registrar import Registrar, functions_of
from fencekit.scan.scopes import scope_of
from fencekit.scan.toolspec import Tool, name_of
from fencekit.scan.values import Ext, Func, Inst, Record, Seq, Value

LISTERS = frozenset({"list_tools", "ListToolsRequestSchema", "on_list_tools", "tools/list"})
CALLERS = frozenset({"call_tool", "CallToolRequestSchema", "on_call_tool", "tools/call"})


class Listed(Registrar):
    """Reads tools from lists and finds their dispatchers."""

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
