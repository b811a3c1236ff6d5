"""What a language is to the scanner, and the small builders its tables are made of.

A language is one file with one `Language`: file suffixes, a grammar, an index query, and two
tables from node type to a *rule*. A rule takes the lowering context and a node and returns a
neutral expression or statement. Most rules are made by the builders below (`call`, `member`,
`wrap`, …), so that a table reads as data.

Over 400 lines: builders for the tables of all languages.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from fencekit.scan.facts import (
    Arg,
    Block,
    Call,
    Choice,
    Class,
    Compare,
    Define,
    Dict,
    Do,
    Entry,
    Expr,
    Function,
    If,
    Import,
    Index,
    ListOf,
    Lit,
    Loop,
    Member,
    Name,
    Param,
    Raise,
    Return,
    Stmt,
    Template,
    Try,
)
from fencekit.scan.languages.resending import Resends

if TYPE_CHECKING:
    from tree_sitter import Node

ExprRule = Callable[["Lowering", "Node"], Expr]
StmtRule = Callable[["Lowering", "Node"], "Stmt | list[Stmt]"]


@dataclass(slots=True)
class Language:
    """Everything that differs per language, as data.

    `query` captures names for the index: `@function`, `@class`, `@call` on the *name* nodes,
    `@import` on module texts, `@mark` on decorator or attribute names.
    """

    name: str
    suffixes: tuple[str, ...]
    grammar: Callable[[], object]
    query: str
    exprs: dict[str, ExprRule]
    stmts: dict[str, StmtRule]
    self_names: frozenset[str] = frozenset()
    block_value: bool = False  # the last expression of a body is its value
    resends: Resends = field(default_factory=Resends)  # what its libraries do about sending again
    finish: Callable[[Lowering], list[Stmt] | None] | None = None  # what a whole file adds
    comment_types: frozenset[str] = frozenset({"comment", "line_comment", "block_comment"})


@dataclass(slots=True)
class Lowering:
    """The context of lowering one file: its bytes, its language, what has been found so far."""

    source: bytes
    language: Language
    path: str
    function: Function | None = None
    owner: Class | None = None
    exports: dict[str, str] = field(default_factory=dict)
    classes: dict[str, Class] = field(default_factory=dict)
    imports: dict[str, Import] = field(default_factory=dict)
    package: str = ""
    line_shift: int = 0
    again: list[int] = field(default_factory=lambda: [0])  # bytes parsed a second time, of the file

    def text(self, node: Node | None) -> str:
        """Return the source text of a node, or an empty string for none."""
        if node is None:
            return ""
        return self.source[node.start_byte : node.end_byte].decode("utf-8", "replace")

    def line(self, node: Node) -> int:
        """Return the 1-based line on which a node starts."""
        return int(node.start_point[0]) + 1 + self.line_shift

    def named(self, node: Node) -> Iterator[Node]:
        """Yield the named children without comments."""
        skip = self.language.comment_types
        for child in node.named_children:
            if child.type not in skip:
                yield child

    def expr(self, node: Node | None) -> Expr:
        """Lower one expression; what has no rule keeps its children."""
        if node is None:
            return Lit(0, None)
        rule = self.language.exprs.get(node.type)
        if rule is not None:
            return rule(self, node)
        return Expr(self.line(node), parts=[self.expr(child) for child in self.named(node)])

    def exprs(self, nodes: list[Node]) -> list[Expr]:
        """Lower several expressions."""
        return [self.expr(node) for node in nodes]

    def stmt(self, node: Node) -> list[Stmt]:
        """Lower one statement; what has no rule is an expression evaluated for its effect."""
        rule = self.language.stmts.get(node.type)
        if rule is None:
            return [Do(self.line(node), self.expr(node))]
        made = rule(self, node)
        return made if isinstance(made, list) else [made]

    def block(self, node: Node | None) -> list[Stmt]:
        """Lower a block (or a lone statement) into its statements."""
        if node is None:
            return []
        if node.type in self.language.stmts:
            return self.stmt(node)
        return self.statements(node)

    def statements(self, node: Node) -> list[Stmt]:
        """Lower the children of a block-like node, one after another."""
        out: list[Stmt] = []
        for child in self.named(node):
            out.extend(self.stmt(child))
        return out

    def within(self, function: Function) -> Lowering:
        """Return the context for lowering the body of a function of this file."""
        return Lowering(
            self.source,
            self.language,
            self.path,
            function,
            function.owner,
            self.exports,
            self.classes,
            self.imports,
            self.package,
            self.line_shift,
            self.again,
        )

    def make_function(
        self, node: Node, name: str, params: list[Param], body: Node | None, **more: object
    ) -> Function:
        """Return a function whose body is lowered when it is first asked for."""

        def lower(function: Function) -> list[Stmt]:
            try:
                return statements(self.within(function))
            except RecursionError:
                if function.module is not None:
                    function.module.cut.append((function.name, function.line))
                return []

        def statements(inner: Lowering) -> list[Stmt]:
            if body is None:
                return []
            made = inner.block(body)
            if body.type in self.language.exprs and body.type not in self.language.stmts:
                value = inner.expr(body)
                return [Return(inner.line(body), value)]
            if self.language.block_value and made and isinstance(made[-1], Do):
                made[-1] = Return(made[-1].line, made[-1].value)
            return made

        function = Function(name, self.line(node), params, lower)
        function.parent, function.start, function.end = (
            self.function,
            node.start_byte,
            node.end_byte,
        )
        for key, value in more.items():
            setattr(function, key, value)
        return function


def field_of(node: Node, name: str | None) -> Node | None:
    """Return a field's node, or the first named child where no field is named."""
    if name is None:
        return node.named_children[0] if node.named_child_count else None
    return node.child_by_field_name(name)


def wrap(name: str | None = None) -> ExprRule:
    """Build a rule for a node that only wraps another: `await x`, `(x)`, `x as T`, `&x`."""
    return lambda low, node: low.expr(field_of(node, name))


def name() -> ExprRule:
    """Build a rule for identifiers."""
    return lambda low, node: Name(low.line(node), low.text(node))


def member(obj: str, attribute: str) -> ExprRule:
    """Build a rule for `obj.attribute`."""

    def rule(low: Lowering, node: Node) -> Expr:
        attr = node.child_by_field_name(attribute)
        line = low.line(attr) if attr is not None else low.line(node)
        return Member(line, low.expr(node.child_by_field_name(obj)), low.text(attr))

    return rule


def index(obj: str, key: str) -> ExprRule:
    """Build a rule for `obj[key]`."""

    def rule(low: Lowering, node: Node) -> Expr:
        target, place = node.child_by_field_name(obj), node.child_by_field_name(key)
        return Index(low.line(node), low.expr(target), low.expr(place))

    return rule


def lower_args(
    low: Lowering, node: Node | None, named: str = "", spread: tuple[str, ...] = ()
) -> list[Arg]:
    """Lower an argument list; `named` is the node type of keyword arguments."""
    if node is None:
        return []
    out: list[Arg] = []
    for child in low.named(node):
        if child.type == named:
            label = low.text(child.child_by_field_name("name"))
            out.append(Arg(low.expr(child.child_by_field_name("value")), label))
        elif child.type in spread:
            out.append(Arg(low.expr(field_of(child, None)), None, spread=True))
        else:
            out.append(Arg(low.expr(child)))
    return out


def call(
    callee: str,
    args: str | None,
    *,
    new: bool = False,
    named: str = "",
    spread: tuple[str, ...] = (),
) -> ExprRule:
    """Build a rule for calls and constructions."""

    def rule(low: Lowering, node: Node) -> Expr:
        target = low.expr(field_of(node, callee))
        given = lower_args(low, field_of(node, args), named, spread)
        return Call(target.line, target, given, new, node.start_byte)

    return rule


def literal(value: str | int | float | bool | None = None, *, number: bool = False) -> ExprRule:
    """Build a rule for literals: a fixed value, or the number that is written."""

    def rule(low: Lowering, node: Node) -> Expr:
        if not number:
            return Lit(low.line(node), value)
        text = low.text(node).replace("_", "")
        try:
            return Lit(low.line(node), int(text, 0))
        except ValueError:
            try:
                return Lit(low.line(node), float(text))
            except ValueError:
                return Lit(low.line(node), 0)

    return rule


ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "0": "\0", '"': '"', "'": "'", "\\": "\\", "`": "`"}


def unescape(text: str) -> str:
    """Undo the common backslash escapes; unknown ones keep their character."""
    if "\\" not in text:
        return text
    out, i = [], 0
    while i < len(text):
        if text[i] == "\\" and i + 1 < len(text):
            out.append(ESCAPES.get(text[i + 1], text[i + 1] if text[i + 1] != "\n" else ""))
            i += 2
        else:
            out.append(text[i])
            i += 1
    return "".join(out)


def string(
    content: tuple[str, ...], holes: tuple[str, ...] = (), escape: str = "escape_sequence"
) -> ExprRule:
    """Build a rule for string literals with optional interpolations."""

    def rule(low: Lowering, node: Node) -> Expr:
        parts: list[Expr] = []
        for child in node.children:
            if child.type in content or child.type == escape:
                parts.append(Lit(low.line(child), unescape(low.text(child))))
            elif child.type in holes:
                parts.append(low.expr(field_of(child, None)))
        if all(isinstance(part, Lit) for part in parts):
            return Lit(low.line(node), "".join(str(p.value) for p in parts if isinstance(p, Lit)))
        return Template(low.line(node), parts=parts)

    return rule


def raw_string(strip: str = "\"'`") -> ExprRule:
    """Build a rule for string literals whose node is the whole text with its quotes."""
    return lambda low, node: Lit(low.line(node), low.text(node).strip(strip))


def items(spread: tuple[str, ...] = ()) -> ExprRule:
    """Build a rule for list-like literals."""
    return lambda low, node: ListOf(low.line(node), lower_args(low, node, "", spread))


def choice(*fields: str, test: str | None = None) -> ExprRule:
    """Build a rule for conditional expressions."""

    def rule(low: Lowering, node: Node) -> Expr:
        options = [low.expr(node.child_by_field_name(f)) for f in fields]
        asked = low.expr(node.child_by_field_name(test)) if test else None
        return Choice(low.line(node), options, asked)

    return rule


EITHER = frozenset({"||", "??", "or", "&&", "and"})
EQUAL = frozenset({"==", "===", "in", "!=", "!==", "not in", "is"})


def binary(
    left: str = "left", right: str = "right", operator: str = "operator", *, paths: bool = False
) -> ExprRule:
    """Build a rule for binary operators: concatenation, alternatives, comparisons, the rest.

    `paths` says that `/` may join paths; a quotient then is a text nobody reads.
    """

    def rule(low: Lowering, node: Node) -> Expr:
        one, two = (
            low.expr(node.child_by_field_name(left)),
            low.expr(node.child_by_field_name(right)),
        )
        sign = low.text(node.child_by_field_name(operator))
        line = low.line(node)
        if sign == "+":
            flat = [p for e in (one, two) for p in (e.parts if isinstance(e, Template) else [e])]
            if all(isinstance(p, Lit) and isinstance(p.value, str) for p in flat):
                return Lit(line, "".join(str(p.value) for p in flat if isinstance(p, Lit)))
            return Template(line, parts=flat)
        if sign == "/" and paths:
            return Template(line, parts=[one, Lit(line, "/"), two])
        if sign in EITHER:
            return Choice(line, [one, two] if sign in ("||", "??", "or") else [two], one)
        if sign in EQUAL:
            return Compare(line, one, two, sign in ("!=", "!==", "not in"), sign.endswith("in"))
        return Expr(line, parts=[one, two])

    return rule


def simple_return(value: str | None = None) -> StmtRule:
    """Build a rule for return statements."""

    def rule(low: Lowering, node: Node) -> Stmt:
        child = field_of(node, value)
        return Return(low.line(node), low.expr(child) if child is not None else None)

    return rule


def simple_raise() -> StmtRule:
    """Build a rule for statements that throw."""

    def rule(low: Lowering, node: Node) -> Stmt:
        child = field_of(node, None)
        return Raise(low.line(node), low.expr(child) if child is not None else None)

    return rule


def branch(
    test: str = "condition", then: str = "consequence", orelse: str = "alternative"
) -> StmtRule:
    """Build a rule for `if`; several alternatives (elif chains) nest to the right."""

    def rule(low: Lowering, node: Node) -> Stmt:
        otherwise: list[Stmt] = []
        for alt in reversed(node.children_by_field_name(orelse)):
            if alt.child_by_field_name(test) is not None and alt.type != node.type:
                otherwise = [
                    If(
                        low.line(alt),
                        low.expr(alt.child_by_field_name(test)),
                        low.block(alt.child_by_field_name(then)),
                        otherwise,
                    )
                ]
            else:
                otherwise = low.block(alt.child_by_field_name("body") or alt)
        return If(
            low.line(node),
            low.expr(node.child_by_field_name(test)),
            low.block(node.child_by_field_name(then)),
            otherwise,
        )

    return rule


def loop(
    target: str | None, iterable: str | None, test: str | None, body: str = "body"
) -> StmtRule:
    """Build a rule for loops."""

    def rule(low: Lowering, node: Node) -> Stmt:
        def get(name: str | None) -> Expr | None:
            found = node.child_by_field_name(name) if name else None
            return low.expr(found) if found is not None else None

        return Loop(
            low.line(node), get(target), get(iterable), get(test), low.block(field_of(node, body))
        )

    return rule


def block() -> StmtRule:
    """Build a rule for statement blocks."""
    return lambda low, node: Block(low.line(node), low.statements(node))


def nothing() -> StmtRule:
    """Build a rule for statements that hold no facts."""
    return lambda low, node: []


__all__ = [
    "Define",
    "Dict",
    "Entry",
    "ExprRule",
    "Language",
    "Lowering",
    "StmtRule",
    "Try",
]
