"""Tools that are data in lists, picked by name at run time: each is judged by its own entry."""

from __future__ import annotations

import textwrap

import pytest

from fencekit.scan import engine
from fencekit.scan.alternatives import distinct
from fencekit.scan.values import Const, Unknown

RUNTIME = """
import { Server } from "@modelcontextprotocol/sdk/server/index.js";
import { ListToolsRequestSchema, CallToolRequestSchema } from "@modelcontextprotocol/sdk/types.js";
import axios from "axios";

export class Runner {
  constructor({ tools }) {
    this.list = tools;
    this.server = new Server({ name: "x", version: "1" }, {});
    this.server.setRequestHandler(ListToolsRequestSchema, async () => ({ tools: this.list }));
    this.server.setRequestHandler(CallToolRequestSchema, async (request) => {
      const { name } = request.params;
      const spec = this.list.find((t) => t.name === name);
      if (!spec) throw new Error("unknown");
      return axios({ method: spec.method, url: spec.path });
    });
  }
}
export function start(options) { return new Runner(options); }
"""


def entry(name: str, method: str) -> str:
    """Return one tool as data."""
    return f'{{ "name": "{name}", "method": "{method}", "path": "/v1/{name}" }}'


@pytest.fixture
def repo(tmp_path):
    """Return a function that writes a server over several lists and scans it."""

    def build(**lists):
        (tmp_path / "runtime.ts").write_text(textwrap.dedent(RUNTIME), "utf-8")
        for name, entries in lists.items():
            (tmp_path / f"{name}-list.ts").write_text(
                f"const tools = [{', '.join(entries)}];\nexport default tools;\n", "utf-8"
            )
            (tmp_path / f"{name}.ts").write_text(
                f'import tools from "./{name}-list.js";\nimport {{ start }} from "./runtime.js";\n'
                "start({ tools });\n",
                "utf-8",
            )
        return engine.scan(tmp_path)

    return build


def test_a_list_without_the_tool_says_nothing_about_it(repo):
    made = repo(
        reads=[entry("list_orders", "GET"), entry("get_order", "GET")],
        writes=[entry("place_order", "POST"), entry("drop_order", "DELETE")],
    )
    tools = {t["name"]: t for t in made["tools"]}

    assert {n: t["candidate"] for n, t in tools.items()} == {
        "list_orders": False,
        "get_order": False,
        "place_order": True,
        "drop_order": True,
    }
    assert not tools["place_order"]["declarative"]
    assert tools["drop_order"]["declarative"]


def test_hundreds_of_tools_in_several_lists_are_all_found(repo):
    one = [entry(f"get_{i}", "GET") for i in range(300)]
    two = [entry(f"add_{i}", "POST") for i in range(300)]

    made = repo(one=one, two=two)

    assert len(made["tools"]) == 600
    assert made["summary"]["candidates"] == 300


def test_a_twin_shares_the_walk_of_the_tool_it_repeats(repo, monkeypatch):
    walked: list[str] = []
    real = engine.walk_of

    def counted(ev, tool, handler):
        walked.append(tool.name)
        return real(ev, tool, handler)

    monkeypatch.setattr(engine, "walk_of", counted)
    both = [entry("get_a", "GET"), entry("add_a", "POST")]
    made = repo(one=both, two=both)

    assert made["summary"]["twins"] == 2
    assert sorted(walked) == ["add_a", "get_a"]
    assert {(t["name"], t["candidate"]) for t in made["tools"]} == {
        ("get_a", False),
        ("add_a", True),
    }


def test_unknowns_of_one_name_and_place_count_once():
    here = [Unknown("a", file="x", line=1), Unknown("a", file="x", line=1)]
    there = Unknown("a", file="x", line=2)
    fixed = Const(1)

    assert distinct([*here, fixed, there, fixed]) == [here[0], fixed, there]
