"""The entry point: finds the command, imports only its module, and turns errors into exit codes.

Exit codes: 0 done; 1 the thing asked about was found; 2 usage, or the target could not be reached
or read; 3 the ledger is unusable; 70 a fault in fencekit itself; 130 interrupted.
"""

from __future__ import annotations

import importlib
import os
import sys
from typing import NoReturn

import click

from fencekit import __version__

# name -> (module that holds `command`, one line for --help); modules are imported when used.
COMMANDS: dict[str, tuple[str, str]] = {
    "install": ("fencekit.cli.install", "Put the fence in front of your hosts' servers."),
    "uninstall": ("fencekit.cli.uninstall", "Take the fence away from your hosts' servers."),
    "trust": ("fencekit.cli.trust", "Let a project's fencekit.toml count in full."),
    "wrap": ("fencekit.cli.wrap", "Stand in front of an MCP server: every action runs once."),
    "probe": ("fencekit.cli.probe", "Ask one tool twice and count the effects."),
    "demo": ("fencekit.cli.demo", "Watch one charge fire twelve times, then once."),
    "serve": ("fencekit.cli.serve", "Serve the fence to agents, as an MCP server on stdio."),
    "storm": ("fencekit.cli.storm", "Let a thousand callers make one charge: it runs once."),
    "turf-war": ("fencekit.cli.turf_war", "Let three agents act on one cluster: one is admitted."),
    "scan": ("fencekit.cli.scan", "List the tools that could fire the same effect twice."),
    "index": ("fencekit.cli.index", "Keep a public register whose rows link to their proof."),
    "ledger": ("fencekit.cli.ledger", "Look at what is remembered; settle, clear, forget."),
    "hostile": ("fencekit.cli.hostile", "Serve a misbehaving server, or score a client on it."),
}


class LazyGroup(click.Group):
    """A group whose commands are imported when they are used, so that --help stays fast."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the command names in the order of the table."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import and return one command, or None for an unknown name."""
        if cmd_name not in COMMANDS:
            return None
        command = importlib.import_module(COMMANDS[cmd_name][0]).command
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the command list from the table, without importing any command."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_, line) in COMMANDS.items()])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command; a mistyped name gets the closest one."""
        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            import difflib

            near = difflib.get_close_matches(args[0], COMMANDS, n=1)
            hint = f" Did you mean '{near[0]}'?" if near else ""
            ctx.fail(f"No such command '{args[0]}'.{hint}")
        return super().resolve_command(ctx, args)


@click.group(
    cls=LazyGroup,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__, prog_name="fencekit")
@click.pass_context
def cli(ctx: click.Context) -> None:
    """Retry safety for MCP tool calls: find double-fires, fence them, publish the evidence.

    Without a command: help on a terminal; on a pipe, `fencekit serve`.
    """
    if ctx.invoked_subcommand is not None:
        return
    if sys.stdin is None or sys.stdin.isatty():
        click.echo(ctx.get_help())
        return
    serve = ctx.command.get_command(ctx, "serve")  # type: ignore[attr-defined] # a group
    ctx.exit(serve.main([], f"{ctx.info_name} serve", standalone_mode=False))


def main(argv: list[str] | None = None) -> NoReturn:
    """Run the command line and exit; what went wrong is told in a line or two, never as a trace."""
    try:
        code = cli.main(sys.argv[1:] if argv is None else argv, "fencekit", standalone_mode=False)
    except click.ClickException as problem:
        problem.show()
        sys.exit(problem.exit_code)
    except click.Abort:
        click.echo("fencekit: interrupted", err=True)
        sys.exit(130)
    except Exception as problem:
        if os.environ.get("FENCEKIT_TRACEBACK"):
            raise
        sys.exit(_tell(problem))
    sys.exit(code if isinstance(code, int) else 0)


def _tell(problem: Exception) -> int:
    """Print an error that no command caught, and return its exit code."""
    from fencekit.core.errors import FenceError, LedgerError

    if isinstance(problem, FenceError):
        click.echo(f"fencekit: {problem}", err=True)
        return 3 if isinstance(problem, LedgerError) else 2
    kind = type(problem).__name__
    click.echo(
        f"fencekit: a fault in fencekit itself: {kind}: {problem}\n"
        "fencekit: please report it with what FENCEKIT_TRACEBACK=1 prints",
        err=True,
    )
    return 70


def scan_main() -> None:
    """Run `fencekit scan` under its short name, `fencescan`."""
    main(["scan", *sys.argv[1:]])


if __name__ == "__main__":
    main()
