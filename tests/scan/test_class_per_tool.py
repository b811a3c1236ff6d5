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


LISTED = """
    from mcp.server import Server
    from mcp.types import Tool

    app = Server("notes")
    {registry}

    @app.list_tools()
    async def list_tools():
        return [
            Tool(name=t.{name}, description=t.description, inputSchema=t.schema) for t in TOOLS
        ]

    @app.call_tool()
    async def call_tool(name: str, arguments: dict):
        for tool in TOOLS:
            if tool.{name} == name:
                return await tool.execute(arguments)
        raise ValueError(name)
    """
ATTRIBUTES = """
    from abc import ABC, abstractmethod
    import httpx

    class BaseTool(ABC):
        name: str
        description: str = ""
        schema = {"type": "object"}

        @abstractmethod
        async def execute(self, args): ...

    class SendNote(BaseTool):
        name = "send_note"
        description = "Send a note."

        async def execute(self, args):
            return httpx.post("http://localhost/send", json=args)

    class ReadNote(BaseTool):
        name = "read_note"

        async def execute(self, args):
            return httpx.get("http://localhost/notes")
    """
METHODS = (
    ATTRIBUTES.replace('name = "send_note"', 'def get_name(self):\n            return "send_note"')
    .replace('name = "read_note"', 'def get_name(self):\n            return "read_note"')
    .replace("        name: str\n", "        @abstractmethod\n        def get_name(self): ...\n\n")
)


@pytest.mark.parametrize(
    ("registry", "name", "classes"),
    [
        ("from tools import *\nTOOLS = [SendNote(), ReadNote()]", "name", ATTRIBUTES),
        ("from tools import BaseTool\nTOOLS = [c() for c in BaseTool.__subclasses__()]", "name",
         ATTRIBUTES),
        ("import tools\nTOOLS = [tools.SendNote(), tools.ReadNote()]", "get_name()", METHODS),
    ],
    ids=["class attributes", "loop over the subclasses", "methods that give the name"],
)  # fmt: skip
def test_a_class_says_its_name_in_every_way(repo, registry, name, classes):
    server = textwrap.dedent(LISTED).replace("{registry}", registry).replace("{name}", name)

    tools = repo({"server.py": server, "tools.py": classes})

    assert sorted(tools) == ["read_note", "send_note"]
    assert {t["file"] for t in tools.values()} == {"tools.py"}
    assert tools["send_note"]["candidate"]
    assert not tools["read_note"]["candidate"]


TYPESCRIPT = """
    import { Server } from "@modelcontextprotocol/sdk/server/index.js";
    import { CallToolRequestSchema, ListToolsRequestSchema } from "@modelcontextprotocol/sdk";
    import axios from "axios";

    abstract class BaseTool {
      abstract readonly name: string;
      abstract run(args: any): Promise<any>;
      describe() {
        return { name: this.name, description: "", inputSchema: { type: "object" } };
      }
    }

    class SendNote extends BaseTool {
      readonly name = "send_note";
      async run(args: any) {
        return axios.post("/notes/send", args);
      }
    }

    class ReadNote extends BaseTool {
      readonly name = "read_note";
      async run(args: any) {
        return axios.get("/notes");
      }
    }

    class Registry {
      private tools = new Map<string, BaseTool>();
      constructor() {
        [new SendNote(), new ReadNote()].forEach((t) => this.register(t));
      }
      register(tool: BaseTool) {
        this.tools.set(tool.name, tool);
      }
      all() {
        return Array.from(this.tools.values());
      }
      get(name: string) {
        return this.tools.get(name);
      }
    }

    const registry = new Registry();
    const server = new Server({ name: "notes", version: "1" }, { capabilities: { tools: {} } });
    server.setRequestHandler(ListToolsRequestSchema, async () => ({
      tools: registry.all().map((t) => t.describe()),
    }));
    server.setRequestHandler(CallToolRequestSchema, async (request) => {
      const tool = registry.get(request.params.name);
      return tool!.run(request.params.arguments);
    });
    """


def test_a_typescript_registry_of_instances_is_followed(repo):
    tools = repo({"src/index.ts": TYPESCRIPT})

    assert sorted(tools) == ["read_note", "send_note"]
    assert tools["send_note"]["candidate"]
    assert not tools["read_note"]["candidate"]
    assert tools["send_note"]["line"] == 14


SELF_REGISTERING = """
    from typing import ClassVar
    import httpx

    class Registry:
        _tools: ClassVar[dict] = {}

        @classmethod
        def register(cls, tool_class):
            tool = tool_class()
            cls._tools[tool.name] = tool
            return tool_class

        @classmethod
        def get(cls, name):
            return cls._tools[name]

        @classmethod
        def everything(cls):
            return list(cls._tools.values())

    class BaseTool:
        name: str = ""
        description = ""
        schema = {"type": "object"}
HOOK
        async def execute(self, args):
            raise NotImplementedError

    MARK
    class SendNote(BaseTool):
        name = "send_note"

        async def execute(self, args):
            return httpx.post("http://localhost/send", json=args)

    MARK
    class ReadNote(BaseTool):
        name = "read_note"

        async def execute(self, args):
            return httpx.get("http://localhost/notes")
    """
HOOK = """
        def __init_subclass__(cls, **kwargs):
            super().__init_subclass__(**kwargs)
            if cls.name:
                Registry.register(cls)
"""


@pytest.mark.parametrize("how", ["hook", "decorator"])
def test_classes_that_register_themselves_are_found(repo, how):
    classes = SELF_REGISTERING.replace("HOOK", HOOK if how == "hook" else "")
    classes = classes.replace("    MARK\n", "" if how == "hook" else "    @Registry.register\n")
    server = (
        textwrap.dedent(LISTED)
        .replace("{registry}", "from tools import Registry")
        .replace("{name}", "name")
        .replace("for t in TOOLS", "for t in Registry.everything()")
        .replace("for tool in TOOLS:", "for tool in [Registry.get(name)]:")
    )

    tools = repo({"server.py": server, "tools.py": classes})

    assert sorted(tools) == ["read_note", "send_note"]
    assert tools["send_note"]["candidate"]
    assert not tools["read_note"]["candidate"]


FUNCTIONS = """
    import httpx
    from mcp.server import Server
    from mcp.types import Tool

    app = Server("notes")
    TOOLS = {}

    def offered(name, description):
        def mark(fn):
            TOOLS[name] = {"fn": fn, "description": description}
            return fn
        return mark

    @offered("send_note", "Send.")
    async def send(args):
        return httpx.post("http://localhost/send", json=args)

    @offered("read_note", "Read.")
    async def read(args):
        return httpx.get("http://localhost/notes")

    @app.list_tools()
    async def list_tools():
        return [
            Tool(name=name, description=t["description"], inputSchema={"type": "object"})
            for name, t in TOOLS.items()
        ]

    @app.call_tool()
    async def call_tool(name: str, arguments: dict):
        return await TOOLS[name]["fn"](arguments)
    """


def test_functions_that_an_own_decorator_collects_are_found(repo):
    tools = repo({"server.py": FUNCTIONS})

    assert sorted(tools) == ["read_note", "send_note"]
    assert tools["send_note"]["candidate"]
    assert not tools["read_note"]["candidate"]


FRAMEWORK = """
    import { MCPTool } from "mcp-framework";
    import { z } from "zod";
    import axios from "axios";

    class SendNote extends MCPTool<{ text: string }> {
      name = "send_note";
      description = "Send a note.";
      schema = { text: { type: z.string(), description: "The text." } };

      async execute(input: { text: string }) {
        return axios.post("https://api.example.com/notes", input);
      }
    }
    export default SendNote;
    """


def test_a_class_of_a_frameworks_tool_type_is_found_without_a_registration(repo):
    server = 'import { MCPServer } from "mcp-framework";\nnew MCPServer().start();\n'
    near_miss = FRAMEWORK.replace('"mcp-framework"', '"@langchain/core/tools"')
    tools = repo({
        "src/index.ts": server,
        "src/tools/SendNote.ts": FRAMEWORK,
        "src/other.ts": near_miss.replace("send_note", "other_note"),
    })  # fmt: skip

    assert sorted(tools) == ["send_note"]
    assert tools["send_note"]["file"] == "src/tools/SendNote.ts"
    assert tools["send_note"]["candidate"]
    assert [p["name"] for p in tools["send_note"]["parameters"]] == ["text"]


SELF_REGISTRATION = {
    "src/base.ts": """
        import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";

        export abstract class ToolBase {
          public name: string;
          abstract description: string;
          abstract argsShape: any;

          constructor({ name }: { name: string }) {
            this.name = name;
          }

          protected abstract execute(args: any): Promise<any>;

          public register(server: McpServer): void {
            (server.registerTool as any)(
              this.name,
              { description: this.description, inputSchema: this.argsShape },
              this.invoke.bind(this),
            );
          }

          private async invoke(args: any) {
            return this.execute(args);
          }
        }

        export abstract class ApiTool extends ToolBase {}
        """,
    "src/notes.ts": """
        import axios from "axios";
        import { ApiTool } from "./base.js";

        export class SendNote extends ApiTool {
          static toolName = "send-note";
          description = "Send a note.";
          argsShape = {};

          protected async execute(args: any) {
            return axios.post("/notes/send", args);
          }
        }

        export class ReadNote extends ApiTool {
          static toolName = "read-note";
          description = "Read a note.";
          argsShape = {};

          protected async execute(args: any) {
            return axios.get("/notes");
          }
        }
        """,
    "src/index.ts": """
        import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
        import { ReadNote, SendNote } from "./notes.js";

        const server = new McpServer({ name: "notes", version: "1" });
        for (const make of [SendNote, ReadNote]) {
          new make({ name: make.toolName }).register(server);
        }
        """,
}


def test_classes_that_inherit_their_registration_are_each_a_tool(repo):
    tools = repo(SELF_REGISTRATION)

    assert sorted(tools) == ["read-note", "send-note"]
    assert {t["file"] for t in tools.values()} == {"src/notes.ts"}
    assert tools["send-note"]["candidate"]
    assert not tools["read-note"]["candidate"]


CONTAINED = {
    "src/registry.ts": """
        import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
        import { inject } from "container";
        import type { ToolDefinition } from "./types.js";

        export class Registry {
          constructor(@inject("tools") private tools: ToolDefinition[]) {}
          all(server: McpServer) {
            for (const tool of this.tools) {
              server.registerTool(tool.name, { description: tool.description }, tool.handler);
            }
          }
        }
        """,
    "src/notes.ts": """
        import axios from "axios";
        import type { PromptDefinition, ToolDefinition } from "./types.js";

        const NAME = "send_note";

        export const sendNote: ToolDefinition<string> = {
          name: NAME,
          description: "Send a note.",
          inputSchema: {},
          handler: async (args: any) => axios.post("/notes/send", args),
        };

        export const prompt: PromptDefinition = {
          name: "write_note",
          description: "Write a note.",
          handler: async (args: any) => args,
        };
        """,
}


def test_typed_objects_stand_in_for_a_registration_that_shows_none(repo):
    tools = repo(CONTAINED)

    assert sorted(tools) == ["send_note"]
    assert (tools["send_note"]["file"], tools["send_note"]["line"]) == ("src/notes.ts", 7)
    assert tools["send_note"]["candidate"]


def test_typed_objects_count_for_nothing_where_the_registration_shows_its_tools(repo):
    shown = CONTAINED["src/registry.ts"].replace(
        "for (const tool of this.tools) {", 'for (const tool of [{ name: "shown", handler: f }]) {'
    )

    assert sorted(repo({**CONTAINED, "src/registry.ts": shown})) == ["shown"]


OWN_MARK = """
    import httpx
    from mcp.server.fastmcp import FastMCP

    mcp = FastMCP("billing")
    DEFINED = []

    def billing_tool(*, description: str):
        def mark(fn):
            DEFINED.append(Definition(fn, description))
            return fn
        return mark

    def log_tool(fn):
        return fn
    """
MARKED = """
    import httpx
    from marks import billing_tool
    from langchain_core.tools import agent_tool

    @billing_tool(description="Send a bill.")
    async def send_bill(customer: str):
        return httpx.post("https://api.example.com/bills", json={"customer": customer})

    @agent_tool
    async def other(customer: str):
        return httpx.post("https://api.example.com/other")
    """


def test_an_own_decorator_around_the_sdk_marks_tools(repo):
    tools = repo({"marks.py": OWN_MARK, "bills.py": MARKED})

    assert sorted(tools) == ["send_bill"]
    assert tools["send_bill"]["description"] == "Send a bill."
    assert tools["send_bill"]["candidate"]
