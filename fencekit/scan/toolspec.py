"""Reads one tool's declaration: name, description, parameters, annotations, handler.

Declarations differ by SDK only in how they are spelled: an object with `name` and a schema, a
constructor call with options, a decorator with keywords. All end in one `Tool`.

Over 400 lines: one reader per spelling of the same few fields.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from fencekit.scan import words
from fencekit.scan.evaluate import Evaluator
from fencekit.scan.facts import Call, Class, Expr, Function, Lit, Member, Name
from fencekit.scan.places import NAME_KEYS, home_of_record
from fencekit.scan.values import (
    ClassRef,
    Const,
    Env,
    Ext,
    Func,
    Inst,
    Record,
    Seq,
    Value,
)

HINTS = {
    "readonly": "readOnlyHint",
    "readonlyhint": "readOnlyHint",
    "destructive": "destructiveHint",
    "destructivehint": "destructiveHint",
    "idempotent": "idempotentHint",
    "idempotenthint": "idempotentHint",
    "openworld": "openWorldHint",
    "openworldhint": "openWorldHint",
    "title": "title",
}
SCHEMA_KEYS = (
    "inputSchema", "input_schema", "InputSchema", "parameters", "schema", "paramsSchema",
    "RawInputSchema",
    "input", "args", "inputShape", "shape", "params", "argsSchema",
)  # fmt: skip
HANDLER_KEYS = (
    "execute", "handler", "Handler", "run", "callback", "cb", "fn", "func", "call", "invoke",
    "function",
    "handle", "action", "toolCallback", "implementation", "logic",
)  # fmt: skip
TEXT_KEYS = ("description", "Description", "desc", "title")


@dataclass(slots=True)
class Parameter:
    """One parameter of a tool, where it is declared, and what its description says."""

    name: str
    file: str
    line: int
    description: str = ""


@dataclass(slots=True)
class Tool:
    """A declared tool; `place` of its parts as found. `dispatch` handlers get the tool's name."""

    name: str
    file: str
    line: int
    language: str = ""
    sdk: str = ""
    server: str = ""
    declared_name: str = ""
    description: str = ""
    parameters: list[Parameter] = field(default_factory=list)
    annotations: dict[str, bool | str] = field(default_factory=dict)
    handler: Func | None = None
    dispatch: bool = False
    name_place: tuple[str, int] = ("", 0)
    style: str = ""
    data: tuple[str, str] | None = None  # HTTP verb and path of a tool made from data
    data_place: tuple[str, int] = ("", 0)
    operation: str = ""  # the id of the operation it is made from
    told: tuple[str, ...] = ()  # texts of a data document that its name is made of
    executor: tuple[Call, Env] | None = None  # the call of an SDK that runs a tool made from data


def text_of(ev: Evaluator, values: list[Value]) -> Const | None:
    """Return the first constant text among values."""
    for value in values:
        if isinstance(value, Const) and isinstance(value.value, str):
            return value
    return None


def from_record(ev: Evaluator, record: Record) -> Tool | None:
    """Read a tool from an object with a name; None where it is none."""
    name = None
    for key in NAME_KEYS:
        for value in ev.entry(record, key):
            if isinstance(value, Const) and isinstance(value.value, str) and not value.holes:
                told = value.value
                if key == "method" and (told.upper() in ("GET", "POST", "PUT", "PATCH", "DELETE")):
                    continue
                if plausible(told):
                    name = value
        if name is not None and key != "name":
            break
        if name is not None:
            method = text_of(ev, ev.entry(record, "method"))
            if not (method is not None and " " in str(name.value)):
                break
            name = None
    if name is None:
        return None
    home = home_of_record(ev, record)
    tool = Tool(str(name.value), *home, name_place=(name.file, name.line), told=name.told)
    if name.told:  # made from a document, which says the rest
        return tool
    for key in TEXT_KEYS:
        told_text = text_of(ev, ev.entry(record, key))
        if told_text is not None and not tool.description:
            tool.description = str(told_text.value)
    for key in SCHEMA_KEYS:
        if not tool.parameters:
            tool.parameters = parameters(ev, ev.entry(record, key))
    for key in ("annotations", "Annotations"):
        tool.annotations.update(hints(ev, ev.entry(record, key)))
    tool.handler = handler_in(ev, record)
    verb, path = text_of(ev, ev.entry(record, "method")), text_of(ev, ev.entry(record, "path"))
    verb = verb or text_of(ev, ev.entry(record, "httpMethod"))
    if verb is not None and path is not None and str(verb.value).upper() in words.HTTP_VERBS_UPPER:
        tool.data = (str(verb.value).upper(), str(path.value))
        tool.data_place = (verb.file, verb.line)
    return tool


def run_by(ev: Evaluator, value: Value) -> Func | None:
    """Return the function that a value is, or that an adapter of it is: `NewTypedHandler(f)`."""
    if isinstance(value, Func):
        return value
    if not isinstance(value, Ext) or value.call is None or value.env is None:
        return None
    if "handler" not in words.split(value.last):
        return None
    given = [v for a in value.call.args for v in ev.eval(a.value, value.env)]
    return next((v for v in given if isinstance(v, Func)), None)


def handler_in(ev: Evaluator, record: Record) -> Func | None:
    """Return the function an object holds under a key that means "run this"."""
    for key in HANDLER_KEYS:
        for value in ev.entry(record, key):
            if isinstance(value, Func):
                return value
    return None


def plausible(name: str) -> bool:
    """Tell whether a text can be a tool's name."""
    return 0 < len(name) <= 128 and not any(c in name for c in " \t\n{}<>()'\"$,;")


def from_call(ev: Evaluator, value: Ext) -> Tool | None:
    """Read a tool from a constructor call of the SDK: `Tool(name=…)`, `NewTool("…", …)`."""
    call, env = value.call, value.env
    made = set(words.split(value.last))
    if call is None or env is None or ("server" in made and "tool" not in made):
        return None
    name: Const | None = None
    for arg in call.args:
        if arg.name == "name" or (arg.name is None and arg is call.args[0]):
            name = text_of(ev, ev.eval(arg.value, env))
            break
    if name is None:
        for arg in call.args:  # `new Tool({name: …})`
            for inner in ev.eval(arg.value, env):
                if isinstance(inner, Record):
                    return from_record(ev, inner)
        return None
    if name.holes or not plausible(str(name.value)):
        return None
    place = (name.file, name.line)
    tool = Tool(str(name.value), value.file, value.line, name_place=place, told=name.told)
    if name.told:  # made from a document, which says the rest
        return tool
    read_options(ev, call, env, tool)
    return tool


def read_options(ev: Evaluator, call: Call, env: Env, tool: Tool) -> None:
    """Read description, parameters and annotations from a call's arguments."""
    for i, arg in enumerate(call.args):
        values = ev.eval(arg.value, env)
        if arg.name in ("description",) or (arg.name is None and i == 1 and not tool.description):
            told = text_of(ev, values)
            if told is not None:
                tool.description = str(told.value)
                continue
        if arg.name in ("inputSchema", "input_schema", "parameters", "args_schema"):
            tool.parameters = parameters(ev, values)
        elif arg.name == "annotations":
            tool.annotations.update(hints(ev, values))
        elif arg.name is None and i > 0:
            for value in values:
                _option(ev, value, tool)


def _option(ev: Evaluator, value: Value, tool: Tool) -> None:
    """Read one option: `WithString("id", Description("…"))`, a schema, a list of options."""
    if isinstance(value, Seq):
        for item in value.items:
            _option(ev, item, tool)
        return
    run = run_by(ev, value)
    if run is not None and tool.handler is None:
        tool.handler = run
        return
    if isinstance(value, Record):
        found = parameters(ev, [value])
        if found and not tool.parameters:
            tool.parameters = found
        tool.annotations.update(hints(ev, ev.entry(value, "annotations")))
        return
    if not isinstance(value, Ext) or value.call is None or value.env is None:
        return
    name = value.last
    lower = "".join(words.split(name))
    texts = [t for a in value.call.args for t in ev.texts(a.value, value.env)]
    if lower in ("withdescription", "description") and texts:
        tool.description = str(texts[0].value)
    elif "annotation" in lower:
        hint = HINTS.get(lower.removeprefix("with").removesuffix("annotation"))
        if hint and value.call.args:
            flag = ev.one(value.call.args[0].value, value.env)
            if isinstance(flag, Const) and isinstance(flag.value, bool | str):
                tool.annotations[hint] = flag.value
        for arg in value.call.args:
            tool.annotations.update(hints(ev, ev.eval(arg.value, value.env)))
    elif lower.startswith("with") and texts:
        told = description_of(ev, value)
        tool.parameters.append(
            Parameter(str(texts[0].value), value.env.file, value.call.line, told)
        )
    elif texts and not lower.startswith("with"):
        found = parameters(ev, [value])
        if found and not tool.parameters:
            tool.parameters = found


def hints(ev: Evaluator, values: list[Value]) -> dict[str, bool | str]:
    """Read the protocol's hints from an object, a constructor call or a struct."""
    out: dict[str, bool | str] = {}
    for given in values:
        pairs: list[tuple[str, list[Value]]] = []
        value: Value = given
        if isinstance(given, Inst) and given.record is not None:
            value = given.record
        if isinstance(value, Record):
            for names, held, _ in ev.entries(value):
                pairs += [(str(n.value), held) for n in names if isinstance(n, Const)]
        elif isinstance(value, Ext) and value.call is not None and value.env is not None:
            env = value.env
            pairs += [(a.name, ev.eval(a.value, env)) for a in value.call.args if a.name]
            for arg in value.call.args:
                if arg.name is None or arg.spread:
                    out.update(hints(ev, ev.eval(arg.value, env)))
        for name, held in pairs:
            hint = HINTS.get("".join(words.split(name)))
            for one in held[:1]:
                flag: Value = one
                if (
                    isinstance(one, Ext)
                    and one.call is not None
                    and one.env is not None
                    and one.call.args
                ):
                    flag = ev.one(one.call.args[0].value, one.env)  # `ptr(true)`
                if hint and isinstance(flag, Const) and isinstance(flag.value, bool | str):
                    out[hint] = flag.value
    return out


def parameters(ev: Evaluator, values: list[Value], depth: int = 0) -> list[Parameter]:
    """Read parameters from a JSON Schema, a zod shape, a model class."""
    if depth > 4:
        return []
    out: list[Parameter] = []
    for value in values:
        if isinstance(value, Record):
            inner = ev.entry(value, "properties")
            records = [v for v in inner if isinstance(v, Record)]
            if records:
                for record in records:
                    out.extend(_shape(ev, record))
            elif text_of(ev, ev.entry(value, "type")) is None:
                out.extend(_shape(ev, value))
        elif isinstance(value, ClassRef | Inst):
            out.extend(model_fields(ev, value.cls))
        elif isinstance(value, Ext) and value.call is not None and value.env is not None:
            for arg in value.call.args:
                found = ev.eval(arg.value, value.env)
                held: list[Value] = [
                    v for v in found if isinstance(v, Record | Ext | ClassRef | Inst)
                ]
                out.extend(parameters(ev, held, depth + 1))
            callee = value.call.callee
            if isinstance(callee, Member):
                out.extend(parameters(ev, ev.eval(callee.obj, value.env), depth + 1))
    return out


def _shape(ev: Evaluator, record: Record) -> list[Parameter]:
    out: list[Parameter] = []
    for names, held, line in ev.entries(record):
        for name in names:
            if isinstance(name, Const) and isinstance(name.value, str):
                told = ""
                for value in held:
                    told = told or description_of(ev, value)
                file = name.file or record.file
                out.append(Parameter(name.value, file, name.line or line or record.line, told))
    return out


def description_of(ev: Evaluator, value: Value) -> str:
    """Return the description in a schema value: a key, or a `.describe(…)` in its chain."""
    if isinstance(value, Record):
        told = text_of(ev, ev.entry(value, "description"))
        return str(told.value) if told is not None else ""
    steps = 0
    while (
        isinstance(value, Ext) and value.call is not None and value.env is not None and steps < 12
    ):
        steps += 1
        call, env = value.call, value.env
        if value.last.lower() in ("describe", "description", "withdescription", "meta"):
            for arg in call.args:
                for text in ev.texts(arg.value, env):
                    return str(text.value)
        for arg in call.args:
            for inner in ev.eval(arg.value, env):
                if arg.name == "description" and isinstance(inner, Const):
                    return str(inner.value)
                if isinstance(inner, Ext) and inner.last.lower() in ("description", "describe"):
                    found = description_of(ev, inner)
                    if found:
                        return found
        callee = call.callee
        if not isinstance(callee, Member):
            return ""
        value = ev.eval(callee.obj, env)[0]
    return ""


def model_fields(ev: Evaluator, cls: Class) -> list[Parameter]:
    """Return the fields of a model class or struct as parameters."""
    out: list[Parameter] = []
    for here in ev.mro(cls):
        file = here.module.path if here.module else ""
        for name, (line, note) in here.notes.items():
            told = note
            value = here.fields.get(name)
            if not told and isinstance(value, Call) and here.module is not None:
                told = keyword_text(ev, value, "description", ev.top_env(here.module))
            out.append(Parameter(name, file, line, told))
    return out


def keyword_text(ev: Evaluator, call: Expr, key: str, env: Env) -> str:
    """Return the text of a keyword argument of a call."""
    if isinstance(call, Call):
        for arg in call.args:
            if arg.name == key:
                told = text_of(ev, ev.eval(arg.value, env))
                return str(told.value) if told is not None else ""
    return ""


def function_parameters(ev: Evaluator, function: Function, env: Env) -> list[Parameter]:
    """Return a Python handler's parameters, with the descriptions in their annotations."""
    out: list[Parameter] = []
    file = function.module.path if function.module else ""
    for param in function.params:
        if (
            param.name in ("self", "cls", "ctx", "context")
            or param.rest
            or param.type_text in ("Context",)
        ):
            continue
        told = ""
        for mark in [*param.marks, *([param.default] if param.default is not None else [])]:
            told = told or keyword_text(ev, mark, "description", env)
            if (
                not told
                and isinstance(mark, Lit)
                and mark in param.marks
                and isinstance(mark.value, str)
            ):
                told = mark.value
        told = told or docstring_entry(function.doc, param.name)
        typed = [
            v for v in ev.from_type(param.type_text, env) if isinstance(v, Inst) and v.cls.notes
        ]
        if typed:
            out.extend(model_fields(ev, typed[0].cls))
        out.append(Parameter(param.name, file, param.line, told))
    return out


def holds_services(ev: Evaluator, value: Value) -> bool:
    """Tell whether a data class carries what handlers work with: `context.client`."""
    if not isinstance(value, Inst) or value.cls.module is None:
        return False
    env = ev.top_env(value.cls.module)
    held = [v for text in value.cls.types.values() for v in ev.from_type(text, env)]
    return any(isinstance(v, Inst) and bool(v.cls.methods) and not is_model(v) for v in held)


def is_model(value: Value) -> bool:
    """Tell whether a type is a model of the input, or from outside, rather than a service."""
    if isinstance(value, Inst):
        derived = {name_of(a.value) for m in value.cls.marks if isinstance(m, Call) for a in m.args}
        module = value.cls.module
        if derived & {"Deserialize", "JsonSchema"} or (module and module.language == "rust"):
            return bool(derived & {"Deserialize", "JsonSchema"})
        return bool(value.cls.types) and not set(value.cls.methods) - {"__init__", "validate"}
    return isinstance(value, Ext)


def docstring_entry(doc: str, name: str) -> str:
    """Return what a docstring's argument list says of one parameter."""
    lines = doc.splitlines()
    for i, line in enumerate(lines):
        head = line.strip().lstrip("-*").strip()
        for mark in (f"{name}:", f"{name} (", f":param {name}:", f"`{name}`:", f"{name} -"):
            if head.startswith(mark):
                told = [head[len(mark) :].strip()]
                indent = len(line) - len(line.lstrip())
                for more in lines[i + 1 :]:
                    if not more.strip() or len(more) - len(more.lstrip()) <= indent:
                        break
                    told.append(more.strip())
                return " ".join(told)
    return ""


def name_of(expr: Expr) -> str:
    """Return the last name of a plain or dotted expression, or of what a call calls."""
    if isinstance(expr, Call):
        return name_of(expr.callee)
    return expr.name if isinstance(expr, Member) else (expr.id if isinstance(expr, Name) else "")
