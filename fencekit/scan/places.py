"""Where a tool is declared: the object, class or factory call that its name belongs to.

A name often travels: a constant in one file, the object that carries it in another, the loop that
registers it in a third. The declaration is the object; where a factory makes objects out of its
arguments it is the call of the factory.
"""

from __future__ import annotations

from fencekit.scan.evaluate import Evaluator
from fencekit.scan.facts import Binding, Call, Expr, Lit, Member, Name, Param
from fencekit.scan.scopes import scope_of
from fencekit.scan.values import Const, Env, Inst, Record, Seq, Value

NAME_KEYS = ("name", "Name", "method", "toolName", "tool_name")
NAME_METHODS = frozenset({"name", "getName", "get_name", "Name", "GetName", "toolName"})
MAX_STEPS = 6  # hand-overs of a name from one object to the next

Place = tuple[str, int]


def home_of_name(ev: Evaluator, expr: Expr, env: Env) -> Place | None:
    """Return the place of what carries the name that `expr` reads, or None for a plain name."""
    for _ in range(MAX_STEPS):
        holder = _holder(ev, expr, env)
        if isinstance(holder, Record):
            return home_of_record(ev, holder)
        if isinstance(holder, Inst):
            return home_of_instance(ev, holder)
        if isinstance(holder, Seq) and holder.file and holder.line:
            return holder.file, holder.line  # an entry of a mapping
        if not isinstance(holder, tuple):
            return None
        expr, env = holder
    return None


def home_of_record(ev: Evaluator, record: Record) -> Place:
    """Return the place of the object that first carried the name a record holds."""
    for _ in range(MAX_STEPS):
        further = _source_of(ev, record)
        if isinstance(further, tuple):
            return further
        if further is None or further is record:
            break
        record = further
    return record.file, record.line


def home_of_instance(ev: Evaluator, inst: Inst) -> Place | None:
    """Return the construction that was given the name, or the class that holds it itself."""
    if inst.record is not None:
        return home_of_record(ev, inst.record)
    if inst.call is not None and inst.env is not None and inst.file:
        told = [v for key in NAME_KEYS for v in _texts(ev.inst_member(inst, key, inst.env, 0))]
        given = {
            v.value
            for arg in inst.call.args
            for v in _texts(ev.eval(arg.value, inst.env))
        }  # fmt: skip
        if any(name.value in given for name in told):
            return inst.file, inst.line
    return (inst.cls.module.path, inst.cls.line) if inst.cls.module is not None else None


def _texts(values: list[Value]) -> list[Const]:
    return [v for v in values if isinstance(v, Const) and isinstance(v.value, str)]


def _holder(ev: Evaluator, expr: Expr, env: Env) -> Value | tuple[Expr, Env] | None:
    """Return the object a name is read from, or the expression that an intermediate one names."""
    if isinstance(expr, Call) and isinstance(expr.callee, Member) and not expr.args:
        if expr.callee.name in NAME_METHODS:
            return _only(ev.eval(expr.callee.obj, env))
        return None
    if isinstance(expr, Member):
        held = _only(ev.eval(expr.obj, env)) if expr.name in NAME_KEYS else None
        return held if isinstance(held, Record | Inst) else None
    if isinstance(expr, Name):
        found = _binding(ev, expr.id, env)
        if found is None:
            return None
        binding, at = found
        if binding.path:
            key = binding.path[-1]
            held = _only(_taken_apart(ev, binding, at)) if key in (*NAME_KEYS, 0) else None
            return held if isinstance(held, Seq if key == 0 else Record | Inst) else None
        if binding.kind == "value" and isinstance(binding.value, Member | Name):
            return binding.value, at
    return None


def _binding(ev: Evaluator, name: str, env: Env) -> tuple[Binding, Env] | None:
    here: Env | None = env
    while here is not None:
        bindings = scope_of(here.function).names.get(name)
        if bindings:
            return (bindings[0], here) if len(bindings) == 1 else None
        here = here.closure
    return None


def _taken_apart(ev: Evaluator, binding: Binding, env: Env) -> list[Value]:
    """Return the values of which a destructured name is a part."""
    values: list[Value] = []
    if binding.kind == "loop" and binding.value is not None:
        picked = env.picks.get(id(binding.value))
        values = [picked] if picked is not None else []
    elif binding.kind == "param" and isinstance(binding.item, Param):
        values = (env.args or {}).get(binding.item.name, [])
    elif binding.value is not None:
        values = ev.eval(binding.value, env)
    return ev.apply_path(values, binding.path[:-1], env)


def _only(values: list[Value]) -> Value | None:
    return values[0] if len(values) == 1 else None


def _source_of(ev: Evaluator, record: Record) -> Record | Place | None:
    """Return what handed a record its name: another object, or the call of a factory."""
    if record.expr is None or record.env is None:
        return None
    for entry in record.expr.entries:
        if entry.key is None:
            held = _only(ev.eval(entry.value, record.env))
            if isinstance(held, Record) and _texts(ev.entry(held, "name")):
                return held
        elif isinstance(entry.key, Lit) and entry.key.value in NAME_KEYS:
            if not _texts(ev.eval(entry.value, record.env)):
                continue
            holder = _holder(ev, entry.value, record.env)
            if isinstance(holder, Record):
                return holder
            if isinstance(holder, Inst):
                return home_of_instance(ev, holder)
            if isinstance(entry.value, Name):
                return _factory_call(ev, entry.value.id, record.env)
    return None


def _factory_call(ev: Evaluator, name: str, env: Env) -> Place | None:
    """Return the call that gave a parameter its value, where the factory's call is known."""
    found = _binding(ev, name, env)
    if found is None or found[0].kind != "param":
        return None
    return found[1].entered_at
