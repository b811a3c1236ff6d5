"""The scan document, `fencekit.scan/1`: rows, summary, and everything that was not looked at.

One entry per declaration, never merged by name. A twin (the same tool declared a second time in
another file) carries `twin_of` and is not counted. Fingerprints hold no line numbers.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from importlib.resources import files
from typing import Any

from fencekit import __version__
from fencekit.scan.candidates import Row, order
from fencekit.scan.walked import Hit

SCHEMA = "fencekit.scan/1"
KEYLIKE = ("caller-key", "derived-key", "fresh-key", "description-says-unique", "dedup-store")
BLIND = [
    "what the far side does with a repeat: whether it deduplicates, and for how long",
    "code outside the given path: SDKs, services, plugins loaded at run time",
    "names resolved only at run time: reflection, injected dependencies, generated code",
    "what a child process, a shell command or a database trigger does in turn",
    "whether a caller, a host or a proxy in front of the server retries or deduplicates",
]
CONTEST = (
    "To contest a row, name its fingerprint and the hop or fact that is wrong; "
    "`--baseline FILE` keeps rows that were already looked at out of the next report."
)


def schema() -> dict[str, Any]:
    """Return the JSON Schema of the document."""
    text = (files("fencekit.scan") / "schema.json").read_text("utf-8")
    loaded: dict[str, Any] = json.loads(text)
    return loaded


def fingerprint(row: Row) -> str:
    """Return an id of a row that stays when lines move: name, file, and the writes' symbols."""
    tool = row.tool
    writes = sorted(
        {f"{h.effect.what}@{h.file}#{h.chain[-1].symbol if h.chain else ''}" for h in row.hits}
    )
    text = "\n".join([tool.name, tool.file, *writes])
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def build(  # noqa: PLR0913, PLR0917  the parts of the document, one by one
    rows: list[Row],
    path: str,
    commit: str | None,
    skipped: list[dict[str, str]],
    partial: list[dict[str, Any]],
    unknowns: list[dict[str, Any]],
    unattributed: dict[str, list[dict[str, Any]]],
    files_read: int,
) -> dict[str, Any]:
    """Return the document of one repository."""
    twins = find_twins(rows)
    ordered = sorted(rows, key=lambda r: (id(r) in twins, *order(r)))
    tools = [entry(row, twins.get(id(row))) for row in ordered]
    return {
        "schema": SCHEMA,
        "tool": {"name": "fencekit scan", "version": __version__},
        "repository": {"path": path, "commit": commit},
        "summary": summary(tools, files_read, len(skipped)),
        "tools": tools,
        "unattributed": unattributed,
        "skipped": skipped,
        "partial": partial,
        "unknowns": unknowns,
        "cannot_see": BLIND,
        "contest": CONTEST,
    }


def only_new(document: dict[str, Any], known: frozenset[str]) -> dict[str, Any]:
    """Return a document without the candidates whose fingerprints are known, counted anew."""
    if not known:
        return document
    tools = [t for t in document["tools"] if not (t["candidate"] and t["fingerprint"] in known)]
    counted = document["summary"]
    return {
        **document,
        "tools": tools,
        "summary": summary(tools, counted["files"], counted["skipped"]),
    }


def find_twins(rows: list[Row]) -> dict[int, Row]:
    """Map a repeated declaration to the one it repeats.

    A repeat has the same name in another file that is built from the first (a `.js` beside a
    `.ts`) or repeats most of its list.
    """
    by_file: dict[str, set[str]] = {}
    for row in rows:
        by_file.setdefault(row.tool.file, set()).add(row.tool.name)
    first: dict[str, Row] = {}
    out: dict[int, Row] = {}
    ranked = sorted(rows, key=lambda r: (_rank(r, by_file), r.tool.file, r.tool.line))
    for row in ranked:
        known = first.get(row.tool.name)
        if known is None:
            first[row.tool.name] = row
        elif known.tool.file == row.tool.file:
            continue
        elif _twin_files(known.tool.file, row.tool.file, by_file):
            out[id(row)] = known
    return out


def _rank(row: Row, by_file: dict[str, set[str]]) -> tuple[int, int]:
    """Sources before what is built from them; small lists before the list of all."""
    built = row.tool.file.endswith((".js", ".mjs", ".cjs", ".jsx"))
    return int(built), len(by_file[row.tool.file])


def _twin_files(one: str, two: str, by_file: dict[str, set[str]]) -> bool:
    if one.rsplit(".", 1)[0] == two.rsplit(".", 1)[0]:
        return True
    shared = by_file[one] & by_file[two]
    return len(shared) * 2 >= min(len(by_file[one]), len(by_file[two])) and len(shared) >= 2


def entry(row: Row, twin: Row | None) -> dict[str, Any]:
    """Return the document's entry for one row."""
    tool = row.tool
    handler = None
    if tool.handler is not None:
        function = tool.handler.function
        symbol = function.name or "(closure)"
        symbol = f"{function.owner.name}.{symbol}" if function.owner is not None else symbol
        module = function.module
        handler = {
            "symbol": symbol,
            "file": module.path if module else tool.file,
            "line": max(function.line, 1),
        }
    return {
        "name": tool.name,
        "declared_name": tool.declared_name or tool.name,
        "file": tool.file,
        "line": max(tool.line, 1),
        "language": "typescript" if tool.language == "tsx" else tool.language,
        "sdk": tool.sdk,
        "server": tool.server,
        "description": tool.description[:2000],
        "parameters": [
            {
                "name": p.name,
                "file": p.file,
                "line": max(p.line, 1),
                "description": p.description[:1000],
            }
            for p in {(p.name): p for p in reversed(tool.parameters)}.values()
        ][::-1],
        "annotations": tool.annotations,
        "handler": handler,
        "reaches_write": row.reaches_write,
        "candidate": row.candidate,
        "unresolved": row.unresolved,
        "declarative": row.declarative,
        "money": row.money,
        "fingerprint": fingerprint(row),
        "twin_of": {"file": twin.tool.file, "line": max(twin.tool.line, 1)} if twin else None,
        "writes": [w for h in row.hits for w in write(row, h)],
        "guards": [
            {"kind": g.kind, "file": g.file, "line": max(g.line, 1), "name": g.name}
            for g in row.guards
        ],
        "retries": retries_of(row),
        "mechanisms": [
            {"kind": m.kind, "file": m.file, "line": max(m.line, 1), "note": m.note}
            for m in row.mechanisms
        ],
    }


def retries_of(row: Row) -> list[dict[str, Any]]:
    """Return the places that send again; one that wraps a write counts as that for all of them."""
    places: dict[tuple[str, int], set[bool | None]] = {}
    for retry in (r for h in row.hits for r in h.retries):
        places.setdefault((retry.file, max(retry.line, 1)), set()).add(retry.wraps)
    return [
        {"file": file, "line": line, "wraps_write": _any(told)}
        for (file, line), told in sorted(places.items())
    ]


def _any(told: set[bool | None]) -> bool | None:
    return True if True in told else None if None in told else False


def write(row: Row, hit: Hit) -> list[dict[str, Any]]:
    """Return the entries of one write; a tool made from data names its operation too."""
    tool = row.tool
    chain = [
        {"symbol": h.symbol, "file": h.file, "line": max(h.line, 1), "certain": h.certain}
        for h in hit.chain
    ]
    chain.append(
        {
            "symbol": hit.effect.what,
            "file": hit.file,
            "line": max(hit.line, 1),
            "certain": hit.effect.certain,
        }
    )
    made = {
        "file": hit.file,
        "line": max(hit.line, 1),
        "what": hit.effect.what,
        "declarative": hit.effect.declarative,
        "certain": hit.effect.certain,
        "chain": chain,
    }
    if tool.data is not None and tool.data_place[0] and (tool.data_place != (hit.file, hit.line)):
        place = {
            "file": tool.data_place[0],
            "line": max(tool.data_place[1], 1),
            "what": f"operation {tool.data[0]} {tool.data[1]}",
            "declarative": hit.effect.declarative,
            "certain": True,
            "chain": chain[:1] or chain,
        }
        return [made, place]
    return [made]


def summary(tools: list[dict[str, Any]], files_read: int, skipped: int) -> dict[str, Any]:
    """Count what the views show; twins do not count."""
    own = [t for t in tools if t["twin_of"] is None]
    candidates = [t for t in own if t["candidate"]]
    return {
        "files": files_read,
        "skipped": skipped,
        "tools": len(own),
        "twins": len(tools) - len(own),
        "candidates": len(candidates),
        "declarative": sum(t["declarative"] for t in candidates),
        "unresolved": sum(t["unresolved"] for t in candidates),
        "money": sum(t["money"] for t in candidates),
        "without_guard": sum(
            not any(g["kind"] in KEYLIKE for g in t["guards"]) for t in candidates
        ),
        "mechanisms": dict(
            sorted(Counter(m["kind"] for t in candidates for m in t["mechanisms"]).items())
        ),
        "languages": dict(sorted(Counter(t["language"] for t in own).items())),
    }
