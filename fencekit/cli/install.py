"""`fencekit install` and `fencekit uninstall`: the fence in front of the servers of your hosts."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from fencekit.install.plan import Plan, Server

_HOSTS = ("claude-code", "claude-desktop", "cursor", "vscode", "windsurf")


def _options(function: Any) -> Any:
    for option in (
        click.argument("servers", nargs=-1),
        click.option("--all", "everything", is_flag=True, help="Every server that is found."),
        click.option("--host", type=click.Choice(_HOSTS), help="Only this host's files."),
        click.option(
            "--file",
            type=click.Path(exists=True, dir_okay=False, path_type=Path),
            help="Only this file, whoever reads it.",
        ),
        click.option("--dry-run", is_flag=True, help="Show the changes and write nothing."),
    ):
        function = option(function)
    return function


@click.command(short_help="Put the fence in front of the MCP servers of your hosts.")
@_options
@click.option("--scope", help="One scope for the chosen servers (by default each its name).")
@click.option("--include-url", is_flag=True, help="Remote servers (Streamable HTTP) as well.")
def command(servers: tuple[str, ...], scope: str | None, include_url: bool, **options: Any) -> None:
    """Put `fencekit wrap` in front of SERVERS in the files of Claude Code, Claude Desktop, Cursor,
    VS Code and Windsurf. Without SERVERS it lists what is found and changes nothing.
    """
    from fencekit.install import plan

    found, texts, notes = _look(options)
    chosen = _chooser(servers, options["everything"], found)
    if chosen is None:
        _list(found, notes)
        return
    made = plan.install(found, texts, chosen, _own_path(), scope, include_url=include_url)
    made.notes[:0] = notes
    _carry_out(made, options["dry_run"], "behind the fence: ")


@click.command(short_help="Take the fence away from the MCP servers of your hosts.")
@_options
def uninstall(servers: tuple[str, ...], **options: Any) -> None:
    """Take `fencekit wrap` away from SERVERS; everything else in the files stays as it is now."""
    from fencekit.install import plan

    found, texts, notes = _look(options)
    chosen = _chooser(servers, options["everything"], found)
    if chosen is None:
        _list(found, notes)
        return
    made = plan.uninstall(found, texts, chosen)
    made.notes[:0] = notes
    _carry_out(made, options["dry_run"], "without the fence again: ")


def _look(options: dict[str, Any]) -> tuple[list[Server], dict[Path, str], list[str]]:
    from fencekit.install import apply, hosts, plan

    notes: list[str] = []
    if options["file"] is not None:
        places = hosts.for_file(options["file"].absolute())
    else:
        places = hosts.places(Path.home(), Path.cwd(), os.environ)
        if options["host"]:
            places = [place for place in places if place.host == options["host"]]
    texts = apply.read(places, notes)
    return plan.servers(places, texts, notes), texts, notes


def _chooser(servers: tuple[str, ...], everything: bool, found: list[Server]) -> Any:
    if everything:
        return lambda _server: True
    if not servers:
        return None
    known = {server.name for server in found}
    for name in servers:
        if name not in known:
            import difflib

            near = difflib.get_close_matches(name, known, n=1)
            hint = f"; did you mean {near[0]}?" if near else "; `fencekit install` lists them"
            raise click.UsageError(f"no server is called {name}{hint}")
    return lambda server: server.name in servers


def _list(found: list[Server], notes: list[str]) -> None:
    from fencekit.install import entries

    for note in notes:
        click.echo(note, err=True)
    for server in found:
        command = server.command
        state = "remote" if command is None else "raw"
        if command is not None and entries.is_wrapped(command):
            state = "fenced"
        name = "".join(ch if ch.isprintable() else "?" for ch in server.name)
        click.echo(f"{state:<7} {name:<24} {server.place.host} {server.place.path}")
    click.echo("name the servers to change, or --all", err=True)


def _own_path() -> str:
    """Return the absolute path of `fencekit`, for hosts that lack the shell's PATH."""
    beside = Path(sys.executable).with_name("fencekit")
    found = shutil.which("fencekit")
    return str(beside) if beside.exists() else os.path.abspath(found or "fencekit")


def _carry_out(plan: Plan, dry_run: bool, done: str) -> None:
    from fencekit.install.apply import NotWritten, apply

    for note in plan.notes:
        click.echo(note, err=True)
    if dry_run:
        click.echo(plan.diff(), nl=False)
        return
    try:
        said = apply(plan, Path.cwd())
    except NotWritten as problem:
        click.echo(f"Error: {problem}", err=True)
        sys.exit(2)
    for line in said:
        click.echo(done + line, err=True)
    if not said:
        click.echo("nothing to change", err=True)
    else:
        click.echo("restart the host for it to take effect", err=True)
