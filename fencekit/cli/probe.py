"""`fencekit probe`: ask one tool twice and count the effects."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from fencekit.probe.plan import Plan

WAYS = ("twins", "retry", "lost-answer", "restart")


@click.command(context_settings={"ignore_unknown_options": False})
@click.option("--tool", metavar="NAME", help="The one tool that is called.")
@click.option(
    "--args", "arguments", default="{}", help="Its arguments: JSON, @FILE, or - for stdin."
)
@click.option("--calls", default=12, type=click.IntRange(2, 4096), help="Twins.", show_default=True)
@click.option(
    "--ways", default="twins", help=f"Of {', '.join(WAYS)}, with commas.", show_default=True
)
@click.option(
    "--connections",
    default=1,
    type=click.IntRange(1, 256),
    show_default=True,
    help="Connections for the twins; on stdio each is a process.",
)
@click.option("--url", default="", help="A Streamable HTTP server instead of a command.")
@click.option(
    "--header",
    "headers",
    multiple=True,
    metavar="NAME=VALUE",
    help="An HTTP header; VALUE may be $VARIABLE or @FILE.",
)
@click.option("--bearer-env", metavar="VARIABLE", help="Read the bearer token from there.")
@click.option("--bearer-file", type=click.Path(path_type=Path), help="Read the bearer token there.")
@click.option(
    "--env", "environment", multiple=True, metavar="NAME=VALUE", help="A variable for the server."
)
@click.option(
    "--cwd", type=click.Path(file_okay=False, exists=True), help="Start the server there."
)
@click.option(
    "--timeout",
    default=60.0,
    type=click.FloatRange(0.01),
    show_default=True,
    help="Seconds for each call, on its own clock.",
)
@click.option(
    "--era",
    type=click.Choice(["auto", "legacy", "modern"]),
    default="auto",
    show_default=True,
    help="The protocol era to speak.",
)
@click.option("--control", metavar="TOOL[:ARGS]", help="A call the server must answer first.")
@click.option("--count-tool", metavar="TOOL[:ARGS]", help="Count effects with this read tool …")
@click.option("--count-path", default="$", help="… at this path, such as $.items.length.")
@click.option("--count-cmd", help="Count effects with a shell command that prints a number.")
@click.option(
    "--settle",
    default=5.0,
    type=click.FloatRange(0.3),
    show_default=True,
    help="Seconds the count may take to stand still.",
)
@click.option(
    "--sink",
    metavar="VARIABLE[=/PATH]",
    help="Point the server's API at a recorder through this variable.",
)
@click.option(
    "--sink-reply",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="A JSON list of {method, path, status, body, headers}.",
)
@click.option(
    "--sink-fault",
    type=click.Choice(["after-effect-503", "hang", "close"]),
    help="Fail the first write after recording it.",
)
@click.option(
    "--sink-only",
    default="",
    metavar="'METHOD /PATH'",
    help="Count only these writes (a shell pattern).",
)
@click.option("--sink-unverified", is_flag=True, help="Send one call to see whether it is wired.")
@click.option("--ignore", multiple=True, metavar="PATH", help="Do not compare this path.")
@click.option("--id-path", "ids", multiple=True, metavar="PATH", help="Take this path for an id.")
@click.option(
    "--cut-after",
    type=click.FloatRange(0.0),
    help="Lost answer: cut after so many seconds, not on evidence.",
)
@click.option("--dry-run", is_flag=True, help="Say what would be called, and stop.")
@click.option("--show-args", is_flag=True, help="Print the arguments in full; secrets stay masked.")
@click.option("--self-check", "check_only", is_flag=True, help="Only check the probe itself.")
@click.option("--require", type=click.Choice(["one-effect"]), help="Exit 1 on anything weaker.")
@click.option("--exit-zero", is_flag=True, help="Exit 0 also on a proven double-fire.")
@click.option("--json", "as_json", is_flag=True, help="Print the fencekit.probe/1 document.")
@click.option(
    "--html", type=click.Path(dir_okay=False, path_type=Path), help="Write the report as a page."
)
@click.option(
    "--compare",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="An earlier --json run, shown beside this one in the page.",
)
@click.option(
    "--emit-test",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write a pytest file that fails until the effect runs once.",
)
@click.argument("command", nargs=-1, type=click.UNPROCESSED)
def command(**options: Any) -> None:
    """Call one tool again and again with the same arguments, and count the effects.

    \b
    fencekit probe --tool charge_card --args '{"order": "1"}' -- npx -y my-server
    fencekit probe --tool charge_card --args @args.json --url https://host/mcp

    Naming the tool and its arguments is the consent: there is no prompt, and nothing else is
    called. Exit: 0 no double-fire shown, 1 PROVEN DOUBLE-FIRE, 2 could not probe, 130 interrupted.
    """
    from fencekit.probe.plan import CannotProbe

    try:
        code = _run(options)
    except CannotProbe as error:
        from fencekit.report.escape import mask_text, terminal

        # The text may quote the server: its last words on stderr, its error messages.
        _progress(terminal(mask_text(str(error))))
        code = 2
    sys.exit(code)


def _run(options: dict[str, Any]) -> int:
    from fencekit.cli.probe_plan import commands, make_plan
    from fencekit.probe.model import Way
    from fencekit.probe.run import Run
    from fencekit.probe.selfcheck import self_check

    if options["check_only"]:
        check = self_check(tuple(Way))
        for one in check.checks:
            word = "ok    " if one.passed else "FAILED"
            click.echo(f"{word} {one.way:<11} {one.counter:<8} {one.specimen:<7} {one.verdict}")
        return 0 if check.passed else 2
    plan = make_plan(options)
    options["raw"] = None if options["compare"] is None else _earlier(options["compare"])
    lines = commands(options["command"])
    with _terminable(), Run(plan) as run:
        try:
            with _talk() as run.say:
                tool = run.look()
            _announce(plan, tool, show=options["show_args"])
            if options["dry_run"]:
                return 0
            with _talk() as run.say:
                run.fire()
        except KeyboardInterrupt:
            run.stopped = "interrupted"
        except Exception:
            if run.asked or (run.check is not None and not run.check.passed):
                _deliver(run, lines, options)
            raise
        return _deliver(run, lines, options)


@contextlib.contextmanager
def _terminable() -> Iterator[None]:
    """Take SIGTERM for an interruption, so that servers are ended and what is known is told."""
    import signal

    def interrupt(_signal: int, _frame: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@contextlib.contextmanager
def _talk() -> Iterator[Callable[[str], None]]:
    """Give what tells the progress: a spinner on a terminal, else a line for each step."""
    from rich.console import Console

    console = Console(stderr=True)
    if not console.is_terminal:
        yield _progress
        return
    with console.status("fencekit probe") as status:
        yield lambda text: status.update(f"fencekit probe: {text}")


def _progress(text: str) -> None:
    click.echo(f"fencekit probe: {text}", err=True)


def _announce(plan: Plan, tool: Any, *, show: bool) -> None:
    """Say, before anything is fired, what will be called and how often."""
    import json

    from fencekit.report.escape import mask, terminal

    total = sum(plan.fires(way) for way in plan.ways)
    ways = ", ".join(f"{way} {plan.fires(way)}" for way in plan.ways)
    text = json.dumps(mask(dict(plan.arguments)), ensure_ascii=False)
    shown = terminal(text, limit=100_000 if show else 200)
    hints = ", ".join(f"{name}: {str(value).lower()}" for name, value in tool.hints.items())
    _progress(f"will call {terminal(tool.name)} {total} times ({ways}) with {shown}")
    _progress(f"the tool's own hints: {hints or 'none'}")
    if tool.warning:
        _progress(f"WARNING: {tool.warning}")


def _deliver(run: Any, lines: dict[str, str], options: dict[str, Any]) -> int:
    """Write every output that was asked for and return the exit code."""
    import json

    from rich.console import Console

    from fencekit.probe.document import document, exit_code
    from fencekit.probe.terminal import render

    doc = document(run, lines)
    if options["as_json"]:
        click.echo(json.dumps(doc, indent=2, ensure_ascii=False))
    else:
        render(doc, Console(highlight=False))
    _write_files(run, doc, options)
    if run.stopped:
        return 130
    code = exit_code(doc)
    if code == 2 or options["exit_zero"]:
        return 0 if options["exit_zero"] and code == 1 else code
    if options["require"] == "one-effect" and doc["verdict_words"] != "ONE EFFECT":
        return 1
    return code


def _write_files(run: Any, doc: dict[str, Any], options: dict[str, Any]) -> None:
    from fencekit.probe.emit import emit_test
    from fencekit.probe.plan import CannotProbe
    from fencekit.report import probe_html

    try:
        if options["html"] is not None:
            page = probe_html.render(doc, options["raw"])
            options["html"].write_text(page, encoding="utf-8")
            _progress(f"wrote {options['html']}")
        if options["emit_test"] is not None and not run.stopped:
            options["emit_test"].write_text(emit_test(run), encoding="utf-8")
            _progress(f"wrote {options['emit_test']}; run it with pytest")
    except CannotProbe as error:
        _progress(str(error))
    except OSError as error:
        raise CannotProbe(f"the report could not be written: {error}") from error


def _earlier(path: Path) -> dict[str, Any]:
    """Read an earlier document. Raises CannotProbe if it is none of ours."""
    import json

    import jsonschema

    from fencekit.probe.document import schema
    from fencekit.probe.plan import CannotProbe

    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        jsonschema.validate(found, schema())
    except (ValueError, OSError, jsonschema.ValidationError) as error:
        first = str(error).splitlines()[0]
        raise CannotProbe(f"--compare: {path} is no fencekit.probe/1 document: {first}") from error
    assert isinstance(found, dict)
    return found
