"""Tools of a server that answers the protocol's requests itself, without an SDK.

A function that branches on the method of a request and answers both `tools/list` and `tools/call`
is an MCP server: the tools are what its first branch lists, the second is their dispatcher.
"""

from __future__ import annotations

from collections.abc import Iterator

from fencekit.scan.facts import Call, Case, Compare, Dict, Expr, Function, If, Lit, Stmt, Switch
from fencekit.scan.listed import Listed
from fencekit.scan.registrar import functions_of
from fencekit.scan.scopes import bodies, heads, scope_of, walk_expr
from fencekit.scan.toolspec import Tool, is_model, name_of, plausible, read_options
from fencekit.scan.values import Const, Env, Ext, Func, Input, Inst, Record, Seq, Value

LIST, CALL = "tools/list", "tools/call"
MAX_LOOKED = 6  # how deep in an answer the list may stand


class Answered(Listed):
    """Reads tools from functions that answer the protocol's own methods."""

    def _answered(self) -> None:
        for path, fact in sorted(self.project.facts.items()):
            module = self.project.module(path) if fact.protocol else None
            for holder in functions_of(module.top) if module is not None else ():
                arms = dict(_arms(holder.body))
                if LIST in arms and CALL in arms:
                    self.ev.fresh(600_000)
                    before = len(self.tools)
                    self._one_answered(holder, arms)
                    if len(self.tools) == before:
                        self._registries()

    def _one_answered(self, holder: Function, arms: dict[str, list[Stmt]]) -> None:
        module = holder.module
        env = self.ev.open_env(holder)
        for expr in _expressions(arms[LIST]):
            if not isinstance(expr, Call | Dict):
                continue
            for tool in self._listed(self._in_answer(self.ev.eval(expr, env), 0)):
                tool.language = tool.language or (module.language if module else "")
                tool.sdk, tool.style = "", "protocol"
                if tool.handler is None:
                    tool.handler = self._dispatcher(holder, arms[CALL], tool.name)
                    tool.dispatch = True
                self.tools.append(tool)

    def _registries(self) -> None:
        """Read the tools of a registry of the repository's own: name, text, schema, handler."""
        callers = self.project.callers
        places = {
            (n, p) for n in ("register", "register_tool", "add_tool") for p in callers.get(n, ())
        }
        for name, path in sorted(places):
            holders = {
                id(h): h
                for offset in self.project.facts[path].calls[name]
                if (h := self.project.function_at(path, offset)) is not None
            }
            for holder in holders.values():
                for call in scope_of(holder).calls:
                    if name_of(call.callee) == name and len(call.args) >= 3:
                        self._one_registry(call, holder)

    def _one_registry(self, call: Call, holder: Function) -> None:
        env = self.ev.open_env(holder)
        given = [self.ev.eval(arg.value, env) for arg in call.args]
        told = [v for v in given[0] if isinstance(v, Const) and isinstance(v.value, str)]
        handlers = [v for values in given[1:] for v in values if isinstance(v, Func)]
        schemas = [v for values in given[1:] for v in values if isinstance(v, Record)]
        if len(told) != 1 or told[0].holes or not handlers or not schemas:
            return
        if not plausible(str(told[0].value)) or holder.module is None:
            return
        tool = Tool(
            str(told[0].value), env.file, call.line, name_place=(told[0].file, told[0].line)
        )
        read_options(self.ev, call, env, tool)
        tool.handler, tool.language = handlers[-1], holder.module.language
        tool.style = "registry"
        self.tools.append(tool)

    def _in_answer(self, values: list[Value], depth: int) -> list[Value]:
        """Return what stands under `tools` in an answer, however it is wrapped."""
        out: list[Value] = []
        for given in values if depth < MAX_LOOKED else ():
            value = given.record if isinstance(given, Inst) and given.record else given
            if isinstance(value, Record):
                for names, held, _ in self.ev.entries(value):
                    if any(getattr(n, "value", None) == "tools" for n in names):
                        out += [v for v in held if isinstance(v, Seq)]
                    else:
                        out += self._in_answer(held, depth + 1)
            elif isinstance(value, Ext) and value.call is not None and value.env is not None:
                for arg in value.call.args:
                    out += self._in_answer(self.ev.eval(arg.value, value.env), depth + 1)
        return out

    def _dispatcher(self, holder: Function, arm: list[Stmt], tool: str) -> Func:
        """Return the branch that answers `tools/call` as a function of its own, for one tool."""
        file = holder.module.path if holder.module else ""
        line = arm[0].line if arm else holder.line
        made = Function(holder.name, line, [], lambda _: arm, holder.module, holder.owner, holder)
        made.static, made.start, made.end = holder.static, holder.start, holder.end
        receiver = Inst(holder.owner) if holder.owner is not None and not holder.static else None
        args: dict[str, list[Value]] = {}
        for param in holder.params:
            typed = self.ev.from_type(param.type_text, self.ev.open_env(holder))
            services = [v for v in typed if not is_model(v)]
            given = Input(param.name, tool, file=file, line=param.line)
            if param.name not in ("self", "cls"):
                args[param.name] = services or [given]
        return Func(made, Env(holder, args, None, receiver), receiver, file=file, line=line)


def _arms(body: list[Stmt]) -> Iterator[tuple[str, list[Stmt]]]:
    """Yield the branches that a method of the protocol selects, with its name."""
    for stmt in body:
        if isinstance(stmt, Switch):
            for case in stmt.cases:
                yield from _named(case)
        elif isinstance(stmt, If) and isinstance(stmt.test, Compare) and not stmt.test.negated:
            for side in (stmt.test.left, stmt.test.right):
                if isinstance(side, Lit) and side.value in (LIST, CALL):
                    yield str(side.value), stmt.then
        for inner in bodies(stmt):
            yield from _arms(inner)


def _named(case: Case) -> Iterator[tuple[str, list[Stmt]]]:
    for value in case.values:
        if isinstance(value, Lit) and value.value in (LIST, CALL):
            yield str(value.value), case.body


def _expressions(body: list[Stmt]) -> Iterator[Expr]:
    """Yield what statements evaluate, outermost first."""
    for stmt in body:
        for part in (getattr(stmt, "value", None), *heads(stmt)):
            if isinstance(part, Expr):
                yield from walk_expr(part)
        for inner in bodies(stmt):
            yield from _expressions(inner)
