"""`fencekit serve`: the fence as an MCP server on stdio."""

from __future__ import annotations

import click

from fencekit.cli.fencing import lease_option, ledger_option, opened, result_ttl_option


@click.command()
@ledger_option("the SQLite ledger in the user's state directory")
@lease_option
@result_ttl_option
def command(ledger: str | None, lease: float, result_ttl: float) -> None:
    """Serve the fence to agents, as an MCP server on standard input and output.

    \b
    claude mcp add fencekit -- fencekit serve

    Tools: fence_prepare, fence_commit, fence_abort, fence_heartbeat, fence_observe, fence_stats.
    Exit: 0 the input ended, 2 wrong options, 3 the ledger is unusable.
    """
    from fencekit.aio import AsyncFence
    from fencekit.core.config import FenceConfig

    fence = opened(lambda: AsyncFence.open(ledger, FenceConfig(lease=lease, result_ttl=result_ttl)))
    where = fence.ledger.describe().where
    click.echo(f"fencekit serve: ledger {where}, lease {lease:g} s", err=True)

    from fencekit.serve.server import serve

    serve(fence)
    click.echo(fence.stats().line(), err=True)
