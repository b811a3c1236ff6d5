"""Go servers: constants for names, handlers in other packages, reads that are no writes."""

from __future__ import annotations

import pytest

from fencekit.scan.engine import scan

FILES = {
    "go.mod": "module example.org/billing\n\ngo 1.22\n",
    "main.go": """package main

import (
\t"github.com/mark3labs/mcp-go/mcp"
\t"github.com/mark3labs/mcp-go/server"

\t"example.org/billing/charges"
)

const toolCharge = "charge_card"

func main() {
\ts := server.NewMCPServer("billing", "1.0.0")
\th := &charges.Handler{}
\ts.AddTool(mcp.NewTool(toolCharge, mcp.WithDescription("Charge a card.")), h.Charge)
\ts.AddTool(mcp.NewTool("list_charges", mcp.WithDescription("List charges.")), h.List)
}
""",
    "charges/charges.go": """package charges

import (
\t"context"
\t"net/http"
\t"strings"

\t"github.com/mark3labs/mcp-go/mcp"
)

type Handler struct{}

func (h *Handler) Charge(ctx context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
\tbody := strings.NewReader("{}")
\t_, err := http.Post("https://api.example.org/charges", "application/json", body)
\treturn mcp.NewToolResultText("ok"), err
}

func (h *Handler) List(ctx context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
\t_, err := http.Get("https://api.example.org/charges")
\treturn mcp.NewToolResultText("ok"), err
}
""",
    "charges/charges_test.go": """package charges

var fake = mcp.NewTool("not_a_tool")
""",
}


@pytest.fixture
def rows(tmp_path):
    for name, text in FILES.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return {tool["name"]: tool for tool in scan(tmp_path)["tools"]}


def test_tools_are_found_by_constant_and_literal_and_nothing_else(rows):
    assert sorted(rows) == ["charge_card", "list_charges"]
    assert rows["charge_card"]["language"] == "go"


def test_a_post_in_another_package_makes_a_candidate_with_its_line(rows):
    charge = rows["charge_card"]
    assert charge["candidate"]
    assert ("charges/charges.go", 15) in {(w["file"], w["line"]) for w in charge["writes"]}


def test_a_get_is_no_write(rows):
    assert not rows["list_charges"]["candidate"]
