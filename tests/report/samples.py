"""Small documents of every schema that the reports read, built by hand."""

from __future__ import annotations

from typing import Any


def scan_tool(name: str, line: int, **changes: Any) -> dict[str, Any]:
    """A candidate with one write, two hops away."""
    tool: dict[str, Any] = {
        "name": name,
        "declared_name": name,
        "file": "src/tools.py",
        "line": line,
        "language": "python",
        "sdk": "fastmcp",
        "server": "billing",
        "description": f"Does {name}. Use a unique key per request.",
        "parameters": [{"name": "amount"}],
        "annotations": {},
        "handler": {"symbol": name, "file": "src/tools.py", "line": line + 1},
        "reaches_write": True,
        "candidate": True,
        "unresolved": False,
        "declarative": False,
        "money": False,
        "fingerprint": f"fp-{name}",
        "twin_of": None,
        "writes": [
            {
                "file": "src/api.py",
                "line": 4,
                "what": "POST /charges",
                "declarative": False,
                "certain": True,
                "chain": [
                    {"symbol": name, "file": "src/tools.py", "line": line + 1, "certain": True},
                    {"symbol": "send", "file": "src/api.py", "line": 2, "certain": False},
                ],
            }
        ],
        "guards": [{"kind": "fresh-key", "file": "src/api.py", "line": 3, "name": "idem"}],
        "retries": [{"file": "src/api.py", "line": 2, "wraps_write": True}],
        "mechanisms": [
            {"kind": "fresh-key", "file": "src/api.py", "line": 3, "note": "uuid4() per call"}
        ],
    }
    return tool | changes


def scan_document(path: str = "billing") -> dict[str, Any]:
    """Six tools: money, plain, unresolved, declarative, a reader, and a twin."""
    return {
        "schema": "fencekit.scan/1",
        "tool": {"name": "fencekit", "version": "0.1.0"},
        "repository": {"path": path, "commit": "ab" * 20},
        "summary": {},
        "tools": [
            scan_tool("charge_card", 10, money=True),
            scan_tool("send_mail", 20, mechanisms=[], guards=[]),
            scan_tool(
                "create_later", 30, unresolved=True, writes=[], reaches_write=None, handler=None
            ),
            scan_tool("put_name", 40, declarative=True, mechanisms=[]),
            scan_tool("list_all", 50, candidate=False, reaches_write=False, writes=[]),
            scan_tool(
                "charge_card", 10, file="dist.js", twin_of={"file": "src/tools.py", "line": 10}
            ),
        ],
        "unattributed": {
            "writes": [],
            "guards": [{"kind": "dedup-store", "file": "src/dedup.py", "line": 7, "name": "seen"}],
            "retries": [],
        },
        "skipped": [{"path": "node_modules", "reason": "vendored"}],
        "partial": [{"path": "src/broken.py", "ranges": [[3, 9]]}],
        "unknowns": [{"file": "src/x.py", "line": 8, "name": "run", "reason": "three definitions"}],
    }


SOURCES = {
    "src/tools.py": [f"line {n}" for n in range(1, 61)],
    "src/api.py": ["import httpx", "def send(x):", "    idem = uuid4()", "    httpx.post(u, x)"],
}
