"""Frozen dataclasses that are made as quickly as plain ones.

A frozen dataclass sets each field by a call of `object.__setattr__`; with the dozen values that a
decision makes, that was a fifth of its time. Here a new value wears a class of the same slots that
still takes plain assignments, and puts its own on once it is whole. Nobody sees it in between.
"""

from __future__ import annotations

from typing import Any, TypeVar

T = TypeVar("T")


def quickly_made(kind: type[T]) -> type[T]:
    """Give a frozen, slotted dataclass an `__init__` that assigns its fields; the same signature.

    Fields have plain defaults (no factory, not keyword-only), and nobody derives from the class: a
    value would turn into one of `kind`. Raises `TypeError` for a class that is not of that form.
    """
    made: Any = kind.__init__
    code = made.__code__
    names = code.co_varnames[1 : code.co_argcount]
    fields: dict[str, Any] = vars(kind)["__dataclass_fields__"]
    plain = [name for name, field in fields.items() if field.init]
    if kind.__base__ is not object or list(names) != plain:
        raise TypeError(f"{kind.__name__} is not of the form that can be made quickly")
    draft = type(kind.__name__, (), {"__slots__": vars(kind)["__slots__"]})
    lines = [
        f"def __init__(self, {', '.join(names)}):",
        "    __set(self, '__class__', __draft)",
        *(f"    self.{name} = {name}" for name in names),
        "    self.__class__ = __kind",
    ]
    if hasattr(kind, "__post_init__"):
        lines.append("    self.__post_init__()")
    # Under names that no field has, for the fields are the parameters.
    scope: dict[str, Any] = {"__set": object.__setattr__, "__draft": draft, "__kind": kind}
    exec("\n".join(lines), scope)
    init = scope["__init__"]
    init.__defaults__ = made.__defaults__
    init.__annotations__ = made.__annotations__
    init.__qualname__, init.__module__ = made.__qualname__, kind.__module__
    kind.__init__ = init  # type: ignore[method-assign] # of the same signature
    return kind
