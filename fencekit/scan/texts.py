"""What the languages' own functions make of a known text: cases, replacements, parts.

Enough to follow a name from where it is written to how it is advertised. What is not known stays
a hole; patterns run bounded.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from fencekit.scan import bounded, words
from fencekit.scan.facts import Call
from fencekit.scan.parts import Parts
from fencekit.scan.values import Const, Env, Ext, Func, Seq, Value

# Methods after which a text is, for our purposes, the same text.
SAME = frozenset({
    "as_str", "as_ref", "toString", "String", "clone", "to_string", "into", "value", "to_owned",
    "as_deref", "unwrap_or", "unwrap", "unwrap_or_default", "describe", "optional", "encode",
    "valueOf", "borrow", "format",
    "read_text", "read_bytes", "open", "resolve", "absolute", "as_posix", "expanduser",  # a path
})  # fmt: skip
STRIPS: dict[str, Callable[[str, str | None], str]] = {
    "trim": str.strip, "strip": str.strip, "lstrip": str.lstrip, "rstrip": str.rstrip,
    "trimStart": str.lstrip, "trimEnd": str.rstrip,
}  # fmt: skip
LOWER = frozenset({"toLowerCase", "lower", "to_lowercase", "toLocaleLowerCase"})
UPPER = frozenset({"toUpperCase", "upper", "to_uppercase", "toLocaleUpperCase"})
STARTS = frozenset({"startsWith", "startswith", "starts_with"})
ENDS = frozenset({"endsWith", "endswith", "ends_with"})
CUTS = frozenset({"slice", "substring", "substr"})
# Functions of libraries that spell a name in another case, by their joint and its capitals.
CASES = {
    "snakeCase": "_", "snake_case": "_", "snakecase": "_", "underscore": "_", "toSnakeCase": "_",
    "kebabCase": "-", "paramCase": "-", "dasherize": "-", "camelCase": "", "camelize": "",
}  # fmt: skip
MAX_JOINED = 24
MAX_MATCHES = 40


def method(ev: Parts, obj: Const, name: str, call: Call, env: Env) -> list[Value] | None:
    """Return the value of `obj.name(…)` for a text, or None where it has no rule."""
    text = str(obj.value)
    if name in LOWER:
        return [replace(obj, value=_outside_holes(text, str.lower))]
    if name in UPPER:
        return [replace(obj, value=_outside_holes(text, str.upper))]
    if name in STARTS or name in ENDS:
        part = _known(ev, call, 0, env)
        if part is None or obj.holes:
            return None
        hit = text.startswith(part) if name in STARTS else text.endswith(part)
        return [Const(hit, file=obj.file, line=obj.line)]
    if name in STRIPS:
        return [replace(obj, value=STRIPS[name](text, _known(ev, call, 0, env)))]
    if name == "join":  # Python's: the text between is the object
        lists = [v for a in call.args[:1] for v in ev.eval(a.value, env) if isinstance(v, Seq)]
        between = None if obj.holes else text
        return [v for seq in lists for v in _joined(between, seq, call, env)] or None
    if name == "format":
        return [replace(obj, holes=True)]
    if name in ("replace", "replaceAll", "removeprefix", "removesuffix", "split", *CUTS):
        made = None if obj.holes else _changed(ev, obj, name, call, env)
        return made or [Const("{}", True, obj.inputs, obj.told, file=obj.file, line=obj.line)]
    return [obj] if name in SAME else None


def _outside_holes(text: str, change: Callable[[str], str]) -> str:
    return "{}".join(change(part) for part in text.split("{}"))


def _known(ev: Parts, call: Call, place: int, env: Env) -> str | None:
    """Return the one text an argument stands for, or None."""
    if len(call.args) <= place:
        return None
    told = ev.eval(call.args[place].value, env)
    only = told[0] if len(told) == 1 else None
    whole = isinstance(only, Const) and isinstance(only.value, str) and not only.holes
    return str(only.value) if whole and isinstance(only, Const) else None


def _changed(ev: Parts, obj: Const, name: str, call: Call, env: Env) -> list[Value] | None:
    text = str(obj.value)
    if name in CUTS:
        ends = [
            v.value for a in call.args[:2] for v in ev.eval(a.value, env) if isinstance(v, Const)
        ]
        places = [e for e in ends if isinstance(e, int)]
        if not places or len(places) != len(call.args[:2]):
            return None
        return [replace(obj, value=text[places[0] : places[1] if places[1:] else None])]
    one = _known(ev, call, 0, env)
    if name == "split" and one is not None:
        parts = text.split(one) if one else list(text)
        items: list[Value] = [replace(obj, value=p) for p in parts[:MAX_JOINED]]
        return [Seq(items, file=obj.file, line=obj.line)]
    if name in ("removeprefix", "removesuffix"):
        if one is None:
            return None
        cut = text.removeprefix(one) if name == "removeprefix" else text.removesuffix(one)
        return [replace(obj, value=cut)]
    if name in ("replace", "replaceAll") and len(call.args) >= 2:
        made = _replaced(ev, text, name, call, env)
        return [replace(obj, value=made)] if made is not None else None
    return None


def _replaced(ev: Parts, text: str, name: str, call: Call, env: Env) -> str | None:
    by = _known(ev, call, 1, env)
    one = _known(ev, call, 0, env)
    if one is not None:
        first_only = name == "replace" and env.language in ("javascript", "typescript", "tsx")
        return text.replace(one, by, 1 if first_only else -1) if by is not None else None
    for value in ev.eval(call.args[0].value, env):
        if isinstance(value, Ext) and value.last == "RegExp" and value.call and value.env:
            pattern = _known(ev, value.call, 0, value.env)
            flags = _known(ev, value.call, 1, value.env) or ""
            if pattern is None:
                return None
            if by is not None:
                return bounded.replace(text, pattern, by, flags=flags, all_of="g" in flags)
            for func in ev.eval(call.args[1].value, env):
                if isinstance(func, Func):
                    return _each_replaced(ev, text, pattern, flags, func, env)
    return None


def _each_replaced(
    ev: Parts, text: str, pattern: str, flags: str, func: Func, env: Env
) -> str | None:
    """Replace each match by what a function of the repository makes of it."""
    found = bounded.compiled(pattern, flags)
    if found is None or len(text) > bounded.LONGEST:
        return None
    out, at = "", 0
    for i, match in enumerate(found.finditer(text)):
        if i >= MAX_MATCHES or (i and "g" not in flags):
            break
        args: list[list[Value]] = [[Const(g)] for g in (match.group(0), *match.groups(""))]
        told = ev.result(func, ev.enter(func, args, {}, env))
        only = told[0] if len(told) == 1 else None
        if not isinstance(only, Const) or only.holes:
            return None
        out += text[at : match.start()] + str(only.value)
        at = match.end()
    return out + text[at:]


def joined(ev: Parts, seq: Seq, call: Call, env: Env) -> list[Value]:
    """Return the items of a list put together by a text between them."""
    return _joined(_known(ev, call, 0, env), seq, call, env)


def _joined(between: str | None, seq: Seq, call: Call, env: Env) -> list[Value]:
    inputs = tuple(seq.items)
    texts = [v for v in seq.items if isinstance(v, Const) and not v.holes]
    known = len(texts) == len(seq.items) and 0 < len(texts) <= MAX_JOINED and not seq.open
    if between is None or not known:
        return [Const("{}", True, inputs, file=env.file, line=call.line)]
    whole = between.join(str(v.value) for v in texts)
    told = tuple(dict.fromkeys(t for v in texts for t in v.told))
    first = next((v for v in texts if v.told), None)
    file, line = (first.file, first.line) if first else (env.file, call.line)
    return [Const(whole, False, inputs, told, file=file, line=line)]


def substituted(ev: Parts, call: Call, env: Env) -> list[Value] | None:
    """Return what `re.sub(pattern, by, text)` gives for known texts, or None."""
    pattern, by = _known(ev, call, 0, env), _known(ev, call, 1, env)
    if pattern is None or by is None or len(call.args) < 3:
        return None
    out: list[Value] = []
    for value in ev.texts(call.args[2].value, env):
        made = None if value.holes else bounded.replace(str(value.value), pattern, by)
        out.append(replace(value, value="{}" if made is None else made, holes=made is None))
    return out or None


def respelled(ev: Parts, name: str, call: Call, env: Env) -> list[Value] | None:
    """Return a text in the case that a library's function spells it in, or None."""
    if name not in CASES or len(call.args) != 1:
        return None
    out: list[Value] = []
    for value in ev.texts(call.args[0].value, env):
        parts = words.split(str(value.value))
        if not CASES[name]:
            parts = (*parts[:1], *(p.capitalize() for p in parts[1:]))
        out.append(replace(value, value=CASES[name].join(parts)))
    return out or None
