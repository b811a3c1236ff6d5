"""Abstract values: what an expression may stand for, as far as the source alone says.

A value is a constant with the place where it is written, a record or sequence whose parts are
evaluated when asked for, a function of this repository with its closure, a class or an instance
of one, something from outside (`Ext`, by dotted path), the tool's own input, or unknown.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from fencekit.scan.facts import Call, Class, Dict, Expr, Function, Module, Mutation

MAX_ITEMS = 5000


@dataclass(slots=True, eq=False)
class Value:
    """Base of all values; `file` and `line` say where it comes from."""

    file: str = field(default="", kw_only=True)
    line: int = field(default=0, kw_only=True)


@dataclass(slots=True, eq=False)
class Const(Value):
    """A literal; `holes` marks text in which unknown parts were replaced by `{}`.

    One made of a data document's texts has their place, not that of the code that puts it together.
    """

    value: str | int | float | bool | None
    holes: bool = False
    inputs: tuple[Value, ...] = ()
    told: tuple[str, ...] = ()  # the texts of a data document that it is made of


@dataclass(slots=True, eq=False)
class Record(Value):
    """A mapping: its literal in its environment, plus later changes; `made` holds computed ones."""

    expr: Dict | None
    env: Env | None
    changes: list[tuple[Mutation, Env]] = field(default_factory=list)
    made: list[tuple[list[Value], list[Value], int]] = field(default_factory=list)
    lookup: dict[str, list[tuple[Mutation, Env]]] | None = None
    pairs: Seq | None = None  # the entries as (key, value), when asked


@dataclass(slots=True, eq=False)
class Seq(Value):
    """A list with known items; `open` where more may follow."""

    items: list[Value]
    open: bool = False
    lookup: dict[str, dict[object, list[Value]] | None] | None = None  # items by key, when asked
    results: list[list[Value]] | None = None  # one by one, where a function hands back several

    def __post_init__(self) -> None:
        """Cut what is longer than any list that somebody wrote: a loop that feeds itself."""
        if len(self.items) > MAX_ITEMS:
            self.items, self.open = self.items[:MAX_ITEMS], True


@dataclass(slots=True, eq=False)
class Func(Value):
    """A function of this repository, its closure, the object it is bound to, arguments so far."""

    function: Function
    closure: Env | None = None
    bound_to: Value | None = None
    given: list[list[Value]] = field(default_factory=list)
    certain: bool = True


@dataclass(slots=True, eq=False)
class ClassRef(Value):
    """A class itself."""

    cls: Class


@dataclass(slots=True, eq=False)
class Inst(Value):
    """An instance of a class; `call` and `env` where its construction is seen."""

    cls: Class
    call: Call | None = None
    env: Env | None = None
    exact: bool = False
    fields: dict[str, list[Value]] = field(default_factory=dict)
    record: Record | None = None


@dataclass(slots=True, eq=False)
class Ext(Value):
    """Something from outside the repository, by the path that leads to it.

    `root` is the module it was imported from (empty for the language's own names); `steps` are
    the members and calls (`()`), the last call kept with its arguments.
    """

    root: str
    steps: tuple[str, ...] = ()
    call: Call | None = None
    env: Env | None = None

    @property
    def path(self) -> str:
        """Return the dotted path without calls."""
        return ".".join(s for s in (self.root, *self.steps) if s and s != "()")

    @property
    def last(self) -> str:
        """Return the last name on the path."""
        for step in reversed(self.steps):
            if step != "()":
                return step
        return self.root


@dataclass(slots=True, eq=False)
class Super(Value):
    """An instance seen from one class upwards."""

    inst: Inst
    cls: Class


@dataclass(slots=True, eq=False)
class Mod(Value):
    """A module of this repository."""

    module: Module


@dataclass(slots=True, eq=False)
class Input(Value):
    """What the caller of the tool supplies, by name; `tool` in a dispatcher's request."""

    name: str
    tool: str = ""
    note: str = ""


@dataclass(slots=True, eq=False)
class Unknown(Value):
    """Nothing is known but the name it goes by."""

    name: str = ""


@dataclass(slots=True, eq=False)
class Env:
    """One activation of a function: what its parameters and loop variables stand for.

    `args` is None where the function was not entered from a known call: its parameters then
    stand for what all known callers pass.
    """

    function: Function
    args: dict[str, list[Value]] | None = None
    closure: Env | None = None
    self_value: Value | None = None
    picks: dict[int, Value] = field(default_factory=dict)
    depth: int = 0
    memo: dict[int, list[Value]] = field(default_factory=dict)
    entered_at: tuple[str, int] | None = None  # the call that led here, where one is known
    base: Env | None = None  # the activation this one is a pick of
    subs: dict[tuple[tuple[int, int], ...], Env] = field(default_factory=dict)

    @property
    def activation(self) -> int:
        """Return what is the same for an activation and all picks from it."""
        return id(self.base) if self.base is not None else id(self)

    def pick(self, key: Expr | None, value: Value) -> Env:
        """Return this activation with one loop (by its iterable) at one element."""
        return self.picked({**self.picks, id(key): value})

    def picked(self, picks: dict[int, Value]) -> Env:
        """Return this activation with loops at these elements; the same again for the same."""
        base = self.base or self
        if not picks:
            return base
        key = tuple(sorted((loop, id(value)) for loop, value in picks.items()))
        if key not in base.subs:
            base.subs[key] = Env(
                base.function, base.args, base.closure, base.self_value, picks, base.depth,
                entered_at=base.entered_at, base=base,
            )  # fmt: skip
        return base.subs[key]

    @property
    def in_data(self) -> bool:
        """Tell whether this is the content of a data document."""
        return self.language == "data"

    @property
    def language(self) -> str:
        """Return the language of the file the function stands in."""
        return self.function.module.language if self.function.module else ""

    @property
    def file(self) -> str:
        """Return the path of the file the function stands in."""
        return self.function.module.path if self.function.module else ""
