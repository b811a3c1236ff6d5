"""`fencekit wrap -- CMD…`: the one door in front of an MCP server."""

from __future__ import annotations

import gc
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from collections.abc import Callable

    from fencekit.wrap.config import Config
    from fencekit.wrap.identity import Scope
    from fencekit.wrap.pump import Pump
    from fencekit.wrap.rules import Rules
    from fencekit.wrap.stdio import Closable

GC_THRESHOLDS = (10_000, 20, 50)


class Span(click.ParamType[float]):
    """A length of time: seconds, or a number with ms, s, m, h or d."""

    name = "time"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Return seconds."""
        from fencekit.wrap.config import seconds

        try:
            return seconds(value)
        except ValueError as problem:
            self.fail(str(problem), param, ctx)


@click.command(short_help="Fence an MCP server: every action runs once.")
@click.argument("command", nargs=-1, type=click.UNPROCESSED, metavar="-- CMD...")
@click.option("--url", help="Wrap the server at this Streamable HTTP address instead of CMD.")
@click.option(
    "--header",
    multiple=True,
    metavar="'NAME: VALUE'",
    help="For --url; VALUE may be $VAR or @FILE.",
)
@click.option("--bearer-env", metavar="NAME", help="For --url: variable that holds the token.")
@click.option(
    "--bearer-file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="For --url: file that holds the token.",
)
@click.option(
    "--http", "listen", metavar="HOST:PORT", help="Serve Streamable HTTP to many clients."
)
@click.option(
    "--front-token-env", multiple=True, metavar="NAME", help="For --http: variable with a token."
)
@click.option(
    "--front-token-file",
    multiple=True,
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="For --http: file with a token.",
)
@click.option(
    "--forward-auth",
    is_flag=True,
    help="For --url with --http: the clients' own Authorization goes to the server, and separates "
    "them; the front's token is then in Fencekit-Token.",
)
@click.option("--allow-host", multiple=True, help="For --http: a further Host name to accept.")
@click.option(
    "--max-sessions",
    type=click.IntRange(1),
    default=32,
    show_default=True,
    help="For --http: how many sessions have a server of their own at once.",
)
@click.option("--one-session", is_flag=True, help="For --http: one session at a time.")
@click.option("--ledger", envvar="FENCEKIT_LEDGER", help="Where outcomes are recorded (a URL).")
@click.option("--scope", envvar="FENCEKIT_SCOPE", help="One name for all hosts that share actions.")
@click.option(
    "--account-env", multiple=True, metavar="NAME", help="Variable that holds the account."
)
@click.option(
    "--lease",
    type=Span(),
    envvar="FENCEKIT_LEASE_SECS",
    show_default="60s",
    help="How long a call is believed to run without a sign of life.",
)
@click.option(
    "--result-ttl",
    type=Span(),
    envvar="FENCEKIT_RESULT_TTL_SECS",
    show_default="24h",
    help="How long a repeat gets the recorded result.",
)
@click.option(
    "--infer",
    type=click.Choice(["on", "off"]),
    show_default="on",
    help="Whether the name of a tool without hints may show that it only reads.",
)
@click.option(
    "--config",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    envvar="FENCEKIT_CONFIG",
    help="A fencekit.toml of your own.",
)
@click.option(
    "--observe", is_flag=True, help="Fence nothing; record and report what would be done."
)
@click.option(
    "--ask",
    is_flag=True,
    help="At a repeat of a call of unknown outcome, let the host's human say whether it happened.",
)
@click.option(
    "--expose-intent",
    is_flag=True,
    help="Give each fenced tool an optional argument that names the logical action.",
)
@click.option(
    "--plan",
    is_flag=True,
    help="Print how each tool would be treated, and errors to look at for `definitive`; then end.",
)
@click.option("--json", "as_json", is_flag=True, help="With --plan: print JSON.")
def command(command: tuple[str, ...], **options: Any) -> None:
    """Stand in front of the MCP server CMD and let every action run once.

    Everything except a call of a fenced tool passes unchanged. Tools that create, charge or send
    are fenced; `--plan` shows which, and why.
    """
    if bool(command) == bool(options["url"]):
        raise click.UsageError("say one server to wrap: fencekit wrap -- CMD... or --url ADDRESS")
    config = _config(options)
    infer = None if options["infer"] is None else options["infer"] == "on"
    rules = config.rules(infer=infer, lease=options["lease"], replay_for=options["result_ttl"])
    for name in ("ledger", "scope", "account_env"):
        options[name] = options[name] or config.top.get(name) or options[name]
    if options["plan"]:
        from fencekit.cli.wrap_plan import show

        show(command, rules, options, _headers)
        return
    sys.exit(_run(command, rules, config, options))


def _config(options: dict[str, Any]) -> Config:
    from fencekit.core.errors import InvalidRequest
    from fencekit.wrap.trust import load

    try:
        return load(options["config"], Path.cwd())
    except InvalidRequest as problem:
        raise click.UsageError(str(problem)) from None


def _run(command: tuple[str, ...], rules: Rules, config: Config, options: dict[str, Any]) -> int:
    from fencekit.cli import wrap_http
    from fencekit.core.config import FenceConfig
    from fencekit.core.errors import InvalidRequest
    from fencekit.fence.draw import new_id
    from fencekit.wire.errors import WireError
    from fencekit.wrap import others
    from fencekit.wrap.gate import Gate
    from fencekit.wrap.pump import Pump, say
    from fencekit.wrap.record import Record
    from fencekit.wrap.scope import guessed_names
    from fencekit.wrap.stdio import StdioProxy
    from fencekit.wrap.turn import Settings

    busy: list[Callable[[], bool]] = []
    try:
        headers = _headers(options)
        listen = wrap_http.listen_of(config, options)
        scope = _scope(command, headers, options)
        record = Record(options["ledger"], FenceConfig(), lambda: not any(b() for b in busy))
    except (InvalidRequest, ValueError) as problem:
        raise click.UsageError(str(problem)) from None
    settings = Settings(
        rules,
        scope,
        record.holder,
        new_id,
        others.agent_of(scope),
        observe=options["observe"],
        expose_intent=options["expose_intent"],
        ask=options["ask"],
        remote=bool(options["url"]),
    )
    files = ", ".join(str(path) for path in config.files) or "none"
    how = ", observing" if settings.observe else ""
    say(f"scope {scope.name}, ledger {record.where}, config {files}{how}")
    if scope.guess:
        names = ", ".join(guessed_names(os.environ)) or "the headers"
        say(f"the account is guessed from {names}; name it with --account-env, or give a --scope")
    for line in config.left_out:
        say(line)
    if record.problem is not None:
        say(f"the ledger is unusable, so fenced calls will be refused: {record.problem}")
    others.tell(record, scope, say)

    # What has been loaded lives as long as this process, and calls leave no cycles behind: looked
    # at as often as by default, the collector takes a twentieth of the time with many in flight.
    gc.freeze()
    gc.set_threshold(*GC_THRESHOLDS)

    def connect(pump: Pump, ended: Callable[[], None]) -> Closable:
        if options["url"]:
            from fencekit.wrap.remote import RemoteUpstream

            return RemoteUpstream(pump, options["url"], headers)
        from fencekit.wire.stdio import Child
        from fencekit.wrap.stdio import ChildUpstream

        return ChildUpstream(
            pump, lambda: Child(command, guarded=True), ended, stays=listen is not None
        )

    if listen is not None:
        behind = wrap_http.behind(settings, record, (connect, headers), options)
        return wrap_http.serve(behind, listen, record, busy)
    gate = Gate(settings)
    busy.append(lambda: gate.holding)
    proxy = StdioProxy()
    pump = Pump(gate, record, proxy.host.outbox.put, proxy.host.outbox.flush)
    try:
        return proxy.run(pump, lambda ended: connect(pump, ended))
    except WireError as problem:
        say(str(problem))
        return 2


def _headers(options: dict[str, Any]) -> dict[str, str]:
    """Return the headers for the upstream, secrets read from the environment or from files."""
    if not options["url"]:
        return {}
    from fencekit.wire.http import secret_headers

    given: dict[str, str] = {}
    for text in options["header"]:
        name, colon, value = text.partition(":")
        if not colon or not name.strip():
            raise ValueError("--header is written 'Name: value', where value may be $VAR or @FILE")
        given[name.strip()] = value.strip()
    return secret_headers(
        given, bearer_env=options["bearer_env"], bearer_file=options["bearer_file"]
    )


def _scope(command: tuple[str, ...], headers: dict[str, str], options: dict[str, Any]) -> Scope:
    from fencekit.wrap.scope import scope_of

    # Behind a URL our own environment acts as nobody; what the headers say may be an account.
    url = options["url"] or ""
    environ = dict(os.environ)
    if url:
        named = {name: environ[name] for name in options["account_env"] if name in environ}
        environ = {**named, **{f"HTTP_TOKEN_{name}": value for name, value in headers.items()}}
    return scope_of(
        command,
        os.getcwd(),
        environ,
        name=options["scope"],
        account_env=options["account_env"],
        url=url,
    )
