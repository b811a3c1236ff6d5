"""Python: its grammar, its index query, and the tables from node types to neutral rules.

Over 400 lines: one language is one file.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import tree_sitter_python

from fencekit.scan.facts import (
    Arg,
    Assign,
    Block,
    Case,
    Class,
    Compare,
    Define,
    Dict,
    Do,
    Each,
    Entry,
    Expr,
    Function,
    Import,
    Lambda,
    ListOf,
    Lit,
    Name,
    Outward,
    Param,
    Stmt,
    Switch,
    Template,
    Try,
)
from fencekit.scan.languages.base import (
    Language,
    Lowering,
    binary,
    block,
    branch,
    call,
    field_of,
    index,
    items,
    literal,
    loop,
    member,
    name,
    nothing,
    simple_raise,
    simple_return,
    string,
    wrap,
)
from fencekit.scan.languages.resending import PYTHON

if TYPE_CHECKING:
    from tree_sitter import Node

QUERY = """
(function_definition name: (identifier) @function)
(class_definition name: (identifier) @class)
(call function: [(identifier) @call (attribute attribute: (identifier) @call)])
(decorator [(identifier) @mark (attribute attribute: (identifier) @mark)
  (call function: [(identifier) @mark (attribute attribute: (identifier) @mark)])])
(import_from_statement module_name: (_) @import)
(import_statement name: [(dotted_name) @import (aliased_import name: (dotted_name) @import)])
"""


def conditional(low: Lowering, node: Node) -> Expr:
    """Lower `a if test else b`."""
    from fencekit.scan.facts import Choice

    one, test, two = list(low.named(node))[:3]
    return Choice(low.line(node), [low.expr(one), low.expr(two)], low.expr(test))


def dictionary(low: Lowering, node: Node) -> Expr:
    """Lower a dict display."""
    entries = []
    for child in low.named(node):
        if child.type == "pair":
            key = low.expr(child.child_by_field_name("key"))
            value = low.expr(child.child_by_field_name("value"))
            entries.append(Entry(key, value, low.line(child)))
        elif child.type == "dictionary_splat":
            entries.append(Entry(None, low.expr(field_of(child, None)), low.line(child)))
    return Dict(low.line(node), entries)


def comparison(low: Lowering, node: Node) -> Expr:
    """Lower a comparison; only two-sided tests keep their meaning."""
    sides = [low.expr(child) for child in low.named(node)]
    signs = [low.text(c) for c in node.children_by_field_name("operators")]
    sign = " ".join(signs)
    if len(sides) == 2 and sign in ("==", "in", "!=", "not in", "is", "is not"):
        negated = sign in ("!=", "not in", "is not")
        return Compare(low.line(node), sides[0], sides[1], negated, sign.endswith("in"))
    return Expr(low.line(node), parts=sides)


def concatenated(low: Lowering, node: Node) -> Expr:
    """Lower adjacent string literals into one text."""
    flat: list[Expr] = []
    for part in low.exprs(list(low.named(node))):
        flat.extend(part.parts if isinstance(part, Template) else [part])
    if all(isinstance(p, Lit) for p in flat):
        return Lit(low.line(node), "".join(str(p.value) for p in flat if isinstance(p, Lit)))
    return Template(low.line(node), parts=flat)


def comprehension(low: Lowering, node: Node) -> Expr:
    """Lower a comprehension with its first `for`; further ones keep their iterables."""
    body = node.child_by_field_name("body")
    clauses = [c for c in node.named_children if c.type == "for_in_clause"]
    target = low.expr(clauses[0].child_by_field_name("left"))
    iterable = low.expr(clauses[0].child_by_field_name("right"))
    rest = [low.expr(c) for c in node.named_children if c.type == "if_clause"]
    rest += [low.expr(c.child_by_field_name("right")) for c in clauses[1:]]
    if body is not None and body.type == "pair":
        key = low.expr(body.child_by_field_name("key"))
        value = low.expr(body.child_by_field_name("value"))
        return Each(low.line(node), target, iterable, key, value, parts=rest)
    return Each(low.line(node), target, iterable, low.expr(body), parts=rest)


def lambda_(low: Lowering, node: Node) -> Expr:
    """Lower a lambda."""
    body = node.child_by_field_name("body")
    made = low.make_function(node, "", params(low, node.child_by_field_name("parameters")), body)
    return Lambda(low.line(node), made)


def walrus(low: Lowering, node: Node) -> Expr:
    """Lower `name := value` to its value."""
    return low.expr(node.child_by_field_name("value"))


def dotted(low: Lowering, node: Node) -> Expr:
    """Lower `a.b.c` of a case pattern."""
    from fencekit.scan.facts import Member

    out: Expr | None = None
    for child in low.named(node):
        text = low.text(child)
        line = low.line(child)
        out = Name(line, text) if out is None else Member(line, out, text)
    return out or Lit(low.line(node), None)


EXPRS = {
    "identifier": name(),
    "dotted_name": dotted,
    "attribute": member("object", "attribute"),
    "subscript": index("value", "subscript"),
    "call": call(
        "function", "arguments", named="keyword_argument", spread=("list_splat", "dictionary_splat")
    ),
    "string": string(("string_content",), ("interpolation",)),
    "concatenated_string": concatenated,
    "integer": literal(number=True),
    "float": literal(number=True),
    "true": literal(True),
    "false": literal(False),
    "none": literal(None),
    "await": wrap(),
    "parenthesized_expression": wrap(),
    "as_pattern": wrap(),
    "keyword_argument": wrap("value"),
    "type": wrap(),
    "list_splat": wrap(),
    "dictionary_splat": wrap(),
    "yield": wrap(),
    "named_expression": walrus,
    "binary_operator": binary(paths=True),
    "boolean_operator": binary(),
    "comparison_operator": comparison,
    "conditional_expression": conditional,
    "dictionary": dictionary,
    "list": items(("list_splat",)),
    "tuple": items(("list_splat",)),
    "set": items(("list_splat",)),
    "expression_list": items(),
    "pattern_list": items(),
    "tuple_pattern": items(),
    "list_comprehension": comprehension,
    "set_comprehension": comprehension,
    "generator_expression": comprehension,
    "dictionary_comprehension": comprehension,
    "lambda": lambda_,
}


def params(low: Lowering, node: Node | None) -> list[Param]:
    """Lower a parameter list."""
    out: list[Param] = []
    keyword = False
    for child in low.named(node) if node is not None else ():
        kind = child.type
        if kind in ("keyword_separator", "positional_separator"):
            keyword = kind == "keyword_separator"
            continue
        default = child.child_by_field_name("value")
        of_type = child.child_by_field_name("type")
        target = child.child_by_field_name("name")
        if target is None:
            target = child if kind == "identifier" else field_of(child, None)
        rest = kind in ("list_splat_pattern", "dictionary_splat_pattern")
        if target is not None and target.type in ("list_splat_pattern", "dictionary_splat_pattern"):
            rest, target = True, field_of(target, None)
        marks = []
        if of_type is not None and b"Annotated" in (of_type.text or b""):
            marks = [low.expr(c) for c in calls_in(of_type)]
        out.append(
            Param(
                low.text(target),
                low.line(child),
                low.expr(default) if default is not None else None,
                low.text(of_type),
                rest=rest,
                keyword=keyword,
                marks=marks,
            )
        )
    return out


def calls_in(node: Node) -> list[Node]:
    """Return the outermost calls and strings under a type annotation."""
    if node.type in ("call", "string", "concatenated_string"):
        return [node]
    return [found for child in node.named_children for found in calls_in(child)]


def docstring(low: Lowering, body: Node | None) -> str:
    """Return the docstring of a body."""
    first = body.named_children[0] if body is not None and body.named_child_count else None
    if first is not None and first.type == "expression_statement" and first.named_child_count:
        first = first.named_children[0]
    if first is not None and first.type == "string":
        made = low.expr(first)
        return str(made.value) if isinstance(made, Lit) else ""
    return ""


def function(low: Lowering, node: Node, marks: list[Expr] | None = None) -> Stmt:
    """Lower a function definition."""
    body = node.child_by_field_name("body")
    made = low.make_function(
        node,
        low.text(node.child_by_field_name("name")),
        params(low, node.child_by_field_name("parameters")),
        body,
        marks=marks or [],
        returns=low.text(node.child_by_field_name("return_type")),
        doc=docstring(low, body),
        owner=low.owner if low.function is None or low.function.owner is None else None,
    )
    made.static = any(isinstance(m, Name) and m.id == "staticmethod" for m in made.marks)
    return Define(made.line, made)


def class_(low: Lowering, node: Node, marks: list[Expr] | None = None) -> Stmt:
    """Lower a class with its methods, class attributes and field annotations."""
    made = Class(low.text(node.child_by_field_name("name")), low.line(node), marks=marks or [])
    made.parent = low.function
    heads = node.child_by_field_name("superclasses")
    for child in low.named(heads) if heads is not None else ():
        if child.type != "keyword_argument":
            made.bases.append(low.expr(child))
    inner = Lowering(low.source, low.language, low.path, None, made, low.exports, low.classes)
    body = node.child_by_field_name("body")
    for stmt in inner.statements(body) if body is not None else ():
        if isinstance(stmt, Define) and isinstance(stmt.item, Function):
            stmt.item.owner = made
            stmt.item.parent = low.function
            made.methods.setdefault(stmt.item.name, stmt.item)
        elif isinstance(stmt, Define) and isinstance(stmt.item, Class):
            stmt.item.parent = low.function
            low.classes.setdefault(stmt.item.name, stmt.item)
        elif isinstance(stmt, Assign) and isinstance(stmt.target, Name):
            if not (isinstance(stmt.value, Lit) and stmt.value.line == 0):
                made.fields[stmt.target.id] = stmt.value
            if stmt.type_text:
                made.types[stmt.target.id] = stmt.type_text
                made.notes[stmt.target.id] = (stmt.line, "")
    return Define(made.line, made)


def decorated(low: Lowering, node: Node) -> Stmt | list[Stmt]:
    """Lower a definition together with its decorators."""
    marks = [low.expr(field_of(c, None)) for c in node.named_children if c.type == "decorator"]
    target = node.child_by_field_name("definition")
    if target is None:
        return []
    if target.type == "class_definition":
        return class_(low, target, marks)
    return function(low, target, marks)


def expression(low: Lowering, node: Node) -> list[Stmt]:
    """Lower an expression statement; assignments among them bind names."""
    out: list[Stmt] = []
    for child in low.named(node):
        if child.type == "assignment":
            out.extend(assignment(low, child))
        elif child.type == "augmented_assignment":
            left = low.expr(child.child_by_field_name("left"))
            right = low.expr(child.child_by_field_name("right"))
            out.append(Assign(low.line(child), left, right))
        else:
            out.append(Do(low.line(child), low.expr(child)))
    return out


def assignment(low: Lowering, node: Node) -> list[Stmt]:
    """Lower `a = b = value`, with or without a type."""
    right = node.child_by_field_name("right")
    left = low.expr(node.child_by_field_name("left"))
    if right is not None and right.type == "assignment":
        rest = assignment(low, right)
        value = rest[0].value if rest and isinstance(rest[0], Assign) else Lit(0, None)
        return [*rest, Assign(low.line(node), left, value)]
    value = low.expr(right) if right is not None else Lit(0, None)
    return [Assign(low.line(node), left, value, low.text(node.child_by_field_name("type")))]


def outward(low: Lowering, node: Node) -> list[Stmt]:
    """Lower `global a, b` and `nonlocal a`."""
    return [Outward(low.line(node), tuple(low.text(one) for one in low.named(node)))]


def import_from(low: Lowering, node: Node) -> list[Stmt]:
    """Lower `from m import a as b`."""
    source = node.child_by_field_name("module_name")
    text = low.text(source)
    level = len(text) - len(text.lstrip("."))
    module, line, out = text.lstrip("."), low.line(node), []
    if any(c.type == "wildcard_import" for c in node.children):
        return [Import(line, module, "*", "*", level)]
    for child in node.children_by_field_name("name"):
        if child.type == "aliased_import":
            told = low.text(child.child_by_field_name("name"))
            out.append(
                Import(line, module, told, low.text(child.child_by_field_name("alias")), level)
            )
        else:
            told = low.text(child)
            out.append(Import(line, module, told, told, level))
    return list(out)


def import_(low: Lowering, node: Node) -> list[Stmt]:
    """Lower `import a.b as c`."""
    out: list[Stmt] = []
    for child in node.children_by_field_name("name"):
        if child.type == "aliased_import":
            told = low.text(child.child_by_field_name("name"))
            out.append(
                Import(low.line(node), told, None, low.text(child.child_by_field_name("alias")))
            )
        else:
            told = low.text(child).split(".")[0]  # `import a.b` binds `a`
            out.append(Import(low.line(node), told, None, told))
    return out


def with_(low: Lowering, node: Node) -> list[Stmt]:
    """Lower `with a as b:` to a binding and the body."""
    out: list[Stmt] = []
    for clause in (c for c in node.named_children if c.type == "with_clause"):
        for item in clause.named_children:
            value = item.child_by_field_name("value")
            alias = value.child_by_field_name("alias") if value is not None else None
            made = low.expr(value)
            if alias is not None and alias.named_child_count:
                out.append(Assign(low.line(item), low.expr(alias.named_children[0]), made))
            else:
                out.append(Do(low.line(item), made))
    return [*out, Block(low.line(node), low.block(node.child_by_field_name("body")))]


def try_(low: Lowering, node: Node) -> Stmt:
    """Lower try / except / else / finally."""
    body = low.block(node.child_by_field_name("body"))
    handlers: list[list[Stmt]] = []
    final: list[Stmt] = []
    for child in low.named(node):
        blocks = [b for b in child.named_children if b.type == "block"]
        if child.type in ("except_clause", "except_group_clause"):
            handlers.append(low.block(blocks[-1]) if blocks else [])
        elif child.type == "finally_clause":
            final = low.block(blocks[-1]) if blocks else []
        elif child.type == "else_clause":
            body = body + low.block(child.child_by_field_name("body"))
    return Try(low.line(node), body, handlers, final)


def match(low: Lowering, node: Node) -> Stmt:
    """Lower `match` with literal, dotted and union patterns."""
    cases: list[Case] = []
    body = node.child_by_field_name("body")
    for clause in body.named_children if body is not None else ():
        if clause.type != "case_clause":
            continue
        values: list[Expr] = []
        for pattern in (c for c in clause.named_children if c.type == "case_pattern"):
            stack = list(pattern.named_children)
            while stack:
                inner = stack.pop(0)
                if inner.type == "union_pattern":
                    stack = [*inner.named_children, *stack]
                else:
                    values.append(low.expr(inner))
        cases.append(Case(values, low.block(clause.child_by_field_name("consequence"))))
    return Switch(low.line(node), low.expr(node.child_by_field_name("subject")), cases)


def delete(low: Lowering, node: Node) -> list[Stmt]:
    """Lower `del x[...]` for the calls in it."""
    return [Do(low.line(node), Expr(low.line(node), parts=[low.expr(c) for c in low.named(node)]))]


def loop_else(low: Lowering, node: Node) -> Stmt:
    """Lower an `else:` block standing alone."""
    return Block(low.line(node), low.block(node.child_by_field_name("body")))


STMTS = {
    "module": block(),
    "block": block(),
    "expression_statement": expression,
    "function_definition": function,
    "class_definition": class_,
    "decorated_definition": decorated,
    "return_statement": simple_return(),
    "raise_statement": simple_raise(),
    "if_statement": branch(),
    "for_statement": loop("left", "right", None),
    "while_statement": loop(None, None, "condition"),
    "with_statement": with_,
    "try_statement": try_,
    "match_statement": match,
    "import_from_statement": import_from,
    "import_statement": import_,
    "future_import_statement": nothing(),
    "delete_statement": delete,
    "else_clause": loop_else,
    "pass_statement": nothing(),
    "break_statement": nothing(),
    "continue_statement": nothing(),
    "global_statement": outward,
    "nonlocal_statement": outward,
    "comment": nothing(),
}


LANGUAGE = Language(
    name="python",
    suffixes=(".py", ".pyi"),
    grammar=tree_sitter_python.language,
    query=QUERY,
    exprs=EXPRS,
    stmts=STMTS,
    self_names=frozenset({"self", "cls"}),
    resends=PYTHON,
)

_ = (Arg, ListOf)
