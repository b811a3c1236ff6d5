"""Writes a finding down as a pytest file that its maintainer can run without fencekit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fencekit import __version__
from fencekit.probe.answers import Comparison
from fencekit.probe.judge import worst
from fencekit.probe.model import Verdict, Way
from fencekit.probe.observer import CommandCounter, ToolCounter
from fencekit.probe.plan import CannotProbe
from fencekit.probe.run import Asked, Run
from fencekit.report.escape import mask, terminal


def emit_test(run: Run) -> str:
    """Return the test file for what the run proved. Raises CannotProbe if it proved nothing."""
    import jinja2

    asked = _proof(run)
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("fencekit.probe"),
        autoescape=False,
        undefined=jinja2.StrictUndefined,
        keep_trailing_newline=True,
    )
    return environment.get_template("emitted_test.py.j2").render(_values(run, asked))


def _proof(run: Run) -> Asked:
    for asked in run.asked:
        if asked.judgement.verdict is Verdict.PROVEN:
            return asked
    shown = worst(asked.judgement.verdict for asked in run.asked)
    raise CannotProbe(f"no test was written: a test needs a proven double-fire, this is {shown}")


def _values(run: Run, asked: Asked) -> Mapping[str, Any]:
    plan = run.plan
    counter = plan.counter if asked.judgement.rests_on == "observer" else None
    sink = plan.sink if asked.judgement.rests_on == "sink" else None
    tool_counter = counter if isinstance(counter, ToolCounter) else None
    command_counter = counter if isinstance(counter, CommandCounter) else None
    arguments = dict(plan.arguments)
    env = {name: value for name, value in plan.target.env.items() if not sink or name != sink.env}
    secret = mask(arguments) != arguments
    return {
        "version": __version__,
        "date": run.began.date().isoformat(),
        "found": _line(asked.judgement.reason),
        "tool": repr(plan.tool),
        "tool_doc": _line(plan.tool),
        "arguments": repr(arguments),
        "secret": secret,
        "calls": plan.calls,
        "way": repr(str(Way.RESTART if asked.way is Way.LOST_ANSWER else asked.way)),
        "identity": repr(identity(asked.comparison)),
        "count_command": repr(command_counter.command if command_counter else None),
        "count_tool": repr(
            (tool_counter.tool, dict(tool_counter.arguments)) if tool_counter else None
        ),
        "count_path": repr(tool_counter.path if tool_counter else None),
        "sink_env": repr(sink.env if sink else None),
        "sink_path": repr(sink.path if sink else ""),
        "timeout": plan.timeout,
        "command": repr(list(plan.target.command)) if plan.target.command else "",
        "command_doc": _line(" ".join(plan.target.command)),
        "url": repr(plan.target.url),
        "cwd": repr(plan.target.cwd),
        "protocol": repr(run.server["protocol"]),
        "era": run.server["era"],
        "env": repr(
            {name: value for name, value in env.items() if mask({name: value}) == {name: value}}
        ),
    }


def identity(comparison: Comparison) -> list[str]:
    """Return the paths whose values told the executions apart, the ids first."""
    strong = [d.path for d in comparison.identifying if d.strong]
    return strong or [d.path for d in comparison.identifying]


def _line(text: str) -> str:
    """Return text from outside as one harmless line inside a docstring."""
    return terminal(text, limit=300).replace("\\", "/").replace('"""', "'''").rstrip('"')
