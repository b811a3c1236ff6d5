"""The other proxies that `benchmarks.wrap` measures: how each is started in front of a server.

None of them records anything. They are looked for outside the project and skipped with a message:

- FASTMCP_PYTHON: a Python that has PyPI `fastmcp`.
- MCP_PROXY: the program of PyPI `mcp-proxy` (with `mcp<2`). It joins standard streams to HTTP or
  HTTP to standard streams, so two of it stand in a row here.
- MCP_FUSE: the program `mcp-fuse`, or `packages/proxy/dist/cli.js` of its repository, built with
  `pnpm install && pnpm -r build`.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path


class Skipped(Exception):
    """A proxy that is not here, and how to bring it."""


def program(variable: str, name: str) -> list[str]:
    """Return the command of a proxy. Raises `Skipped`."""
    found = os.environ.get(variable) or shutil.which(name)
    if found is None:
        raise Skipped(f"name it in {variable}; see benchmarks/_proxies.py")
    if found.endswith(".js"):
        node = shutil.which("node")
        if node is None:
            raise Skipped("node is not installed")
        return [node, found]
    return [found]


@contextlib.contextmanager
def mcp_fuse(server: list[str], _folder: Path) -> Iterator[list[str]]:
    """The resilience proxy in Node."""
    yield [*program("MCP_FUSE", "mcp-fuse"), "wrap", "--", *server]


@contextlib.contextmanager
def fastmcp(server: list[str], folder: Path) -> Iterator[list[str]]:
    """The proxy server of FastMCP."""
    python = os.environ.get("FASTMCP_PYTHON")
    if python is None:
        raise Skipped("name a Python that has it in FASTMCP_PYTHON")
    script = folder / "fastmcp_proxy.py"
    config = {"mcpServers": {"e": {"command": server[0], "args": server[1:]}}}
    script.write_text(
        "from fastmcp.server import create_proxy\n"
        f"create_proxy({config!r}).run(transport='stdio', show_banner=False)\n"
    )
    yield [python, str(script)]


@contextlib.contextmanager
def mcp_proxy(server: list[str], _folder: Path) -> Iterator[list[str]]:
    """Two of PyPI's mcp-proxy: from our standard streams to HTTP, and from there to the server."""
    command = program("MCP_PROXY", "mcp-proxy")
    with socket.socket() as it:
        it.bind(("127.0.0.1", 0))
        port = it.getsockname()[1]
    behind = subprocess.Popen(
        [*command, "--port", str(port), "--", *server],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        until = time.monotonic() + 30
        while time.monotonic() < until and behind.poll() is None:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
                break
            time.sleep(0.05)
        yield [*command, "--transport", "streamablehttp", f"http://127.0.0.1:{port}/mcp"]
    finally:
        behind.terminate()
        behind.wait(20)


OTHERS = {"mcp-fuse": mcp_fuse, "fastmcp proxy": fastmcp, "mcp-proxy, two in a row": mcp_proxy}
WANTED = {"mcp-fuse": 2.0, "fastmcp proxy": 10.0}
"""How many times faster one fenced proxy is meant to be, with 64 calls in flight."""
