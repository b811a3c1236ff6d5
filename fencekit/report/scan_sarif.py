"""A scan as SARIF 2.1.0: one result per candidate, each a thing to review and none of them a fault.

`kind: "review"` asks for a `level` of "none" (SARIF 2.1.0, 3.27.9 and 3.27.10). Some viewers ignore
`kind` and show these results as alerts; the documentation says so.
"""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import quote

from fencekit import __version__
from fencekit.report import scan_view
from fencekit.report.mechanisms import MECHANISMS, SCANNER_KINDS
from fencekit.report.scan_view import Json, ScanView

RULE = "double-fire-candidate"
SCHEMA = (
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
)
ROOT = "%SRCROOT%"


def render(documents: list[Json]) -> str:
    """Return one SARIF log with a run per document, as ASCII JSON."""
    log = {
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [_run(scan_view.view(document)) for document in documents],
    }
    return json.dumps(log, indent=2, ensure_ascii=True) + "\n"


def _run(one: ScanView) -> Json:
    seen = {"text": "\n".join(scan_view.CANNOT_SEE)}
    return {
        "tool": {"driver": _driver(one)},
        "automationDetails": {"id": f"fencekit-scan/{quote(one.name, safe='/')}/"},
        "originalUriBaseIds": {ROOT: {"description": {"text": "The scanned path."}}},
        "columnKind": "unicodeCodePoints",
        "invocations": [
            {
                "executionSuccessful": True,
                "toolExecutionNotifications": [
                    *_notifications(one),
                    {"level": "note", "message": seen},
                ],
            }
        ],
        "results": [_result(tool) for tool in (*one.rows, *one.declarative)],
        "properties": {
            "counts": one.counts,
            "mechanisms": one.mechanisms,
            "commit": one.commit or None,
        },
    }


def _driver(one: ScanView) -> Json:
    tool = one.document.get("tool") or {}
    kinds = "\n".join(f"{kind}: {MECHANISMS[kind].explains}" for kind in SCANNER_KINDS)
    return {
        "name": str(tool.get("name") or "fencekit"),
        "version": str(tool.get("version") or __version__),
        "rules": [
            {
                "id": RULE,
                "name": "DoubleFireCandidate",
                "shortDescription": {"text": "A tool from which a write can be reached."},
                "fullDescription": {
                    "text": "A tool that could fire the same effect twice, with the chain from the"
                    " tool to the write. It is listed for a person to confirm or dismiss."
                },
                "help": {"text": f"{scan_view.CONTEST}\n\nMechanisms a row may point at:\n{kinds}"},
                "defaultConfiguration": {"level": "none"},
            }
        ],
    }


def _notifications(one: ScanView) -> list[Json]:
    document = one.document
    skipped = [f"skipped: {item['path']}: {item['reason']}" for item in document.get("skipped", ())]
    partial = [
        f"partly parsed: {scan_view.partial_words(item)}" for item in document.get("partial", ())
    ]
    unknown = [f"unknown: {scan_view.unknown_words(item)}" for item in document.get("unknowns", ())]
    return [{"level": "note", "message": {"text": text}} for text in (*skipped, *partial, *unknown)]


def _location(file: str, line: int, words: str | None = None, number: int | None = None) -> Json:
    location: dict[str, Any] = {
        "physicalLocation": {
            "artifactLocation": {"uri": quote(file, safe="/"), "uriBaseId": ROOT},
            "region": {"startLine": line},
        }
    }
    if words is not None:
        location["message"] = {"text": words}
    return location if number is None else {"id": number, **location}


def _result(tool: Json) -> Json:
    marks = "; ".join(scan_view.marks(tool))
    reach = (
        f"reaches {len(tool['writes'])} write(s)"
        if tool["writes"]
        else "was not followed to a write"
    )
    related = [
        _location(file, line, f"{what}: {words}", number)
        for number, (what, file, line, words) in enumerate(scan_view.facts(tool), 1)
    ]
    result: dict[str, Any] = {
        "ruleId": RULE,
        "ruleIndex": 0,
        "kind": "review",
        "level": "none",
        "message": {"text": f"Tool '{tool['name']}' {reach}{f' ({marks})' if marks else ''}."},
        "locations": [_location(tool["file"], tool["line"])],
        "partialFingerprints": {"fencekitRow/v1": tool["fingerprint"]},
    }
    if tool["writes"]:
        result["codeFlows"] = [
            {"threadFlows": [{"locations": _flow(tool, w)}]} for w in tool["writes"]
        ]
    if related:
        result["relatedLocations"] = related
    return result


def _flow(tool: Json, write: Json) -> list[Json]:
    start = {"location": _location(tool["file"], tool["line"], f"tool {tool['name']}")}
    steps = [
        {
            "location": _location(
                hop["file"],
                hop["line"],
                hop["symbol"] + ("" if hop["certain"] else " (by name only)"),
            )
        }
        for hop in scan_view.hops(write)
    ]
    return [start, *steps]
