"""The declaring place of a tool: the object or factory call that carries its name."""

from __future__ import annotations

import textwrap

import pytest

from fencekit.scan.engine import scan


@pytest.fixture
def places(tmp_path):
    """Return a function that writes files, scans them, and maps each tool to its place."""

    def build(files):
        for name, text in files.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(textwrap.dedent(text).lstrip("\n"), "utf-8")
        return {t["name"]: (t["file"], t["line"]) for t in scan(tmp_path)["tools"]}

    return build


LOOP = """
    import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
    import { tools } from "./tools.js";
    const server = new McpServer({ name: "x", version: "1" });
    for (const tool of tools) {
      server.registerTool(tool.name, { description: tool.description }, (a) => tool.run(a));
    }
    """


def test_the_object_counts_not_the_constant_that_holds_its_name(places):
    found = places({
        "index.ts": LOOP,
        "names.ts": 'export const PAY = "pay";\nexport const LIST = "list";\n',
        "tools.ts": """
            import * as names from "./names.js";
            import { PAY } from "./names.js";
            const pay = {
              name: PAY, description: "Pay.", run: async (a: any) => a };
            const list = {
              name: names.LIST, description: "List.", run: async (a: any) => a };
            export const tools = [pay, list];
            """,
    })  # fmt: skip

    assert found == {"pay": ("tools.ts", 3), "list": ("tools.ts", 5)}


def test_a_single_tool_of_a_loop_is_not_placed_at_the_loop(places):
    found = places({
        "index.ts": LOOP,
        "tools.ts": """
            export const tools = [
              { name: "pay", description: "", run: (a: any) => a },
            ];
            """,
    })  # fmt: skip

    assert found == {"pay": ("tools.ts", 2)}


def test_a_factory_places_the_tool_at_its_call(places):
    found = places({
        "index.ts": LOOP,
        "names.ts": 'export const PAY = "pay";\n',
        "factory.ts": """
            export const make = (name: string, run: any) => ({ name: name, description: "", run });
            """,
        "tools.ts": """
            import { make } from "./factory.js";
            import { PAY } from "./names.js";
            export const tools = [
              make(PAY, async (a: any) => a),
              make("list", async (a: any) => a),
            ];
            """,
    })  # fmt: skip

    assert found == {"pay": ("tools.ts", 4), "list": ("tools.ts", 5)}


def test_a_name_written_or_imported_at_the_registration_stays_there(places):
    found = places({
        "names.ts": 'export const PAY = "pay";\n',
        "index.ts": """
            import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
            import { PAY } from "./names.js";
            const server = new McpServer({ name: "x", version: "1" });
            server.registerTool(PAY, { description: "Pay." }, async (a: any) => a);
            """,
    })  # fmt: skip

    assert found == {"pay": ("index.ts", 4)}


def test_the_entry_of_a_mapping_is_the_declaration(places):
    found = places({
        "server.py": """
            from mcp.server.fastmcp import FastMCP
            from table import TOOLS

            mcp = FastMCP("x")
            for name, fn in TOOLS.items():
                mcp.add_tool(fn, name=name)
            """,
        "table.py": """
            from names import PAY

            def pay(): ...
            def show(): ...

            TOOLS = {
                PAY: pay,
                "show": show,
            }
            """,
        "names.py": 'PAY = "pay"\n',
    })  # fmt: skip

    assert found == {"pay": ("table.py", 7), "show": ("table.py", 8)}
