"""Tools of a server that answers the protocol's requests itself, without an SDK.

A function that branches on the method of a request and answers both `tools/list` and `tools/call`
is an MCP server: the tools are what its first branch lists, the second is their dispatcher.
"""

from __future__ import annotations

from collections.abc import Iterator

from fencekit.scan.facts import Call, Case, Compare, Dict, Expr, Function, If, Lit, Stmt, Switch
from fencekit.scan.listed import Listed
from fencekit.scan.registrar import functions_of
from fencekit.scan.scopes import bodies, heads, walk_expr
from fencekit.scan.toolspec import is_model
from fencekit.scan.values import Env, Ext, Func, Input, Inst, Record, Seq, Value

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
                    self._one_answered(holder, arms)

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
