"""Tools made from a bundled OpenAPI document, by an SDK's converter or by one of the repository."""

from __future__ import annotations

import json
import textwrap

import jsonschema
import pytest

from fencekit.scan import bounded, document, documents
from fencekit.scan.engine import scan
from fencekit.scan.openapi import is_openapi, operations

YAML = """\
openapi: 3.0.3
info: {title: Shop, version: "1"}
paths:
  /orders:
    get:
      operationId: listOrders
      tags: [orders]
    post:
      operationId: create-order__v1
      tags: [orders]
      parameters:
        - $ref: '#/components/parameters/Key'
  /orders/search:
    post:
      operationId: searchOrders
      tags: [orders]
  /orders/{id}:
    parameters:
      - {name: id, in: path, required: true}
    put:
      operationId: replaceOrder
      tags: [orders]
      requestBody:
        content:
          application/json:
            schema: {$ref: '#/components/schemas/Order'}
  /health:
    get:
      summary: Is it up
      tags: [internal]
components:
  parameters:
    Key:
      name: Idempotency-Key
      in: header
      description: A key of the caller.
  schemas:
    Order:
      properties:
        note: {type: string, description: Free text.}
"""
SERVER = """
    from pathlib import Path

    import httpx
    import yaml
    from fastmcp import FastMCP

    HERE = Path(__file__).parent

    def load(name: str) -> dict:
        return yaml.safe_load((HERE / "specs" / f"{name}.yaml").read_text())

    spec = load("shop")
    mcp = FastMCP.from_openapi(openapi_spec=spec, client=httpx.AsyncClient()ARGS)
    """


@pytest.fixture
def repo(tmp_path):
    """Return a function that writes files below a folder and scans it."""

    def build(files):
        for name, text in files.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(textwrap.dedent(text), "utf-8")
        made = scan(tmp_path)
        jsonschema.validate(made, document.schema())
        return {t["name"]: t for t in made["tools"]}

    return build


def test_each_operation_is_a_tool_at_its_place_in_the_document(repo):
    tools = repo({"app/server.py": SERVER.replace("ARGS", ""), "app/specs/shop.yaml": YAML})

    assert sorted(tools) == [
        "Is_it_up",
        "create_order",
        "listOrders",
        "replaceOrder",
        "searchOrders",
    ]
    assert {t["file"] for t in tools.values()} == {"app/specs/shop.yaml"}
    assert tools["create_order"]["line"] == 9
    assert [t for t, row in tools.items() if row["candidate"]] == ["create_order", "replaceOrder"]


def test_a_write_names_the_call_of_the_executor_and_the_operation(repo):
    tools = repo({"server.py": SERVER.replace("ARGS", ""), "specs/shop.yaml": YAML})

    places = [(w["file"], w["line"], w["what"]) for w in tools["create_order"]["writes"]]
    assert places == [
        ("server.py", 14, "HTTP POST"),
        ("specs/shop.yaml", 8, "operation POST /orders"),
    ]
    assert tools["replaceOrder"]["declarative"]
    assert [p["name"] for p in tools["replaceOrder"]["parameters"]] == ["id", "note"]


def test_a_key_header_of_the_specification_is_a_guard(repo):
    tools = repo({"server.py": SERVER.replace("ARGS", ""), "specs/shop.yaml": YAML})

    guards = [(g["kind"], g["file"], g["line"]) for g in tools["create_order"]["guards"]]
    assert guards == [("caller-key", "specs/shop.yaml", 34)]
    assert not [g for g in tools["replaceOrder"]["guards"] if g["kind"] != "declarative"]


def test_a_name_map_is_where_the_tool_is_declared(repo):
    given = SERVER.replace("ARGS", ", mcp_names=NAMES").replace(
        "import httpx", "from names import NAMES\n    import httpx"
    )
    names = 'NAMES = {\n    "create-order__v1": "place_order",\n}\n'

    tools = repo({"server.py": given, "names.py": names, "specs/shop.yaml": YAML})

    assert (tools["place_order"]["file"], tools["place_order"]["line"]) == ("names.py", 2)
    assert tools["listOrders"]["file"] == "specs/shop.yaml"
    assert "create_order" not in tools


ONLY_ORDERS = """
    def only(route, kind):
        if "internal" in route.tags or route.operation_id in HIDDEN:
            return MCPType.EXCLUDE
        return kind
    """
ROUTE_MAPS = """, route_maps=[
        RouteMap(methods=["GET"], pattern=r"^/orders$", mcp_type=MCPType.RESOURCE),
        RouteMap(tags={"internal"}, mcp_type=MCPType.EXCLUDE),
        RouteMap(pattern=r"search$", route_type=RouteType.IGNORE),
    ]"""


@pytest.mark.parametrize("how", ["function", "maps"])
def test_a_filter_over_routes_takes_operations_away(repo, how):
    args = ", route_map_fn=only" if how == "function" else ROUTE_MAPS
    head = "from fastmcp.server.openapi import MCPType, RouteMap, RouteType\n"
    extra = 'HIDDEN = {"searchOrders", "listOrders"}\n' + textwrap.dedent(ONLY_ORDERS)
    server = head + extra + textwrap.dedent(SERVER).replace("ARGS", args)

    assert sorted(repo({"server.py": server, "specs/shop.yaml": YAML})) == [
        "create_order",
        "replaceOrder",
    ]


def test_a_document_that_nothing_turns_into_tools_makes_none(repo):
    server = """
        import yaml
        from mcp.server.fastmcp import FastMCP

        mcp = FastMCP("x")
        SPEC = yaml.safe_load(open("specs/shop.yaml"))

        @mcp.tool()
        def describe_api() -> str:
            return SPEC["info"]["title"]
        """

    assert sorted(repo({"server.py": server, "specs/shop.yaml": YAML})) == ["describe_api"]


CONVERTER = """
    import { Server } from "@modelcontextprotocol/sdk/server/index.js";
    import { CallToolRequestSchema, ListToolsRequestSchema } from "@modelcontextprotocol/sdk";
    import axios from "axios";
    import spec from "./api/shop.json";

    const VERBS = ["get", "post", "put", "patch", "delete"];
    const operations: Record<string, { method: string; path: string }> = {};
    const tools: any[] = [];
    for (const [path, item] of Object.entries(spec.paths)) {
      for (const [method, operation] of Object.entries(item)) {
        if (!VERBS.includes(method)) continue;
        const name = `shop_${operation.operationId.replace(/[A-Z]/g, "_$&").toLowerCase()}`;
        tools.push({ name, description: operation.summary, inputSchema: { type: "object" } });
        operations[name] = { method, path };
      }
    }
    const server = new Server({ name: "shop", version: "1" });
    server.setRequestHandler(ListToolsRequestSchema, async () => ({ tools }));
    server.setRequestHandler(CallToolRequestSchema, async (request) => {
      const { method, path } = operations[request.params.name];
      return axios.request({ method, url: "https://api.example.com" + path });
    });
    """


def shop_json():
    """Return a document of two operations, with lines."""
    paths = {
        "/orders": {
            "post": {"operationId": "createOrder", "summary": "Create"},
            "get": {"operationId": "listOrders", "summary": "List"},
        }
    }
    return json.dumps({"openapi": "3.1.0", "paths": paths}, indent=1)


def test_a_converter_of_the_repository_is_evaluated_with_its_document(repo):
    tools = repo({"src/index.ts": CONVERTER, "src/api/shop.json": shop_json()})

    assert sorted(tools) == ["shop_create_order", "shop_list_orders"]
    made = tools["shop_create_order"]
    assert (made["file"], made["line"]) == ("src/api/shop.json", 6)
    assert made["candidate"]
    assert not tools["shop_list_orders"]["candidate"]
    assert [(w["file"], w["line"]) for w in made["writes"]] == [
        ("src/index.ts", 22),
        ("src/api/shop.json", 5),
    ]


@pytest.mark.parametrize(
    "text",
    ["{", "[1, 2", "a: &a [*a]", "a: b: c", "- 1\n- {x: *y}", "{}", "\t- x", "[" * 5000, "\x00"],
)
def test_a_broken_document_is_no_document(tmp_path, text):
    (tmp_path / "api.yaml").write_text(text, "utf-8")
    (tmp_path / "api.json").write_text(text, "utf-8")
    known = documents.Documents(tmp_path, ["api.yaml", "api.json"])

    for path in ("api.yaml", "api.json"):
        read = known.read(path)
        assert read is None or not is_openapi(read[0])


def test_aliases_do_not_multiply_a_document():
    bomb = "a0: &a0 {x: 1}\n" + "".join(
        f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]\n" for i in range(1, 20)
    )

    assert documents.of_yaml(bomb.encode()) is not None


def test_a_document_outside_the_tree_is_not_read(tmp_path):
    (tmp_path / "secret.json").write_text(shop_json())
    inside = tmp_path / "repo"
    inside.mkdir()
    (inside / "api.json").symlink_to(tmp_path / "secret.json")
    known = documents.Documents(inside, [])

    assert known.find("a/b.py", "../../secret.json") == []
    assert known.find("b.py", "api.json") == []


def test_references_that_go_in_circles_end():
    text = """
openapi: 3.0.0
paths:
  /a: {$ref: '#/paths/~1a'}
  /b:
    post:
      operationId: b
      requestBody: {content: {application/json: {schema: {$ref: '#/x/loop'}}}}
x:
  loop: {allOf: [{$ref: '#/x/loop'}], properties: {n: {$ref: '#/x/loop'}}}
"""
    content = documents.of_yaml(text.encode())

    assert content is not None
    assert [o.id for o in operations(content)] == ["b"]


@pytest.mark.parametrize("pattern", ["(a+)+$", "a*a*a*a*a*b", "x" * 100, "[", "(?:a|a)*"])
def test_a_pattern_that_could_take_long_does_not_run(pattern):
    assert bounded.compiled(pattern) is None


READ_IN_PYTHON = {
    "open": 'spec = json.load(open(os.path.join(os.path.dirname(__file__), "shop.json")))',
    "with": 'with open(Path(__file__).parent / "shop.json") as f:\n    spec = json.load(f)',
    "resources": 'spec = json.loads(files("app").joinpath("shop.json").read_text("utf-8"))',
    "with_name": 'spec = json.loads(Path(__file__).with_name("shop.json").read_text())',
    "joinpath": 'spec = json.loads((Path(__file__).parent.joinpath("shop.json")).read_text())',
    "lines": 'with open("app/shop.json") as f:\n'
    '    spec = json.loads("".join([x for x in f if not x.startswith("#")]))',
    "function": 'def load(path="shop.json"):\n'
    "    with open(path) as f:\n        return json.load(f)\n\nspec = load()",
    "copy": 'raw = json.load(open("app/shop.json"))\nspec = copy.deepcopy(raw)',
    "environment": 'spec = json.load(open(os.environ.get("SPEC", "app/shop.json")))',
}


@pytest.mark.parametrize("how", READ_IN_PYTHON)
def test_a_document_is_found_however_python_reads_it(repo, how):
    server = (
        "import copy, json, os\nimport httpx\nfrom importlib.resources import files\n"
        "from pathlib import Path\nfrom fastmcp import FastMCP\n\n"
        + READ_IN_PYTHON[how]
        + "\n\nmcp = FastMCP.from_openapi(spec, httpx.AsyncClient())\n"
    )

    tools = repo({"app/server.py": server, "app/shop.json": shop_json()})

    assert sorted(tools) == ["createOrder", "listOrders"]


READ_IN_TYPESCRIPT = {
    "import": 'import spec from "../api/shop.json" with { type: "json" };',
    "require": 'const spec = require("../api/shop.json");',
    "url": 'const text = await fs.readFile(new URL("../api/shop.json", import.meta.url), "utf8");\n'
    "const spec = JSON.parse(text);",
    "dirname": 'const spec = JSON.parse(fs.readFileSync(path.join(__dirname, "..", "api", '
    '"shop.json"), "utf8"));',
    "parser": 'const spec = await SwaggerParser.dereference(path.resolve("api/shop.json"));',
    "method": "class Loader {\n  private spec: any;\n  async load(file: string) {\n"
    '    this.spec = JSON.parse(await fs.readFile(file, "utf8"));\n    return this.spec;\n  }\n}\n'
    'const spec = await new Loader().load("./api/shop.json");',
}


@pytest.mark.parametrize("how", READ_IN_TYPESCRIPT)
def test_a_document_is_found_however_typescript_reads_it(repo, how):
    head = (
        'import fs from "node:fs/promises";\nimport path from "node:path";\n'
        'import SwaggerParser from "@apidevtools/swagger-parser";\n'
    )
    server = textwrap.dedent(CONVERTER).replace('import spec from "./api/shop.json";', "")
    server = head + READ_IN_TYPESCRIPT[how] + server

    tools = repo({"src/index.ts": server, "api/shop.json": shop_json()})

    assert sorted(tools) == ["shop_create_order", "shop_list_orders"]


PATH_NAMES = """
    import json
    import requests
    from mcp.server.fastmcp import FastMCP

    mcp = FastMCP("shop")
    with open("shop.json") as f:
        spec = json.load(f)

    def make(method, path):
        def run(**kwargs):
            return requests.request(method.upper(), "https://api.example.com" + path, json=kwargs)
        return run

    for path, item in spec.get("paths", {}).items():
        for method, operation in item.items():
            name = f"{method}_{path.strip('/').replace('/', '_')}"
            mcp.add_tool(make(method, path), name=name, description=operation["summary"])
    """


def test_a_name_made_of_verb_and_path_leads_to_its_operation(repo):
    tools = repo({"server.py": PATH_NAMES, "shop.json": shop_json()})

    assert sorted(tools) == ["get_orders", "post_orders"]
    assert (tools["post_orders"]["file"], tools["post_orders"]["line"]) == ("shop.json", 6)
    assert tools["post_orders"]["candidate"]
    assert not tools["get_orders"]["candidate"]
