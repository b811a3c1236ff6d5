"""One repository in, one document out: the whole way, on small servers written here."""

from __future__ import annotations

import textwrap

import jsonschema
import pytest

from fencekit.scan import document
from fencekit.scan.engine import scan


@pytest.fixture
def repo(tmp_path):
    """Return a function that writes files below a folder and scans it."""

    def build(**files):
        for name, text in files.items():
            path = tmp_path / name.replace("__", "/").replace("_dot_", ".")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(textwrap.dedent(text), "utf-8")
        made = scan(tmp_path)
        jsonschema.validate(made, document.schema())
        return {t["name"]: t for t in made["tools"]}, made

    return build


def test_a_python_tool_is_led_to_the_post_of_a_shared_helper(repo):
    tools, _ = repo(
        server_dot_py="""
        from mcp.server.fastmcp import FastMCP
        from client import call

        mcp = FastMCP("x")

        @mcp.tool()
        def pay_invoice(invoice: str) -> str:
            return call("POST", f"/invoices/{invoice}/payments")

        @mcp.tool()
        def get_invoice(invoice: str) -> str:
            return call("GET", f"/invoices/{invoice}")
        """,
        client_dot_py="""
        import httpx

        def call(method, path):
            return httpx.request(method, "https://api.example.com" + path)
        """,
    )

    assert tools["pay_invoice"]["candidate"]
    assert tools["pay_invoice"]["money"]
    assert tools["pay_invoice"]["writes"][0]["file"] == "client.py"
    assert [h["symbol"] for h in tools["pay_invoice"]["writes"][0]["chain"]] == [
        "pay_invoice",
        "call",
        "HTTP POST",
    ]
    assert not tools["get_invoice"]["candidate"]


def test_a_dispatcher_is_followed_only_along_the_arm_of_the_tool(repo):
    tools, _ = repo(
        index_dot_ts="""
        import { Server } from "@modelcontextprotocol/sdk/server/index.js";
        import { CallToolRequestSchema, ListToolsRequestSchema } from "@modelcontextprotocol/sdk";
        const server = new Server({ name: "x", version: "1" });
        server.setRequestHandler(ListToolsRequestSchema, async () => ({
          tools: [
            { name: "create_note", description: "Create", inputSchema: { type: "object" } },
            { name: "list_notes", description: "List", inputSchema: { type: "object" } },
          ],
        }));
        server.setRequestHandler(CallToolRequestSchema, async (request) => {
          const { name, arguments: args } = request.params;
          switch (name) {
            case "create_note":
              return fetch("https://api/notes", { method: args ? "POST" : "GET" });
            case "list_notes":
              return fetch("https://api/notes");
          }
        });
        """,
    )

    assert tools["create_note"]["candidate"]
    assert tools["create_note"]["line"] == 7
    assert not tools["list_notes"]["candidate"]


def test_a_key_minted_per_call_is_a_fresh_key(repo):
    tools, _ = repo(
        server_dot_py="""
        import uuid
        import requests
        from fastmcp import FastMCP

        server = FastMCP("x")

        @server.tool
        def create_charge(amount: int):
            headers = {"Idempotency-Key": str(uuid.uuid4())}
            return requests.post("https://api/charges", json={"amount": amount}, headers=headers)
        """,
    )

    kinds = {(g["kind"], g["line"]) for g in tools["create_charge"]["guards"]}
    assert ("fresh-key", 10) in kinds
    assert [m["kind"] for m in tools["create_charge"]["mechanisms"]] == ["fresh-key"]


def test_another_agent_framework_declares_no_mcp_tools(repo):
    tools, _ = repo(
        server_dot_py="""
        from mcp.server.fastmcp import FastMCP
        from langchain_core.tools import tool

        @tool
        def create_thing(x: int):
            return x
        """,
    )

    assert tools == {}
