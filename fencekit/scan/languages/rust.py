"""Rust: its grammar, its index query, and the tables from node types to neutral rules.

Blocks, `match` and `if` have values; `rust_flow` lowers them into statements. Macro contents are
token trees; `rust_macros` parses them again. Attributes and doc comments are siblings before the
item they belong to. Paths into crates (`std::fs::write`) become names of modules, which
`crate_names` binds at the end of a file.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import tree_sitter_rust

from fencekit.scan.facts import (
    Arg,
    Assign,
    Call,
    Choice,
    Class,
    Define,
    Dict,
    Entry,
    Expr,
    Function,
    Import,
    Lambda,
    Lit,
    Member,
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
    lower_args,
    member,
    name,
    nothing,
    unescape,
    wrap,
)
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

# Methods that hand on what they are called on: conversions, and what unwraps or shares it.
SAME = frozenset({
    "unwrap", "expect", "unwrap_or_default", "map_err", "ok_or", "ok_or_else", "context",
    "with_context", "wrap_err", "wrap_err_with", "clone", "cloned", "copied", "to_string",
    "to_owned", "into", "try_into", "as_str", "as_ref", "as_mut", "as_deref", "as_deref_mut",
    "as_slice", "to_vec", "boxed", "borrow", "borrow_mut", "ok", "as_string", "as_bytes", "trim",
    "into_inner", "as_object", "as_array", "as_i64", "as_u64", "as_f64", "as_bool", "into_owned",
    "to_str", "as_path", "iter", "into_iter", "iter_mut", "by_ref",
})  # fmt: skip
LOCKS = frozenset({"lock", "read", "write", "upgrade", "load", "load_full"})  # without arguments
# Constructors and functions that hand on their only argument.
HOLDERS = frozenset({
    "Arc.new", "Rc.new", "Box.new", "Box.pin", "Mutex.new", "RwLock.new", "RefCell.new", "Cell.new",
    "Arc.clone", "Rc.clone", "String.from", "Cow.Borrowed", "Cow.Owned", "Cow.from", "Value.String",
    "Value.from", "Value.Object", "Value.Array", "Some", "Ok", "Parameters", "Json", "Value.Number",
    "serde_json.from_value", "serde_json.from_str", "serde_json.to_value", "serde_json.to_string",
    "serde_json.to_string_pretty", "serde_json.from_slice", "serde_json.to_vec", "Url.parse",
    "Pin.new", "AssertUnwindSafe", "PathBuf.from", "Path.new", "Arc.from", "Box.from",
})  # fmt: skip
MODULES = frozenset({"fs", "process", "io", "net", "thread", "sync", "time", "env", "task"})
_PATH = re.compile(rb"\b((?:[a-z_]\w*::)+)")


def segments(low: Lowering, node: Node) -> list[str] | None:
    """Return the names of a plain path, or None where a type with arguments is in it."""
    if node.type in ("scoped_identifier", "scoped_type_identifier"):
        before = node.child_by_field_name("path")
        start = segments(low, before) if before is not None else []
        last = low.text(node.child_by_field_name("name"))
        return [*start, last] if start is not None else None
    if node.type in ("identifier", "type_identifier", "crate", "super", "self", "metavariable"):
        return [low.text(node)]
    if node.type in ("generic_type", "generic_type_with_turbofish"):
        inner = node.child_by_field_name("type")
        return segments(low, inner) if inner is not None else None
    return None


def path(low: Lowering, node: Node) -> Expr:
    """Lower `a::b::C::d`: the modules at its front are one name."""
    parts = segments(low, node)
    line = low.line(node)
    if parts is None:
        before = node.child_by_field_name("path")
        return Member(line, low.expr(before), low.text(node.child_by_field_name("name")))
    count = 0
    while count < len(parts) - 1 and parts[count][:1].islower():
        count += 1
    if count:
        told = "::".join(parts[:count])
        made: Expr = Name(line, "self::" if told == "self" else told)
    else:
        made, count = Name(line, parts[0]), 1
    for part in parts[count:]:
        made = Member(line, made, part)
    return made


def call(low: Lowering, node: Node) -> Expr:
    """Lower a call; what only converts or shares a value is that value."""
    target = node.child_by_field_name("function")
    while target is not None and target.type == "generic_function":
        target = target.child_by_field_name("function")
    given = node.child_by_field_name("arguments")
    args = list(low.named(given)) if given is not None else []
    if target is None:
        return Expr(low.line(node))
    if target.type == "field_expression":
        return method_call(low, node, target, args)
    parts = segments(low, target) or []
    short = ".".join(parts[-2:])
    if len(args) == 1 and (short in HOLDERS or (len(parts) == 1 and parts[0] in HOLDERS)):
        return low.expr(args[0])
    if short == "Err" and len(args) == 1:
        return Expr(low.line(node), parts=[low.expr(args[0])])
    if short in ("Default.default", "String.new", "Map.new"):
        return Lit(low.line(node), None)
    callee = low.expr(target)
    line = int(target.end_point[0]) + 1 + low.line_shift
    return Call(line, callee, lower_args(low, given), False, node.start_byte)


def method_call(low: Lowering, node: Node, target: Node, args: list[Node]) -> Expr:
    """Lower `value.method(…)`."""
    told = low.text(target.child_by_field_name("field"))
    value = target.child_by_field_name("value")
    line = low.line(node)
    if told in SAME or (told in LOCKS and not args):
        return low.expr(value)
    if told in ("unwrap_or", "unwrap_or_else", "or", "or_else", "or_insert_with") and args:
        other = args[-1]
        if other.type == "closure_expression":
            given = other.child_by_field_name("parameters")
            if given is not None and given.named_child_count:
                return low.expr(value)  # the closure answers to an error
            alternative: Expr = Call(line, low.expr(other), [])
        else:
            alternative = low.expr(other)
        if isinstance(alternative, Lit) and not alternative.value:
            return low.expr(value)  # a missing text stands for nothing
        return Choice(line, [low.expr(value), alternative])
    if told in ("and_then", "map") and len(args) == 1:
        if args[0].type != "closure_expression":
            last = (segments(low, args[0]) or [""])[-1]
            if last in SAME or ".".join((segments(low, args[0]) or [])[-2:]) in HOLDERS:
                return low.expr(value)
        if told == "and_then":
            return Call(line, low.expr(args[0]), [Arg(low.expr(value))], False, node.start_byte)
    callee = low.expr(target)
    all_args = lower_args(low, node.child_by_field_name("arguments"))
    return Call(callee.line, callee, all_args, False, node.start_byte)


def text(low: Lowering, node: Node) -> Expr:
    """Lower a string; a backslash at a line's end swallows the blanks of the next."""
    out: list[str] = []
    swallow = False
    for child in node.children:
        part = low.text(child)
        if child.type == "escape_sequence":
            swallow = part[1:2] in ("\n", "\r")
            out.append("" if swallow else unescape(part))
        elif child.type == "string_content":
            out.append(part.lstrip() if swallow else part)
            swallow = False
    return Lit(low.line(node), "".join(out))


def structure(low: Lowering, node: Node) -> Expr:
    """Lower a struct literal."""
    entries: list[Entry] = []
    body = node.child_by_field_name("body")
    for child in low.named(body) if body is not None else ():
        line = low.line(child)
        if child.type == "field_initializer":
            key = low.text(child.child_by_field_name("field"))
            held = low.expr(child.child_by_field_name("value"))
            entries.append(Entry(Lit(line, key), held, line))
        elif child.type == "shorthand_field_initializer":
            told = low.text(child)
            entries.append(Entry(Lit(line, told), Name(line, told), line))
        elif child.type == "base_field_initializer":
            entries.append(Entry(None, low.expr(next(low.named(child), None)), line))
    return Dict(low.line(node), entries, low.expr(node.child_by_field_name("name")))


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


def is_test(marks: list[Expr]) -> bool:
    """Tell whether attributes say that an item is compiled for tests only."""
    for mark in marks:
        told = mark.callee if isinstance(mark, Call) else mark
        last = told.name if isinstance(told, Member) else getattr(told, "id", "")
        if last in ("test", "rstest", "bench"):
            return True
        if last == "cfg" and isinstance(mark, Call):
            named = [getattr(a.value, "id", "") for a in mark.args]
            if "test" in named:
                return True
    return False


def class_named(low: Lowering, told: str, line: int) -> Class:
    """Return the class of a name in this file; one that only an `impl` names is partial."""
    made = low.classes.get(told)
    if made is None:
        made = low.classes[told] = Class(told, line, partial=True)
    return made


def implementation(low: Lowering, node: Node) -> list[Stmt]:
    """Lower `impl X` and `impl Trait for X` into the class X."""
    if is_test(attributes(low, node)):
        return []
    made = class_named(low, tail_name(low, node.child_by_field_name("type")), low.line(node))
    trait = node.child_by_field_name("trait")
    if trait is not None:
        made.bases.append(low.expr(trait))
    members(low, node.child_by_field_name("body"), made)
    return []


def members(low: Lowering, body: Node | None, made: Class) -> None:
    """Lower the functions and constants of an implementation or a trait."""
    outer, low.owner = low.owner, made
    for child in low.named(body) if body is not None else ():
        if child.type in ("function_item", "function_signature_item"):
            found = function_item(low, child)
            if found is not None:
                found.owner = made
                made.methods.setdefault(found.name, found)
        elif child.type == "const_item":
            value = child.child_by_field_name("value")
            if value is not None:
                made.fields[low.text(child.child_by_field_name("name"))] = low.expr(value)
    low.owner = outer


def trait(low: Lowering, node: Node) -> list[Stmt]:
    """Lower a trait: its provided methods, and those its implementations give."""
    made = class_named(low, low.text(node.child_by_field_name("name")), low.line(node))
    made.partial, made.abstract, made.line = False, True, low.line(node)
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
    return []


def field_note(low: Lowering, node: Node) -> str:
    """Return what a field's attributes or its doc comment say of it."""
    for mark in attributes(low, node):
        for arg in mark.args if isinstance(mark, Call) else ():
            if arg.name == "description" and isinstance(arg.value, Lit):
                return str(arg.value.value)
    return documentation(low, node)


def module(low: Lowering, node: Node) -> list[Stmt]:
    """Lower `mod x;` to an import; the items of an inline module stand beside the others."""
    if is_test(attributes(low, node)):
        return []
    told, body = low.text(node.child_by_field_name("name")), node.child_by_field_name("body")
    made = Import(low.line(node), "self" if body is not None else f"self::{told}", None, told)
    low.imports[told] = made
    return [made, *(low.statements(body) if body is not None else [])]


def imports(low: Lowering, node: Node) -> list[Stmt]:
    """Lower a `use` with all its branches."""
    out: list[Stmt] = []
    argument = node.child_by_field_name("argument")
    if argument is not None:
        for parts, local in branches(low, argument, []):
            made = imported(low.line(node), parts, local)
            if made.local != "*":
                low.imports[made.local] = made
            out.append(made)
    return out


def branches(low: Lowering, node: Node, before: list[str]) -> list[tuple[list[str], str]]:
    """Return the paths a `use` names, each with the name it is given here."""
    if node.type == "use_as_clause":
        inner = node.child_by_field_name("path")
        found = branches(low, inner, before) if inner is not None else []
        return [(parts, low.text(node.child_by_field_name("alias"))) for parts, _ in found]
    if node.type == "use_wildcard":
        inner = next(low.named(node), None)
        start = segments(low, inner) if inner is not None else []
        return [([*before, *(start or []), "*"], "*")]
    if node.type == "use_list":
        return [b for child in low.named(node) for b in branches(low, child, before)]
    if node.type == "scoped_use_list":
        inner, below = node.child_by_field_name("path"), node.child_by_field_name("list")
        start = segments(low, inner) if inner is not None else []
        return branches(low, below, [*before, *(start or [])]) if below is not None else []
    if node.type == "self" and before:
        return [([*before, "self"], before[-1])]
    told = [*before, *(segments(low, node) or [])]
    return [(told, told[-1])] if told else []


def imported(line: int, parts: list[str], local: str) -> Import:
    """Return the import of one path: of a module, or of a name in one."""
    if parts[-1] == "self" and len(parts) > 1:
        return Import(line, "::".join(parts[:-1]), None, local)
    standard = parts[0] in ("std", "tokio", "async_std") and parts[-1] in MODULES
    if len(parts) == 1 or standard:
        return Import(line, "::".join(parts), None, local)
    return Import(line, "::".join(parts[:-1]), parts[-1], local)


def crate_names(low: Lowering) -> list[Stmt]:
    """Bind the modules at the front of the file's paths that nothing else binds."""
    out: list[Stmt] = []
    found = {m.decode("utf-8", "replace").removesuffix("::") for m in _PATH.findall(low.source)}
    for told in sorted(found | {f.split("::")[0] for f in found}):
        first, _, rest = told.partition("::")
        known = low.imports.get(first)
        if known is not None and not rest:
            continue
        module = told
        if known is not None:
            start = "::".join(p for p in (known.module, known.name) if p)
            module = f"{start}::{rest}"
        out.append(Import(1, module, None, "self::" if told == "self" else told))
    return out


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


def assignment(low: Lowering, node: Node) -> list[Stmt]:
    """Lower `x = y`, also where y is a block."""
    left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
    if left is None or right is None:
        return []
    target = low.expr(left)
    return flow.settle(low, right, lambda line, value: Assign(line, target, value))


def place(low: Lowering, node: Node) -> Expr:
    """Lower `a[b]`."""
    from fencekit.scan.facts import Index

    found = list(low.named(node))
    return Index(low.line(node), low.expr(found[0]), low.expr(found[-1]))


def unary(low: Lowering, node: Node) -> Expr:
    """Lower `*x` and `-x` to x; the opposite of a test is not known."""
    inner = low.expr(next(low.named(node), None))
    sign = node.children[0].type if node.children else ""
    return Expr(low.line(node), parts=[inner]) if sign == "!" else inner


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
    finish=crate_names,
)
