"""Rust: positions inside macros, and sources that are nested deeper than anybody writes."""

from __future__ import annotations

import pytest

from fencekit.scan.engine import scan
from fencekit.scan.facts import Dict, ListOf, Lit
from fencekit.scan.languages import language_for
from fencekit.scan.parse import lower_module, parse
from fencekit.scan.scopes import scope_of

SOURCE = b"""fn listing() -> Value {
    json!({
        "name": "first",
        // a comment, with a comma
        "items": [
            { "text": format!("a{{b}} {} {place}", 1 + 2) },
            null,
            other(|x| x.y),
        ],
    })
}
"""


def returned(source):
    language = language_for("a.rs")
    module = lower_module("a.rs", source, language, parse(source, language))
    function = scope_of(module.top).names["listing"][0].item
    return scope_of(function).returns[0]


def test_what_stands_in_a_macro_keeps_its_lines():
    made = returned(SOURCE)
    assert isinstance(made, Dict)
    assert [(entry.key.value, entry.line) for entry in made.entries] == [("name", 3), ("items", 5)]
    items = made.entries[1].value
    assert isinstance(items, ListOf)
    assert [item.value.line for item in items.items] == [6, 7, 8]
    text = items.items[0].value.entries[0].value
    assert [part.value for part in text.parts if isinstance(part, Lit)] == [
        "a",
        "{",
        "b",
        "}",
        " ",
        " ",
    ]
    assert [part.id for part in text.parts if hasattr(part, "id")] == ["place"]


TOOL = """use rmcp::{tool, tool_router};
#[tool_router]
impl Server {
    #[tool(description = "Deep.")]
    fn deep(&self) -> u8 {
        DEEP
    }
}
"""


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("(", ")"),
        ("if a {", "}"),
        ("vec![", "]"),
        ("x.and_then(|y| ", ")"),
        ("match a { b => ", "}"),
    ],
)
def test_deep_nesting_costs_neither_the_tool_nor_the_scan(tmp_path, left, right):
    nested = f"{left}\n" * 1500 + "1" + f"{right}\n" * 1500
    (tmp_path / "main.rs").write_text(TOOL.replace("DEEP", nested), encoding="utf-8")
    assert [tool["name"] for tool in scan(tmp_path)["tools"]] == ["deep"]


def test_a_function_s_own_type_is_not_the_file_s_of_that_name(tmp_path):
    source = TOOL.replace("DEEP", "struct Server { a: u8 } impl Server { fn new() -> u8 { 1 } } 2")
    (tmp_path / "main.rs").write_text(source, encoding="utf-8")
    assert [tool["name"] for tool in scan(tmp_path)["tools"]] == ["deep"]
