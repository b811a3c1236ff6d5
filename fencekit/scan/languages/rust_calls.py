"""Rust's expressions: paths, calls, strings and struct literals.

What only converts, shares or unwraps a value (`?`, `.await`, `.clone()`, `Arc::new(x)`)
is lowered to that value.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fencekit.scan.facts import (
    Arg,
    Assign,
    Call,
    Choice,
    Dict,
    Do,
    Entry,
    Expr,
    Index,
    ListOf,
    Lit,
    Member,
    Name,
    Stmt,
    Template,
)
from fencekit.scan.languages import rust_flow as flow
from fencekit.scan.languages.base import Lowering, lower_args, unescape
from fencekit.scan.languages.rust_imports import PRIMITIVES, segments

if TYPE_CHECKING:
    from tree_sitter import Node

# Methods that hand on what they are called on: conversions, and what unwraps or shares it.
SAME = frozenset({
    "unwrap", "expect", "unwrap_or_default", "map_err", "ok_or", "ok_or_else", "context",
    "with_context", "wrap_err", "wrap_err_with", "clone", "cloned", "copied", "to_string",
    "to_owned", "into", "try_into", "as_str", "as_ref", "as_mut", "as_deref", "as_deref_mut",
    "as_slice", "to_vec", "boxed", "borrow", "borrow_mut", "ok", "as_string", "as_bytes", "trim",
    "into_inner", "as_object", "as_array", "as_i64", "as_u64", "as_f64", "as_bool", "into_owned",
    "to_str", "as_path", "iter", "into_iter", "iter_mut", "by_ref", "parse",
})  # fmt: skip
LOCKS = frozenset({"lock", "read", "write", "upgrade", "load", "load_full"})  # without arguments
MAX_STEPS = 3
# Constructors and functions that hand on their only argument.
HOLDERS = frozenset({
    "Arc.new", "Rc.new", "Box.new", "Box.pin", "Mutex.new", "RwLock.new", "RefCell.new", "Cell.new",
    "Arc.clone", "Rc.clone", "String.from", "Cow.Borrowed", "Cow.Owned", "Cow.from", "Value.String",
    "Value.from", "Value.Object", "Value.Array", "Some", "Ok", "Parameters", "Json", "Value.Number",
    "serde_json.from_value", "serde_json.from_str", "serde_json.to_value", "serde_json.to_string",
    "serde_json.to_string_pretty", "serde_json.from_slice", "serde_json.to_vec", "Url.parse",
    "Pin.new", "AssertUnwindSafe", "PathBuf.from", "Path.new", "Arc.from", "Box.from",
})  # fmt: skip


def path(low: Lowering, node: Node) -> Expr:
    """Lower `a::b::C::d`: the modules at its front are one name."""
    parts = segments(low, node)
    line = low.line(node)
    if parts is None:
        before = node.child_by_field_name("path")
        return Member(line, low.expr(before), low.text(node.child_by_field_name("name")))
    count = 0
    while count < len(parts) - 1 and parts[count][:1].islower() and parts[0] not in PRIMITIVES:
        count += 1
    if parts[-2:] == ["Value", "Null"]:
        return Lit(line, None)
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
    if len(args) == 2 and parts[-1:] in (["timeout"], ["timeout_at"]):
        return low.expr(args[1])
    if len(args) == 1 and (short in HOLDERS or (len(parts) == 1 and parts[0] in HOLDERS)):
        return low.expr(args[0])
    variant = len(parts) > 1 and all(p[:1].isupper() and not p.isupper() for p in parts[-2:])
    if variant and len(args) == 1:  # `Message::Text(x)`
        return low.expr(args[0])
    if short == "Err" and len(args) == 1:
        return Expr(low.line(node), parts=[low.expr(args[0])])
    if short in ("Default.default", "String.new"):
        return Lit(low.line(node), None)
    if short in ("Vec.new", "Vec.with_capacity", "VecDeque.new", "BTreeSet.new", "HashSet.new"):
        return ListOf(low.line(node), [])
    if short in ("HashMap.new", "BTreeMap.new", "Map.new", "IndexMap.new", "HeaderMap.new"):
        return Dict(low.line(node), [])
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
    if told == "join" and len(args) == 1:
        added = low.expr(args[0])
        if not (isinstance(added, Lit) and not any(c.isalnum() for c in str(added.value))):
            return Template(line, parts=[low.expr(value), Lit(line, "/"), added])  # of a path
    if told in ("map_or", "map_or_else") and len(args) == 2:
        missing = low.expr(args[0])
        if told == "map_or_else":
            missing = Call(line, missing, [])
        return Choice(line, [missing, Call(line, low.expr(args[1]), [Arg(low.expr(value))])])
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


def assignment(low: Lowering, node: Node) -> list[Stmt]:
    """Lower `x = y`, also where y is a block."""
    left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
    if left is None or right is None:
        return []
    target = low.expr(left)
    return flow.settle(low, right, lambda line, value: Assign(line, target, value))


def call_stmt(low: Lowering, node: Node) -> list[Stmt]:
    """Lower a call for its effect; `text.push_str(x)` gives text another value."""
    made = low.expr(node)
    added = isinstance(made, Call) and isinstance(made.callee, Member) and len(made.args) == 1
    if added and isinstance(made, Call) and isinstance(made.callee, Member):
        held = made.callee.obj
        if (
            made.callee.name == "push_str"
            and isinstance(held, Name)
            and few(low, held, ".push_str(")
        ):
            return [Assign(made.line, held, Template(made.line, parts=[held, made.args[0].value]))]
    return [Do(low.line(node), made)]


def few(low: Lowering, held: Name, sign: str) -> bool:
    """Tell whether a text is put together in a few steps, as an address is, and no report."""
    if low.function is None:
        return False
    body = low.source[low.function.start : low.function.end]
    return body.count(f"{held.id}{sign}".encode()) <= MAX_STEPS


def compound(low: Lowering, node: Node) -> list[Stmt]:
    """Lower `x += y`; what is added to a text makes another text."""
    left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
    line, target, value = low.line(node), low.expr(left), low.expr(right)
    sign = low.text(node.child_by_field_name("operator"))
    spoken = isinstance(value, Template) or isinstance(getattr(value, "value", None), str)
    borrowed = right is not None and right.type == "reference_expression"
    if sign != "+=" or not (spoken or borrowed):  # a sum
        return [Do(line, value)]
    if isinstance(target, Name) and few(low, target, " +="):
        return [Assign(line, target, Template(line, parts=[target, value]))]
    return [Do(line, value)]


def place(low: Lowering, node: Node) -> Expr:
    """Lower `a[b]`."""
    found = list(low.named(node))
    return Index(low.line(node), low.expr(found[0]), low.expr(found[-1]))


def unary(low: Lowering, node: Node) -> Expr:
    """Lower `*x` and `-x` to x; the opposite of a test is not known."""
    inner = low.expr(next(low.named(node), None))
    sign = node.children[0].type if node.children else ""
    return Expr(low.line(node), parts=[inner]) if sign == "!" else inner
