"""What an expression stands for: evaluates the neutral tree over abstract values.

Lazy and bounded: records and functions are evaluated when looked into, every expression once per
activation, and everything within a budget of steps. Several possible values are a list; a value
that cannot be known is `Unknown`, never a guess.
"""

from __future__ import annotations

from fencekit.scan import contexts, native_functions, natives
from fencekit.scan.activations import Activations
from fencekit.scan.alternatives import distinct, unlike
from fencekit.scan.changes import Changes
from fencekit.scan.facts import (
    Binding,
    Call,
    Cast,
    Choice,
    Compare,
    Dict,
    Each,
    Expr,
    Function,
    Index,
    Lambda,
    ListOf,
    Lit,
    Member,
    Module,
    Mutation,
    Name,
    Result,
    Template,
)
from fencekit.scan.flow import outcomes, told_names
from fencekit.scan.instances import Instances
from fencekit.scan.members import Members
from fencekit.scan.names import Names
from fencekit.scan.parts import MAX_VALUES
from fencekit.scan.project import Project
from fencekit.scan.reach import reach
from fencekit.scan.scopes import scope_of
from fencekit.scan.truths import Truths
from fencekit.scan.values import (
    MAX_ITEMS,
    ClassRef,
    Const,
    Env,
    Ext,
    Func,
    Input,
    Inst,
    Record,
    Seq,
    Super,
    Unknown,
    Value,
)

MAX_DEPTH = 14
MAX_INPUTS = 60  # parts of a text whose origins are kept
MANY = 4  # results of one call beyond which those that end alike count as one
MAX_NESTED = 250  # nested evaluations: a bound on recursion
MAX_RECURSION = 3  # activations of one function inside each other
MAX_TEXTS = 8  # texts one template may stand for
MAX_TEXT = 100_000  # characters of a text that is put together


class Evaluator(Names, Changes, Instances, Members, Activations, Truths):
    """Evaluates expressions of one project; `budget` bounds the steps of one question."""

    def __init__(self, project: Project) -> None:
        """Start with nothing remembered."""
        self.project = project
        self.steps = 0
        self.budget = 200_000
        self._open: dict[int, Env] = {}
        self._callers: dict[int, list[tuple[Call, Env]]] = {}
        self._decorations: dict[int, list[Env]] = {}
        self._module_changes: dict[int, dict[str, list[tuple[Mutation, Env]]]] = {}
        self._given_below: dict[int, dict[str, list[tuple[Binding, Function]]]] = {}
        self._param_depth = 0
        self._exporting: set[tuple[str, str]] = set()
        self._reading: set[tuple[int, str]] = set()
        self._contexts: dict[tuple[int, int], tuple[Env, list[Env]]] = {}
        self._nested = 0
        self._bare: dict[tuple[object, ...], Env] = {}  # activations without arguments
        self._active: set[tuple[int, int]] = set()  # what is being evaluated
        self._running: dict[int, int] = {}  # functions whose result is being asked for

    def open_env(self, function: Function) -> Env:
        """Return the activation of a function of which no particular call is known."""
        env = self._open.get(id(function))
        if env is None:
            closure = self.open_env(function.parent) if function.parent is not None else None
            env = Env(function, None, closure)
            if function.owner is not None and not function.static:
                env.self_value = Inst(function.owner, file=env.file, line=function.owner.line)
            self._open[id(function)] = env
        return env

    def top_env(self, module: Module) -> Env:
        """Return the activation of a module's top level."""
        return self.open_env(module.top)

    def fresh(self, budget: int = 200_000) -> None:
        """Start a new question with its own budget of steps."""
        self.steps = 0
        self._nested = 0
        self._active.clear()
        self._running.clear()
        self.budget = budget

    @property
    def spent(self) -> bool:
        """Tell whether the budget of the question is used up: what is found now may be short."""
        return self.steps > self.budget

    # Expressions.

    def eval(self, expr: Expr, env: Env) -> list[Value]:
        """Return what an expression may stand for in an activation; at least one value."""
        known = env.memo.get(id(expr))
        if known is not None:
            return known
        if env.picks or env.args:
            home = self._narrow(expr, env)
            if home is not env:
                found = self.eval(expr, home)
                if not self.spent and (id(expr), home.activation) not in self._active:
                    env.memo[id(expr)] = found
                return found
        self.steps += 1
        if self.steps > self.budget or env.depth > MAX_DEPTH or self._nested > MAX_NESTED:
            return [Unknown(file=env.file, line=expr.line)]
        key = (id(expr), env.activation)
        if key in self._active:  # a value that is made of itself, seen through a loop
            return [Unknown(file=env.file, line=expr.line)]
        env.memo[id(expr)] = [Unknown(file=env.file, line=expr.line)]
        self._active.add(key)
        self._nested += 1
        found = distinct(self._eval(expr, env))[:MAX_VALUES]
        found = found or [Unknown(file=env.file, line=expr.line)]
        self._nested -= 1
        self._active.discard(key)
        self.steps += len(found) >> 4  # long lists cost their length
        if self.spent:
            del env.memo[id(expr)]  # cut short: the next question asks again
        else:
            env.memo[id(expr)] = found
        return found

    def _narrow(self, expr: Expr, env: Env) -> Env:
        """Return the activation that holds only what an expression hangs on."""
        hangs = reach(env.function, expr)
        if hangs is None:
            return env
        base = env.base or env
        if base.args and not any(id(p) in hangs for p in env.function.params):
            key = (id(env.function), id(env.closure), id(env.self_value), env.entered_at)
            if key not in self._bare:
                bare = Env(env.function, {}, env.closure, env.self_value, {}, env.depth)
                bare.entered_at = env.entered_at
                self._bare[key] = bare
            base = self._bare[key]
        elif all(loop in hangs for loop in env.picks):
            return env
        return base.picked({k: v for k, v in env.picks.items() if k in hangs})

    def _eval(self, expr: Expr, env: Env) -> list[Value]:
        file, line = env.file, expr.line
        match expr:
            case Lit():
                told = (expr.value,) if isinstance(expr.value, str) and env.in_data else ()
                return [Const(expr.value, told=told, file=file, line=line)]
            case Name():
                return self.name(expr.id, env, line)
            case Member():
                return self._each_member(expr.obj, expr.name, env, line)
            case Index():
                return self._index(expr, env)
            case Call():
                return self._call(expr, env)
            case Template():
                return self._template(expr, env)
            case Dict():
                return self._dict(expr, env)
            case ListOf():
                return [self._list(expr, env)]
            case Choice():
                return self._choice(expr, env)
            case Compare():
                return [Const(self.truth(expr, env), file=file, line=line)]
            case Lambda():
                return [Func(expr.function, env, env.self_value, file=file, line=line)]
            case Each():
                return [self._comprehension(expr, env)]
            case Cast():
                return self.cast(expr, env)
            case Result():
                return natives.result_at(self.eval(expr.of, env), expr.at)
            case _:
                return self._mixed(expr, env)

    def one(self, expr: Expr | None, env: Env) -> Value:
        """Return the only value of an expression, or `Unknown`."""
        if expr is None:
            return Unknown()
        found = self.eval(expr, env)
        return found[0] if len(found) == 1 else Unknown(file=env.file, line=expr.line)

    def texts(self, expr: Expr | None, env: Env) -> list[Const]:
        """Return the constant texts among the values of an expression."""
        if expr is None:
            return []
        return [
            v for v in self.eval(expr, env) if isinstance(v, Const) and isinstance(v.value, str)
        ]

    def _each_member(self, obj: Expr, name: str, env: Env, line: int) -> list[Value]:
        out: list[Value] = []
        for value in self.eval(obj, env):
            out.extend(self.member(value, name, env, line))
        return out

    def _mixed(self, expr: Expr, env: Env) -> list[Value]:
        """Evaluate something without a rule: it stands for the inputs, or the outside, in it."""
        parts = [v for part in expr.parts for v in self.eval(part, env)]
        found: list[Value] = [v for v in parts if isinstance(v, Input)]
        calls = tuple(v for v in parts if isinstance(v, Ext) and v.call is not None)
        if not found and calls:  # `time.time() * 1000` is still the clock
            return [Const("{}", True, calls[:MAX_INPUTS], file=env.file, line=expr.line)]
        return found or [Unknown(file=env.file, line=expr.line)]

    def _index(self, expr: Index, env: Env) -> list[Value]:
        keys = self.eval(expr.key, env)
        out: list[Value] = []
        for value in self.eval(expr.obj, env):
            for key in keys:
                if isinstance(key, Const) and not key.holes:
                    out.extend(self.item(value, key, env, expr.line))
                else:
                    out.extend(natives.elements(self, [value], values_of_records=True))
        return out

    def item(self, value: Value, key: Const, env: Env, line: int) -> list[Value]:
        """Return `value[key]` for a known key."""
        if isinstance(value, Seq):
            if isinstance(key.value, int) and not isinstance(key.value, bool):
                inside = -len(value.items) <= key.value < len(value.items)
                if inside and not value.open:
                    return [value.items[key.value]]
            return list(value.items)
        return self.member(value, str(key.value), env, line)

    def _template(self, expr: Expr, env: Env) -> list[Value]:
        texts: list[tuple[str, bool]] = [("", False)]
        inputs: list[Value] = []
        read: list[Const] = []  # parts that come from a data document
        for part in expr.parts:
            found = self.eval(part, env)
            read += [v for v in found[:1] if isinstance(v, Const) and v.told]
            told: list[tuple[str, bool]] = []
            for value in found[:4]:
                if isinstance(value, Const) and value.value is not None:
                    told.append((str(value.value), value.holes))
                    inputs.extend(value.inputs)
                else:
                    told.append(("{}", True))
                    inputs.append(value)
            more = dict.fromkeys(told)
            texts = [
                ((a + b)[:MAX_TEXT], open_a or open_b) for a, open_a in texts for b, open_b in more
            ][:MAX_TEXTS]
        file, line = (read[0].file, read[0].line) if read else (env.file, expr.line)
        words = tuple(t for v in read for t in v.told)
        inputs = distinct(inputs[: MAX_INPUTS * 8])[:MAX_INPUTS]
        return [Const(t, o, tuple(inputs), words, file=file, line=line) for t, o in texts]

    def _dict(self, expr: Dict, env: Env) -> list[Value]:
        record = Record(expr, env, file=env.file, line=expr.line)
        if expr.type_name is not None:
            for value in self.eval(expr.type_name, env):
                if isinstance(value, ClassRef):
                    made = Inst(value.cls, exact=True, file=env.file, line=expr.line)
                    made.record = record
                    return [made]
        return [record]

    def _list(self, expr: ListOf, env: Env) -> Seq:
        items: list[Value] = []
        results: list[list[Value]] = []
        unsure = len(expr.items) > MAX_ITEMS
        for item in expr.items[:MAX_ITEMS]:
            found = self.eval(item.value, env)
            if item.spread:
                items.extend(natives.elements(self, found))
                unsure = unsure or any(not isinstance(v, Seq) for v in found)
            else:
                items.extend(found)
            results.append(found)
        made = Seq(items, unsure, file=env.file, line=expr.line)
        made.results = results if expr.results else None
        return made

    def _choice(self, expr: Choice, env: Env) -> list[Value]:
        if expr.test is not None and len(expr.options) == 2:
            known = self.truth(expr.test, env)
            if known is not None and isinstance(expr.test, Compare):
                return self.eval(expr.options[0 if known else 1], env)
        out: list[Value] = []
        for option in expr.options:
            out.extend(self.eval(option, env))
        sure = [v for v in out if not (isinstance(v, Const) and v.value is None)]
        return sure or out

    def _comprehension(self, expr: Each, env: Env) -> Value:
        made: list[Value] = []
        pairs: list[tuple[list[Value], list[Value], int]] = []
        for element in natives.elements(self, self.eval(expr.iterable, env)):
            inner = env.pick(expr.iterable, element)
            if expr.value is not None:
                found = self.eval(expr.value, inner)
                pairs.append((self.eval(expr.item, inner), found, expr.line))
            else:
                made.extend(self.eval(expr.item, inner))
        if expr.value is not None:
            return Record(None, None, made=pairs, file=env.file, line=expr.line)
        return Seq(made, file=env.file, line=expr.line)

    # Calls.

    def _call(self, expr: Call, env: Env) -> list[Value]:
        out: list[Value] = []
        callee = expr.callee
        if isinstance(callee, Member):
            for obj in self.eval(callee.obj, env):
                made = natives.method(self, obj, callee.name, expr, env)
                if made is not None:
                    out.extend(made)
                    continue
                for value in self.member(obj, callee.name, env, callee.line):
                    out.extend(self.apply(value, expr, env))
            return out if len(out) < MANY else unlike(out)
        for value in self.eval(callee, env):
            out.extend(self.apply(value, expr, env))
        return out

    def apply(self, value: Value, call: Call, env: Env) -> list[Value]:
        """Return what calling `value` with the arguments of `call` gives."""
        where = {"file": env.file, "line": call.line}
        if isinstance(value, Func):
            return self.result(value, self.bind(value, call, env))
        if isinstance(value, ClassRef):
            return [Inst(value.cls, call, env, exact=True, **where)]  # type: ignore[arg-type]
        if isinstance(value, Ext):
            made = native_functions.function(self, value, call, env)
            if made is not None:
                return made
            return [Ext(value.root, (*value.steps, "()"), call, env, **where)]  # type: ignore[arg-type]
        if isinstance(value, Input):
            told = [t.value for a in call.args[:1] for t in self.texts(a.value, env)]
            return [Input(str(told[0]) if told else value.name, value.tool, **where)]  # type: ignore[arg-type]
        if isinstance(value, Super):
            return [value]
        return [Unknown(value.name if isinstance(value, Unknown) else "", **where)]  # type: ignore[arg-type]

    def result(self, func: Func, env: Env) -> list[Value]:
        """Return what a function of this repository hands back in an activation."""
        running = self._running.get(id(func.function), 0)
        if env.depth > MAX_DEPTH or running >= MAX_RECURSION:
            return [Unknown(func.function.name)]
        self._running[id(func.function)] = running + 1
        out: list[Value] = []
        returns = scope_of(func.function).returns
        told = told_names(env) if len(returns) > 1 else frozenset()
        if told:  # `if (name.startsWith("x_")) return …`
            out, _ = outcomes(self, func.function.body, env, told)
        if not out:
            for value in returns:
                out.extend(self.eval(value, env))
        self._running[id(func.function)] = running
        useful = [v for v in out if not isinstance(v, Unknown)]
        if not useful and func.function.returns:
            return self.from_type(func.function.returns, self.open_env(func.function)) or out
        return useful or out or [Unknown(func.function.name)]

    def contexts(self, expr: Expr, env: Env) -> list[Env]:
        """Return the activations in which an expression of an open function takes its values.

        One per known call of the function and element of a loop around it, so that names that
        belong together (a key and its value, a name and its handler) stay together.
        """
        key = (id(expr), id(env))
        known = self._contexts.get(key)
        if known is None:
            known = (env, contexts.expand(self, expr, env))  # the key stays valid while env lives
            self._contexts[key] = known
        return known[1]
