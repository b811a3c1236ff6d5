"""Registrations through wrappers and frameworks, and calls that only speak of tools."""

from __future__ import annotations

import textwrap

import pytest

from fencekit.scan.engine import scan


@pytest.fixture
def repo(tmp_path):
    """Return a function that writes files below a folder, scans it and returns the tools."""

    def build(files):
        for name, text in files.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(textwrap.dedent(text).lstrip("\n"), "utf-8")
        return scan(tmp_path)["tools"]

    return build


WRAPPED = """
    import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
    import axios from "axios";

    const server = new McpServer({ name: "x", version: "1" });
    const tool = (name: string, description: string, cb: (args: any) => Promise<string>) => {
      const wrapped = async (args: any) => ({ content: [{ type: "text", text: await cb(args) }] });
      server.registerTool(name, { description }, (args: any) => wrapped(args));
    };

    tool(
      "send_note",
      "Send a note.",
      async (args) => (await axios.post("/notes", args)).data,
    );
    tool(
      "show_note",
      "Show a note.",
      async (args) => (await axios.get("/notes")).data,
    );
    """


def test_a_tool_registered_through_a_wrapper_is_one_declaration(repo):
    tools = repo({"index.ts": WRAPPED})

    assert sorted((t["name"], t["line"]) for t in tools) == [("send_note", 10), ("show_note", 15)]
    assert [t["name"] for t in tools if t["candidate"]] == ["send_note"]


FRAMEWORK = """
    import { tool } from "PACKAGE";
    import axios from "axios";

    export const sendNote = tool("send_note", {
      description: "Send a note.",
      async handler(args: any) {
        return axios.post("/notes", args);
      },
    });
    """


@pytest.mark.parametrize(
    ("package", "found"),
    [
        ("@acme/mcp-core", True),
        ("mcp-lite", True),
        ("@acme/mcp-client", False),
        ("@acme/core", False),
        ("./mcp-tools.js", False),
    ],
)
def test_a_framework_is_known_by_its_packages_name(repo, package, found):
    tools = repo({"index.ts": FRAMEWORK.replace("PACKAGE", package)})

    assert [t["name"] for t in tools] == (["send_note"] if found else [])
    assert all(t["candidate"] for t in tools)


SPEAKS = """
    from enum import Enum
    from mcp.types import Tool

    class Backend(str, Enum):
        LSP = "LSP"

    def create_tool_names_mapping(backend: str) -> dict[str, Tool]:
        return {}

    def make_tool(name: str) -> Tool:
        return Tool(name=name, description="", inputSchema={})

    MAPPING = create_tool_names_mapping("LSP")
    SEARCH = make_tool("search")
    """


def test_a_function_that_is_about_tools_makes_none(repo):
    assert [t["name"] for t in repo({"server.py": SPEAKS})] == ["search"]


CONTEXT = """
    from dataclasses import dataclass
    import httpx
    from mcp.server.fastmcp import FastMCP
    from pydantic import BaseModel

    mcp = FastMCP("jobs")

    class JobsClient:
        def run(self, job: int):
            return httpx.post(f"https://api.example.com/jobs/{job}/run")

    @dataclass
    class Context:
        client: JobsClient
        account: int

    class Job(BaseModel):
        id: int
        cause: str

    @mcp.tool()
    def run_job(context: Context, job: int):
        return context.client.run(job)

    @mcp.tool()
    def plan_job(job: Job):
        return {"id": job.id, "cause": job.cause}
    """


def test_a_data_class_of_services_leads_to_their_writes(repo):
    tools = {t["name"]: t for t in repo({"server.py": CONTEXT})}

    assert tools["run_job"]["candidate"]
    assert not tools["plan_job"]["candidate"]


IMPORTED = """
    import { Server } from "@modelcontextprotocol/sdk/server/index.js";
    import { CallToolRequestSchema, ListToolsRequestSchema } from "@modelcontextprotocol/sdk";
    import fs from "fs";

    const server = new Server({ name: "x", version: "1" });
    server.setRequestHandler(ListToolsRequestSchema, async () => ({
      tools: [
        { name: "send_note", description: "Send.", inputSchema: {} },
        { name: "show_note", description: "Show.", inputSchema: {} },
      ],
    }));
    server.setRequestHandler(CallToolRequestSchema, async (request) => {
      const { SendNote } = await import("./handlers.js");
      if (request.params.name === "send_note") {
        return new SendNote().execute(request.params.arguments);
      }
      return fs.readFileSync("note.txt", "utf8").replace("a", "b");
    });
    """
HANDLERS = """
    import axios from "axios";

    export class SendNote {
      async execute(args: any) {
        return axios.post("/notes", args);
      }
    }
    """


def test_a_handler_imported_when_it_is_needed_is_followed(repo):
    tools = repo({"src/index.ts": IMPORTED, "src/handlers.ts": HANDLERS})

    assert [t["name"] for t in tools if t["candidate"]] == ["send_note"]  # a text's replace is none


ARMS = """
    import { Server } from "@modelcontextprotocol/sdk/server/index.js";
    import { CallToolRequestSchema, ListToolsRequestSchema } from "@modelcontextprotocol/sdk";
    import { SendNote, ShowNote } from "./handlers.js";

    const server = new Server({ name: "x", version: "1" });
    server.setRequestHandler(ListToolsRequestSchema, async () => ({
      tools: [
        { name: "send_note", description: "Send.", inputSchema: {} },
        { name: "show_note", description: "Show.", inputSchema: {} },
      ],
    }));
    server.setRequestHandler(CallToolRequestSchema, async (request) => {
      switch (request.params.name) {
        case "send_note": {
          const handler = new SendNote();
          return handler.execute(request.params.arguments);
        }
        case "show_note": {
          const handler = new ShowNote();
          return handler.execute(request.params.arguments);
        }
      }
    });
    """
SHOWS = """
    export class ShowNote {
      async execute(args: any) {
        return axios.get("/notes");
      }
    }
    """


def test_one_name_declared_in_two_arms_stays_two(repo):
    tools = repo({"src/index.ts": ARMS, "src/handlers.ts": HANDLERS + SHOWS})

    assert [t["name"] for t in tools if t["candidate"]] == ["send_note"]


CACHED = """
    import httpx
    from cachetools import TTLCache
    from mcp.server.fastmcp import FastMCP

    mcp = FastMCP("notes")
    cache = TTLCache(maxsize=10, ttl=60)
    seen = {}

    def client(user: str):
        found = cache.get(user)
        return found or httpx.Client()

    @mcp.tool()
    def send_note(user: str, text: str):
        return client(user).post("https://api.example.com/notes", json={"text": text})

    @mcp.tool()
    def send_once(user: str, text: str):
        if seen.get(text):
            return "sent before"
        httpx.post("https://api.example.com/notes", json={"text": text})
        seen[text] = True
        return "sent"
    """


def test_a_cache_of_clients_is_no_store_of_what_was_seen(repo):
    tools = {t["name"]: t for t in repo({"server.py": CACHED})}

    assert [g["kind"] for g in tools["send_note"]["guards"]] == []
    assert [g["kind"] for g in tools["send_once"]["guards"]] == ["dedup-store"]
