"""Several possible values of one expression: which of them count as one."""

from __future__ import annotations

from collections import Counter

from fencekit.scan.values import Ext, Record, Unknown, Value

FEW = 4  # records of one literal that are kept apart


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
    """Keep one outside value of those that end in the same call, a few records of one literal.

    Builders branch at every step, and a record made of another's parts once for each of them.
    """
    out: dict[object, Value] = {}
    made: Counter[object] = Counter()
    for value in values:
        key: object = id(value)
        if isinstance(value, Ext):
            key = (value.root, value.last, id(value.call))
        elif isinstance(value, Record) and value.expr is not None:
            literal = id(value.expr)
            made[literal] += 1
            key = (literal, min(made[literal], FEW))
        out.setdefault(key, value)
    return list(out.values())
