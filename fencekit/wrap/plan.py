"""How a server's tools would be treated and why, and a configuration to start from."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from fencekit.wrap.definitive import Errors, Proposal, proposals
from fencekit.wrap.policy import Treatment, treat
from fencekit.wrap.rules import Rules, ToolKind
from fencekit.wrap.verdict import clean

_BARE = re.compile(r"[A-Za-z0-9_-]+")
_ORDER = {ToolKind.APPEND: 0, ToolKind.SET: 1, ToolKind.READ: 2, ToolKind.PASS: 3}


def treatments(tools: Iterable[Mapping[str, Any]], rules: Rules) -> list[Treatment]:
    """Return how each listed tool would be treated, the fenced ones first."""
    made = [treat(str(t["name"]), t, rules) for t in tools if isinstance(t.get("name"), str)]
    return sorted(made, key=lambda t: (_ORDER[t.kind], t.tool))


def table(plan: Sequence[Treatment]) -> str:
    """Return the plan as lines for a person."""
    width = max([4, *(len(clean(t.tool, 60)) for t in plan)])
    rows = [f"{'tool':<{width}}  kind    why"]
    rows += [f"{clean(t.tool, 60):<{width}}  {t.kind:<6}  {t.why}" for t in plan]
    rows += [f"note: {clean(t.remark, 300)}" for t in plan if t.remark]
    return "\n".join(rows)


Proposals = Mapping[str, Sequence[Proposal]]
"""What to propose as `definitive`, by tool."""


def proposed(
    plan: Sequence[Treatment], tools: Iterable[Mapping[str, Any]], errors: Errors
) -> dict[str, list[Proposal]]:
    """Return the errors of each fenced tool that may prove that nothing ran."""
    declared = {t.get("name"): t for t in tools}
    return {
        one.tool: proposals(declared.get(one.tool, {}), errors.of(one.tool), one.rule.definitive)
        for one in plan
        if one.kind is ToolKind.APPEND
    }


def as_json(plan: Sequence[Treatment], found: Proposals) -> list[dict[str, Any]]:
    """Return the plan for machines."""
    return [
        {
            "tool": t.tool,
            "kind": str(t.kind),
            "why": t.why,
            **({"note": t.remark} if t.remark else {}),
            **({"definitive": [asdict(p) for p in found[t.tool]]} if found.get(t.tool) else {}),
        }
        for t in plan
    ]


def config(plan: Sequence[Treatment], tools: Iterable[Mapping[str, Any]], found: Proposals) -> str:
    """Return a `fencekit.toml` to start from: every fenced tool, with its likely intent fields."""
    declared = {t.get("name"): t for t in tools}
    lines = ["# Everything below is what holds without this file; change what you know better."]
    for one in plan:
        if one.kind is not ToolKind.APPEND:
            continue
        lines += ["", f"[tools.{_key(one.tool)}]", f'kind = "{one.kind}"']
        required = _required(declared.get(one.tool, {}))
        if required:
            lines.append(f"# intent = [{', '.join(_text(name) for name in required)}]")
        lines += _definitive(found.get(one.tool, ()))
    return "\n".join(lines) + "\n"


def _definitive(found: Sequence[Proposal]) -> list[str]:
    """Return lines that propose, and decide nothing."""
    if not found:
        return ['# definitive = ["text of an error that proves that nothing ran"]']
    lines = ["# Errors that may prove that nothing ran; use only those of which you know it:"]
    lines += [f"#   {_text(one.pattern)}: {one.words()}" for one in found]
    lines.append(f"# definitive = [{', '.join(_text(one.pattern) for one in found)}]")
    return lines


def _required(tool: Mapping[str, Any]) -> list[str]:
    schema = tool.get("inputSchema")
    required = schema.get("required") if isinstance(schema, Mapping) else None
    return [r for r in required if isinstance(r, str)][:20] if isinstance(required, list) else []


def _key(name: str) -> str:
    return name if _BARE.fullmatch(name) else _text(name)


def _text(text: str) -> str:
    """Return a basic string of TOML; what does not print, and surrogates, are escaped."""
    return '"' + "".join(map(_toml, text)) + '"'


_SHORT = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t"}


def _toml(char: str) -> str:
    if char in _SHORT:
        return _SHORT[char]
    if char.isprintable():
        return char
    code = ord(char)
    if 0xD800 <= code <= 0xDFFF:  # no TOML can hold it, and no configuration names such a tool
        return "\\uFFFD"
    return f"\\u{code:04X}" if code <= 0xFFFF else f"\\U{code:08X}"
