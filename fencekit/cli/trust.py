"""`fencekit trust FILE`: let a project's `fencekit.toml` count in full, as it is now."""

from __future__ import annotations

from pathlib import Path

import click


@click.command(short_help="Let a project's fencekit.toml loosen the fence too.")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
def command(file: Path) -> None:
    """Trust FILE by its digest: until it changes, all of it counts and not only what tightens."""
    from fencekit.core.errors import InvalidRequest
    from fencekit.wrap.trust import trust

    try:
        digest = trust(file)
    except InvalidRequest as problem:
        raise click.UsageError(str(problem)) from None
    click.echo(f"trusted {file} (SHA-256 {digest[:12]}); a change to it needs this again", err=True)
