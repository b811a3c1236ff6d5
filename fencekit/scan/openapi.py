"""OpenAPI documents (3.x and Swagger 2.0) as lists of operations with their places. Pure.

References (`$ref`) are followed inside the document only, and to a bounded depth.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from fencekit.scan.facts import Dict, Expr, ListOf, Lit

VERBS = ("get", "put", "post", "delete", "options", "head", "patch", "trace")
MAX_REFERENCES = 6
MAX_OPERATIONS = 2000


@dataclass(slots=True)
class Field:
    """One parameter of an operation or property of its body: where it is, and what is said."""

    name: str
    line: int
    location: str  # path, query, header, cookie, body
    description: str = ""


@dataclass(slots=True)
class Operation:
    """One operation: the verb in capitals, the path, its id, and the line each stands on."""

    verb: str
    path: str
    line: int
    id: str = ""
    id_line: int = 0
    summary: str = ""
    description: str = ""
    tags: tuple[str, ...] = ()
    deprecated: bool = False
    fields: list[Field] = field(default_factory=list)
    content: Dict | None = None

    @property
    def name_line(self) -> int:
        """Return the line of what names the operation: its id, or else its verb."""
        return self.id_line or self.line


def value_of(node: Expr | None, key: str) -> Expr | None:
    """Return what a mapping holds under a key."""
    if isinstance(node, Dict):
        for entry in node.entries:
            if isinstance(entry.key, Lit) and str(entry.key.value) == key:
                return entry.value
    return None


def text_at(node: Expr | None, key: str) -> str:
    """Return the text a mapping holds under a key, or an empty string."""
    found = value_of(node, key)
    return found.value if isinstance(found, Lit) and isinstance(found.value, str) else ""


def is_openapi(document: Expr | None) -> bool:
    """Tell whether a document says that it is an OpenAPI description with paths."""
    marked = value_of(document, "openapi") is not None or value_of(document, "swagger") is not None
    return marked and isinstance(value_of(document, "paths"), Dict)


def operations(document: Expr) -> list[Operation]:
    """Return the operations of a document, in the order in which they are written."""
    out: list[Operation] = []
    for path, item, _ in _entries(value_of(document, "paths")):
        node = follow(document, item)
        shared = value_of(node, "parameters")
        for verb, content, line in _entries(node):
            if verb.lower() not in VERBS or not isinstance(content, Dict):
                continue
            if len(out) >= MAX_OPERATIONS:
                return out
            out.append(_operation(document, path, verb, content, line, shared))
    return out


def _operation(
    document: Expr, path: str, verb: str, content: Dict, line: int, shared: Expr | None
) -> Operation:
    named = value_of(content, "operationId")
    tags = value_of(content, "tags")
    labels = [i.value.value for i in tags.items if isinstance(i.value, Lit)] if isinstance(
        tags, ListOf
    ) else []  # fmt: skip
    deprecated = value_of(content, "deprecated")
    made = Operation(
        verb.upper(), path, line, text_at(content, "operationId"), named.line if named else 0,
        text_at(content, "summary"), text_at(content, "description"),
        tuple(str(label) for label in labels),
        isinstance(deprecated, Lit) and deprecated.value is True, content=content,
    )  # fmt: skip
    for group in (shared, value_of(content, "parameters")):
        for item in group.items if isinstance(group, ListOf) else ():
            given = follow(document, item.value)
            name, place = value_of(given, "name"), text_at(given, "in")
            if not isinstance(name, Lit) or not isinstance(name.value, str):
                continue
            if place == "body":  # Swagger 2.0
                made.fields += _properties(document, value_of(given, "schema"), 0)
            else:
                told = text_at(given, "description")
                made.fields.append(Field(name.value, name.line, place, told))
    body = follow(document, value_of(content, "requestBody"))
    for _, media, _ in _entries(value_of(body, "content")):
        made.fields += _properties(document, value_of(media, "schema"), 0)
        break
    return made


def _properties(document: Expr, schema: Expr | None, depth: int) -> list[Field]:
    if depth > MAX_REFERENCES or schema is None:
        return []
    node = follow(document, schema)
    out: list[Field] = []
    for name, held, line in _entries(value_of(node, "properties")):
        out.append(Field(name, line, "body", text_at(follow(document, held), "description")))
    for key in ("allOf", "oneOf", "anyOf"):
        several = value_of(node, key)
        for item in several.items[:8] if isinstance(several, ListOf) else ():
            out += _properties(document, item.value, depth + 1)
    return out


def follow(document: Expr, node: Expr | None) -> Expr | None:
    """Return what a node refers to inside the document, or the node itself."""
    for _ in range(MAX_REFERENCES):
        target = text_at(node, "$ref")
        if not target.startswith("#/"):
            return node
        node = document
        for part in target[2:].split("/"):
            node = value_of(node, part.replace("~1", "/").replace("~0", "~"))
    return node


def _entries(node: Expr | None) -> Iterator[tuple[str, Expr, int]]:
    for entry in node.entries if isinstance(node, Dict) else ():
        if isinstance(entry.key, Lit):
            yield str(entry.key.value), entry.value, entry.line
