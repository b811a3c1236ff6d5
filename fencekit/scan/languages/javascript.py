"""JavaScript, TypeScript and TSX: three grammars that share their tables.

Over 400 lines: one language is one file.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import tree_sitter_javascript
import tree_sitter_typescript

from fencekit.scan.facts import (
    Arg,
    Assign,
    Block,
    Call,
    Case,
    Class,
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
    Member,
    Name,
    Param,
    Stmt,
    Switch,
    Try,
)
from fencekit.scan.languages import resending
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
    loop,
    lower_args,
    member,
    name,
    nothing,
    simple_raise,
    simple_return,
    string,
    wrap,
)

if TYPE_CHECKING:
    from tree_sitter import Node

JS_QUERY = """
(function_declaration name: (identifier) @function)
(method_definition name: (_) @function)
(variable_declarator name: (identifier) @function value: [(arrow_function) (function_expression)])
(call_expression function: [(identifier) @call (member_expression property: (_) @call)
  (await_expression (member_expression property: (_) @call)) (await_expression (identifier) @call)])
(new_expression constructor: [(identifier) @call (member_expression property: (_) @call)])
(import_statement source: (string) @import)
((call_expression function: (identifier) @_called arguments: (arguments . (string) @import))
  (#eq? @_called "require"))
(export_statement source: (string) @import)
(decorator [(identifier) @mark (call_expression function: (identifier) @mark)])
"""
TS_QUERY = (
    JS_QUERY
    + """
(class_declaration name: (type_identifier) @class)
(abstract_class_declaration name: (type_identifier) @class)
(enum_declaration name: (identifier) @class)
(interface_declaration name: (type_identifier) @class)
(call_expression function: (parenthesized_expression
  (as_expression (member_expression property: (_) @call))))
"""
)
JS_QUERY += "(class_declaration name: (identifier) @class)\n"


def object_(low: Lowering, node: Node) -> Expr:
    """Lower an object literal or pattern; methods in it are functions under their names."""
    entries: list[Entry] = []
    for child in low.named(node):
        line = low.line(child)
        kind = child.type
        if kind in ("pair", "pair_pattern"):
            key = low.expr(child.child_by_field_name("key"))
            entries.append(Entry(key, low.expr(child.child_by_field_name("value")), line))
        elif kind.startswith("shorthand_property_identifier"):
            text = low.text(child)
            entries.append(Entry(Lit(line, text), Name(line, text), line))
        elif kind == "object_assignment_pattern":
            left = child.child_by_field_name("left")
            entries.append(Entry(Lit(line, low.text(left)), Name(line, low.text(left)), line))
        elif kind == "method_definition":
            made = method(low, child)
            entries.append(Entry(Lit(line, made.name), Lambda(line, made), line))
        elif kind in ("spread_element", "rest_pattern"):
            entries.append(Entry(None, low.expr(field_of(child, None)), line))
    return Dict(low.line(node), entries)


def key_text(low: Lowering, node: Node) -> Expr:
    """Lower a property name to its text."""
    return Lit(low.line(node), low.text(node))


def call_(low: Lowering, node: Node) -> Expr:
    """Lower a call; the grammar hangs `await x.f<T>()` under the await."""
    target = low.expr(node.child_by_field_name("function"))
    args = node.child_by_field_name("arguments")
    if args is not None and args.type == "template_string":
        return Call(target.line, target, [Arg(low.expr(args))], False, node.start_byte)
    given = lower_args(low, args, "", ("spread_element",))
    if isinstance(target, Name) and target.id in ("require", "import") and given:
        return Call(target.line, target, given, False, node.start_byte)
    return Call(target.line, target, given, False, node.start_byte)


def new_(low: Lowering, node: Node) -> Expr:
    """Lower `new X(...)`."""
    target = low.expr(node.child_by_field_name("constructor"))
    given = lower_args(low, node.child_by_field_name("arguments"), "", ("spread_element",))
    return Call(target.line, target, given, True, node.start_byte)


def params(low: Lowering, node: Node | None) -> list[Param]:
    """Lower formal parameters; a destructured one keeps its pattern."""
    out: list[Param] = []
    for child in low.named(node) if node is not None else ():
        target: Node | None = child
        default = of_type = None
        if child.type in ("required_parameter", "optional_parameter"):
            target = child.child_by_field_name("pattern")
            default = child.child_by_field_name("value")
            of_type = child.child_by_field_name("type")
        if target is not None and target.type == "assignment_pattern":
            default = target.child_by_field_name("right")
            target = target.child_by_field_name("left")
        rest = target is not None and target.type == "rest_pattern"
        if rest and target is not None:
            target = field_of(target, None)
        pattern = None
        if target is not None and target.type in ("object_pattern", "array_pattern"):
            pattern = low.expr(target)
        made = Param(
            low.text(target) if pattern is None else f"«{child.start_byte}»",
            low.line(child),
            low.expr(default) if default is not None else None,
            low.text(of_type).lstrip(": "),
            pattern,
            rest,
        )
        made.marks = [low.expr(field_of(c, None)) for c in child.children if c.type == "decorator"]
        if any(c.type in {"accessibility_modifier", "readonly"} for c in child.children):
            made.keyword = True  # a parameter property: also a field of the class
        out.append(made)
    return out


def function_parts(low: Lowering, node: Node, label: str = "") -> Function:
    """Lower any function-like node."""
    formal = node.child_by_field_name("parameters")
    given = params(low, formal)
    single = node.child_by_field_name("parameter")
    if single is not None:
        given = [Param(low.text(single), low.line(single))]
    told = label or low.text(node.child_by_field_name("name")).strip("\"'")
    return low.make_function(
        node,
        told,
        given,
        node.child_by_field_name("body"),
        returns=low.text(node.child_by_field_name("return_type")).lstrip(": "),
    )


def method(low: Lowering, node: Node) -> Function:
    """Lower a method of a class or an object."""
    made = function_parts(low, node)
    made.static = any(c.type == "static" for c in node.children)
    return made


def lambda_(low: Lowering, node: Node) -> Expr:
    """Lower an arrow function or a function expression."""
    return Lambda(low.line(node), function_parts(low, node))


def regex(low: Lowering, node: Node) -> Expr:
    """Lower `/pattern/flags` to what `new RegExp(pattern, flags)` is."""
    line = low.line(node)
    pattern = low.text(node.child_by_field_name("pattern"))
    flags = low.text(node.child_by_field_name("flags"))
    given = [Arg(Lit(line, pattern)), Arg(Lit(line, flags))]
    return Call(line, Name(line, "RegExp"), given, True, node.start_byte)


def template(low: Lowering, node: Node) -> Expr:
    """Lower a template string."""
    return string(("string_fragment",), ("template_substitution",))(low, node)


def class_value(low: Lowering, node: Node) -> Expr:
    """Lower a class expression to the name of the class it defines."""
    made = class_parts(low, node, [])
    made.name = made.name or f"class@{made.line}"
    low.classes[made.name] = made
    return Name(made.line, made.name)


EXPRS = {
    "identifier": name(),
    "undefined": literal(None),
    "this": name(),
    "super": name(),
    "type_identifier": name(),
    "import": name(),
    "shorthand_property_identifier": name(),
    "shorthand_property_identifier_pattern": name(),
    "property_identifier": key_text,
    "private_property_identifier": key_text,
    "computed_property_name": wrap(),
    "member_expression": member("object", "property"),
    "nested_identifier": member("object", "property"),
    "subscript_expression": index("object", "index"),
    "call_expression": call_,
    "new_expression": new_,
    "string": string(("string_fragment",)),
    "template_string": template,
    "regex": regex,
    "number": literal(number=True),
    "true": literal(True),
    "false": literal(False),
    "null": literal(None),
    "await_expression": wrap(),
    "parenthesized_expression": wrap(),
    "as_expression": wrap(),
    "satisfies_expression": wrap(),
    "non_null_expression": wrap(),
    "type_assertion": lambda low, node: low.expr(list(low.named(node))[-1]),
    "spread_element": wrap(),
    "yield_expression": wrap(),
    "sequence_expression": lambda low, node: low.expr(list(low.named(node))[-1]),
    "assignment_pattern": wrap("left"),
    "rest_pattern": wrap(),
    "binary_expression": binary(),
    "unary_expression": lambda low, node: Expr(
        low.line(node), parts=low.exprs(list(low.named(node)))
    ),
    "ternary_expression": choice("consequence", "alternative", test="condition"),
    "object": object_,
    "object_pattern": object_,
    "array": items(("spread_element",)),
    "array_pattern": items(("rest_pattern",)),
    "arrow_function": lambda_,
    "function_expression": lambda_,
    "generator_function": lambda_,
    "class": class_value,
    "variable_declarator": wrap("value"),
    "assignment_expression": wrap("right"),
}


def class_parts(low: Lowering, node: Node, marks: list[Expr]) -> Class:
    """Lower a class body: methods, fields, parameter properties, decorators before members."""
    made = Class(low.text(node.child_by_field_name("name")), low.line(node), marks=marks)
    made.parent = low.function
    made.abstract = node.type == "abstract_class_declaration"
    for heritage in (c for c in node.named_children if c.type == "class_heritage"):
        for clause in heritage.named_children:
            parts = [clause] if clause.type == "identifier" else list(clause.named_children)
            made.bases += [low.expr(p) for p in parts if p.type != "type_arguments"]
    inner = Lowering(low.source, low.language, low.path, None, made, low.exports, low.classes)
    pending: list[Expr] = []
    body = node.child_by_field_name("body")
    for child in inner.named(body) if body is not None else ():
        if child.type == "decorator":
            pending.append(inner.expr(field_of(child, None)))
            continue
        if child.type == "method_definition":
            found = method(inner, child)
            found.owner, found.marks, found.parent = made, pending, low.function
            made.methods.setdefault(found.name, found)
            if found.name == "constructor":
                made.types.update({p.name: p.type_text for p in found.params if p.keyword})
        elif child.type in ("public_field_definition", "field_definition"):
            member_field(inner, child, made, low.function)
        pending = []
    return made


def member_field(low: Lowering, node: Node, made: Class, parent: Function | None) -> None:
    """Record a class field; a function as its value is a method."""
    key = node.child_by_field_name("name") or node.child_by_field_name("property")
    value = node.child_by_field_name("value")
    told = low.text(key)
    of_type = low.text(node.child_by_field_name("type")).lstrip(": ")
    if of_type:
        made.types[told] = of_type
    if value is None:
        return
    lowered = low.expr(value)
    if isinstance(lowered, Lambda):
        lowered.function.name, lowered.function.owner = told, made
        lowered.function.parent = parent
        made.methods.setdefault(told, lowered.function)
    else:
        made.fields[told] = lowered


def class_(low: Lowering, node: Node) -> Stmt:
    """Lower a class declaration."""
    marks = [low.expr(field_of(c, None)) for c in node.named_children if c.type == "decorator"]
    made = class_parts(low, node, marks)
    made.name = made.name or "default"
    return Define(made.line, made)


def enum(low: Lowering, node: Node) -> Stmt:
    """Lower an enum to a class whose members are fields."""
    made = Class(low.text(node.child_by_field_name("name")), low.line(node))
    body = node.child_by_field_name("body")
    for child in low.named(body) if body is not None else ():
        if child.type == "enum_assignment":
            told = low.text(child.child_by_field_name("name")).strip("\"'")
            made.fields[told] = low.expr(child.child_by_field_name("value"))
    return Define(made.line, made)


def interface(low: Lowering, node: Node) -> Stmt:
    """Lower an interface to an abstract class with typed fields."""
    made = Class(low.text(node.child_by_field_name("name")), low.line(node), abstract=True)
    body = node.child_by_field_name("body")
    for child in low.named(body) if body is not None else ():
        told = low.text(child.child_by_field_name("name"))
        if child.type == "property_signature":
            made.types[told] = low.text(child.child_by_field_name("type")).lstrip(": ")
    return Define(made.line, made)


def namespace(low: Lowering, node: Node) -> Stmt:
    """Lower a namespace to a class whose constants are fields and functions are methods."""
    made = Class(low.text(node.child_by_field_name("name")), low.line(node))
    for stmt in low.block(node.child_by_field_name("body")):
        if isinstance(stmt, Assign) and isinstance(stmt.target, Name):
            made.fields[stmt.target.id] = stmt.value
        elif isinstance(stmt, Define) and isinstance(stmt.item, Function):
            stmt.item.static = True
            made.methods[stmt.item.name] = stmt.item
    return Define(made.line, made)


def function(low: Lowering, node: Node) -> Stmt:
    """Lower a function declaration."""
    made = function_parts(low, node)
    made.name = made.name or "default"
    return Define(made.line, made)


def declaration(low: Lowering, node: Node) -> list[Stmt]:
    """Lower const, let and var; a function as the value is a definition under its name."""
    out: list[Stmt] = []
    final = any(c.type == "const" for c in node.children)
    for child in node.named_children:
        if child.type != "variable_declarator":
            continue
        target = low.expr(child.child_by_field_name("name"))
        value = low.expr(child.child_by_field_name("value"))
        of_type = low.text(child.child_by_field_name("type")).lstrip(": ")
        if isinstance(value, Lambda) and isinstance(target, Name):
            value.function.name = value.function.name or target.id
            out.append(Define(low.line(child), value.function))
            if value.function.name != target.id:
                out.append(Assign(low.line(child), target, value, of_type, final))
        else:
            out.append(Assign(low.line(child), target, value, of_type, final))
    return out


def expression(low: Lowering, node: Node) -> list[Stmt]:
    """Lower an expression statement; assignments bind, `module.exports` exports."""
    out: list[Stmt] = []
    for child in low.named(node):
        if child.type in ("assignment_expression", "augmented_assignment_expression"):
            left = low.expr(child.child_by_field_name("left"))
            right = low.expr(child.child_by_field_name("right"))
            out.append(Assign(low.line(child), left, right, rebinds=True))
            commonjs(low, left, right)
        elif child.type == "internal_module":
            out.append(namespace(low, child))
        else:
            out.append(Do(low.line(child), low.expr(child)))
    return out


def commonjs(low: Lowering, left: Expr, right: Expr) -> None:
    """Note what `module.exports = …` and `exports.x = …` hand out."""
    if isinstance(left, Member) and isinstance(left.obj, Name) and left.obj.id == "exports":
        if isinstance(right, Name):
            low.exports[left.name] = right.id
    elif isinstance(left, Member) and left.name == "exports":
        if isinstance(right, Name):
            low.exports["default"] = right.id
        elif isinstance(right, Dict):
            for entry in right.entries:
                if isinstance(entry.key, Lit) and isinstance(entry.value, Name):
                    low.exports[str(entry.key.value)] = entry.value.id


def import_(low: Lowering, node: Node) -> list[Stmt]:
    """Lower an import in all its forms."""
    module = literal_text(low, node.child_by_field_name("source"))
    line, out = low.line(node), []
    for clause in (c for c in node.named_children if c.type == "import_clause"):
        for child in clause.named_children:
            if child.type == "identifier":
                out.append(Import(line, module, "default", low.text(child)))
            elif child.type == "namespace_import":
                out.append(Import(line, module, None, low.text(field_of(child, None))))
            elif child.type == "named_imports":
                for spec in child.named_children:
                    told = low.text(spec.child_by_field_name("name"))
                    alias = low.text(spec.child_by_field_name("alias")) or told
                    out.append(Import(line, module, told, alias))
    return list(out)


def literal_text(low: Lowering, node: Node | None) -> str:
    """Return the text of a string literal."""
    return low.text(node).strip("\"'`")


def export(low: Lowering, node: Node) -> list[Stmt]:
    """Lower exports: declarations, lists, re-exports, the default."""
    line = low.line(node)
    source = node.child_by_field_name("source")
    declared = node.child_by_field_name("declaration")
    value = node.child_by_field_name("value")
    default = any(c.type == "default" for c in node.children)
    marks = [low.expr(field_of(c, None)) for c in node.named_children if c.type == "decorator"]
    if declared is not None:
        made = low.stmt(declared)
        for stmt in made:
            if isinstance(stmt, Define):
                if isinstance(stmt.item, Class):
                    stmt.item.marks = marks + stmt.item.marks
                if default:
                    low.exports["default"] = stmt.item.name
        return made
    if value is not None:
        low.exports["default"] = "default"
        made_value = low.expr(value)
        if isinstance(made_value, Name):
            low.exports["default"] = made_value.id
            return []
        return [Assign(line, Name(line, "default"), made_value)]
    module = literal_text(low, source) if source is not None else None
    out: list[Stmt] = []
    for child in node.named_children:
        if child.type == "export_clause":
            for spec in child.named_children:
                told = low.text(spec.child_by_field_name("name"))
                alias = low.text(spec.child_by_field_name("alias")) or told
                if module is None:
                    low.exports[alias] = told
                else:
                    out.append(Import(line, module, told, alias, export=True))
        elif child.type == "namespace_export" and module is not None:
            out.append(Import(line, module, None, low.text(field_of(child, None)), export=True))
    if module is not None and any(c.type == "*" for c in node.children):
        out.append(Import(line, module, "*", "*", export=True))
    return out


def switch(low: Lowering, node: Node) -> Stmt:
    """Lower a switch; a case without a body falls through into the next."""
    cases: list[Case] = []
    waiting: list[Expr] = []
    body = node.child_by_field_name("body")
    for child in body.named_children if body is not None else ():
        if child.type not in ("switch_case", "switch_default"):
            continue
        value = child.child_by_field_name("value")
        if value is not None:
            waiting.append(low.expr(value))
        stmts = [s for b in child.children_by_field_name("body") for s in low.stmt(b)]
        if stmts or child.type == "switch_default":
            cases.append(Case(waiting, stmts))
            waiting = []
    return Switch(low.line(node), low.expr(node.child_by_field_name("value")), cases)


def try_(low: Lowering, node: Node) -> Stmt:
    """Lower try / catch / finally."""
    handler, final = node.child_by_field_name("handler"), node.child_by_field_name("finalizer")
    caught = low.block(handler.child_by_field_name("body")) if handler is not None else None
    return Try(
        low.line(node),
        low.block(node.child_by_field_name("body")),
        [] if caught is None else [caught],
        low.block(final.child_by_field_name("body")) if final is not None else [],
    )


def for_(low: Lowering, node: Node) -> list[Stmt]:
    """Lower a counting loop with its initialiser."""
    init, test = node.child_by_field_name("initializer"), node.child_by_field_name("condition")
    made = loop(None, None, "condition")(low, node)
    before = low.stmt(init) if init is not None and init.type != "empty_statement" else []
    _ = test
    return [*before, *(made if isinstance(made, list) else [made])]


def else_(low: Lowering, node: Node) -> list[Stmt]:
    """Lower the statement of an else clause."""
    return [s for child in low.named(node) for s in low.stmt(child)]


STMTS = {
    "program": block(),
    "statement_block": block(),
    "expression_statement": expression,
    "lexical_declaration": declaration,
    "variable_declaration": declaration,
    "function_declaration": function,
    "generator_function_declaration": function,
    "class_declaration": class_,
    "abstract_class_declaration": class_,
    "enum_declaration": enum,
    "interface_declaration": interface,
    "internal_module": namespace,
    "module": namespace,
    "export_statement": export,
    "import_statement": import_,
    "return_statement": simple_return(),
    "throw_statement": simple_raise(),
    "if_statement": branch(),
    "else_clause": else_,
    "switch_statement": switch,
    "for_in_statement": loop("left", "right", None),
    "for_statement": for_,
    "while_statement": loop(None, None, "condition"),
    "do_statement": loop(None, None, "condition"),
    "try_statement": try_,
    "labeled_statement": lambda low, node: low.block(node.child_by_field_name("body")),
    "type_alias_declaration": nothing(),
    "ambient_declaration": nothing(),
    "empty_statement": nothing(),
    "break_statement": nothing(),
    "continue_statement": nothing(),
    "comment": nothing(),
}

_THIS = frozenset({"this"})
JAVASCRIPT = Language(
    "javascript", (".js", ".mjs", ".cjs", ".jsx"), tree_sitter_javascript.language,
    JS_QUERY, EXPRS, STMTS, _THIS, resends=resending.JAVASCRIPT,
)  # fmt: skip
TYPESCRIPT = Language(
    "typescript", (".ts", ".mts", ".cts"), tree_sitter_typescript.language_typescript,
    TS_QUERY, EXPRS, STMTS, _THIS, resends=resending.JAVASCRIPT,
)  # fmt: skip
TSX = Language(
    "tsx", (".tsx",), tree_sitter_typescript.language_tsx,
    TS_QUERY, EXPRS, STMTS, _THIS, resends=resending.JAVASCRIPT,
)  # fmt: skip

_ = (Block, Do, ListOf)
