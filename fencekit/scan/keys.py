"""Keys: values by which the far side could tell a repeat, and where each comes from.

A key is caller's (from the tool's input), derived (a digest of the input), fresh (minted by a
clock, a random source or a counter), or constant. Facts name the place that mints or sets the
value and the place where it goes into the write.
"""

from __future__ import annotations

from dataclasses import dataclass

from fencekit.scan import words
from fencekit.scan.effect import called_name
from fencekit.scan.evaluate import Evaluator
from fencekit.scan.facts import Call, Expr, Member
from fencekit.scan.http_calls import steps_after
from fencekit.scan.values import Const, Env, Ext, Func, Input, Inst, Record, Seq, Unknown, Value

MAX_DEPTH = 8
MAX_STEPS = 40  # of a builder


@dataclass(slots=True, frozen=True)
class KeyFact:
    """One fact about a key: its kind, its name, and a place."""

    kind: str
    file: str
    line: int
    name: str
    clock: bool = False


@dataclass(slots=True)
class Origin:
    """Where a value comes from: inputs, fresh sources, digests."""

    inputs: dict[str, Input]
    fresh: list[Ext]
    hashed: bool = False


def origin(ev: Evaluator, values: list[Value], env: Env) -> Origin:
    """Trace values to inputs of the tool and to sources that differ on every call."""
    out = Origin({}, [])
    _trace(ev, values, out, 0, set())
    return out


def _trace(ev: Evaluator, values: list[Value], out: Origin, depth: int, seen: set[int]) -> None:
    if depth > MAX_DEPTH:
        return
    for value in values[:40]:
        if id(value) in seen:
            continue
        seen.add(id(value))
        match value:
            case Input():
                out.inputs.setdefault(value.name, value)
            case Const():
                _trace(ev, list(value.inputs), out, depth + 1, seen)
            case Ext():
                _trace_outside(ev, value, out, depth, seen)
            case Record():
                for _, held, _ in ev.entries(value):
                    _trace(ev, held, out, depth + 1, seen)
            case Seq():
                _trace(ev, value.items, out, depth + 1, seen)
            case Inst() if value.call is not None and value.env is not None:
                for arg in value.call.args:
                    _trace(ev, ev.eval(arg.value, value.env), out, depth + 1, seen)
            case _:
                pass


def _trace_outside(ev: Evaluator, value: Ext, out: Origin, depth: int, seen: set[int]) -> None:
    called = "()" in value.steps
    names = [s.lower() for s in value.steps if s != "()"]
    if called and value.root not in ("", "datetime", "time") and not names:
        names = [value.root.rsplit("/", 1)[-1].lower()]
    if called and set(names) & words.FRESH and not set(names) & words.HASHES:
        out.fresh.append(value)
    if set(names) & words.HASHES or any(set(words.split(n)) & words.HASHES for n in names):
        out.hashed = True
    if value.call is not None and value.env is not None:
        for arg in value.call.args:
            _trace(ev, ev.eval(arg.value, value.env), out, depth + 1, seen)
        callee = value.call.callee
        if isinstance(callee, Member):
            _trace(ev, ev.eval(callee.obj, value.env), out, depth + 1, seen)


def steps_around(call: Call, env: Env) -> list[Call]:
    """Return a write's call with the steps of its builder, before it and after it."""
    found = [call, *steps_after(call, env)]
    inner: Expr = call.callee
    while isinstance(inner, Member | Call) and len(found) < MAX_STEPS:
        if isinstance(inner, Call):
            found.append(inner)
        inner = inner.callee if isinstance(inner, Call) else inner.obj
    return found[:MAX_STEPS]


def at_call(ev: Evaluator, call: Call, env: Env) -> tuple[list[KeyFact], set[str]]:
    """Return the key facts of a write's arguments, and the names of all inputs that reach it."""
    facts: list[KeyFact] = []
    inputs: set[str] = set()
    for step in steps_around(call, env):
        told = [v for a in step.args for v in ev.eval(a.value, env)]
        if len(step.args) == 2:
            for label in ev.texts(step.args[0].value, env):
                if words.key_like(str(label.value)):
                    held = ev.eval(step.args[1].value, env)
                    facts += judge(ev, str(label.value), held, env, step.line)
        facts += _given_by_name(ev, step, env)
        _records(ev, told, env, facts, 0, set())
        inputs |= set(origin(ev, told, env).inputs)
        inner: Expr = step.callee
        inner = inner.obj if isinstance(inner, Member) else inner
        if isinstance(inner, Member | Call) or inner is not step.callee:
            _records(ev, ev.eval(inner, env), env, facts, 4, set())
    return list(dict.fromkeys(facts)), inputs


def _given_by_name(ev: Evaluator, call: Call, env: Env) -> list[KeyFact]:
    """Return the key facts of a call's keywords: `OrderRequest(client_order_id=…)`."""
    named = [(a.name, a.value) for a in call.args if a.name and words.key_like(a.name)]
    return [
        f for name, value in named for f in judge(ev, name, ev.eval(value, env), env, value.line)
    ]


def minted_ids(ev: Evaluator, call: Call, env: Env) -> list[KeyFact]:
    """Return where an upsert is given an id that is minted for it, so that a repeat adds.

    Only what is upserted is looked into, as a list of records or of objects with an `id`.
    """
    if "upsert" not in words.split(called_name(call)):
        return []
    out: list[KeyFact] = []
    todo = [(v, 0) for a in call.args for v in ev.eval(a.value, env)]
    while todo:
        value, depth = todo.pop(0)
        below: list[Value] = []
        if isinstance(value, Seq):
            below = value.items
        elif isinstance(value, Record):
            for names, held, line in ev.entries(value):
                below += held
                if any(isinstance(n, Const) and n.value == "id" for n in names):
                    out += judge(ev, "id", held, value.env or env, line or value.line)
        elif isinstance(value, Ext | Inst) and value.call is not None and value.env is not None:
            for arg in value.call.args:
                held = ev.eval(arg.value, value.env)
                below += held
                if arg.name == "id":
                    out += judge(ev, "id", held, value.env, arg.value.line)
        todo += [(v, depth + 1) for v in below[:40]] if depth < 3 and len(todo) < 200 else []
    return [f for f in dict.fromkeys(out) if f.kind == "fresh-key"]


def _records(
    ev: Evaluator, values: list[Value], env: Env, facts: list[KeyFact], depth: int, seen: set[int]
) -> None:
    if depth > 6:
        return
    for value in values[:40]:
        if id(value) in seen:
            continue
        seen.add(id(value))
        if isinstance(value, Record):
            for names, held, line in ev.entries(value):
                for name in names:
                    if (
                        isinstance(name, Const)
                        and isinstance(name.value, str)
                        and words.key_like(name.value)
                    ):
                        place = value.env if value.env is not None else env
                        found = judge(ev, name.value, held, place, line or value.line)
                        facts.extend(found)
                _records(ev, held, env, facts, depth + 1, seen)
        elif isinstance(value, Seq):
            _records(ev, value.items, env, facts, depth + 1, seen)
        elif isinstance(value, Inst) and value.record is not None:
            _records(ev, [value.record], env, facts, depth + 1, seen)
        elif (
            isinstance(value, Ext)
            and value.call is not None
            and value.env is not None
            and depth < 4
        ):
            facts.extend(_given_by_name(ev, value.call, value.env))
            for arg in value.call.args:
                _records(ev, ev.eval(arg.value, value.env), value.env, facts, depth + 2, seen)


def judge(ev: Evaluator, name: str, values: list[Value], env: Env, line: int) -> list[KeyFact]:
    """Return the facts about one key by where its values come from."""
    out: list[KeyFact] = []
    known = [v for v in values if not (isinstance(v, Const) and v.value in (None, "", False))]
    for value in known:
        found = origin(ev, [value], env)
        if found.hashed and (found.inputs or isinstance(value, Ext)):
            out.append(KeyFact("derived-key", env.file, line, name))
            continue
        for mint in found.fresh:
            clock = mint.last.lower() in words.CLOCK
            out.append(KeyFact("fresh-key", mint.file or env.file, mint.line or line, name, clock))
            out.append(KeyFact("fresh-key", env.file, line, name, clock))
        if found.inputs and not found.fresh:
            out.append(KeyFact("caller-key", env.file, line, name))
            for given in found.inputs.values():
                if given.line and words.key_like(given.name):
                    out.append(KeyFact("caller-key", given.file, given.line, given.name))
        elif not found.fresh and not isinstance(value, Unknown | Func):
            out.append(KeyFact("other", env.file, line, name))
    return out
