"""The plain model between the languages and the analysis: what a file says, in no language's terms.

Two layers, so that a file costs one parse and one query pass unless something leads into it:

* `FileFacts` is the index of one file: which functions, classes and calls it holds, by name and
  byte offset, and where it could not be parsed. It is plain data and crosses process borders.
* The neutral tree (`Module`, `Function`, `Class`, statements, expressions) is lowered on demand by
  the tables in `languages/`; function bodies only when something asks for them.

Adding a language means writing one file that fills a `languages.base.Language` whose rules build
these nodes. Everything after this module (values, links, tools, effects) never sees a grammar.

Lines count from 1. `Expr.line` of a call is the line of the called name.

Over 400 lines: one model, a class for each kind of node.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass(slots=True)
class FileFacts:
    """The index of one parsed file: names to byte offsets, and the ranges that did not parse."""

    path: str
    language: str
    functions: dict[str, list[int]] = field(default_factory=dict)
    classes: dict[str, list[int]] = field(default_factory=dict)
    calls: dict[str, list[int]] = field(default_factory=dict)
    imports: list[str] = field(default_factory=list)
    marks: list[str] = field(default_factory=list)  # decorators and attributes, by last name
    schema: bool = False  # the text names an input schema somewhere
    tool_type: bool = False  # the text may name a type of tools
    protocol: bool = False  # the text names the protocol's request for the tools
    partial: list[tuple[int, int]] = field(default_factory=list)  # line ranges with errors


# Expressions. `eq=False` keeps identity hashing: the evaluator remembers results per node.


@dataclass(slots=True, eq=False)
class Expr:
    """Any expression; `parts` of the base class are children without a known meaning."""

    line: int
    parts: list[Expr] = field(default_factory=list, kw_only=True)


@dataclass(slots=True, eq=False)
class Lit(Expr):
    """A literal: text, number, truth value or nothing."""

    value: str | int | float | bool | None


@dataclass(slots=True, eq=False)
class Template(Expr):
    """Text put together from `parts`, in order: a template, a concatenation, a format call."""


@dataclass(slots=True, eq=False)
class Name(Expr):
    """A plain identifier."""

    id: str


@dataclass(slots=True, eq=False)
class Member(Expr):
    """`obj.name`."""

    obj: Expr
    name: str


@dataclass(slots=True, eq=False)
class Index(Expr):
    """`obj[key]`."""

    obj: Expr
    key: Expr


@dataclass(slots=True, eq=False)
class Arg:
    """One argument of a call: named, spread (`*` or `...`), or plain."""

    value: Expr
    name: str | None = None
    spread: bool = False


@dataclass(slots=True, eq=False)
class Call(Expr):
    """A call or a construction (`new`)."""

    callee: Expr
    args: list[Arg] = field(default_factory=list)
    new: bool = False
    offset: int = 0


@dataclass(slots=True, eq=False)
class Entry:
    """One entry of a mapping; a spread has no key."""

    key: Expr | None
    value: Expr
    line: int


@dataclass(slots=True, eq=False)
class Dict(Expr):
    """A mapping, object or struct literal; `type_name` where it names one."""

    entries: list[Entry]
    type_name: Expr | None = None


@dataclass(slots=True, eq=False)
class ListOf(Expr):
    """A list, tuple, array or set literal; `results` are what a function hands back together."""

    items: list[Arg]
    results: bool = False


@dataclass(slots=True, eq=False)
class Result(Expr):
    """One of several results of a call that stands, and is followed, elsewhere."""

    of: Expr
    at: int


@dataclass(slots=True, eq=False)
class Cast(Expr):
    """A value that is said to be of a type (Go's `x.(T)`)."""

    of: Expr
    type_text: str


@dataclass(slots=True, eq=False)
class Choice(Expr):
    """One of several: a conditional expression, `a || b`, a `match` used as a value."""

    options: list[Expr]
    test: Expr | None = None


@dataclass(slots=True, eq=False)
class Compare(Expr):
    """A test of one value against others: `==`, `===`, `in`; `negated` for the opposite."""

    left: Expr
    right: Expr
    negated: bool = False
    member: bool = False


@dataclass(slots=True, eq=False)
class Lambda(Expr):
    """A function used as a value."""

    function: Function


@dataclass(slots=True, eq=False)
class Each(Expr):
    """A comprehension: `item` for every element of `iterable`; `value` for mappings."""

    target: Expr
    iterable: Expr
    item: Expr
    value: Expr | None = None


# Statements.


@dataclass(slots=True, eq=False)
class Stmt:
    """Any statement."""

    line: int


@dataclass(slots=True, eq=False)
class Do(Stmt):
    """An expression evaluated for its effect."""

    value: Expr


@dataclass(slots=True, eq=False)
class Assign(Stmt):
    """`target = value`; a `ListOf` or `Dict` target takes the value apart."""

    target: Expr
    value: Expr
    type_text: str = ""
    final: bool = False  # a declaration that nothing assigns anew
    rebinds: bool = False  # declares nothing: the name may belong to a scope further out


@dataclass(slots=True, eq=False)
class Outward(Stmt):
    """Names that a body binds in a scope further out (`global`, `nonlocal`)."""

    names: tuple[str, ...]


@dataclass(slots=True, eq=False)
class Return(Stmt):
    """The value handed back; an implicit one (a block's last expression) too."""

    value: Expr | None


@dataclass(slots=True, eq=False)
class Raise(Stmt):
    """An error thrown."""

    value: Expr | None


@dataclass(slots=True, eq=False)
class If(Stmt):
    """A branch."""

    test: Expr
    then: list[Stmt]
    orelse: list[Stmt]


@dataclass(slots=True, eq=False)
class Case:
    """One arm: the values it answers to (none for the default) and what it does."""

    values: list[Expr]
    body: list[Stmt]


@dataclass(slots=True, eq=False)
class Switch(Stmt):
    """A dispatch on one subject."""

    subject: Expr
    cases: list[Case]


@dataclass(slots=True, eq=False)
class Loop(Stmt):
    """A loop: over the elements of `iterable`, or while `test` holds."""

    target: Expr | None
    iterable: Expr | None
    test: Expr | None
    body: list[Stmt]


@dataclass(slots=True, eq=False)
class Try(Stmt):
    """A guarded body with its handlers and its final part."""

    body: list[Stmt]
    handlers: list[list[Stmt]]
    final: list[Stmt]


@dataclass(slots=True, eq=False)
class Block(Stmt):
    """Several statements in a row."""

    body: list[Stmt]


@dataclass(slots=True, eq=False)
class Define(Stmt):
    """A function or a class defined here."""

    item: Function | Class


@dataclass(slots=True, eq=False)
class Import(Stmt):
    """`local` names `name` of `module` (no name: the module itself; `*`: everything).

    `level` counts the dots of a relative import where the language has them.
    """

    module: str
    name: str | None
    local: str
    level: int = 0
    export: bool = False


@dataclass(slots=True, eq=False)
class Param:
    """A parameter: its name or pattern, default, and type as written."""

    name: str
    line: int
    default: Expr | None = None
    type_text: str = ""
    pattern: Expr | None = None
    rest: bool = False
    keyword: bool = False
    marks: list[Expr] = field(default_factory=list)


@dataclass(slots=True, eq=False)
class Function:
    """A function, method, closure or a module's top level; the body is lowered when asked for."""

    name: str
    line: int
    params: list[Param]
    lower: Callable[[Function], list[Stmt]]
    module: Module | None = None
    owner: Class | None = None
    parent: Function | None = None
    marks: list[Expr] = field(default_factory=list)  # decorators, attributes, annotations
    returns: str = ""
    doc: str = ""
    static: bool = False
    start: int = 0
    end: int = 0
    _body: list[Stmt] | None = None
    scope: Scope | None = None

    @property
    def body(self) -> list[Stmt]:
        """The statements, lowered at the first use; none where they are nested too deep."""
        if self._body is None:
            try:
                self._body = self.lower(self)
            except RecursionError:
                self._body = []
        return self._body


@dataclass(slots=True, eq=False)
class Class:
    """A class, struct, enum, interface or trait with what is declared on it."""

    name: str
    line: int
    module: Module | None = None
    bases: list[Expr] = field(default_factory=list)
    methods: dict[str, Function] = field(default_factory=dict)
    fields: dict[str, Expr] = field(default_factory=dict)
    types: dict[str, str] = field(default_factory=dict)
    notes: dict[str, tuple[int, str]] = field(default_factory=dict)  # field: line, description
    marks: list[Expr] = field(default_factory=list)
    abstract: bool = False
    partial: bool = False  # declared in another file; this one adds methods
    provided: set[str] = field(default_factory=set)  # methods it has through a trait only
    parent: Function | None = None


@dataclass(slots=True, eq=False)
class Module:
    """One lowered file: its top level as a function, and the names it binds."""

    path: str
    language: str
    top: Function
    exports: dict[str, str] = field(default_factory=dict)  # exported name -> local name
    package: str = ""
    cut: list[tuple[str, int]] = field(default_factory=list)  # names and lines nested too deeply


@dataclass(slots=True, eq=False)
class Binding:
    """How a name in a scope gets a value: an expression, a part of one, a loop, a definition."""

    kind: str  # "value", "loop", "def", "class", "import", "param", "catch"
    line: int
    value: Expr | None = None
    path: tuple[str | int, ...] = ()
    item: Function | Class | Import | Param | None = None
    type_text: str = ""
    final: bool = False


@dataclass(slots=True, eq=False)
class Mutation:
    """`name[key] = value` and its kin (`.set`, `.append`, `.update`), wherever it stands.

    `path` leads from the name to what is changed; a `*` in it is a key that is not written out.
    """

    key: Expr | None
    value: Expr
    line: int
    path: tuple[str, ...] = ()


@dataclass(slots=True)
class Scope:
    """The names a function body binds, the changes it makes to them, and what it hands back."""

    names: dict[str, list[Binding]] = field(default_factory=dict)
    changes: dict[str, list[Mutation]] = field(default_factory=dict)
    # Names of scopes further out that the body gives a value, which it also sees itself.
    rebound: dict[str, list[Binding]] = field(default_factory=dict)
    returns: list[Expr] = field(default_factory=list)
    nested: list[Function] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)
    described: list[Dict] = field(default_factory=list)  # with a type, or a name and a description
    # What statements evaluate, outermost, with the name it is given if it is given a plain one.
    roots: list[tuple[Expr, str]] = field(default_factory=list)
    reach: dict[int, frozenset[int] | None] = field(default_factory=dict)  # see `reach`
    above: dict[int, tuple[Expr | None, str]] | None = None  # see `beside`
    uses: dict[str, list[Expr]] = field(default_factory=dict)  # plain names in the roots
