"""What clients build forms from: plain types everywhere, and hints that say what a tool does."""

from __future__ import annotations

import pytest
from jsonschema import Draft202012Validator

from fencekit.serve.schemas import INSTRUCTIONS, TOOLS


def _properties(schema, where):
    """Yield every property below a schema, with its place."""
    for name, sub in schema.get("properties", {}).items():
        yield f"{where}.{name}", sub
        yield from _properties(sub, f"{where}.{name}")
    if "items" in schema:
        yield f"{where}[]", schema["items"]
        yield from _properties(schema["items"], f"{where}[]")


@pytest.mark.parametrize("spec", TOOLS, ids=lambda spec: spec.name)
def test_every_property_has_one_plain_type(spec):
    found = list(_properties(spec.input, "in")) + list(_properties(spec.output, "out"))

    assert [where for where, sub in found if not isinstance(sub.get("type"), str)] == []
    assert found or spec.name == "fence_stats"


@pytest.mark.parametrize("spec", TOOLS, ids=lambda spec: spec.name)
def test_schemas_are_valid_objects_without_references(spec):
    for schema in (spec.input, spec.output):
        Draft202012Validator.check_schema(schema)
        assert schema["type"] == "object"
        assert "$ref" not in str(schema)
        assert set(schema.get("required", ())) <= set(schema["properties"])


@pytest.mark.parametrize("spec", TOOLS, ids=lambda spec: spec.name)
def test_everything_that_goes_in_is_described(spec):
    assert spec.description
    assert [n for n, sub in spec.input["properties"].items() if not sub.get("description")] == []


def test_the_six_tools_with_their_inputs():
    required = {spec.name: spec.input.get("required", []) for spec in TOOLS}
    optional = {s.name: set(s.input["properties"]) - set(required[s.name]) for s in TOOLS}

    assert required == {
        "fence_prepare": ["intent", "domain", "tool", "args", "agent"],
        "fence_commit": ["prepared", "result"],
        "fence_abort": ["prepared", "reason"],
        "fence_heartbeat": ["prepared"],
        "fence_observe": ["domain"],
        "fence_stats": [],
    }
    assert optional.pop("fence_prepare") == {
        "read_set",
        "parent",
        "known_clock",
        "causal",
        "attempt",
    }
    assert set().union(*optional.values()) == set()


def test_the_instructions_name_only_tools_that_exist():
    words = {word.strip(".,;:()") for word in INSTRUCTIONS.split()}

    assert {word for word in words if word.startswith("fence_")} <= {spec.name for spec in TOOLS}
