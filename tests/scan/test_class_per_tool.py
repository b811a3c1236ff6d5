"""One class per tool: names from constructors, class attributes and methods; registries of them."""

from __future__ import annotations

import textwrap

import pytest

from fencekit.scan.engine import scan


@pytest.fixture
def repo(tmp_path):
    """Return a function that writes files below a folder and scans it."""

    def build(files):
        for name, text in files.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(textwrap.dedent(text), "utf-8")
        made = scan(tmp_path)
        return {t["name"]: t for t in made["tools"]}

    return build


SERVER = """
    from mcp.server import Server
    from mcp.types import Tool, TextContent
    from notes import handlers

    app = Server("notes")
    registry = {}

    def add(handler: handlers.Handler):
        registry[handler.name] = handler

    add(handlers.AppendNote())
    add(handlers.FindNote())

    @app.list_tools()
    async def list_tools() -> list[Tool]:
        return [h.describe() for h in registry.values()]

    @app.call_tool()
    async def call_tool(name: str, arguments: dict):
        handler = registry[name]
        return handler.run(arguments)
    """
HANDLERS = """
    import requests
    from mcp.types import Tool

    FIND = "find_note"

    class Handler:
        def __init__(self, tool_name: str):
            self.name = tool_name

        def describe(self) -> Tool:
            raise NotImplementedError

        def run(self, args: dict):
            raise NotImplementedError

    class AppendNote(Handler):
        def __init__(self):
            super().__init__("append_note")

        def describe(self):
            return Tool(name=self.name, description="Append.", inputSchema={"type": "object"})

        def run(self, args: dict):
            return requests.post("http://localhost/notes/append", json=args)

    class FindNote(Handler):
        def __init__(self):
            super().__init__(FIND)

        def describe(self):
            return Tool(name=self.name, description="Find.", inputSchema={"type": "object"})

        def run(self, args: dict):
            return requests.get("http://localhost/notes", params=args)

    class Draft(Handler):
        def __init__(self):
            super().__init__("draft_note")

        def describe(self):
            return Tool(name=self.name, description="Draft.", inputSchema={"type": "object"})
    """


def test_a_name_given_to_the_base_constructor_is_the_tools(repo):
    tools = repo({"server.py": SERVER, "notes/__init__.py": "", "notes/handlers.py": HANDLERS})

    assert sorted(tools) == ["append_note", "find_note"]  # the draft is registered nowhere
    assert {t["file"] for t in tools.values()} == {"notes/handlers.py"}
    assert tools["append_note"]["candidate"]
    assert tools["append_note"]["writes"][0]["chain"][-2]["symbol"] == "AppendNote.run"
    assert not tools["find_note"]["candidate"]
