"""From the options of `fencekit probe` to a plan, and the command lines that reports print."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from fencekit.probe.model import Way
from fencekit.probe.observer import CommandCounter, Counter, ToolCounter
from fencekit.probe.plan import CannotProbe, Plan, SinkPlan, read_arguments
from fencekit.probe.sink import Fault, read_script
from fencekit.report.escape import MASKED, mask, mask_argv
from fencekit.wire.client import Target
from fencekit.wire.http import secret_headers

# Options of the probe that say how to reach a URL; behind `wrap` they are wrap's business.
_REACH = ("--url", "--header", "--bearer-env", "--bearer-file")


def make_plan(options: dict[str, Any]) -> Plan:
    """Return the plan. Raises click.UsageError or CannotProbe."""
    command, url = tuple(options["command"]), options["url"]
    if not options["tool"]:
        raise click.UsageError("name the tool to call with --tool")
    if bool(command) == bool(url):
        raise click.UsageError("give either a command after -- or --url, and not both")
    if options["count_tool"] and options["count_cmd"]:
        raise click.UsageError("give either --count-tool or --count-cmd")
    if options["compare"] and not options["html"]:
        raise click.UsageError("--compare needs --html, the page that shows both runs")
    if options["sink"] and url:
        raise click.UsageError("--sink needs a server that the probe starts: a command, not --url")
    try:
        headers = secret_headers(
            dict(_pairs(options["headers"], "--header")),
            bearer_env=options["bearer_env"],
            bearer_file=options["bearer_file"],
        )
    except ValueError as error:
        raise click.UsageError(str(error)) from error
    target = Target(
        command=command,
        url=url,
        env=dict(_pairs(options["environment"], "--env")),
        cwd=options["cwd"],
        headers=headers,
        era=options["era"],
        timeout=options["timeout"],
    )
    return Plan(
        target=target,
        tool=options["tool"],
        arguments=read_arguments(_text(options["arguments"])),
        ways=_ways(options["ways"]),
        calls=options["calls"],
        connections=options["connections"],
        timeout=options["timeout"],
        control=_call(options["control"]),
        counter=_counter(options),
        settle=options["settle"],
        sink=_sink(options),
        cut_after=options["cut_after"],
        ignore=options["ignore"],
        ids=options["ids"],
        fenced=is_fence(command),
    )


def _pairs(items: Sequence[str], option: str) -> list[tuple[str, str]]:
    for item in items:
        if "=" not in item:
            raise click.UsageError(f"{option} wants NAME=VALUE")
    return [(name, value) for name, _, value in (item.partition("=") for item in items)]


def _text(value: str) -> str:
    if value == "-":
        return sys.stdin.read()
    if value.startswith("@"):
        try:
            return Path(value[1:]).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise CannotProbe(f"--args: {value[1:]} could not be read: {error}") from error
    return value


def _ways(text: str) -> tuple[Way, ...]:
    try:
        return tuple(dict.fromkeys(Way(name.strip()) for name in text.split(",")))
    except ValueError as error:
        raise click.UsageError(f"--ways: {error}; known: {', '.join(Way)}") from error


def _call(text: str | None) -> tuple[str, dict[str, Any]] | None:
    if not text:
        return None
    name, _, arguments = text.partition(":")
    return name, read_arguments(arguments or "{}")


def _counter(options: dict[str, Any]) -> Counter | None:
    if options["count_cmd"]:
        return CommandCounter(options["count_cmd"], options["cwd"])
    if (call := _call(options["count_tool"])) is not None:
        return ToolCounter(call[0], options["count_path"], call[1])
    return None


def _sink(options: dict[str, Any]) -> SinkPlan | None:
    if not options["sink"]:
        return None
    name, _, path = options["sink"].partition("=")
    replies: object = []
    if options["sink_reply"] is not None:
        try:
            replies = json.loads(options["sink_reply"].read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise click.UsageError(f"--sink-reply: {error}") from error
    try:
        script = read_script(replies)
    except ValueError as error:
        raise click.UsageError(f"--sink-reply: {error}") from error
    fault: Fault = options["sink_fault"] or ""
    return SinkPlan(name, path, script, fault, options["sink_only"], options["sink_unverified"])


def is_fence(command: Sequence[str]) -> bool:
    """Whether a command line starts `fencekit wrap`, so that its marks are a fence's own."""
    for at, word in enumerate(command[:-1]):
        if Path(word).name in ("fencekit", "fencekit.cli.main", "fencekit.exe"):
            return command[at + 1] == "wrap"
    return False


def _program() -> str:
    """Return how this program was called, as `fencekit` where that finds the same file."""
    called = sys.argv[0]
    found = shutil.which("fencekit")
    if found is not None and os.path.realpath(found) == os.path.realpath(called):
        return "fencekit"
    if Path(called).name == "fencekit":
        return called
    return "fencekit"


def commands(command: Sequence[str], argv: Sequence[str] | None = None) -> dict[str, str]:
    """Return this command line, the raw one and the fenced one, with secrets masked."""
    words = list(sys.argv[1:] if argv is None else argv)
    program = _program()
    own = words[: words.index("--")] if "--" in words else words
    behind = list(command)
    if not command:
        own, behind = _without_reach(own)
    own = _masked(own)
    behind = mask_argv(behind)
    this = [program, *own, "--", *behind] if command else [program, *_masked(words)]
    if is_fence(command):
        at = command.index("wrap")
        inner = behind[behind.index("--") + 1 :] if "--" in behind[at:] else behind
        return {"this": shlex.join(this), "raw": shlex.join([program, *own, "--", *inner]),
                "fenced": shlex.join(this)}  # fmt: skip
    bridge = ["--"] if command else []
    fenced = [program, *own, "--", program, "wrap", *bridge, *behind]
    return {"this": shlex.join(this), "raw": shlex.join(this), "fenced": shlex.join(fenced)}


def _without_reach(words: Sequence[str]) -> tuple[list[str], list[str]]:
    """Take the options that reach a URL out of the probe's words, and return them apart."""
    kept: list[str] = []
    reach: list[str] = []
    into = kept
    for word in words:
        if word.startswith("--"):
            into = reach if word.partition("=")[0] in _REACH else kept
            into.append(word)
            into = kept if "=" in word else into
        else:
            into.append(word)
            into = kept
    return kept, reach


def _masked(words: Sequence[str]) -> list[str]:
    """Mask secrets in our own words, also inside the JSON of `--args`."""
    masked = mask_argv(list(words))
    for at, word in enumerate(words):
        if word.startswith("{"):
            try:
                value = json.loads(word)
            except ValueError:
                masked[at] = MASKED
                continue
            safe = mask(value)
            masked[at] = word if safe == value else json.dumps(safe)
    return masked
