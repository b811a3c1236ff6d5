"""How a tool is treated and why: by the configuration, else the server's hints, else its name.

Pure. Hints: MCP specification, `ToolAnnotations`. `idempotentHint` is never overruled by words;
`readOnlyHint` is, where the name holds a verb that writes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from fencekit.wrap.rules import Rules, ToolKind, ToolRule
from fencekit.wrap.words import money_word, reads_only, write_word


@dataclass(frozen=True, slots=True)
class Treatment:
    """How calls of one tool are treated, why, and what an operator should be told about it."""

    tool: str
    kind: ToolKind
    why: str
    rule: ToolRule
    remark: str = ""


def treat(tool: str, declared: Mapping[str, Any] | None, rules: Rules) -> Treatment:
    """Decide how calls of `tool` are treated; `declared` is its entry in the server's list."""
    rule = rules.of(tool)
    if rule.kind is not None:
        return Treatment(tool, rule.kind, "the configuration says so", rule)
    hints = _hints(declared)
    if hints.get("readOnlyHint") is True:
        return _read_only(tool, hints, rule)
    if hints.get("idempotentHint") is True:
        return Treatment(tool, ToolKind.SET, "idempotentHint: true", rule, _money_remark(tool))
    if hints:
        said = ", ".join(f"{name}: {str(value).lower()}" for name, value in sorted(hints.items()))
        return Treatment(tool, ToolKind.APPEND, said, rule)
    if declared is not None and rules.infer:
        description = declared.get("description")
        word = reads_only(tool, description if isinstance(description, str) else "")
        if word is not None:
            return Treatment(tool, ToolKind.READ, f"no hints, and {word!r} only reads", rule)
    why = "no hints" if declared is not None else "the server does not list it"
    return Treatment(tool, ToolKind.APPEND, why, rule)


def _read_only(tool: str, hints: Mapping[str, bool], rule: ToolRule) -> Treatment:
    word = write_word(tool)
    if word is None:
        return Treatment(tool, ToolKind.READ, "readOnlyHint: true", rule)
    if hints.get("idempotentHint") is True:
        return Treatment(tool, ToolKind.SET, "idempotentHint: true", rule, _money_remark(tool))
    why = f"readOnlyHint: true, but {word!r} in the name may write"
    return Treatment(tool, ToolKind.APPEND, why, rule)


def _money_remark(tool: str) -> str:
    word = money_word(tool)
    if word is None:
        return ""
    return (
        f"{tool} declares idempotentHint, so repeats run again, although {word!r} may move money "
        f'or send; if that is wrong, set kind = "append" for it'
    )


def _hints(declared: Mapping[str, Any] | None) -> dict[str, bool]:
    """Return the hints that say something about repeats."""
    annotations = declared.get("annotations") if declared is not None else None
    if not isinstance(annotations, Mapping):
        return {}
    names = ("readOnlyHint", "destructiveHint", "idempotentHint")
    return {n: annotations[n] for n in names if isinstance(annotations.get(n), bool)}
