"""What a tool made from an OpenAPI operation does: the operation's verb decides, not the executor.

One executor runs every operation, so its own call says little: a GET through it is no write, and a
POST is one even where the verb never shows in the code.
"""

from __future__ import annotations

from dataclasses import replace

from fencekit.scan.effect import NOTHING
from fencekit.scan.facts import Call, Function, Name
from fencekit.scan.http_calls import by_verb_and_path
from fencekit.scan.toolspec import Tool, name_of
from fencekit.scan.values import Env
from fencekit.scan.walked import Hit, Hop, Walked


def by_operation(tool: Tool, walked: Walked) -> Walked:
    """Return what was walked, with the operation's own effect in place of the executor's.

    A tool that only carries a verb and a path beside its name keeps what was walked, unless the
    operation asks: then what the executor sends is no write.
    """
    if tool.data is None:
        return walked
    verb, path = tool.data
    effect = by_verb_and_path(verb, path, tool.operation or tool.name)
    if tool.style != "openapi":
        kept = [h for h in walked.hits if effect.what or not h.effect.what.startswith("HTTP")]
        return replace(walked, hits=kept)
    if not effect.what:
        return replace(walked, hits=[], weak=[])
    names = {p.name for p in tool.parameters}
    sends = _sending(tool, walked) or [_at_executor(tool)]
    return replace(
        walked, hits=[replace(h, effect=effect, inputs=h.inputs | names) for h in sends], weak=[]
    )


def _sending(tool: Tool, walked: Walked) -> list[Hit]:
    """Return the calls that send the request, by the best sign there is of them."""
    every = [*walked.hits, *walked.weak]
    signs = (
        [h for h in every if h.effect.what.startswith("HTTP")],
        [h for h in every if h.effect.what.endswith("." + tool.operation)],
        [h for h in walked.hits if not h.effect.what.startswith(("file", "child process"))],
        walked.weak,
    )
    best = next((found for found in signs if found), [])
    return list({(h.file, h.line): h for h in best}.values())


def _at_executor(tool: Tool) -> Hit:
    """Return the write of a tool that an SDK runs, or whose executor shows no call."""
    nothing = NOTHING
    if tool.executor is not None:
        call, env = tool.executor
        hop = Hop(name_of(call.callee), env.file, call.line, True)
        return Hit(env.file, call.line, nothing, (hop,), (), [], set(), env.function, call, env)
    file, line = tool.data_place
    handler = tool.handler
    function = handler.function if handler is not None else Function("", line, [], lambda _f: [])
    at = function.module.path if function.module is not None else tool.file
    hop = Hop(function.name or "(closure)", at, max(function.line, 1), True)
    call, env = Call(line, Name(line, tool.operation)), Env(function)
    return Hit(file, line, nothing, (hop,), (), [], set(), function, call, env)
