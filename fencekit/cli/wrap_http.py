"""`fencekit wrap --http`: who may come in, and what stands behind the front."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from fencekit.wrap.config import Config
    from fencekit.wrap.door import Behind, Listen
    from fencekit.wrap.pump import Pump
    from fencekit.wrap.record import Record
    from fencekit.wrap.stdio import Closable
    from fencekit.wrap.turn import Settings


def listen_of(config: Config, options: dict[str, Any]) -> Listen | None:
    """Return where to listen and whom to let in; None without `--http`.

    Raises ValueError for an address that may not be served, and for tokens that cannot be had.
    """
    if options["forward_auth"]:
        _may_forward(options)
    if not options["listen"]:
        return None
    from fencekit.wrap.clients import Guests, known
    from fencekit.wrap.door import Listen

    host, colon, port = options["listen"].rpartition(":")
    if not colon or not port.isdigit() or not 0 <= int(port) <= 65_535:
        raise ValueError("--http is written HOST:PORT, for example 127.0.0.1:3333")
    if options["url"] and options["one_session"]:
        raise ValueError("--one-session is for a server of our own: behind --url it keeps sessions")
    clients = known(config.clients, options["front_token_env"], options["front_token_file"])
    made = Listen(
        host.strip("[]") or "127.0.0.1",
        int(port),
        Guests(clients, options["forward_auth"]),
        options["allow_host"],
        1 if options["one_session"] else options["max_sessions"],
    )
    made.check()
    return made


def _may_forward(options: dict[str, Any]) -> None:
    """Raise ValueError where there is no credential to forward, or two."""
    if not options["url"] or not options["listen"]:
        raise ValueError(
            "--forward-auth needs --url and --http: a client's header goes to a server"
        )
    named = [text.partition(":")[0].strip().lower() for text in options["header"]]
    if options["bearer_env"] or options["bearer_file"] or "authorization" in named:
        raise ValueError("--forward-auth and a bearer token of the proxy's own exclude each other")


def behind(
    settings: Settings,
    record: Record,
    upstream: tuple[Callable[[Pump, Callable[[], None]], Closable], dict[str, str]],
    options: dict[str, Any],
) -> Behind:
    """Return what stands behind the front: servers of our own, or a reverse proxy.

    `upstream` is how a child is connected, and our headers for a server at `--url`.
    """
    connect, headers = upstream
    if options["url"]:
        from fencekit.wrap.relay import Relay

        server = (options["url"], headers)
        return Relay(settings, record, server, forward_auth=options["forward_auth"])
    from fencekit.wrap.front import Front

    return Front(settings, record, connect)


def serve(behind: Behind, listen: Listen, record: Record, busy: list[Callable[[], bool]]) -> int:
    """Serve until a signal comes; returns the exit status."""
    from fencekit.wrap import door
    from fencekit.wrap.pump import say

    busy.append(lambda: behind.busy)
    try:
        door.serve(
            behind, listen, lambda url: say(f"listening on {url}, {behind.sessions(listen)}")
        )
    except ValueError as problem:
        say(str(problem))
        return 2
    record.close()
    return 0
