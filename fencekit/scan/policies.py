"""What a call, literal or object says about sending again, by the rules of its library.

The rules are data (`languages/resending.py`). A policy has a place, and the methods it repeats as
far as the source says: several answers where a setting of the process chooses between them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from fencekit.scan import resent, words
from fencekit.scan.effect import Effect, from_library, root_of
from fencekit.scan.evaluate import Evaluator
from fencekit.scan.facts import Call, Dict, Expr, Function, Lit, Loop, Member, Name, Stmt
from fencekit.scan.languages import language_for
from fencekit.scan.languages.resending import ALWAYS, EVERY, Methods, Policy, Resends
from fencekit.scan.retries import loop_retries
from fencekit.scan.scopes import bodies, scope_of, walk_expr
from fencekit.scan.values import Const, Env, Ext, Func, Inst, Record, Seq, Value

Given = tuple[str, list[Value], int]  # an option: its name, its values, its line
MAX_DEPTH = 4  # policies inside the arguments of what holds them
COLLECTIONS = frozenset({"frozenset", "set", "tuple", "list", "Set"})
REFUSED = frozenset({401, 403, 407, 429})  # statuses of a request that was not carried out
WRITING = frozenset({"POST", "PUT", "PATCH", "DELETE"})


@dataclass(frozen=True, slots=True)
class Told:
    """A policy in the source: its place, what it repeats, and what it is.

    `repeats` holds one set of methods for each way a setting may choose; None: not to be seen.
    """

    file: str
    line: int
    by: str
    repeats: tuple[Methods, ...] = (EVERY,)
    blind: bool = True  # what it repeats has no key that stays the same

    def covers(self, effect: Effect) -> bool | None:
        """Tell whether the policy sends this write again; None where the source does not say."""
        answers = {_covers(methods, effect) for methods in self.repeats}
        return answers.pop() if len(answers) == 1 else None


def _covers(methods: Methods, effect: Effect) -> bool | None:
    if methods is None:
        return None
    if not methods & WRITING:
        return False
    if methods >= WRITING:
        return True
    if effect.what.startswith("HTTP "):
        return effect.what.removeprefix("HTTP ") in methods
    return None  # an SDK's own method: how it is sent is not seen


def rules(env: Env) -> Resends:
    """Return what the libraries of an activation's language do."""
    language = language_for(env.file)
    return language.resends if language is not None else Resends()


def runs_again(ev: Evaluator, callee: Expr, env: Env) -> bool:
    """Tell whether what is called, or marks a function, is of a library that runs code again."""
    runners = rules(env).runners
    return any(
        isinstance(v, Ext) and from_library(root_of(v), runners)
        for v in (ev.eval(callee, env) if runners else ())
    )


class Policies:
    """Reads policies with one evaluator."""

    def __init__(self, ev: Evaluator) -> None:
        """Read with the values an evaluator knows."""
        self.ev = ev

    def of_call(self, call: Call, env: Env, depth: int = 0) -> list[Told]:
        """Return the policies a call makes or is given."""
        if depth > MAX_DEPTH:
            return []
        inner = [t for a in call.args for t in self.of_expr(a.value, env, depth + 1)]
        if inner:
            return inner
        for value in self.ev.eval(call.callee, env):
            if isinstance(value, Ext):
                found = self._made(value, call, env)
                if found is not None:
                    return [found] if found.by else []
        return []

    def of_expr(self, expr: Expr, env: Env, depth: int = 0) -> list[Told]:
        """Return the policies that an expression stands for or holds."""
        out: list[Told] = []
        for value in self.ev.eval(expr, env)[:8]:
            out += self.of_value(value, env, expr.line, depth)
        return list(dict.fromkeys(out))

    def of_value(self, value: Value, env: Env, line: int, depth: int = 0) -> list[Told]:
        """Return the policies that a value is or holds; `line` is where it is used."""
        match value:
            case Ext() if value.call is not None and value.env is not None:
                if value.steps[-1] != "()":
                    return []
                return self.of_call(value.call, value.env, depth)
            case Ext():
                rule = self._rule(value, env, bare=True)
                return [Told(env.file, line, value.last, (rule.repeats,))] if rule else []
            case Inst():
                return self._of_type(value, depth)
            case Record() if depth <= MAX_DEPTH:
                return self._of_record(value, env, depth)
            case _:
                return []

    def _of_record(self, record: Record, env: Env, depth: int) -> list[Told]:
        out: list[Told] = []
        made = record.expr.type_name if isinstance(record.expr, Dict) else None
        if made is not None and record.env is not None:  # `&retryablehttp.RoundTripper{…}`
            for value in self.ev.eval(made, record.env):
                rule = self._rule(value, env) if isinstance(value, Ext) else None
                if isinstance(value, Ext) and rule is not None and rule.makers:
                    out.append(Told(record.file, record.line, value.last, (rule.repeats,)))
        for keys, held, line in self.ev.entries(record):
            if any(isinstance(k, Const) and k.value in CARRIERS for k in keys):
                for value in held[:8]:
                    out += self.of_value(value, env, line, depth + 1)
        return out

    def _made(self, value: Ext, call: Call, env: Env) -> Told | None:
        """Return the policy of an outside call; one without `by` where it is switched off."""
        rule = self._rule(value, env)
        if rule is not None:
            return self.by_rule(rule, value, call, env)
        if not value.root or from_library(root_of(value), words.QUIET_LIBRARIES):
            return None
        if option_like(value.last) and "()" not in value.steps and value.last[:1].isupper():
            return Told(env.file, call.line, value.last, (None,))  # `sdk.WithMaxRetries(3)`
        for name, held, line in self._given(call, env):
            if option_like(name) and not off(held):
                return Told(env.file, line, name, (None,))
        return None

    def by_rule(self, rule: Policy, value: Ext, call: Call, env: Env) -> Told | None:
        """Return what a rule says of a call of its library; None where it is not asked for."""
        given = list(self._given(call, env))
        nothing = Told("", 0, "")
        line = call.line
        if rule.options == ALWAYS:
            if "()" in value.steps:
                return None  # what it made is called
        elif rule.options:
            asked = [(held, at) for name, held, at in given if name in rule.options]
            if not asked:
                return None
            if off(asked[0][0]):
                return nothing
            line = line if rule.makers else asked[0][1] or line
        elif call.args and off(self.ev.eval(call.args[0].value, env)):
            return nothing  # `SetRetryCount(0)`
        told = self._repeats(rule, given)
        return Told(env.file, line, value.last, told, not rule.keyed)

    def _repeats(
        self, rule: Policy, given: list[tuple[str, list[Value], int]]
    ) -> tuple[Methods, ...]:
        for name, held, _ in given:
            if name in rule.listed:
                return tuple(dict.fromkeys(self._methods(v, rule) for v in held[:8]))
            if name in rule.decides:
                return tuple(dict.fromkeys(self._decided(v, rule) for v in held[:8]))
        return (rule.repeats,)

    def _decided(self, value: Value, rule: Policy) -> Methods:
        """Return what a function repeats that is asked for each failure."""
        named = dict(rule.named)
        if isinstance(value, Ext):
            return named.get(value.last, rule.repeats)
        if not isinstance(value, Func):
            return rule.repeats
        mentioned = [e for e in expressions(value.function) if isinstance(e, Name | Member)]
        for told in mentioned:
            last = told.id if isinstance(told, Name) else told.name
            if last in named:
                return named[last]
        return None if looks_at_method(value.function) else EVERY

    def _methods(self, value: Value, rule: Policy) -> Methods:
        """Return the methods a value lists; none listed where it says nothing: every one."""
        match value:
            case Seq() if not value.open:
                told = [i.value for i in value.items if isinstance(i, Const)]
                return frozenset(str(t).upper() for t in told) & EVERY
            case Const() if value.value is None or value.value is False:
                return EVERY
            case Ext() if value.call is not None and value.env is not None and value.call.args:
                if value.last in COLLECTIONS and value.steps[-1] == "()":
                    inner = self.ev.eval(value.call.args[0].value, value.env)
                    return self._methods(inner[0], rule) if len(inner) == 1 else None
                return None
            case Ext():
                return rule.repeats if "DEFAULT" in value.last else None
            case _:
                return None

    def _given(self, call: Call, env: Env) -> Iterator[Given]:
        """Yield what a call is given by name: keywords, and entries of records, two deep."""
        for arg in call.args:
            held = self.ev.eval(arg.value, env)
            if arg.name is not None:
                yield arg.name, held, arg.value.line
            for value in held[:4]:
                if isinstance(value, Record):
                    yield from self._entries(value, 2 if arg.name is None else 1)

    def _entries(self, record: Record, depth: int) -> Iterator[Given]:
        for keys, held, line in self.ev.entries(record):
            for key in keys:
                if isinstance(key, Const) and isinstance(key.value, str):
                    yield key.value, held, line
            for value in held[:4] if depth > 1 else ():
                if isinstance(value, Record):
                    yield from self._entries(value, depth - 1)

    def _rule(self, value: Ext, env: Env, *, bare: bool = False) -> Policy | None:
        """Return the rule for an outside value: by its library, and the names of its last step."""
        root = root_of(value)
        after = max((i + 1 for i, s in enumerate(value.steps) if s == "()"), default=0)
        named = set(value.steps[after:])
        for rule in rules(env).policies:
            if not from_library(root, (rule.library,)):
                continue
            if (rule.makers and named & set(rule.makers)) or (not rule.makers and not bare):
                return rule
        return None

    # Types of the repository that a client sends through.

    def _of_type(self, inst: Inst, depth: int) -> list[Told]:
        """Return where an object of the repository sends again, or is told to by its base."""
        module = inst.cls.module
        if module is None:
            return []
        env = self.ev.top_env(module)
        out: list[Told] = []
        for cls in self.ev.mro(inst.cls):
            for name in rules(env).transports & cls.methods.keys():
                out += again_in(cls.methods[name])
            for name in ("__init__", "constructor"):
                if name in cls.methods and depth <= MAX_DEPTH:
                    out += self._told_to_base(cls.methods[name], depth)
        return out

    def _told_to_base(self, made: Function, depth: int) -> list[Told]:
        """Return the policies with which a constructor enters the one above it."""
        env = self.ev.open_env(made)
        out: list[Told] = []
        for call in scope_of(made).calls:
            callee = call.callee
            if isinstance(callee, Member) and callee.name == "__init__":
                for arg in call.args:
                    out += self.of_expr(arg.value, env, depth + 1)
        return out


# Names under which an object hands on what it sends through.
CARRIERS = frozenset({
    "Transport", "transport", "Base", "base", "adapter", "httpAgent", "httpsAgent", "agent",
    "dispatcher", "Client", "HTTPClient", "httpClient", "http_client", "fetch", "Next",
})  # fmt: skip


def option_like(name: str) -> bool:
    """Tell whether an option is named like a number of retries: `max_retries`, `WithRetry`."""
    parts = set(words.split(name))
    return bool(parts & {"retry", "retries"}) and not parts & (words.RETRY_NOT | words.RETRY_ASIDE)


COUNTS = frozenset({"limit", "retries", "total", "max_attempts", "attempts", "count"})


def off(values: list[Value]) -> bool:
    """Tell whether a setting switches retries off, itself or by the number in it."""
    return bool(values) and all(_none(v) for v in values)


def _none(value: Value) -> bool:
    if isinstance(value, Record) and isinstance(value.expr, Dict):
        counts = [e for e in value.expr.entries if isinstance(e.key, Lit) and e.key.value in COUNTS]
        return any(isinstance(e.value, Lit) and e.value.value == 0 for e in counts)
    return isinstance(value, Const) and (value.value is None or value.value == 0)


def again_in(function: Function) -> list[Told]:
    """Return the places in a method that send once more what the method was given."""
    file = function.module.path if function.module is not None else ""
    repeats: tuple[Methods, ...] = (None,) if looks_at_method(function) else (EVERY,)
    out = [Told(file, loop.line, "loop", repeats) for loop in loops(function.body)]
    if not out:
        again = {line for at in resent.lines(function).values() for line in at}
        out = [Told(file, line, "sent again", repeats) for line in sorted(again)]
    return out


def loops(body: list[Stmt]) -> Iterator[Loop]:
    """Yield the loops of a body that try again."""
    for stmt in body:
        if isinstance(stmt, Loop) and loop_retries(stmt):
            yield stmt
        for inner in bodies(stmt):
            yield from loops(inner)


def expressions(function: Function) -> Iterator[Expr]:
    """Yield every expression of a function and of the functions in it."""
    scope = scope_of(function)
    for root, _ in scope.roots:
        yield from walk_expr(root)
    for inner in scope.nested:
        yield from expressions(inner)


def only_refused(function: Function) -> bool:
    """Tell whether a function tests for answers only that say the request was not carried out."""
    told = {
        e.value
        for e in expressions(function)
        if isinstance(e, Lit) and isinstance(e.value, int) and 400 <= e.value < 600
    }
    return bool(told) and told <= REFUSED


def looks_at_method(function: Function) -> bool:
    """Tell whether a function reads the method of what was sent."""
    return any(
        isinstance(e, Member) and e.name.lower() in ("method", "verb")
        for e in expressions(function)
    )
