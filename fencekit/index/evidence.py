"""The evidence documents of an entry: found, unchanged, and what they say."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from fencekit.index.entry import Entry
from fencekit.index.problem import Problem
from fencekit.index.rules import NEEDS_RUN, Run
from fencekit.report import probe_view

LARGEST = 32 * 1024 * 1024  # bytes of one document

Json = dict[str, Any]


def read(root: Path, entry: Entry) -> tuple[dict[int, Any], dict[int, Run], list[Problem]]:
    """Return the documents and the runs of an entry by evidence number, and what is wrong."""
    documents: dict[int, Any] = {}
    runs: dict[int, Run] = {}
    problems: list[Problem] = []
    for at, item in enumerate(entry.evidence):
        if not item.document:
            if item.tier in NEEDS_RUN:
                words = f"a {item.tier} needs its document: evidence/FILE.json"
                problems.append(entry.problem(words, "evidence", at, "document"))
            elif not item.link:
                words = "a code read needs a document or a link pinned to a commit"
                problems.append(entry.problem(words, "evidence", at, "link"))
            continue
        loaded, complaint, key = _load(root, item.document, item.sha256)
        if complaint:
            problems.append(entry.problem(complaint, "evidence", at, key))
            continue
        documents[at] = loaded
        if item.tier in NEEDS_RUN:
            run, complaint = _run(loaded)
            if run is None:
                problems.append(entry.problem(complaint, "evidence", at, "document"))
            else:
                runs[at] = run
    return documents, runs, problems


def _load(root: Path, document: str, sha256: str) -> tuple[Any, str, str]:
    """Return (value, complaint, key the complaint is about)."""
    path = root / document
    if path.is_symlink() or not path.is_file():
        return None, f"{document} is missing (a plain file is needed)", "document"
    if path.stat().st_size > LARGEST:
        return None, f"{document} is larger than {LARGEST // 2**20} MB", "document"
    raw = path.read_bytes()
    found = hashlib.sha256(raw).hexdigest()
    if found != sha256:
        words = f"{document} has changed: its SHA-256 is {found}"
        return None, words if sha256 else f"is missing: {document} has {found}", "sha256"
    try:
        return json.loads(raw), "", ""
    except (ValueError, RecursionError) as error:
        return None, f"{document} is not JSON: {error}", "document"


def _run(loaded: Any) -> tuple[Run | None, str]:
    """Read a probe or battery document; the complaint is empty where that worked."""
    schema = loaded.get("schema") if isinstance(loaded, dict) else None
    try:
        if schema == "fencekit.probe/1":
            return _probe_run(loaded), ""
        if schema == "fencekit.battery/1":
            return _battery_run(loaded), ""
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        return None, f"is no complete {schema} document ({type(error).__name__}: {error})"
    return None, f"is no probe or battery document (schema {schema!r})"


def _probe_run(document: Json) -> Run:
    held, ways = probe_view.held(document)
    proven = any(way["verdict"] == probe_view.PROVEN for way in document["ways"])
    complete = bool(document["complete"])
    probe_view.ways(document)  # a document that cannot be shown is no evidence
    probe_view.facts(document)
    return Run(probe_view.self_check(document), held if complete else 0, ways, proven)


def _battery_run(document: Json) -> Run:
    scores = [str(mode["score"]) for mode in document["modes"]]
    for mode in document["modes"]:
        int(mode["charges"])  # a document that cannot be shown is no evidence
    passed = bool(document["control"]["passed"])
    return Run(passed, scores.count("held"), len(scores), "over-fired" in scores, noun="modes")
