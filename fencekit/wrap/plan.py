"""How a server's tools would be treated and why, and a configuration to start from."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

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


def as_json(plan: Sequence[Treatment]) -> list[dict[str, str]]:
    """Return the plan for machines."""
    return [
        {
            "tool": t.tool,
            "kind": str(t.kind),
            "why": t.why,
            **({"note": t.remark} if t.remark else {}),
        }
        for t in plan
    ]


def config(plan: Sequence[Treatment], tools: Iterable[Mapping[str, Any]]) -> str:
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
        lines.append('# definitive = ["text of an error that proves that nothing ran"]')
    return "\n".join(lines) + "\n"


def _required(tool: Mapping[str, Any]) -> list[str]:
    schema = tool.get("inputSchema")
    required = schema.get("required") if isinstance(schema, Mapping) else None
    return [r for r in required if isinstance(r, str)][:20] if isinstance(required, list) else []


def _key(name: str) -> str:
    return name if _BARE.fullmatch(name) else _text(name)


def _text(text: str) -> str:
    import json

    return json.dumps(text)
