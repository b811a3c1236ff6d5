"""Writes by HTTP: the verb, wherever it stands, and the requests that only ask by POST."""

from __future__ import annotations

import re

from fencekit.scan import words
from fencekit.scan.effect import NOTHING, Effect, called_name
from fencekit.scan.evaluate import Evaluator
from fencekit.scan.facts import Call, Expr, Member, Name
from fencekit.scan.rpc import body_says, method_reads, verb_says
from fencekit.scan.scopes import scope_of
from fencekit.scan.values import Const, Env, Ext, Record, Unknown, Value

WRAPS_METHOD = frozenset({
    "request", "fetch", "send", "stream", "newrequest", "newrequestwithcontext", "axios", "got",
    "ky",
    "execute", "$fetch", "ofetch", "request_async", "method", "open", "urlopen", "call", "apicall",
    "exchange",
})  # fmt: skip


# A client's own spelling of a verb: `rpost`, `jget`, `post_json`, `delete_async`.
VERB_SPELLED = re.compile(r"[ajr]?(post|put|patch|delete|get|head|options|del)(?:_?json|_?async)?")


def _methods(ev: Evaluator, call: Call, env: Env) -> tuple[set[str], bool]:
    """Return the HTTP verbs among a call's arguments; the flag says that one is open."""
    found: set[str] = set()
    unsure = False
    for arg in call.args:
        if arg.name in ("method", None):
            for value in ev.eval(arg.value, env):
                if (
                    isinstance(value, Const)
                    and str(value.value).upper() in words.HTTP_VERBS_UPPER
                    and isinstance(value.value, str)
                ):
                    found.add(value.value.upper())
                elif isinstance(value, Record):
                    for inner in ev.entry(value, "method"):
                        if isinstance(inner, Const) and isinstance(inner.value, str):
                            found.add(inner.value.upper())
                        elif not (
                            isinstance(inner, Unknown)
                            and inner.name == "method"
                            and inner.line == value.line
                        ):
                            unsure = True
                elif isinstance(value, Ext) and value.last.upper() in words.HTTP_VERBS_UPPER:
                    found.add(value.last.upper())
                elif (
                    isinstance(value, Ext)
                    and value.last.upper().removeprefix("METHOD") in words.HTTP_VERBS_UPPER
                ):
                    found.add(value.last.upper().removeprefix("METHOD"))
        if arg.name == "method" and not found:
            unsure = True
    return found & words.HTTP_VERBS_UPPER, unsure


DIRECT = (("default",), ("request",))


def http_call(ev: Evaluator, value: Ext, call: Call, env: Env, around: str) -> Effect:
    """Return the write of a call of an HTTP library."""
    last = value.last.lower()
    verb = next(
        (words.HTTP_VERBS[w] for w in words.split(value.last)[:1] if w in words.HTTP_VERBS), ""
    )
    if last in ("post", "put", "patch", "delete", "get", "head", "options") or (
        verb and last not in ("get",) and last.startswith(tuple(words.HTTP_VERBS))
    ):
        return http_effect(ev, verb, call, env, around)
    itself = value.steps[-1:] == ("()",) and not isinstance(call.callee, Member)  # `client(config)`
    if itself or last in WRAPS_METHOD or not value.steps or value.steps in DIRECT:
        if last == "send" and any(s.lower() in words.HTTP_VERBS for s in value.steps):
            return NOTHING  # the builder's own verb was judged already
        found, unsure = _methods(ev, call, env)
        writes = found - words.HTTP_READS
        if writes:
            return http_effect(ev, most_adding(writes), call, env, around, len(found) == 1)
        if unsure and not found:
            return http_effect(ev, "?", call, env, around, False)
    return NOTHING


def most_adding(verbs: set[str]) -> str:
    """Return the verb of several whose repeat adds most."""
    return "POST" if "POST" in verbs else max(verbs)


def targets(ev: Evaluator, call: Call, env: Env) -> str:
    """Return the texts in a call that look like a path or an address."""
    out: list[str] = []
    for arg in call.args[:3]:
        for value in ev.eval(arg.value, env)[:6]:
            if isinstance(value, Const) and isinstance(value.value, str):
                out.append(value.value)
            elif isinstance(value, Record):
                for key in ("url", "path"):
                    out += [str(v.value) for v in ev.entry(value, key) if isinstance(v, Const)]
    return " ".join(t for t in out if "/" in t or "{}" in t)


def address(ev: Evaluator, call: Call, env: Env) -> str:
    """Return the path of a request, also where a builder is given it in another step."""
    found = targets(ev, call, env)
    steps = steps_after(call, env)
    inner: Expr = call.callee
    while isinstance(inner, Member | Call):
        if isinstance(inner, Call):
            steps.append(inner)
        inner = inner.callee if isinstance(inner, Call) else inner.obj
    for step in steps if not found else ():
        if called_name(step) in ("uri", "url", "path", "endpoint"):
            found = found or targets(ev, step, env)
    return found


def later_calls(call: Call, env: Env) -> list[Call]:
    """Return the calls on what a call gives, along a builder, nearest first."""
    above = {
        id(c.callee.obj): c
        for c in scope_of(env.function).calls
        if isinstance(c.callee, Member) and isinstance(c.callee.obj, Call)
    }
    out: list[Call] = []
    while id(call) in above:
        call = above[id(call)]
        out.append(call)
    return out


def steps_after(call: Call, env: Env) -> list[Call]:
    """Return the later calls of a builder, also those on the name it is given."""
    scope = scope_of(env.function)
    chain = later_calls(call, env)
    last = chain[-1] if chain else call
    names = {n for n, bound in scope.names.items() for b in bound if b.value is last}
    for other in scope.calls if names else ():
        inner: Expr = other
        while isinstance(inner, Call | Member):
            inner = inner.callee if isinstance(inner, Call) else inner.obj
        if isinstance(inner, Name) and inner.id in names:
            chain.append(other)
    return chain


def http_effect(
    ev: Evaluator, verb: str, call: Call, env: Env, around: str, certain: bool = True
) -> Effect:
    """Return the write of one HTTP verb, or nothing where it only asks."""
    if verb in words.HTTP_READS:
        return NOTHING
    said = body_says(ev, call, env)
    for later in steps_after(call, env):  # `post(url).json(&body)`
        said = said or body_says(ev, later, env)
    return by_verb_and_path(verb, address(ev, call, env), around, said=said, certain=certain)


def by_verb_and_path(
    verb: str, where: str, around: str, *, said: str = "", certain: bool = True
) -> Effect:
    """Return the write of a verb on a path, or nothing where it only asks.

    `around` is the name of what sends it; `said` what its body says of itself ("read", "write").
    """
    if verb in words.HTTP_READS or said == "read":
        return NOTHING
    tail = [s for s in re.split(r"[/?]|\{\}", where.split(" ", maxsplit=1)[0]) if s]
    last_words = set(words.split(tail[-1])) if tail else set()
    asks: object = last_words & words.QUERYING and not last_words & (words.ADDING - {"request"})
    asks = (
        asks
        or (bool(tail) and method_reads(tail[-1]))
        or (
            "search" in tail[-2:-1]
            and verb_says(words.split(tail[-1])[:1]) not in ("write", "declare")
        )
    )
    if verb in ("POST", "?") and not said and (asks or words.reads_by_name(around)):
        return NOTHING
    declares = verb in words.HTTP_DECLARATIVE and not set(words.split(where)) & words.ADDS_ANYWAY
    if verb == "POST":
        makes = bool({"create", "new"} & set(words.split(around)))  # a label, and puts none on
        declares = bool(last_words & words.DECLARES_ANYWAY) and not last_words & words.ADDS_ANYWAY
        declares = declares and not (makes and last_words <= {"label", "labels", "tags", "tag"})
        declares = declares or said == "declare"
    if tail and "." in tail[-1] and verb == "POST" and not said:
        certain = certain and bool(verb_says(words.split(tail[-1].rpartition(".")[2])[:1]))
    return Effect(f"HTTP {verb}" if verb != "?" else "HTTP", declares, certain, where)


def http_by_verb(
    ev: Evaluator, value: Value, name: str, call: Call, env: Env, around: str
) -> Effect | None:
    """Judge `x.post("/path", …)` on an object of unknown or outside making."""
    lower = name.lower()
    if isinstance(value, Ext) and not value.root and len(value.steps) == 1:
        return None
    spelled = VERB_SPELLED.fullmatch(lower)
    if spelled is not None and call.args:
        where = targets(ev, call, env)
        if "/" in where:
            verb = words.HTTP_VERBS[spelled[1]]
            return http_effect(ev, verb, call, env, around, isinstance(value, Ext))
    asks = lower in (
        "request", "fetch", "req", "execute", "call", "do", "newrequest", "newrequestwithcontext"
    )  # fmt: skip
    if call.args and (asks or _names_verb_and_path(ev, call, env)):
        found, _ = _methods(ev, call, env)
        if found:
            writes = found - words.HTTP_READS
            if not writes:
                return NOTHING
            return http_effect(ev, most_adding(writes), call, env, around, False)
    return None


def _names_verb_and_path(ev: Evaluator, call: Call, env: Env) -> bool:
    """Tell whether a call is given a verb and a path: `callApi("/notes", args, "POST")`."""
    given = [v.value for a in call.args[:4] for v in ev.eval(a.value, env) if isinstance(v, Const)]
    texts = [t for t in given if isinstance(t, str)]
    return any(t in words.HTTP_VERBS_UPPER for t in texts) and any(t.startswith("/") for t in texts)
