"""Go: its grammar, its index query, and the tables from node types to neutral rules."""

from __future__ import annotations

from typing import TYPE_CHECKING

import tree_sitter_go

from fencekit.scan.facts import (
    Case,
    Class,
    Define,
    Expr,
    Function,
    If,
    Import,
    Lambda,
    Loop,
    Param,
    Stmt,
    Switch,
)
from fencekit.scan.languages.base import (
    Language,
    Lowering,
    binary,
    block,
    field_of,
    index,
    literal,
    member,
    name,
    nothing,
    raw_string,
    simple_return,
    wrap,
)
from fencekit.scan.languages.go_values import (
    asserted,
    called,
    composite,
    declare,
    expression_list,
    literal_value,
    spec,
)
from fencekit.scan.languages.resending import GO

if TYPE_CHECKING:
    from tree_sitter import Node

QUERY = """
(function_declaration name: (identifier) @function)
(method_declaration name: (field_identifier) @function)
(type_spec name: (type_identifier) @class)
(call_expression function: (identifier) @call)
(call_expression function: (selector_expression field: (field_identifier) @call))
(import_spec path: (interpreted_string_literal) @import)
"""


def params(low: Lowering, node: Node | None) -> list[Param]:
    """Lower a parameter list."""
    out: list[Param] = []
    for child in low.named(node) if node is not None else ():
        of_type = low.text(child.child_by_field_name("type"))
        names = child.children_by_field_name("name")
        rest = child.type == "variadic_parameter_declaration"
        for one in names:
            out.append(Param(low.text(one), low.line(one), None, of_type, rest=rest))
        if not names:
            out.append(Param("_", low.line(child), None, of_type, rest=rest))
    return out


def parts(low: Lowering, node: Node, label: str = "") -> Function:
    """Lower any function-like node."""
    return low.make_function(
        node,
        label or low.text(node.child_by_field_name("name")),
        params(low, node.child_by_field_name("parameters")),
        node.child_by_field_name("body"),
        returns=low.text(node.child_by_field_name("result")),
    )


def function(low: Lowering, node: Node) -> Stmt:
    """Lower a function declaration."""
    made = parts(low, node)
    return Define(made.line, made)


def method(low: Lowering, node: Node) -> list[Stmt]:
    """Lower a method into the class of its receiver."""
    made = parts(low, node)
    receivers = params(low, node.child_by_field_name("receiver"))
    told = receivers[0].type_text.lstrip("*").split("[")[0] if receivers else ""
    if receivers:
        receivers[0].type_text = "«receiver»"
        made.params.insert(0, receivers[0])
    owner = low.classes.setdefault(told, Class(told, made.line))
    made.owner = owner
    owner.methods.setdefault(made.name, made)
    return []


def type_(low: Lowering, node: Node) -> list[Stmt]:
    """Lower type declarations: structs and interfaces with their members."""
    for one in low.named(node):
        told = low.text(one.child_by_field_name("name"))
        body = one.child_by_field_name("type")
        if body is None or not told:
            continue
        made = low.classes.setdefault(told, Class(told, low.line(one)))
        made.line = low.line(one)
        if body.type == "struct_type":
            struct_fields(low, body, made)
        elif body.type == "interface_type":
            made.abstract = True
            for child in low.named(body):
                if child.type in ("method_elem", "method_spec"):
                    found = parts(low, child)
                    found.owner = made
                    made.methods.setdefault(found.name, found)
    return []


def struct_fields(low: Lowering, body: Node, made: Class) -> None:
    """Record a struct's fields with their types; embedded types are bases."""
    for group in low.named(body):
        for child in low.named(group):
            of_type = child.child_by_field_name("type")
            names = child.children_by_field_name("name")
            for one in names:
                made.types[low.text(one)] = low.text(of_type)
                made.notes[low.text(one)] = (low.line(one), "")
            if not names and of_type is not None:
                text = low.text(of_type).lstrip("*").split(".")[-1]
                made.types[text] = low.text(of_type)
                made.bases.append(low.expr(of_type))


def imports(low: Lowering, node: Node) -> list[Stmt]:
    """Lower imports; the local name is the alias or the path's last part."""
    out: list[Stmt] = []
    stack = list(low.named(node))
    while stack:
        child = stack.pop(0)
        if child.type == "import_spec_list":
            stack = [*low.named(child), *stack]
            continue
        path = low.text(child.child_by_field_name("path")).strip('"`')
        alias = low.text(child.child_by_field_name("name"))
        tail = path.split("/")
        last = (
            tail[-2]
            if len(tail) > 1 and tail[-1][:1] == "v" and tail[-1][1:].isdigit()
            else tail[-1]
        )
        local = (
            alias or last.removeprefix("go-").removesuffix("-go").replace("-", "_").split(".")[0]
        )
        out.append(Import(low.line(child), path, None, local))
    return out


def if_(low: Lowering, node: Node) -> list[Stmt]:
    """Lower `if init; cond { … } else …`."""
    init = node.child_by_field_name("initializer")
    before = low.stmt(init) if init is not None else []
    made = If(
        low.line(node),
        low.expr(node.child_by_field_name("condition")),
        low.block(node.child_by_field_name("consequence")),
        low.block(node.child_by_field_name("alternative")),
    )
    return [*before, made]


def for_(low: Lowering, node: Node) -> list[Stmt]:
    """Lower the three kinds of `for`."""
    body = low.block(node.child_by_field_name("body"))
    line = low.line(node)
    for child in low.named(node):
        if child.type == "range_clause":
            left = child.child_by_field_name("left")
            names = [low.expr(c) for c in low.named(left)] if left is not None else []
            target = names[1] if len(names) > 1 else (names[0] if names else None)
            return [Loop(line, target, low.expr(child.child_by_field_name("right")), None, body)]
        if child.type == "for_clause":
            init = child.child_by_field_name("initializer")
            test = child.child_by_field_name("condition")
            before = low.stmt(init) if init is not None else []
            return [
                *before,
                Loop(line, None, None, low.expr(test) if test is not None else None, body),
            ]
        if child.type != "block":
            return [Loop(line, None, None, low.expr(child), body)]
    return [Loop(line, None, None, None, body)]


def switch(low: Lowering, node: Node) -> list[Stmt]:
    """Lower a switch on a value; one without a value is a chain of branches."""
    cases: list[Case] = []
    value = node.child_by_field_name("value")
    for child in low.named(node):
        if child.type in ("expression_case", "default_case", "type_case", "communication_case"):
            told = child.child_by_field_name("value")
            values = [low.expr(c) for c in low.named(told)] if told is not None else []
            skip = {told.id} if told is not None else set()
            body = [s for c in low.named(child) if c.id not in skip for s in low.stmt(c)]
            cases.append(Case(values, body))
    subject = low.expr(value) if value is not None else Expr(low.line(node))
    return [Switch(low.line(node), subject, cases)]


def inner_call(low: Lowering, node: Node) -> list[Stmt]:
    """Lower `go f()` and `defer f()` to the call."""
    from fencekit.scan.facts import Do

    return [Do(low.line(node), low.expr(field_of(node, None)))]


EXPRS = {
    "identifier": name(),
    "field_identifier": name(),
    "type_identifier": name(),
    "package_identifier": name(),
    "nil": literal(None),
    "true": literal(True),
    "false": literal(False),
    "int_literal": literal(number=True),
    "float_literal": literal(number=True),
    "interpreted_string_literal": raw_string('"'),
    "raw_string_literal": raw_string("`"),
    "selector_expression": member("operand", "field"),
    "qualified_type": member("package", "name"),
    "index_expression": index("operand", "index"),
    "call_expression": called,
    "unary_expression": wrap("operand"),
    "parenthesized_expression": wrap(),
    "type_assertion_expression": asserted,
    "type_conversion_expression": wrap("operand"),
    "pointer_type": wrap(),
    "generic_type": wrap("type"),
    "type_instantiation_expression": wrap("type"),
    "slice_expression": wrap("operand"),
    "literal_element": wrap(),
    "binary_expression": binary(),
    "composite_literal": composite,
    "literal_value": literal_value,
    "func_literal": lambda low, node: Lambda(low.line(node), parts(low, node, "")),
    "expression_list": expression_list,
}

STMTS = {
    "source_file": block(),
    "block": block(),
    "statement_list": lambda low, node: low.statements(node),
    "function_declaration": function,
    "method_declaration": method,
    "type_declaration": type_,
    "const_declaration": spec,
    "var_declaration": spec,
    "short_var_declaration": declare,
    "assignment_statement": declare,
    "import_declaration": imports,
    "package_clause": nothing(),
    "return_statement": simple_return(),
    "if_statement": if_,
    "for_statement": for_,
    "expression_switch_statement": switch,
    "type_switch_statement": switch,
    "select_statement": switch,
    "go_statement": inner_call,
    "defer_statement": inner_call,
    "expression_statement": inner_call,
    "labeled_statement": lambda low, node: low.statements(node),
    "break_statement": nothing(),
    "continue_statement": nothing(),
    "comment": nothing(),
}

LANGUAGE = Language("go", (".go",), tree_sitter_go.language, QUERY, EXPRS, STMTS, resends=GO)
