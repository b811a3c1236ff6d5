"""Java: its grammar, its index query, and the tables from node types to neutral rules.

A name without an object may be a member of the class around it; `names.py` asks there. A file's
nested types stand beside the others.

Over 400 lines: a language is one file.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

import tree_sitter_java

from fencekit.scan.facts import (
    Arg,
    Assign,
    Call,
    Case,
    Choice,
    Class,
    Compare,
    Define,
    Dict,
    Do,
    Entry,
    Expr,
    Function,
    Import,
    Lambda,
    ListOf,
    Lit,
    Loop,
    Member,
    Name,
    Param,
    Return,
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
    choice,
    field_of,
    index,
    items,
    literal,
    lower_args,
    member,
    name,
    nothing,
    simple_raise,
    string,
    wrap,
)

if TYPE_CHECKING:
    from tree_sitter import Node

QUERY = """
(method_declaration name: (identifier) @function)
(class_declaration name: (identifier) @class)
(interface_declaration name: (identifier) @class)
(record_declaration name: (identifier) @class)
(enum_declaration name: (identifier) @class)
(method_invocation name: (identifier) @call)
(object_creation_expression type: (type_identifier) @call)
(object_creation_expression type: (scoped_type_identifier (type_identifier) @call .))
(import_declaration (_) @import)
(marker_annotation name: (identifier) @mark)
(annotation name: (identifier) @mark)
"""

# Types that only hold another, and types of plain data.
HOLDING = frozenset({
    "Optional", "Mono", "Flux", "CompletableFuture", "CompletionStage", "Future", "Supplier",
    "Provider", "ObjectProvider", "Instance", "Lazy", "Uni", "Class", "ResponseEntity",
})  # fmt: skip
DATA = frozenset({
    "String", "Object", "Integer", "Long", "Double", "Boolean", "List", "Map", "Set", "Collection",
    "JsonNode", "BigDecimal", "var",
})  # fmt: skip
# Methods that hand on what they are called on.
SAME = frozenset({
    "orElseThrow", "toString", "trim", "strip", "block", "join", "intValue", "longValue",
    "stripIndent", "asText", "textValue", "toUri", "toLowerCase", "toUpperCase",
})  # fmt: skip
LISTS = frozenset({"List.of", "Set.of", "Arrays.asList", "Stream.of", "List.copyOf"})
EMPTY_LISTS = frozenset({"ArrayList", "LinkedList", "HashSet", "LinkedHashSet"})
EMPTY_MAPS = frozenset({"HashMap", "LinkedHashMap", "TreeMap", "ConcurrentHashMap"})
_HOLE = re.compile(r"%[\d$.,+-]*[a-zA-Z]")
How = Callable[[int, Expr], Stmt]


def type_text(low: Lowering, node: Node | None) -> str:
    """Return the type that counts: `Optional<Store>` is `Store`; plain data counts for nothing."""
    if node is None or node.type in ("array_type", "void_type"):
        return ""
    if node.type == "generic_type":
        base = low.text(field_of(node, None))
        if base not in HOLDING:
            return "" if base in DATA else base
        given = next((c for c in low.named(node) if c.type == "type_arguments"), None)
        return type_text(low, next(low.named(given), None)) if given is not None else ""
    told = low.text(node)
    return "" if told in DATA or node.type.endswith("_type") else told


def dotted(low: Lowering, node: Node) -> Expr:
    """Lower `a.b.C`, where the grammar names no fields."""
    parts = low.text(node).split(".")
    made: Expr = Name(low.line(node), parts[0].strip())
    for part in parts[1:]:
        made = Member(low.line(node), made, part.strip())
    return made


def invocation(low: Lowering, node: Node) -> Expr:
    """Lower `object.method(…)` and `method(…)`."""
    told = low.text(node.child_by_field_name("name"))
    line = int(node.child_by_field_name("name").start_point[0]) + 1  # type: ignore[union-attr]
    target = node.child_by_field_name("object")
    given = lower_args(low, node.child_by_field_name("arguments"))
    if target is None:
        return Call(line, Name(line, told), given, False, node.start_byte)
    short = f"{low.text(target)}.{told}"
    if short in LISTS:
        return ListOf(line, given)
    if short in ("Map.of", "Map.ofEntries"):
        pairs = zip(given[::2], given[1::2], strict=False)
        return Dict(line, [Entry(k.value, v.value, k.value.line) for k, v in pairs])
    if short in ("String.format", "Optional.of", "Optional.ofNullable", "String.valueOf"):
        return formatted(line, given[0].value, given[1:]) if given else Lit(line, None)
    held = low.expr(target)
    if told in SAME and not given:
        return held
    if told == "formatted":
        return formatted(line, held, given)
    if told in ("equals", "equalsIgnoreCase") and len(given) == 1:
        return Compare(line, held, given[0].value)
    if told in ("orElse", "orElseGet") and len(given) == 1:
        other = given[0].value
        if isinstance(other, Lambda):
            other = Call(line, other, [])
        return Choice(line, [held, other])
    return Call(line, Member(line, held, told), given, False, node.start_byte)


def formatted(line: int, shape: Expr, given: list[Arg]) -> Expr:
    """Lower a format string with what is put into it; without any, it is what it is."""
    if not given or not isinstance(shape, Lit):
        return shape if not given else Template(line, parts=[shape, *(a.value for a in given)])
    text, at, parts = str(shape.value), 0, list[Expr]()
    for hole, arg in zip(_HOLE.finditer(text), given, strict=False):
        parts += [Lit(shape.line, text[at : hole.start()]), arg.value]
        at = hole.end()
    return Template(line, parts=[*parts, Lit(shape.line, text[at:])])


def creation(low: Lowering, node: Node) -> Expr:
    """Lower `new T(…)`; an empty container is one."""
    of_type = node.child_by_field_name("type")
    told = low.text(of_type).split("<")[0].strip()
    line = low.line(of_type) if of_type is not None else low.line(node)
    given = lower_args(low, node.child_by_field_name("arguments"))
    if told in EMPTY_LISTS:
        return ListOf(line, [])
    if told in EMPTY_MAPS:
        return Dict(line, [])
    parts = told.split(".")
    callee: Expr = Name(line, parts[0])
    for part in parts[1:]:
        callee = Member(line, callee, part)
    return Call(line, callee, given, True, node.start_byte)


def reference(low: Lowering, node: Node) -> Expr:
    """Lower `this::method` and `Type::method`."""
    found = list(low.named(node))
    if len(found) < 2:
        return low.expr(found[0]) if found else Expr(low.line(node))
    return Member(low.line(node), low.expr(found[0]), low.text(found[1]))


def lambda_(low: Lowering, node: Node) -> Expr:
    """Lower a lambda expression."""
    given = node.child_by_field_name("parameters")
    named = [given] if given is not None and given.type == "identifier" else []
    if given is not None and given.type == "inferred_parameters":
        named = list(low.named(given))
    told = [Param(low.text(n), low.line(n)) for n in named if n is not None]
    if given is not None and given.type == "formal_parameters":
        told = parameters(low, given)
    made = low.make_function(node, "", told, node.child_by_field_name("body"))
    return Lambda(low.line(node), made)


def marks_of(low: Lowering, node: Node) -> list[Expr]:
    """Return the annotations among the modifiers of a declaration."""
    held = next((c for c in node.named_children if c.type == "modifiers"), None)
    kinds = ("annotation", "marker_annotation")
    return [low.expr(c) for c in low.named(held) if c.type in kinds] if held is not None else []


def annotation(low: Lowering, node: Node) -> Expr:
    """Lower `@Name(key = value)` to a call, `@Name` to a name."""
    told = dotted(low, node.child_by_field_name("name") or node)
    given = node.child_by_field_name("arguments")
    if given is None:
        return told
    out: list[Arg] = []
    for child in low.named(given):
        if child.type == "element_value_pair":
            label = low.text(child.child_by_field_name("key"))
            out.append(Arg(low.expr(child.child_by_field_name("value")), label))
        else:
            out.append(Arg(low.expr(child)))
    return Call(told.line, told, out)


def parameters(low: Lowering, node: Node | None) -> list[Param]:
    """Lower a parameter list with its annotations."""
    out: list[Param] = []
    for child in low.named(node) if node is not None else ():
        if child.type == "formal_parameter":
            told = low.text(child.child_by_field_name("name"))
            of_type = type_text(low, child.child_by_field_name("type"))
            made = Param(told, low.line(child), None, of_type, marks=marks_of(low, child))
            out.append(made)
        elif child.type == "spread_parameter":
            inner = [c for c in low.named(child) if c.type == "variable_declarator"]
            told = low.text(inner[0].child_by_field_name("name")) if inner else "rest"
            out.append(Param(told, low.line(child), rest=True))
    return out


def method(low: Lowering, node: Node, owner: Class) -> Function:
    """Lower a method or a constructor."""
    built = node.type in ("constructor_declaration", "compact_constructor_declaration")
    told = "constructor" if built else low.text(node.child_by_field_name("name"))
    given = parameters(low, node.child_by_field_name("parameters"))
    returns = type_text(low, node.child_by_field_name("type"))
    body = node.child_by_field_name("body")
    made = low.make_function(node, told, given, body, returns=returns)
    label = node.child_by_field_name("name")
    made.line = low.line(label) if label is not None else made.line
    made.owner, made.marks = owner, marks_of(low, node)
    held = next((c for c in node.named_children if c.type == "modifiers"), None)
    made.static = held is not None and any(c.type == "static" for c in held.children)
    return made


def type_(low: Lowering, node: Node) -> list[Stmt]:
    """Lower a class, interface, record or enum with its members."""
    told = low.text(node.child_by_field_name("name"))
    inside = low.function is not None  # a method's own type is not the file's of that name
    made = Class(told, low.line(node))
    made = made if inside else low.classes.setdefault(told, made)
    made.abstract = node.type == "interface_declaration"
    made.marks = marks_of(low, node)
    for child in node.named_children:
        if child.type in ("superclass", "super_interfaces", "extends_interfaces"):
            held = [c for c in low.named(child) if c.type != "type_list"] or [
                c for each in low.named(child) for c in low.named(each)
            ]
            made.bases += [low.expr(c) for c in held]
    if node.type == "record_declaration":
        for param in parameters(low, node.child_by_field_name("parameters")):
            made.types[param.name] = param.type_text
            made.notes[param.name] = (param.line, "")
            made.marks.append(Call(made.line, Name(made.line, "derive"), [
                Arg(Name(made.line, "Deserialize"))]))  # fmt: skip
    outer, low.owner = low.owner, made
    members(low, node.child_by_field_name("body"), made)
    low.owner = outer
    return [Define(made.line, made)] if inside else []


def members(low: Lowering, body: Node | None, made: Class) -> None:
    """Lower the members of a type; of several methods of a name the longest list wins."""
    for child in low.named(body) if body is not None else ():
        if child.type in ("method_declaration", "constructor_declaration"):
            found = method(low, child, made)
            known = made.methods.get(found.name)
            if known is None or len(found.params) > len(known.params):
                made.methods[found.name] = found
        elif child.type in ("field_declaration", "constant_declaration"):
            field(low, child, made)
        elif child.type == "enum_constant":
            label = low.text(child.child_by_field_name("name"))
            made.fields[label] = Lit(low.line(child), label)
        elif child.type == "enum_body_declarations":
            members(low, child, made)
        elif child.type.endswith("_declaration"):
            low.stmt(child)


def field(low: Lowering, node: Node, made: Class) -> None:
    """Lower a field: its type, and what it is made with."""
    of_type = type_text(low, node.child_by_field_name("type"))
    for one in node.children_by_field_name("declarator"):
        told = low.text(one.child_by_field_name("name"))
        made.types[told] = of_type
        made.notes[told] = (low.line(one), "")
        value = one.child_by_field_name("value")
        if value is not None:
            made.fields[told] = low.expr(value)


def imports(low: Lowering, node: Node) -> list[Stmt]:
    """Lower an import; the module is the package, `*` everything in it."""
    path = next(low.named(node), None)
    if path is None:
        return []
    told = low.text(path)
    if any(c.type == "asterisk" for c in node.named_children):
        return [Import(low.line(node), told, "*", "*")]
    module, _, last = told.rpartition(".")
    return [Import(low.line(node), module, last, last)]


def local(low: Lowering, node: Node) -> list[Stmt]:
    """Lower local variables."""
    out: list[Stmt] = []
    of_type = type_text(low, node.child_by_field_name("type"))
    for one in node.children_by_field_name("declarator"):
        target = Name(low.line(one), low.text(one.child_by_field_name("name")))
        value = one.child_by_field_name("value")
        if value is not None:
            out += settle(low, value, _assign(target, of_type))
    return out


def _assign(target: Expr, of_type: str = "") -> How:
    return lambda line, value: Assign(line, target, value, of_type)


def settle(low: Lowering, node: Node, how: How) -> list[Stmt]:
    """Lower an expression whose value goes where `how` says; a switch has one in each arm."""
    if node.type == "switch_expression":
        return [switch(low, node, how)]
    return [how(low.line(node), low.expr(node))]


def switch(low: Lowering, node: Node, how: How) -> Switch:
    """Lower a switch of either form."""
    cases: list[Case] = []
    body = node.child_by_field_name("body")
    for group in low.named(body) if body is not None else ():
        found = list(low.named(group))
        labels = [c for c in found if c.type == "switch_label"]
        values = [low.expr(v) for label in labels for v in low.named(label)]
        made: list[Stmt] = []
        for child in found:
            if child.type == "switch_label":
                continue
            only = group.type == "switch_rule" and child.type == "expression_statement"
            inner = field_of(child, None) if only else None
            made += settle(low, inner, how) if inner is not None else low.stmt(child)
        cases.append(Case(values, made))
    return Switch(low.line(node), low.expr(node.child_by_field_name("condition")), cases)


def switch_value(low: Lowering, node: Node) -> Expr:
    """Lower a switch inside an expression to a call of itself."""
    function = low.make_function(node, "", [], None)
    function.lower = lambda made: [switch(low.within(made), node, Return)]
    return Call(low.line(node), Lambda(low.line(node), function), [])


def assignment(low: Lowering, node: Node) -> list[Stmt]:
    """Lower an assignment."""
    left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
    if left is None or right is None:
        return []
    return settle(low, right, _assign(low.expr(left)))


def returned(low: Lowering, node: Node) -> list[Stmt]:
    """Lower `return` and `yield`."""
    value = next(low.named(node), None)
    return settle(low, value, Return) if value is not None else [Return(low.line(node), None)]


def for_(low: Lowering, node: Node) -> list[Stmt]:
    """Lower the loops."""
    body = low.block(node.child_by_field_name("body"))
    if node.type == "enhanced_for_statement":
        target = Name(low.line(node), low.text(node.child_by_field_name("name")))
        return [
            Loop(low.line(node), target, low.expr(node.child_by_field_name("value")), None, body)
        ]
    test = node.child_by_field_name("condition")
    before = [s for c in node.children_by_field_name("init") for s in low.stmt(c)]
    asked = low.expr(test) if test is not None else None
    return [*before, Loop(low.line(node), None, None, asked, body)]


def try_(low: Lowering, node: Node) -> list[Stmt]:
    """Lower `try` with its resources, handlers and final part."""
    body: list[Stmt] = []
    held = node.child_by_field_name("resources")
    for child in low.named(held) if held is not None else ():
        value, told = child.child_by_field_name("value"), child.child_by_field_name("name")
        if value is not None and told is not None:
            of_type = type_text(low, child.child_by_field_name("type"))
            target = Name(low.line(child), low.text(told))
            body.append(Assign(low.line(child), target, low.expr(value), of_type))
    body += low.block(node.child_by_field_name("body"))
    caught = [c for c in node.named_children if c.type == "catch_clause"]
    last = [c for c in node.named_children if c.type == "finally_clause"]
    final = [s for c in last for inner in low.named(c) for s in low.block(inner)]
    handlers = [low.block(c.child_by_field_name("body")) for c in caught]
    return [Try(low.line(node), body, handlers, final)]


def inside(low: Lowering, node: Node) -> list[Stmt]:
    """Lower what only holds other statements."""
    return [s for child in low.named(node) for s in low.stmt(child)]


EXPRS = {
    **dict.fromkeys(("identifier", "type_identifier", "this", "super"), name()),
    **dict.fromkeys(("scoped_identifier", "scoped_type_identifier"), dotted),
    "generic_type": wrap(),
    "field_access": member("object", "field"),
    "method_invocation": invocation,
    "object_creation_expression": creation,
    "method_reference": reference,
    "lambda_expression": lambda_,
    **dict.fromkeys(("annotation", "marker_annotation"), annotation),
    "string_literal": string(("string_fragment", "multiline_string_fragment")),
    "true": literal(True),
    "false": literal(False),
    "null_literal": literal(None),
    **dict.fromkeys(
        ("decimal_integer_literal", "hex_integer_literal", "decimal_floating_point_literal"),
        literal(number=True)),
    "binary_expression": binary(),
    "ternary_expression": choice("consequence", "alternative", test="condition"),
    "cast_expression": wrap("value"),
    "parenthesized_expression": wrap(),
    "array_access": index("array", "index"),
    **dict.fromkeys(("array_initializer", "element_value_array_initializer"), items()),
    "array_creation_expression": wrap("value"),
    "switch_expression": switch_value,
}  # fmt: skip

STMTS = {
    "program": block(),
    **dict.fromkeys(("block", "constructor_body", "labeled_statement"), inside),
    "expression_statement": inside,
    "synchronized_statement": lambda low, node: low.block(node.child_by_field_name("body")),
    "local_variable_declaration": local,
    "assignment_expression": assignment,
    "if_statement": branch(),
    **dict.fromkeys(
        ("for_statement", "enhanced_for_statement", "while_statement", "do_statement"), for_),
    **dict.fromkeys(("return_statement", "yield_statement"), returned),
    "throw_statement": simple_raise(),
    **dict.fromkeys(("try_statement", "try_with_resources_statement"), try_),
    "switch_expression": lambda low, node: [switch(low, node, Do)],
    **dict.fromkeys(
        ("class_declaration", "interface_declaration", "record_declaration", "enum_declaration"),
        type_),
    "import_declaration": imports,
    **dict.fromkeys(
        ("package_declaration", "break_statement", "continue_statement", "assert_statement",
         "explicit_constructor_invocation", "annotation_type_declaration"),
        nothing()),
}  # fmt: skip

LANGUAGE = Language("java", (".java",), tree_sitter_java.language, QUERY, EXPRS, STMTS)
