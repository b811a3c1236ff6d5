"""Rust: its grammar, its index query, and the tables from node types to neutral rules.

This file holds the items (functions, types, traits, implementations) and the tables. Blocks,
`match` and `if` have values; `rust_flow` lowers them into statements. Macro contents are token
trees; `rust_macros` parses them again. Attributes and doc comments are siblings before their item.
Paths into crates (`std::fs::write`) become names of modules, which `rust_imports` binds
at the end of a file.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import tree_sitter_rust

from fencekit.scan.facts import (
    Assign,
    Call,
    Class,
    Define,
    Expr,
    Function,
    Lambda,
    Lit,
    Name,
    Param,
    Stmt,
)
from fencekit.scan.languages import rust_flow as flow
from fencekit.scan.languages.base import (
    Language,
    Lowering,
    binary,
    items,
    literal,
    member,
    name,
    nothing,
    wrap,
)
from fencekit.scan.languages.resending import RUST
from fencekit.scan.languages.rust_calls import (
    assignment,
    call,
    call_stmt,
    compound,
    path,
    place,
    structure,
    text,
    unary,
)
from fencekit.scan.languages.rust_imports import crate_names, imports, is_test, module
from fencekit.scan.languages.rust_macros import attributes, documentation, macro, macro_stmt
from fencekit.scan.languages.rust_types import bounds_of, pattern, tail_name, type_text

if TYPE_CHECKING:
    from tree_sitter import Node

QUERY = """
(function_item name: (identifier) @function)
(function_signature_item name: (identifier) @function)
(struct_item name: (type_identifier) @class)
(enum_item name: (type_identifier) @class)
(trait_item name: (type_identifier) @class)
(impl_item type: (type_identifier) @class)
(impl_item type: (generic_type type: (type_identifier) @class))
(call_expression function: (identifier) @call)
(call_expression function: (field_expression field: (field_identifier) @call))
(call_expression function: (scoped_identifier name: (identifier) @call))
(use_declaration argument: (_) @import)
(scoped_identifier path: (scoped_identifier path: (identifier) @import))
(attribute (scoped_identifier path: (identifier) @import))
(attribute (identifier) @mark)
(attribute (scoped_identifier name: (identifier) @mark))
"""

# Traits of the standard library: what they add to a type has no effect outside the process.
PLAIN_TRAITS = frozenset({
    "Debug", "Display", "Default", "Clone", "Copy", "From", "Into", "TryFrom", "TryInto", "FromStr",
    "Drop", "Deref", "DerefMut", "AsRef", "Iterator", "Error", "Serialize", "Deserialize", "Hash",
    "PartialEq", "Eq", "PartialOrd", "Ord", "Send", "Sync", "Unpin", "Future", "Stream", "Borrow",
    "Index", "IndexMut", "Add", "Fn", "FnMut", "FnOnce", "Extend", "FromIterator", "JsonSchema",
})  # fmt: skip


def closure(low: Lowering, node: Node) -> Expr:
    """Lower a closure; that its body is asynchronous makes no difference."""
    body = node.child_by_field_name("body")
    return Lambda(low.line(node), callable_(low, node, "", body))


def parameters(low: Lowering, node: Node | None, bounds: dict[str, str]) -> list[Param]:
    """Lower a parameter list; `Parameters(x): Parameters<T>` is a parameter x of type T."""
    out: list[Param] = []
    for child in low.named(node) if node is not None else ():
        if child.type == "self_parameter":
            out.append(Param("self", low.line(child)))
        elif child.type not in ("attribute_item", "ERROR"):
            found = child.child_by_field_name("pattern") or child
            target = pattern(low, found if child.type == "parameter" else child)
            of_type = type_text(low, child.child_by_field_name("type"), bounds)
            plain = target.id if isinstance(target, Name) else f"parameter {len(out)}"
            made = Param(plain, low.line(child), None, of_type)
            made.pattern = None if isinstance(target, Name) else target
            made.marks = attributes(low, child)
            out.append(made)
    return out


def callable_(low: Lowering, node: Node, label: str, body: Node | None) -> Function:
    """Lower anything that can be called."""
    bounds = bounds_of(low, node)
    given = parameters(low, node.child_by_field_name("parameters"), bounds)
    returns = type_text(low, node.child_by_field_name("return_type"), bounds)
    if returns == "Self" and low.owner is not None:
        returns = low.owner.name
    made = low.make_function(node, label, given, None, returns=returns)
    if body is not None:
        made.lower = lambda function: flow.returned(low.within(function), body)
    return made


def function(low: Lowering, node: Node) -> list[Stmt]:
    """Lower a function item; test functions hold no facts."""
    made = function_item(low, node)
    return [Define(made.line, made)] if made is not None else []


def function_item(low: Lowering, node: Node) -> Function | None:
    """Lower a function or a method with its attributes; None for a test."""
    marks = attributes(low, node)
    if is_test(marks):
        return None
    told = low.text(node.child_by_field_name("name"))
    made = callable_(low, node, told, node.child_by_field_name("body"))
    made.marks, made.doc = marks, documentation(low, node)
    made.static = not any(p.name == "self" for p in made.params)
    return made


def class_named(low: Lowering, told: str, line: int) -> Class:
    """Return the class of a name in this file; one that only an `impl` names is partial."""
    if low.function is not None:  # a function's own type is not the file's of that name
        return Class(told, line)
    made = low.classes.get(told)
    if made is None:
        made = low.classes[told] = Class(told, line, partial=True)
    return made


def implementation(low: Lowering, node: Node) -> list[Stmt]:
    """Lower `impl X` and `impl Trait for X` into the class X."""
    if low.function is not None or is_test(attributes(low, node)):
        return []
    made = class_named(low, tail_name(low, node.child_by_field_name("type")), low.line(node))
    trait = node.child_by_field_name("trait")
    if trait is not None and tail_name(low, trait) not in PLAIN_TRAITS:
        made.bases.append(low.expr(trait))
    members(low, node.child_by_field_name("body"), made, provides=trait is not None)
    return []


def members(low: Lowering, body: Node | None, made: Class, *, provides: bool = False) -> None:
    """Lower the functions and constants of an implementation or a trait.

    A type's own method goes before one that a trait `provides` under the same name.
    """
    outer, low.owner = low.owner, made
    for child in low.named(body) if body is not None else ():
        if child.type in ("function_item", "function_signature_item"):
            found = function_item(low, child)
            if found is not None:
                found.owner = made
                if found.name not in made.methods or found.name in made.provided:
                    made.methods[found.name] = found
                    made.provided.discard(found.name)
                    made.provided |= {found.name} if provides else set()
        elif child.type == "const_item":
            value = child.child_by_field_name("value")
            if value is not None:
                made.fields[low.text(child.child_by_field_name("name"))] = low.expr(value)
    low.owner = outer


def trait(low: Lowering, node: Node) -> list[Stmt]:
    """Lower a trait: its provided methods, and those its implementations give."""
    made = class_named(low, low.text(node.child_by_field_name("name")), low.line(node))
    made.partial, made.abstract, made.line = False, True, low.line(node)
    above = node.child_by_field_name("bounds")
    for bound in low.named(above) if above is not None else ():
        if bound.type != "lifetime" and tail_name(low, bound) not in PLAIN_TRAITS:
            made.bases.append(low.expr(bound))
    members(low, node.child_by_field_name("body"), made)
    return []


def type_(low: Lowering, node: Node) -> list[Stmt]:
    """Lower a struct or an enum: its fields with types and descriptions, or its variants."""
    made = class_named(low, low.text(node.child_by_field_name("name")), low.line(node))
    made.partial, made.line = False, low.line(node)
    made.marks = attributes(low, node)
    bounds = bounds_of(low, node)
    body = node.child_by_field_name("body")
    for child in low.named(body) if body is not None else ():
        told = low.text(child.child_by_field_name("name"))
        if child.type == "field_declaration":
            made.types[told] = type_text(low, child.child_by_field_name("type"), bounds)
            made.notes[told] = (low.line(child), field_note(low, child))
        elif child.type == "enum_variant":
            made.fields[told] = Lit(low.line(child), told)
    if body is not None and body.type == "ordered_field_declaration_list":
        for at, one in enumerate(body.children_by_field_name("type")):
            made.types[str(at)] = type_text(low, one, bounds)
    return [Define(made.line, made)] if low.function is not None else []


def field_note(low: Lowering, node: Node) -> str:
    """Return what a field's attributes or its doc comment say of it."""
    for mark in attributes(low, node):
        for arg in mark.args if isinstance(mark, Call) else ():
            if arg.name == "description" and isinstance(arg.value, Lit):
                return str(arg.value.value)
    return documentation(low, node)


def constant(low: Lowering, node: Node) -> list[Stmt]:
    """Lower a constant or a static."""
    value = node.child_by_field_name("value")
    if value is None:
        return []
    target = Name(low.line(node), low.text(node.child_by_field_name("name")))
    return [Assign(low.line(node), target, low.expr(value))]


def alias(low: Lowering, node: Node) -> list[Stmt]:
    """Lower `type A = B;`."""
    target = Name(low.line(node), low.text(node.child_by_field_name("name")))
    return [Assign(low.line(node), target, low.expr(node.child_by_field_name("type")))]


def inside(low: Lowering, node: Node) -> list[Stmt]:
    """Lower a statement that only holds another."""
    return [s for child in low.named(node) for s in low.stmt(child)]


EXPRS = {
    **dict.fromkeys(
        ("identifier", "self", "field_identifier", "type_identifier", "crate", "super",
         "shorthand_field_identifier"), name()),
    "scoped_identifier": path,
    "scoped_type_identifier": path,
    **dict.fromkeys(("generic_type", "generic_type_with_turbofish"), wrap("type")),
    "generic_function": wrap("function"),
    "field_expression": member("value", "field"),
    "call_expression": call,
    "macro_invocation": macro,
    "struct_expression": structure,
    "closure_expression": closure,
    "string_literal": text,
    "raw_string_literal": text,
    "char_literal": lambda low, node: Lit(low.line(node), low.text(node).strip("'")),
    "boolean_literal": lambda low, node: Lit(low.line(node), low.text(node) == "true"),
    "integer_literal": literal(number=True),
    "float_literal": literal(number=True),
    "await_expression": wrap(),
    "try_expression": wrap(),
    "parenthesized_expression": wrap(),
    "reference_expression": wrap("value"),
    "type_cast_expression": wrap("value"),
    "unary_expression": unary,
    "index_expression": place,
    "tuple_expression": items(),
    "array_expression": items(),
    "binary_expression": binary(),
    "let_condition": lambda low, node: Expr(
        low.line(node), parts=[low.expr(node.child_by_field_name("value"))]),
    **dict.fromkeys(flow.BLOCKS, flow.as_value),
}  # fmt: skip

STMTS = {
    **dict.fromkeys(("block", "unsafe_block", "const_block"), inside),
    **dict.fromkeys(("match_expression", "if_expression"), flow.for_effect),
    "expression_statement": inside,
    "let_declaration": flow.let,
    "for_expression": flow.for_,
    "while_expression": flow.while_,
    "loop_expression": flow.while_,
    "return_expression": flow.return_,
    "macro_invocation": macro_stmt,
    "assignment_expression": assignment,
    "compound_assignment_expr": compound,
    "call_expression": call_stmt,
    "function_item": function,
    "function_signature_item": nothing(),
    "impl_item": implementation,
    "trait_item": trait,
    "struct_item": type_,
    "enum_item": type_,
    "union_item": type_,
    "mod_item": module,
    "use_declaration": imports,
    "const_item": constant,
    "static_item": constant,
    "type_item": alias,
    **dict.fromkeys(
        ("attribute_item", "inner_attribute_item", "macro_definition", "extern_crate_declaration",
         "empty_statement", "break_expression", "continue_expression", "foreign_mod_item"),
        nothing()),
}  # fmt: skip

LANGUAGE = Language(
    "rust",
    (".rs",),
    tree_sitter_rust.language,
    QUERY,
    EXPRS,
    STMTS,
    block_value=True,
    resends=RUST,
    finish=crate_names,
)
