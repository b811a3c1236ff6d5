"""Where the hosts of MCP servers keep their configuration, and how each file is laid out."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

Level = Literal["user", "project", "local"]


@dataclass(frozen=True, slots=True)
class Place:
    """One object of servers in one file: `keys` leads to it from the top of the file."""

    host: str
    path: Path
    level: Level
    keys: tuple[str, ...] = ("mcpServers",)

    @property
    def through_claude(self) -> bool:
        """Whether Claude Code itself writes this file while it runs."""
        return self.host == "claude-code" and self.level != "project"


HOSTS = ("claude-code", "claude-desktop", "cursor", "vscode", "windsurf")


def places(home: Path, project: Path, environ: Mapping[str, str]) -> list[Place]:
    """Return every place where a known host may keep servers, whether or not it is there."""
    claude = home / ".claude.json"
    code = _application(home, environ, "Code") / "User" / "mcp.json"
    desktop = _application(home, environ, "Claude") / "claude_desktop_config.json"
    local = ("projects", str(project), "mcpServers")
    return [
        Place("claude-code", project / ".mcp.json", "project"),
        Place("claude-code", claude, "user"),
        Place("claude-code", claude, "local", local),
        Place("claude-desktop", desktop, "user"),
        Place("cursor", project / ".cursor" / "mcp.json", "project"),
        Place("cursor", home / ".cursor" / "mcp.json", "user"),
        Place("vscode", project / ".vscode" / "mcp.json", "project", ("servers",)),
        Place("vscode", code, "user", ("servers",)),
        Place("windsurf", home / ".codeium" / "windsurf" / "mcp_config.json", "user"),
    ]


def _application(home: Path, environ: Mapping[str, str], name: str) -> Path:
    """Return the folder in which a desktop application keeps its settings."""
    if sys.platform == "darwin":
        return home / "Library" / "Application Support" / name
    if os.name == "nt":
        return Path(environ.get("APPDATA") or home / "AppData" / "Roaming") / name
    return Path(environ.get("XDG_CONFIG_HOME") or home / ".config") / name


def for_file(path: Path) -> list[Place]:
    """Return how a file that was named by hand is laid out: by its own keys, for any host."""
    return [
        Place("file", path, "project", ("mcpServers",)),
        Place("file", path, "project", ("servers",)),
    ]
