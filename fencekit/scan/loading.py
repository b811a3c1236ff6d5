"""Which data document a call or an import hands out.

`json.loads(path.read_text())`, `JSON.parse(readFileSync(…))`, `yaml.safe_load(f)`,
`require("./api.json")`, a parser of OpenAPI documents: whatever the call is, the document is the
file whose name stands in what it is given.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from fencekit.scan.documents import is_data
from fencekit.scan.facts import Call, Member
from fencekit.scan.parts import Parts
from fencekit.scan.values import Const, Env, Ext, Record, Seq, Value

READERS = frozenset({
    "load", "loads", "safe_load", "full_load", "parse", "safeLoad", "readJson", "readJSON",
    "readJsonSync", "readJSONSync", "readJsonFile", "dereference", "bundle", "validate", "require",
    "import", "from_file", "parse_file", "from_path", "load_json", "load_yaml", "resolve_refs",
    "replace_refs", "deepcopy", "structuredClone", "cloneDeep", "from_dict", "parseAllDocuments",
})  # fmt: skip
MAX_DEPTH = 8
MAX_PIECES = 40


def of_call(ev: Parts, value: Ext, call: Call, env: Env) -> list[Value] | None:
    """Return the documents that a call of something outside hands out, or None for none."""
    if value.last not in READERS or not call.args:
        return None
    told = [v for a in call.args for v in ev.eval(a.value, env)]
    passed: list[Value] = [v for v in told if isinstance(v, Record) and is_data(v.file)]
    if passed:
        return passed  # a copy, or the document with its references resolved
    pieces = list(itertools.islice(_pieces(ev, told, 0, set()), MAX_PIECES))
    return named(ev, [p for p, _ in pieces], pieces[0][1] or env.file) if pieces else None


def named(ev: Parts, pieces: list[str], importer: str) -> list[Value] | None:
    """Return the documents that the parts of a path name, or None."""
    for i, piece in enumerate(pieces):
        if not is_data(piece):
            continue
        for start in (max(0, i - 2), max(0, i - 1), i):
            text = "/".join(pieces[start : i + 1])
            found = ev.project.documents.find(importer, text)
            values = [v for path in found for v in content(ev, path)]
            if values:
                return values
    return None


def content(ev: Parts, path: str) -> list[Value]:
    """Return the value of one document."""
    read = ev.project.documents.read(path)
    return ev.eval(read[0], ev.open_env(read[1])) if read is not None else []


def _pieces(
    ev: Parts, values: list[Value], depth: int, seen: set[int]
) -> Iterator[tuple[str, str]]:
    """Yield the texts that went into values, with the files in which they are written."""
    if depth > MAX_DEPTH:
        return
    for value in values[:8]:
        if id(value) in seen:
            continue
        seen.add(id(value))
        if isinstance(value, Const) and isinstance(value.value, str):
            yield value.value, value.file
            yield from _pieces(ev, list(value.inputs), depth + 1, seen)
        elif isinstance(value, Seq):
            yield from _pieces(ev, value.items, depth + 1, seen)
        elif isinstance(value, Ext) and value.call is not None and value.env is not None:
            callee = value.call.callee
            if isinstance(callee, Member):
                yield from _pieces(ev, ev.eval(callee.obj, value.env), depth + 1, seen)
            for arg in value.call.args:
                yield from _pieces(ev, ev.eval(arg.value, value.env), depth + 1, seen)
