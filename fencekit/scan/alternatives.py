"""Several possible values of one expression: which of them count as one."""

from __future__ import annotations

from fencekit.scan.values import Ext, Unknown, Value


def distinct(values: list[Value]) -> list[Value]:
    """Return the values in order, each once; what is the same in every respect counts once."""
    if len(values) < 2:
        return values
    out: dict[object, Value] = {}
    for value in values:
        if isinstance(value, Unknown):
            out.setdefault((value.name, value.file, value.line), value)
        elif isinstance(value, Ext):
            place = (value.file, value.line, id(value.call), id(value.env))
            out.setdefault((value.root, value.steps, place), value)
        else:
            out.setdefault(value, value)
    return list(out.values())


def unlike(values: list[Value]) -> list[Value]:
    """Keep one outside value of those that end in the same call: builders branch at every step."""
    out: dict[object, Value] = {}
    for value in values:
        key = (value.root, value.last, id(value.call)) if isinstance(value, Ext) else id(value)
        out.setdefault(key, value)
    return list(out.values())
