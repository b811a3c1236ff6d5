"""Clients that are set up to send again, and which writes go through them.

A client is told apart by the call that makes it, so that a session with an adapter says nothing of
another session. It may be set up where it is made, by a call on it, by a function it is given to,
through one of its fields, or by what it does with a failed answer.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from fencekit.scan import keys, words
from fencekit.scan.effect import called_name, from_library, root_of
from fencekit.scan.evaluate import Evaluator
from fencekit.scan.facts import Call, Expr, Function, Lit, Member, Name
from fencekit.scan.http_calls import steps_after
from fencekit.scan.languages import language_for
from fencekit.scan.languages.resending import EVERY, Methods, Resends
from fencekit.scan.policies import Policies, Told, looks_at_method, only_refused, rules
from fencekit.scan.scopes import scope_of
from fencekit.scan.values import Env, Ext, Func, Input, Record, Value
from fencekit.scan.walked import Hit, Retry, Walked

MAX_CHAIN = 40  # calls between a client and what is called on it
MAX_CALLERS = 20
MAX_FOLLOWED = 3  # functions between a failed answer, or a request, and what sends it
STEPS = 40_000  # evaluations for the policies of one tool's writes
TYPED = ("*",)
Key = tuple[int] | tuple[str, tuple[str, ...]]
"""What tells a client apart: the call that makes it, else the path of a module's own.

Under `TYPED` stands what any client of a module is told, for one of which only the type is seen.
"""


@dataclass(slots=True)
class Clients:
    """Answers, for a write, where its client is set up to send it again."""

    ev: Evaluator
    policies: Policies = field(init=False)
    _set: dict[Key, list[Told]] | None = None
    _known: dict[tuple[int, int], list[Told]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Read policies with the same evaluator."""
        self.policies = Policies(self.ev)

    def add(self, walked: Walked) -> None:
        """Add to each write that was walked to what its client does."""
        self.ev.fresh(STEPS)
        for hit in (*walked.hits, *walked.weak):
            found = [_retry(t, hit) for t in self._told(hit.call, hit.env)]
            hit.retries = tuple(dict.fromkeys((*hit.retries, *found)))

    def _told(self, call: Call, env: Env) -> list[Told]:
        key = (id(call), id(env))
        if key not in self._known:
            told: list[Told] = []
            self._known[key] = told  # for a request that leads to itself
            for value, at in self._through(call, env):
                told += self._of_client(value, at)
            for step in (call, *steps_after(call, env)):
                own = [t for t in self.policies.of_call(step, env) if t.by]
                # An option of a library without a rule may as well be told to the far side.
                told += [t for t in own if t.repeats != (None,)]
            self._known[key] = list(dict.fromkeys(told))
        return self._known[key]

    def _through(self, call: Call, env: Env) -> Iterator[tuple[Value, Env]]:
        """Yield the clients a write goes through; a request made first goes through its sender."""
        callee = call.callee
        for value in self.ev.eval(callee.obj if isinstance(callee, Member) else callee, env):
            yield value, env
        scope = scope_of(env.function)
        names = {n for n, bound in scope.names.items() for b in bound if b.value is call}
        for other in scope.calls if names else ():
            given = any(isinstance(a.value, Name) and a.value.id in names for a in other.args)
            if given and isinstance(other.callee, Member):
                for value in self.ev.eval(other.callee.obj, env):
                    if isinstance(value, Ext | Record):
                        yield value, env

    # One client.

    def _of_client(self, value: Value, env: Env) -> list[Told]:
        out: list[Told] = []
        if isinstance(value, Record):
            return self.policies.of_value(value, env, value.line)
        for made in self._chain(value):
            if made.call is not None and made.env is not None and made.steps[-1:] != ():
                out += [t for t in self.policies.of_call(made.call, made.env) if t.by]
        for key in self._keys(value):
            out += self._setups().get(key, [])
            if len(key) == 2 and _is_type(key[1]):
                told = self._setups().get((key[0], TYPED), [])
                out += told if len(told) == 1 else [replace(t, repeats=(None,)) for t in told]
        return out

    def _chain(self, value: Value) -> list[Ext]:
        """Return an outside value and what the calls on its way were called on, outermost first."""
        out: list[Ext] = []
        todo = [value] if isinstance(value, Ext) else []
        while todo and len(out) < MAX_CHAIN:
            here = todo.pop(0)
            if any(here is known for known in out):
                continue
            out.append(here)
            if here.call is not None and here.env is not None:
                callee = here.call.callee
                inner = callee.obj if isinstance(callee, Member) else callee
                below = [v for v in self.ev.eval(inner, here.env) if isinstance(v, Ext)]
                todo += [v for v in below if v.root == here.root]
        return out

    def _keys(self, value: Value) -> list[Key]:
        """Return what tells the clients apart that a value may be, or be made of."""
        out: list[Key] = []
        for here in self._chain(value):
            if here.call is None:
                out.append((here.root, here.steps))
            elif here.env is not None and not self._below(here):
                out.append((id(here.call),))
        return [k for k in out if len(k) == 1] or out

    def _below(self, value: Ext) -> bool:
        """Tell whether a call was made on what another call gave."""
        callee = value.call.callee if value.call is not None else None
        if not isinstance(callee, Member | Call) or value.env is None:
            return False
        inner = callee.obj if isinstance(callee, Member) else callee
        found = self.ev.eval(inner, value.env)
        return any(
            isinstance(v, Ext) and v.call is not None and v.root == value.root for v in found
        )

    # What sets clients up, anywhere in the repository.

    def _setups(self) -> dict[Key, list[Told]]:
        if self._set is None:
            self._set = {}
            for function, env in self._candidates():
                for call in scope_of(function).calls:
                    self._by_call(call, env)
                self._by_fields(function, env)
        return self._set

    def _candidates(self) -> Iterator[tuple[Function, Env]]:
        """Yield the functions of the files that call, or import, what sets a client up."""
        project = self.ev.project
        for path, fact in sorted(project.facts.items()):
            language = language_for(path)
            if language is None or not language.resends.policies:
                continue
            told = language.resends
            imports = any(
                from_library(text.removeprefix("node:"), tuple(p.library for p in told.policies))
                for text in fact.imports
            )
            if not imports and not fact.calls.keys() & told.calls():
                continue
            module = project.module(path)
            stack = [module.top] if module is not None else []
            while stack:
                here = stack.pop()
                stack.extend(scope_of(here).nested)
                if not _may_set_up(here, told):
                    continue
                # A type would hide what callers pass: one activation for each of them.
                for env in self.ev.entered(here)[:MAX_CALLERS] or [self.ev.open_env(here)]:
                    yield here, env

    def _put(self, keys_: list[Key], told: list[Told]) -> None:
        assert self._set is not None
        for key in keys_:
            known = self._set.setdefault(key, [])
            known.extend(t for t in told if t not in known)

    def _by_call(self, call: Call, env: Env) -> None:
        callee = call.callee
        told = rules(env)
        if isinstance(callee, Member) and _ends(callee, told.interceptors):
            client: Expr = callee
            for _ in told.interceptors:
                client = client.obj if isinstance(client, Member) else client
            self._set_on(client, env, self._on_failure(call, env), module=True)
        elif isinstance(callee, Member) and callee.name in told.setters:
            found = [t for a in call.args for t in self.policies.of_expr(a.value, env)]
            self._set_on(callee.obj, env, found)
        elif call.args:
            self._by_rule(call, env)

    def _by_rule(self, call: Call, env: Env) -> None:
        """Note a call of a library that sets up its receiver, its argument, or every request."""
        last = (
            call.callee.name if isinstance(call.callee, Member) else getattr(call.callee, "id", "")
        )
        makers = {m for p in rules(env).policies for m in p.makers}
        around = {p.library for p in rules(env).policies if p.client != "receiver"}
        if last not in makers and not around:
            return
        for value in self.ev.eval(call.callee, env):
            rule = self.policies._rule(value, env) if isinstance(value, Ext) else None
            if rule is None or not isinstance(value, Ext):
                continue
            if rule.client == "global":
                found = [t for a in call.args for t in self.policies.of_expr(a.value, env)]
                self._put([("", ("fetch",)), (rule.library, ())], found)
                continue
            made = self.policies.by_rule(rule, value, call, env)
            if made is None or not made.by:
                continue
            if rule.client == "argument":
                self._set_on(call.args[0].value, env, [made], module=True)
            elif isinstance(call.callee, Member):
                self._set_on(call.callee.obj, env, [made])

    def _by_fields(self, function: Function, env: Env) -> None:
        """Note `adapter.max_retries = retry`, `client.Transport = again`."""
        wanted = rules(env).attributes
        for name, changes in scope_of(function).changes.items():
            for change in changes:
                if not isinstance(change.key, Lit) or change.key.value not in wanted:
                    continue
                found = self.policies.of_expr(change.value, env)
                for value in self.ev.name(name, env, change.line):
                    told = found or self._plain(value, str(change.key.value), change.line, env)
                    if told and isinstance(value, Ext):
                        self._put([*self._keys(value), (value.root, TYPED)], told)

    def _plain(self, value: Value, name: str, line: int, env: Env) -> list[Told]:
        """Return the policy of a library that is switched on by a plain number in a field."""
        root = root_of(value) if isinstance(value, Ext) else ""
        for rule in rules(env).policies:
            if name in rule.options and not rule.makers and from_library(root, (rule.library,)):
                return [Told(env.file, line, name, (rule.repeats,), not rule.keyed)]
        return []

    def _set_on(self, client: Expr, env: Env, told: list[Told], *, module: bool = False) -> None:
        """Note what is told to a client; `module`: also where a module itself is the client."""
        for value in self.ev.eval(client, env) if told else ():
            found = self._keys(value)
            if module or any(len(k) == 1 for k in found):
                self._put(found, told)
            if isinstance(value, Ext):
                self._put([(value.root, TYPED)], told)

    # Failed answers.

    def _on_failure(self, call: Call, env: Env) -> list[Told]:
        """Return where the functions given for a client's answers send the request again."""
        out: list[Told] = []
        for arg in call.args[:2]:
            for value in self.ev.eval(arg.value, env):
                if isinstance(value, Func):
                    given: list[list[Value]] = [[Input("failed", file=env.file, line=call.line)]]
                    inner = self.ev.enter(value, given, {}, env)
                    out += self._sends(value.function, inner, 0)
        return list(dict.fromkeys(out))

    def _sends(self, function: Function, env: Env, depth: int) -> list[Told]:
        repeats: Methods = None if looks_at_method(function) else EVERY
        out: list[Told] = []
        for call, at in _calls(self.ev, function, env):
            given = [v for a in call.args for v in self.ev.eval(a.value, at)]
            if not keys.origin(self.ev, given, at).inputs:
                continue
            for value in self.ev.eval(call.callee, at):
                if isinstance(value, Ext) and _requests(value):
                    blind = not only_refused(function)
                    out.append(Told(at.file, call.line, "interceptor", (repeats,), blind))
                elif isinstance(value, Func) and depth < MAX_FOLLOWED:
                    inner = self.ev.bind(value, call, at)
                    out += self._sends(value.function, inner, depth + 1)
        return out


def _is_type(steps: tuple[str, ...]) -> bool:
    """Tell whether a path only names a type, as an annotation does."""
    named = [s for s in steps if s != "()"]
    return bool(named) and named[-1][:1].isupper()


def _may_set_up(function: Function, told: Resends) -> bool:
    """Tell by its names alone whether a function may set up a client."""
    scope = scope_of(function)
    names = told.calls()
    if any(called_name(c) in names for c in scope.calls):
        return True
    if any(isinstance(c.callee, Name) and c.args and told.on_argument() for c in scope.calls):
        return True
    changed = (c.key for changes in scope.changes.values() for c in changes)
    return any(isinstance(k, Lit) and k.value in told.attributes for k in changed)


def _calls(ev: Evaluator, function: Function, env: Env) -> Iterator[tuple[Call, Env]]:
    """Yield the calls of a function and of the closures in it."""
    for call in scope_of(function).calls:
        yield call, env
    for inner in scope_of(function).nested:
        if not inner.name or inner.owner is None:
            yield from _calls(ev, inner, Env(inner, None, env, env.self_value))


def _requests(value: Ext) -> bool:
    """Tell whether what is called sends a request as it is given: `client(config)`."""
    if not from_library(root_of(value), words.HTTP_LIBRARIES):
        return False
    return not value.steps or value.steps[-1] in ("()", "request", "default", "axios")


def _ends(callee: Member, path: tuple[str, ...]) -> bool:
    """Tell whether a dotted path ends with these names."""
    here: Expr = callee
    for name in reversed(path):
        if not isinstance(here, Member) or here.name != name:
            return False
        here = here.obj
    return bool(path)


def _retry(told: Told, hit: Hit) -> Retry:
    return Retry(told.file, told.line, told.by, told.covers(hit.effect), told.blind)
