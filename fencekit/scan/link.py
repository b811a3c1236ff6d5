"""From a handler to every write it can reach: the walk along calls, with the hops written down.

The walk carries what is known of the arguments, so that a shared `request(method, path)` is judged
by the verb this tool hands it, and a dispatcher only by the arm this tool's name selects. A name
that several functions bear and nothing resolves is not followed; it is listed as unknown.

Over 400 lines: one walk, whose statements and expressions enter each other.
"""

from __future__ import annotations

from dataclasses import replace

from fencekit.scan import effects, keys, merging, natives, resent, stores, words
from fencekit.scan.effect import Effect, called_name
from fencekit.scan.evaluate import Evaluator
from fencekit.scan.facts import (
    Assign,
    Block,
    Call,
    Choice,
    Compare,
    Define,
    Each,
    Expr,
    Function,
    If,
    Index,
    Lambda,
    Loop,
    Member,
    Name,
    Raise,
    Return,
    Stmt,
    Switch,
    Try,
)
from fencekit.scan.policies import runs_again
from fencekit.scan.retries import is_retry, last_name, loop_retries
from fencekit.scan.scopes import children, heads
from fencekit.scan.values import (
    ClassRef,
    Const,
    Env,
    Ext,
    Func,
    Input,
    Inst,
    Record,
    Seq,
    Unknown,
    Value,
)
from fencekit.scan.walked import Control, Hit, Hop, Retry, Walked

MAX_HOPS = 14
MAX_FORWARDING = 3  # statements of a function that only passes a call on
MAX_WRITES = 40
MAX_ENTRIES = 8  # activations of one function that one tool's walk looks into
MAX_ITEMS = 40  # elements of a loop that are looked at one by one
STEPS_PER_TOOL = 30_000
ENOUGH = 6_000  # steps that a called function is not denied
AGAIN = (
    "retry",
    "resend",
    "retries",
    "attempt",
)  # as the first word of a name: an act, or a wrapper


def _share(used: int, budget: int) -> int:
    """Return the budget of one called function: a half of what is left, or all where little is."""
    left = max(budget - used, 0)
    return used + max(left // 2, min(left, ENOUGH))


class Walker:
    """Walks one tool's handler."""

    def __init__(self, ev: Evaluator, tool: str = "", share: int = 1) -> None:
        """Start a walk for the tool of a name, with so many times the steps of a first one."""
        self.ev = ev
        self.tool = tool
        self.found = Walked()
        self._seen: set[tuple[object, ...]] = set()
        self._entered: dict[int, int] = {}
        self._retries: list[Retry] = []
        self._calls: list[tuple[Call, Env, tuple[Hop, ...]]] = []
        self._order = 0
        self._visits = 0
        self._budget = STEPS_PER_TOOL * share
        self.short = False  # whether some function was left before its end for want of steps
        self._handler_depth = 0

    def walk(self, func: Func, env: Env, chain: tuple[Hop, ...], certain: bool = True) -> None:
        """Enter a function in an activation and follow its body."""
        function = func.function
        sign = (id(function), *self._signature(env))
        visits = self._entered.get(id(function), 0)
        if sign in self._seen or visits >= MAX_ENTRIES or len(self.found.hits) >= MAX_WRITES:
            return
        self._entered[id(function)] = visits + 1
        module = function.module
        if len(chain) >= MAX_HOPS or self._visits > self._budget:
            self.found.cut.append((env.file, function.line))
            return
        self._seen.add(sign)
        self.found.functions.add(id(function))
        symbol = function.name or "(closure)"
        if function.owner is not None:
            symbol = f"{function.owner.name}.{symbol}"
        hop = Hop(symbol, module.path if module else "", function.line, certain)
        pushed = 0
        for mark in function.marks:
            name = called_name(mark) if isinstance(mark, Call) else last_name(mark)
            told = mark.callee if isinstance(mark, Call) else mark
            home = self.ev.open_env(function.parent) if function.parent is not None else env
            if is_retry(name) or runs_again(self.ev, told, home):
                self._retries.append(Retry(hop.file, mark.line, name))
                pushed += 1
        steps, visits = self.ev.budget, self._budget
        if chain:  # what is called first must not use up what its caller calls next
            self.ev.budget = _share(self.ev.steps, steps)
            self._budget = _share(self._visits, visits)
        for line, name in merging.lookups(function):
            self.found.stores.append((hop.file, line, name, self._order))
        self._block(function.body, env, (*chain, hop))
        self.short = self.short or self.ev.spent or self._visits > self._budget
        self.ev.budget, self._budget = steps, visits
        del self._retries[len(self._retries) - pushed :]

    def _signature(self, env: Env) -> tuple[object, ...]:
        out: list[object] = [
            id(env.self_value) if isinstance(env.self_value, Inst) and env.self_value.exact else 0
        ]
        for name, values in sorted((env.args or {}).items()):
            for value in values[:4]:
                match value:
                    case Const():
                        out.append((name, value.value))
                    case Func():
                        out.append((name, id(value.function)))
                    case Inst():
                        out.append((name, id(value.cls)))
                    case Ext() if value.call is None:
                        out.append((name, value.path))  # `Method::PATCH`
                    case Seq():  # a command line
                        told = [i.value for i in value.items[:4] if isinstance(i, Const)]
                        out.append((name, *told))
                    case Record() if value.expr is not None:
                        out.append((name, id(value.expr)))  # `{ method: "POST", … }`
                    case _:
                        pass
        if env.closure is not None and env.closure.args is not None:
            out.append(self._signature(env.closure))
        return tuple(out)

    # Statements.

    def _block(self, body: list[Stmt], env: Env, chain: tuple[Hop, ...]) -> bool:
        """Follow statements in order; True where the rest cannot be reached."""
        return any(self._stmt(stmt, env, chain) for stmt in body)

    def _stmt(self, stmt: Stmt, env: Env, chain: tuple[Hop, ...]) -> bool:
        match stmt:
            case Define():
                return False
            case If():
                return self._if(stmt, env, chain)
            case Switch():
                return self._switch(stmt, env, chain)
            case Loop():
                self._loop(stmt, env, chain)
                return False
            case Try():
                return self._try(stmt, env, chain)
            case Block():
                return self._block(stmt.body, env, chain)
            case Return() | Raise():
                if stmt.value is not None:
                    self._expr(stmt.value, env, chain)
                return True
            case _:
                for name in ("value", "target"):
                    part = getattr(stmt, name, None)
                    if isinstance(part, Expr):
                        self._expr(part, env, chain)
                if isinstance(stmt, Assign) and isinstance(stmt.target, Index):
                    self._order += 1
                    stores.note_put(self.found, stmt.target, env.file, self._order)
                return False

    def _if(self, stmt: If, env: Env, chain: tuple[Hop, ...]) -> bool:
        self._expr(stmt.test, env, chain)
        known = self.ev.truth(stmt.test, env)
        then = orelse = False
        if known is not False:
            then = self._block(stmt.then, env, chain)
        if known is not True:
            orelse = self._block(stmt.orelse, env, chain)
        return (then and orelse) or (known is True and then) or (known is False and orelse)

    def _switch(self, stmt: Switch, env: Env, chain: tuple[Hop, ...]) -> bool:
        self._expr(stmt.subject, env, chain)
        known, arm = self.ev.arm(stmt, env)
        if known:
            return arm is not None and self._block(arm.body, env, chain)
        for case in stmt.cases:
            self._block(case.body, env, chain)
        return False

    def _loop(self, stmt: Loop, env: Env, chain: tuple[Hop, ...]) -> None:
        for expr in heads(stmt):
            self._expr(expr, env, chain)
        retry = loop_retries(stmt)
        if retry:
            self._retries.append(Retry(env.file, stmt.line, retry))
        items: list[Value] = []
        if stmt.iterable is not None:
            items = natives.elements(self.ev, self.ev.eval(stmt.iterable, env))
        if (
            1 < len(items) <= MAX_ITEMS
            and stmt.iterable is not None
            and all(not isinstance(i, Input | Ext) for i in items)
        ):
            for item in items:
                self._block(stmt.body, env.pick(stmt.iterable, item), chain)
        else:
            self._block(stmt.body, env, chain)
        if retry:
            self._retries.pop()

    def _try(self, stmt: Try, env: Env, chain: tuple[Hop, ...]) -> bool:
        before = len(self.found.hits)
        ended = self._block(stmt.body, env, chain)
        inside = self.found.hits[before:]
        mark = len(self.found.hits)
        all_ended = bool(stmt.handlers)
        self._handler_depth += 1
        for handler in stmt.handlers:
            all_ended = self._block(handler, env, chain) and all_ended
        self._handler_depth -= 1
        again = self.found.hits[mark:]
        for hit in inside:
            for second in again:
                if hit.effect.what.startswith("file"):
                    continue  # both clean up
                if second.effect.what == hit.effect.what and second.line != hit.line:
                    hit.retries = (*hit.retries, Retry(second.file, second.line, "sent again"))
        self._block(stmt.final, env, chain)
        return ended and (all_ended or not stmt.handlers)

    # Expressions.

    def _expr(self, expr: Expr, env: Env, chain: tuple[Hop, ...]) -> None:
        self._visits += 1
        if self._visits > self._budget:
            return
        if isinstance(expr, Lambda):
            return
        if isinstance(expr, Choice) and expr.test is not None and len(expr.options) == 2:
            known = self.ev.truth(expr.test, env) if isinstance(expr.test, Compare) else None
            self._expr(expr.test, env, chain)
            if known is not None:
                self._expr(expr.options[0 if known else 1], env, chain)
                return
            for option in expr.options:
                self._expr(option, env, chain)
            return
        if isinstance(expr, Each):
            self._expr(expr.iterable, env, chain)
            items = natives.elements(self.ev, self.ev.eval(expr.iterable, env))
            inner = [env.pick(expr.iterable, i) for i in items[:20]] or [env]
            for one in inner:
                self._expr(expr.item, one, chain)
                if expr.value is not None:
                    self._expr(expr.value, one, chain)
            return
        for child in children(expr):
            self._expr(child, env, chain)
        if isinstance(expr, Call):
            self._call(expr, env, chain)

    def _call(self, call: Call, env: Env, chain: tuple[Hop, ...]) -> None:
        self._order += 1
        name = called_name(call)
        stores.note(
            self.found, call, name, env.file, self._order, failing=bool(self._handler_depth)
        )
        retry = self._sends_again(name, call, env)
        if retry:
            self._retries.append(Retry(env.file, call.line, name))
        again = resent.lines(env.function).get(id(call), ())
        self._retries += [Retry(env.file, line, "sent again") for line in again]
        self._calls.append((call, env, chain))
        callee = call.callee
        handled = False
        if isinstance(callee, Member):
            for obj in self.ev.eval(callee.obj, env):
                if (
                    isinstance(obj, Seq | Record)
                    and natives.method(self.ev, obj, callee.name, call, env) is not None
                ):
                    self._elementwise(obj, call, env, chain)
                    handled = True
                    continue
                if retry and isinstance(obj, Func):  # `(|| send()).retry(…)`
                    self.walk(obj, self.ev.enter(obj, [], {}, env), chain)
                for value in self.ev.member(obj, callee.name, env, callee.line):
                    self._apply(value, call, env, chain, name)
        else:
            for value in self.ev.eval(callee, env):
                self._apply(value, call, env, chain, name)
        if not handled:
            self._callbacks(call, env, chain)
        self._calls.pop()
        del self._retries[len(self._retries) - retry - len(again) :]

    def _sends_again(self, name: str, call: Call, env: Env) -> bool:
        """Tell whether a call runs code again: by its name, or by the library it is of.

        It is handed code, or is itself code: `client.resend(mail)` and `retryInvoice(id)` are
        acts, `fetchWithRetry(url)` is none.
        """
        if not is_retry(name) and not runs_again(self.ev, call.callee, env):
            return False
        on = [call.callee.obj] if isinstance(call.callee, Member) else []
        for code in (*on, *(a.value for a in call.args)):
            if isinstance(code, Lambda):
                return True
            if any(isinstance(v, Func) for v in self.ev.eval(code, env)):
                return True
        if not is_retry(name) or words.split(name)[0] in AGAIN:
            return False
        values = self.ev.eval(call.callee, env)
        return any(isinstance(v, Func) or (isinstance(v, Ext) and is_retry(v.root)) for v in values)

    def _apply(self, value: Value, call: Call, env: Env, chain: tuple[Hop, ...], name: str) -> None:
        if isinstance(value, Func):
            bound = self.ev.bind(value, call, env)
            self._controls(value.function, bound, call, env)
            owner = value.function.owner
            if owner is not None and owner.abstract and not value.function.body:
                asked = effects.of_interface(owner.name, value.function.name)
                if asked is not None:
                    self._hit(asked, call, env, chain)
            self.walk(value, bound, chain, value.certain)
            return
        if isinstance(value, ClassRef):
            return
        around = self._around(env, chain)
        effect = effects.classify(self.ev, value, call, env, around)
        if effect is None and isinstance(value, Unknown):
            self._by_name(name, call, env, chain)
            return
        if effect is None:
            return
        if isinstance(value, Unknown) and not effect.what.startswith(("SQL", "HTTP")):
            same = self.ev.project.functions.get(name, ())
            if same:
                self._by_name(name, call, env, chain)
                return
        self._hit(effect, call, env, chain)

    def _controls(self, function: Function, bound: Env, call: Call, env: Env) -> None:
        """Note which parameters for a key a call gives, and which it leaves out."""
        file = function.module.path if function.module is not None else ""
        spread = any(arg.spread for arg in call.args)
        for param in function.params:
            if param.rest or spread or not words.key_like(param.name):
                continue
            values = (bound.args or {}).get(param.name, [])
            given = any(
                not isinstance(v, Const) or v.value not in (None, "", False) for v in values
            )
            made = Control(
                function.name,
                param.name,
                (file, param.line, param.name),
                (file, function.line),
                (env.file, call.line),
                given,
            )
            if made not in self.found.controls:
                self.found.controls.append(made)

    def _around(self, env: Env, chain: tuple[Hop, ...]) -> str:
        """Return the name of what a call stands in: the function, or the one it is a part of.

        A handler without a name goes by the tool's; a function that only carries a request by its
        caller's; a helper inside a function that the chain has
        entered (`def search(): def send(): …`) by that function's, where it reads.
        """
        names = [hop.symbol.rsplit(".", 1)[-1] for hop in chain]
        while len(names) > 1 and words.only_carries(names[-1]):
            names.pop()  # `fetchFromApi(path, options)` sends what its caller says
        around = names[-1] if names else ""
        if around == "(closure)" and self.tool:
            return self.tool
        outer = env.function.parent.name if env.function.parent is not None else ""
        inside = len(names) > 1 and outer in names[1:-1]
        return outer if inside and words.reads_by_name(outer) else around

    def _authenticates(self, effect: Effect, chain: tuple[Hop, ...]) -> bool:
        """Tell whether a write only obtains a credential or reports about the process."""
        if set(words.split(self.tool)) & words.AUTHENTICATES:
            return False
        told = {w for hop in chain[1:] for w in words.split(hop.symbol.rsplit(".", 1)[-1])}
        if any(_opens_session(set(words.split(h.symbol.rsplit(".", 1)[-1]))) for h in chain[1:]):
            return True
        reports = words.REPORTS - set(words.split(self.tool))
        if {w for hop in chain[1:] for w in words.split(hop.symbol)} & reports:
            return True
        address = effect.target.split("?")[0].rstrip("/").lower()
        return bool(told & words.AUTHENTICATES) or address.endswith(("/token", "/oauth", "/login"))

    def _hit(self, effect: Effect, call: Call, env: Env, chain: tuple[Hop, ...]) -> None:
        if self._authenticates(effect, chain):
            return
        if self._handler_depth and effect.weak:
            return
        if effect.what == "HTTP POST" and not effect.target and words.reads_by_name(self.tool):
            return  # one executor for all tools: its call says nothing, the tool's name does
        facts, inputs = keys.at_call(self.ev, call, env)
        minted = keys.minted_ids(self.ev, call, env)
        facts += [f for f in minted if f not in facts]
        certain = effect.certain and all(h.certain for h in chain)
        declares = effect.declarative and not minted
        made = Effect(effect.what, declares, certain, effect.target, effect.weak)
        retries = tuple(dict.fromkeys(self._retries))
        hit = Hit(
            env.file,
            call.line,
            made,
            chain,
            retries,
            facts,
            inputs,
            env.function,
            call,
            env,
            self._order,
        )
        into = self.found.weak if effect.weak else self.found.hits
        self._note(hit, into)
        if len(self._calls) > 1 and forwards(env.function, call, made):
            caller, place, before = self._calls[-2]
            into.append(replace(hit, file=place.file, line=caller.line, chain=before))

    @staticmethod
    def _note(hit: Hit, into: list[Hit]) -> None:
        """Add a write, or what is new of one that is known."""
        for known in into:
            if (known.file, known.line, known.effect.what) == (hit.file, hit.line, hit.effect.what):
                known.inputs |= hit.inputs
                known.keys.extend(k for k in hit.keys if k not in known.keys)
                known.retries = tuple(dict.fromkeys((*known.retries, *hit.retries)))
                return
        into.append(hit)

    def _by_name(self, name: str, call: Call, env: Env, chain: tuple[Hop, ...]) -> None:
        """Follow a call by its name alone where exactly one function bears it."""
        if len(name) < 4 or name in words.CONTAINER or name in natives.SAME | natives.ONE_OF:
            return
        places = self.ev.project.functions.get(name, ())
        if not places:
            return
        found = self.ev.project.functions_named(name) if len(places) == 1 else []
        if len(found) == 1 and isinstance(call.callee, Member) == (found[0].owner is not None):
            func = Func(
                found[0], None, Inst(found[0].owner) if found[0].owner else None, certain=False
            )
            self.walk(func, self.ev.bind(func, call, env), chain, False)
        elif (name, env.file, call.line) not in self.found.unknowns:
            self.found.unknowns.append((name, env.file, call.line))

    def _elementwise(self, obj: Seq | Record, call: Call, env: Env, chain: tuple[Hop, ...]) -> None:
        items = obj.items if isinstance(obj, Seq) else natives.elements(self.ev, [obj])
        for arg in call.args:
            if not isinstance(arg.value, Lambda | Name | Member):
                continue
            for value in self.ev.eval(arg.value, env):
                if isinstance(value, Func):
                    for item in items[:20] or [Unknown()]:
                        self.walk(value, self.ev.enter(value, [[item]], {}, env), chain, True)

    def _callbacks(self, call: Call, env: Env, chain: tuple[Hop, ...]) -> None:
        """Follow functions handed to something outside: it may call them."""
        for arg in call.args:
            if isinstance(arg.value, Lambda | Name | Member | Call):
                for value in self.ev.eval(arg.value, env):
                    direct = isinstance(arg.value, (Lambda, Name | Member))
                    if isinstance(value, Func) and direct and self._outside(call, env):
                        params: list[list[Value]] = [
                            [Input(p.name, file=env.file, line=p.line)]
                            for p in value.function.params
                        ]
                        if value.bound_to is not None and params:
                            params = (
                                params[1:]
                                if value.function.params[0].name in ("self", "cls")
                                else params
                            )
                        rest = [
                            self.ev.eval(a.value, env)
                            for a in call.args
                            if a is not arg and a.name is None
                        ]
                        given: list[list[Value]] = (
                            [*rest, *params] if isinstance(arg.value, Name | Member) else params
                        )
                        self.walk(value, self.ev.enter(value, given, {}, env), chain, True)

    def _outside(self, call: Call, env: Env) -> bool:
        values = self.ev.eval(call.callee, env)
        return not any(isinstance(v, Func) for v in values)


def forwards(function: Function, call: Call, effect: Effect) -> bool:
    """Tell whether a function only passes a call on, so that its caller decides what is written.

    One that runs the command line it is given, or a method in Go of the same name as what it
    calls: there clients are reached through an interface of the repository's own.
    """
    if len(function.body) > MAX_FORWARDING:
        return False
    if effect.what.startswith("child process"):
        given = {p.name for p in function.params}
        return any(isinstance(a.value, Name) and a.value.id in given for a in call.args[:2])
    module = function.module
    if module is None or module.language != "go" or effect.what.startswith(("HTTP", "SQL", "RPC")):
        return False
    return called_name(call) == function.name


def _opens_session(named: set[str]) -> bool:
    """Tell whether a function sees to it that there is a session, as `resolve_session` does."""
    sees_to = {"resolve", "refresh", "ensure", "restore", "validate", "require", "renew"}
    if "ensure" in named and named & {"client", "connection", "connected"}:
        return True
    return "session" in named and bool(named & sees_to)
