"""The MCP server around the verbs: the official SDK on stdio, both protocol eras.

The SDK's low-level server is used rather than its decorators: those rewrite arguments (a text that
happens to be JSON would be committed as an object) and publish schemas without plain types.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
from typing import Any

import mcp_types as types
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.shared.exceptions import MCPError

from fencekit import __version__
from fencekit.aio import AsyncFence
from fencekit.serve.schemas import INSTRUCTIONS, TOOLS, ToolSpec
from fencekit.serve.verbs import ToolRefused, Verbs


def make_server(fence: AsyncFence) -> Server[Any]:
    """Return the server with its six tools; it does not close the fence."""
    verbs = Verbs(fence)

    async def list_tools(
        _ctx: Any, _params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[_published(spec) for spec in TOOLS])

    async def call_tool(_ctx: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        if params.name not in verbs:
            names = ", ".join(spec.name for spec in TOOLS)
            raise MCPError(
                types.INVALID_PARAMS, f"Unknown tool {params.name[:100]!r}; there are {names}"
            )
        try:
            answer = await verbs.call(params.name, params.arguments)
        except ToolRefused as refused:
            return types.CallToolResult(
                content=[types.TextContent(type="text", text=str(refused))],
                is_error=True,
                _meta=refused.meta,
            )
        text = json.dumps(answer, ensure_ascii=False)
        return types.CallToolResult(
            content=[types.TextContent(type="text", text=text)], structured_content=answer
        )

    return Server(
        "fencekit",
        version=__version__,
        title="fencekit",
        description="Retry safety for actions with an effect outside.",
        instructions=INSTRUCTIONS,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )


def _published(spec: ToolSpec) -> types.Tool:
    return types.Tool(
        name=spec.name,
        title=spec.title,
        description=spec.description,
        input_schema=spec.input,
        output_schema=spec.output,
        annotations=types.ToolAnnotations(
            title=spec.title,
            read_only_hint=spec.read_only,
            destructive_hint=False,
            idempotent_hint=spec.idempotent or spec.read_only,
            open_world_hint=False,
        ),
    )


def serve(fence: AsyncFence) -> None:
    """Serve on standard input and output until the input ends, then close the fence.

    SIGTERM and SIGINT close the fence first: what waits is answered by the ledger, the counters are
    saved, and the exit code says which signal it was.
    """
    try:
        asyncio.run(_serve(fence))
    finally:
        fence.calls.close()


async def _serve(fence: AsyncFence) -> None:
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, _leave, fence, number)
    server = make_server(fence)
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


def _leave(fence: AsyncFence, number: int) -> None:
    fence.calls.close()
    # A thread of the transport blocks in read and cannot be joined.
    os._exit(128 + number)
