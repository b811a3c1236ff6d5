"""Tools that no registration call leads to, and packages imported by their own names."""

from __future__ import annotations

import pytest

from fencekit.scan.engine import scan
from fencekit.scan.packages import GO_MODULE, packages_of

GO = """package tools

import (
\t"context"
\t"net/http"

\t"github.com/modelcontextprotocol/go-sdk/mcp"
\t"example.org/notes/table"
)

// A description in the SDK's own type, handed to a wrapper of this repository.
func AddNote() table.Row {
\treturn table.New(
\t\tmcp.Tool{Name: "add_note", Description: "Add a note."},
\t\tnil,
\t\tfunc(ctx context.Context, args map[string]any) (any, error) {
\t\t\treturn http.Post("https://api.example.org/notes", "text/plain", nil)
\t\t},
\t)
}

func ReadNote() table.Row {
\ttool := mcp.Tool{Name: "read_note"}
\treturn table.New(tool, nil, read)
}

func read(ctx context.Context, args map[string]any) (any, error) {
\treturn http.Get("https://api.example.org/notes")
}

// Another type of the same field names is no tool.
var flag = Flag{Name: "verbose"}
var prompt = mcp.Prompt{Name: "ask"}
var MustDrop = table.MustTool("drop_note", "Drop a note.", drop)
var called = table.CallTool("not_a_tool", "x", drop)

func drop(ctx context.Context, args map[string]any) (any, error) {
\treq, _ := http.NewRequest("DELETE", "https://api.example.org/notes/1", nil)
\treturn http.DefaultClient.Do(req)
}
"""

TABLE = """package table

import "github.com/modelcontextprotocol/go-sdk/mcp"

type Row struct {
\tTool    mcp.Tool
\tHandler any
}

func New(tool mcp.Tool, scopes []string, handler any) Row {
\treturn Row{Tool: tool, Handler: handler}
}

func MustTool(name, description string, handler any) Row {
\treturn New(mcp.Tool{Name: name, Description: description}, nil, handler)
}

func CallTool(name, description string, handler any) string { return name }
"""

PYTHON = '''from fastmcp import FastMCP
import httpx

class Notes(FastMCP):
    """A server that is a class."""

    def __init__(self):
        super().__init__("notes")
        self.setup()

    def setup(self):
        async def store(text: str) -> str:
            """Store a note."""
            return self.post(text)

        self.tool(store, name="notes-store")

    def post(self, text):
        return httpx.post("https://api.example.org/notes", json={"text": text}).text
'''


def write(root, files):
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def tools(root):
    return {tool["name"]: tool for tool in scan(root)["tools"]}


@pytest.fixture
def go(tmp_path):
    files = {
        "go.mod": "module example.org/notes\n",
        "tools/notes.go": GO,
        "table/table.go": TABLE,
    }
    return tools(write(tmp_path, files))


def test_a_literal_of_the_sdks_type_is_a_tool_and_nothing_like_it_is(go):
    assert sorted(go) == ["add_note", "drop_note", "read_note"]


def test_the_handler_beside_the_description_is_followed(go):
    assert [w["line"] for w in go["add_note"]["writes"]] == [17]
    assert go["read_note"]["handler"]["symbol"] == "read"
    assert not go["read_note"]["candidate"]
    assert go["drop_note"]["handler"]["symbol"] == "drop"
    assert go["drop_note"]["candidate"]


def test_methods_of_a_server_class_are_followed(tmp_path):
    found = tools(write(tmp_path, {"notes.py": PYTHON}))
    assert [w["line"] for w in found["notes-store"]["writes"]] == [19]


def test_a_workspace_member_is_imported_by_its_name(tmp_path):
    member = (
        "import { Server } from '@modelcontextprotocol/sdk/server/index.js';\n"
        "export function serve(options) {\n"
        "  const server = new Server({ name: 'x', version: '1' });\n"
        "  server.setRequestHandler(ListToolsRequestSchema, async () => ({\n"
        "    tools: Object.entries(options.tools).map(([name, tool]) => ({\n"
        "      name, description: tool.description, inputSchema: {},\n"
        "    })),\n"
        "  }));\n"
        "}\n"
    )
    server = (
        "import { serve } from '@example/serving';\n"
        "serve({ tools: { add_note: { description: 'Add a note.' } } });\n"
    )
    root = write(
        tmp_path,
        {
            "packages/serving/package.json": '{"name": "@example/serving", "main": "dist/i.js"}',
            "packages/serving/src/index.ts": member,
            "packages/notes/package.json": '{"name": "@example/notes"}',
            "packages/notes/src/main.ts": server,
        },
    )
    assert sorted(tools(root)) == ["add_note"]


def test_packages_and_aliases_are_read_with_the_comments_that_typescript_allows(tmp_path):
    root = write(
        tmp_path,
        {
            "go.mod": "// a comment\nmodule example.org/m // the root\n",
            "web/package.json": '{"name": "web"}',
            "web/tsconfig.json": (
                '{\n  // aliases\n  "compilerOptions": {"baseUrl": ".", "paths": {\n'
                '    "@app/*": ["./src/*"], "@out/*": ["../../x/*"],\n  }}\n}\n'
            ),
            "broken/package.json": "{",
        },
    )
    (root / "linked").mkdir()
    (root / "linked" / "package.json").symlink_to(root / "web" / "package.json")
    sources = ["web/src/a.ts", "broken/b.ts", "linked/c.ts"]
    assert packages_of(root, sources) == {
        "example.org/m": "",
        GO_MODULE: "",
        "web": "web",
        "@app/": "web/src",
    }


def test_a_link_to_itself_ends_no_scan(tmp_path):
    (tmp_path / "loop").symlink_to("loop")
    assert scan(write(tmp_path, {"a.py": "x = 1\n"}))["tools"] == []


def test_modules_and_records_that_hold_each_other_end_no_scan(tmp_path):
    files = {
        "pkg/__init__.py": "from pkg.one import thing\n",
        "pkg/one.py": "from pkg import thing\nfrom mcp.server.fastmcp import FastMCP\n"
        "mcp = FastMCP('x')\n\n@mcp.tool()\ndef a() -> str:\n    return thing.get('k')\n",
        "mcp.py": "from mcp import FastMCP\nserver = FastMCP('y')\n",
        "index.ts": "import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';\n"
        "let one: any = { ...two };\nlet two: any = { ...one };\n"
        "const server = new McpServer({ name: 'x' });\n"
        "server.tool(one.name, async () => one.text);\n"
        "server.tool('b', async () => two.text);\n",
    }
    assert sorted(tools(write(tmp_path, files))) == ["a", "b"]


def test_a_wrapper_of_a_handler_is_no_tool_of_its_own(tmp_path):
    text = (
        "import functools\nfrom fastmcp import FastMCP\n\nmcp = FastMCP('notes')\n\n"
        "def told(fn):\n    @functools.wraps(fn)\n    def wrapper(*args):\n"
        "        return fn(*args)\n    mcp.tool(wrapper)\n    return wrapper\n\n"
        "@mcp.tool()\ndef add_note(text: str) -> str:\n    return text\n\n"
        "@told\ndef drop_note(text: str) -> str:\n    return text\n"
    )
    found = tools(write(tmp_path, {"notes.py": text}))
    assert "wrapper" not in found
    assert "add_note" in found
    assert all(tool["file"] == "notes.py" for tool in found.values())
