"""Rust's blocks, `match`, `if` and `let` as statements: where the value of a block goes.

`settle` lowers an expression whose value goes somewhere (a name, the caller, nowhere) into the
statements that bring it there, so that an arm of a `match` is a branch like any other. A `match`
on `Ok` and `Err` is a guarded body with a handler.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from fencekit.scan.facts import (
    Assign,
    Call,
    Case,
    Choice,
    Do,
    Expr,
    If,
    Lambda,
    Lit,
    Loop,
    Return,
    Stmt,
    Switch,
    Try,
)
from fencekit.scan.languages.base import Lowering
from fencekit.scan.languages.rust_types import pattern, tail_name, tested, type_text

if TYPE_CHECKING:
    from tree_sitter import Node

How = Callable[[int, Expr], Stmt]
LOOPS = ("loop_expression", "while_expression", "for_expression")
BLOCKS = (
    "block", "unsafe_block", "const_block", "async_block", "gen_block", "match_expression",
    "if_expression", *LOOPS,
)  # fmt: skip
LEAVES = frozenset({"return_expression", "break_expression", "continue_expression"})


def settle(low: Lowering, node: Node | None, how: How) -> list[Stmt]:
    """Lower an expression into statements that end in what `how` makes of its value."""
    if node is None:
        return []
    match node.type:
        case "block":
            return block(low, node, how)
        case "unsafe_block" | "const_block":
            return block(low, next(low.named(node), node), how)
        case "match_expression":
            return match_(low, node, how)
        case "if_expression":
            return if_(low, node, how)
        case "parenthesized_expression":
            return settle(low, next(low.named(node), None), how)
    if node.type in LEAVES or node.type in LOOPS:
        return low.stmt(node)
    if node.type == "macro_invocation":
        from fencekit.scan.languages.rust_macros import settled_macro

        return settled_macro(low, node, how)
    return [how(low.line(node), low.expr(node))]


def block(low: Lowering, node: Node, how: How) -> list[Stmt]:
    """Lower a block; its last expression without a semicolon is its value."""
    children = list(low.named(node))
    out: list[Stmt] = []
    for at, child in enumerate(children):
        last = at == len(children) - 1
        if last and child.type == "expression_statement" and child.children[-1].type != ";":
            out += settle(low, next(low.named(child), None), how)
        elif last and (child.type in low.language.exprs or child.type not in low.language.stmts):
            out += settle(low, child, how)
        else:
            out += low.stmt(child)
    return out


def returned(low: Lowering, body: Node) -> list[Stmt]:
    """Lower the body of a function or a closure; its value goes to the caller."""
    if body.type in ("async_block", "gen_block"):
        inner = next((c for c in low.named(body) if c.type == "block"), None)
        return settle(low, inner, Return)
    return settle(low, body, Return)


def for_effect(low: Lowering, node: Node) -> list[Stmt]:
    """Lower a block whose value nobody takes."""
    return settle(low, node, Do)


def as_value(low: Lowering, node: Node) -> Expr:
    """Lower a block inside an expression: a choice where it is simple, else a call of itself."""
    options = _simple(low, node)
    if options is not None:
        subject = node.child_by_field_name("value") or node.child_by_field_name("condition")
        parts = [low.expr(subject)] if subject is not None else []
        return Choice(low.line(node), options, parts=parts)
    function = low.make_function(node, "", [], None)
    function.lower = lambda made: returned(low.within(made), node)
    return Call(low.line(node), Lambda(low.line(node), function), [])


def _simple(low: Lowering, node: Node) -> list[Expr] | None:
    """Return the values of the arms of a `match` or `if` if they are plain expressions."""
    found: list[Node | None] = []
    if node.type == "match_expression":
        body = node.child_by_field_name("body")
        for arm in low.named(body) if body is not None else ():
            shape = arm.child_by_field_name("pattern")
            if shape is None or _binds(pattern(low, shape)):
                return None
            found.append(arm.child_by_field_name("value"))
    elif node.type == "if_expression":
        test = node.child_by_field_name("condition")
        if test is None or test.type in ("let_condition", "let_chain"):
            return None
        other = node.child_by_field_name("alternative")
        found = [node.child_by_field_name("consequence")]
        found.append(next(low.named(other), None) if other is not None else None)
    else:
        return None
    out: list[Expr] = []
    for one in found:
        inner = one
        while inner is not None and inner.type == "block" and inner.named_child_count == 1:
            inner = inner.named_children[0]
        if inner is None or inner.type in BLOCKS or inner.type in LEAVES:
            return None
        if inner.type in low.language.stmts and inner.type not in low.language.exprs:
            return None
        out.append(low.expr(inner))
    return out


def _binds(target: Expr) -> bool:
    return not isinstance(target, Lit)


def match_(low: Lowering, node: Node, how: How) -> list[Stmt]:
    """Lower a `match`: on a result, on an option, or on anything else."""
    value, body = node.child_by_field_name("value"), node.child_by_field_name("body")
    arms = [c for c in low.named(body) if c.type == "match_arm"] if body is not None else []
    subject = low.expr(value)
    line = low.line(node)
    kinds = [_kind(low, arm) for arm in arms]
    if "Ok" in kinds and "Err" in kinds and set(kinds) <= {"Ok", "Err", ""}:
        good = [arm for arm, kind in zip(arms, kinds, strict=True) if kind == "Ok"]
        bad = [arm for arm, kind in zip(arms, kinds, strict=True) if kind != "Ok"]
        kept: list[Stmt] = [Do(line, subject)]
        if len(good) == 1:
            arm = arm_body(low, good[0], subject, how)
            evaluated = bool(arm) and isinstance(arm[0], Assign) and arm[0].value is subject
            kept = arm if evaluated else [*kept, *arm]
        else:
            cases = [Case([Expr(line)], arm_body(low, arm, subject, how)) for arm in good]
            kept.append(Switch(line, Expr(line), cases))
        return [Try(line, kept, [arm_body(low, arm, Expr(line), how) for arm in bad], [])]
    cases = [_case(low, arm, subject, how) for arm in arms]
    return [Switch(line, subject, cases)]


def _kind(low: Lowering, arm: Node) -> str:
    shape = arm.child_by_field_name("pattern")
    inner = next(low.named(shape), None) if shape is not None else None
    if inner is None or inner.type != "tuple_struct_pattern":
        return "" if inner is None or inner.type == "identifier" else "other"
    return tail_name(low, inner.child_by_field_name("type"))


def _case(low: Lowering, arm: Node, subject: Expr, how: How) -> Case:
    shape = arm.child_by_field_name("pattern")
    values = tested(low, shape)
    guard = shape.child_by_field_name("condition") if shape is not None else None
    if guard is not None and not values:
        values = [Expr(low.line(arm), parts=[low.expr(guard)])]
    return Case(values, arm_body(low, arm, subject, how))


def arm_body(low: Lowering, arm: Node, subject: Expr, how: How) -> list[Stmt]:
    """Lower one arm: the names its pattern binds, and what it does."""
    target = pattern(low, arm.child_by_field_name("pattern"))
    bound: list[Stmt] = [Assign(low.line(arm), target, subject)] if _binds(target) else []
    return [*bound, *settle(low, arm.child_by_field_name("value"), how)]


def if_(low: Lowering, node: Node, how: How) -> list[Stmt]:
    """Lower `if` and `if let`; what a pattern binds is bound before the branch."""
    test = node.child_by_field_name("condition")
    before, asked = conditions(low, test)
    other = node.child_by_field_name("alternative")
    otherwise = settle(low, next(low.named(other), None), how) if other is not None else []
    then = settle(low, node.child_by_field_name("consequence"), how)
    return [*before, If(low.line(node), asked, then, otherwise)]


def conditions(low: Lowering, test: Node | None) -> tuple[list[Stmt], Expr]:
    """Return what the patterns of a condition bind, and the condition."""
    if test is None:
        return [], Expr(0)
    if test.type == "let_condition":
        target = pattern(low, test.child_by_field_name("pattern"))
        value = test.child_by_field_name("value")
        found = settle(low, value, lambda line, held: Assign(line, target, held))
        return found, Expr(low.line(test))
    if test.type == "let_chain":
        out: list[Stmt] = []
        asked: list[Expr] = []
        for child in low.named(test):
            before, told = conditions(low, child)
            out += before
            asked.append(told)
        return out, Expr(low.line(test), parts=asked)
    return [], low.expr(test)


def let(low: Lowering, node: Node) -> list[Stmt]:
    """Lower `let`, with the block that leaves where its pattern does not fit."""
    value = node.child_by_field_name("value")
    target = pattern(low, node.child_by_field_name("pattern"))
    told = type_text(low, node.child_by_field_name("type"), {})
    out = settle(low, value, lambda line, held: Assign(line, target, held, told))
    other = node.child_by_field_name("alternative")
    if other is not None:
        out.append(If(low.line(other), Expr(low.line(other)), low.block(other), []))
    return out


def for_(low: Lowering, node: Node) -> list[Stmt]:
    """Lower `for x in y`."""
    target = pattern(low, node.child_by_field_name("pattern"))
    over = low.expr(node.child_by_field_name("value"))
    return [Loop(low.line(node), target, over, None, low.block(node.child_by_field_name("body")))]


def while_(low: Lowering, node: Node) -> list[Stmt]:
    """Lower `while`, `while let` and `loop`."""
    test = node.child_by_field_name("condition")
    before, asked = conditions(low, test) if test is not None else ([], None)
    body = low.block(node.child_by_field_name("body"))
    return [Loop(low.line(node), None, None, asked, [*before, *body])]


def return_(low: Lowering, node: Node) -> list[Stmt]:
    """Lower `return`, also where it returns the value of a block."""
    value = next(low.named(node), None)
    return settle(low, value, Return) if value is not None else [Return(low.line(node), None)]
