"""The static site: from a checked register to the bytes of every file, and their swap into place.

`build` is deterministic: dates come from the entries, and `today` only decides which re-checks are
past. `publish` writes a fresh directory and swaps it in, so that no page of an earlier build stays.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any

from markupsafe import Markup

from fencekit.index import feeds, leaks, pictures, rows, rules
from fencekit.index.problem import Problem, RegisterError
from fencekit.index.register import Item, Register, newest
from fencekit.report import page, probe_view, scan_view
from fencekit.report.escape import shorten
from fencekit.report.mechanisms import mechanism

Json = dict[str, Any]

PER_PAGE = 180  # rows of the ledger on one page: it stays under 100 kB
_CHIPS = 24  # values of a filter shown on the front page
_CHAINS = 6  # candidates of a scan shown on a row's page


def build(register: Register, today: date, base_url: str | None = None) -> dict[str, bytes]:
    """Return every file of the site by its path. Raises RegisterError where a private word leaks.

    `base_url` is needed for absolute addresses: the feed's links, the sitemap, shields.io.
    """
    base = base_url.rstrip("/") + "/" if base_url else None
    all_rows = rows.rows(register, today)
    updated = newest(register)
    files: dict[str, str] = {}
    for path, text in _pages(register, all_rows, updated.isoformat() if updated else "", base):
        files[path] = text
    day = updated.isoformat() if updated else ""
    gone, totals = rows.withdrawn(register), rows.totals(register, all_rows)
    files["index.json"] = feeds.as_json(dict(register.config), day, totals, all_rows, gone)
    files["index.schema.json"] = feeds.schema_text()
    files["index.csv"] = feeds.as_csv(all_rows)
    files["feed.xml"] = feeds.as_atom(dict(register.config), day, all_rows, base)
    for one in all_rows:
        files[one["badge"]] = feeds.badge_svg(one)
        if base:
            files[f"badges/{one['id']}.json"] = feeds.badge_json(one)
    if base:
        pages = sorted(path for path in files if path.endswith(".html"))
        files["sitemap.xml"] = feeds.sitemap(pages, base)
    site = {path: text.encode("utf-8") for path, text in files.items()}
    site |= _evidence_files(register, all_rows)
    if problems := leaks.find(register, site):
        raise RegisterError(problems)
    return dict(sorted(site.items()))


def _pages(
    register: Register, all_rows: list[Json], updated: str, base: str | None
) -> Iterator[tuple[str, str]]:
    items = {item.entry.id: item for item in register.items}
    shared = {"config": register.config, "updated": updated, "base_url": base, "rule": feeds.RULE}
    found = rows.facets(all_rows)
    front = {
        **shared,
        "totals": rows.totals(register, all_rows),
        "k": rules.K,
        "fixes": pictures.fixes(all_rows),
        "kinds": pictures.states_by_kind(all_rows),
        "withdrawn": rows.withdrawn(register),
        "schema": feeds.SCHEMA,
    }
    yield from _ledger("index", "index/front.html", all_rows, found, front)
    for facet in found:
        for label, key, group in facet.values:
            context = {**shared, "facet": facet.name, "value": label}
            yield from _ledger(f"by/{facet.name}/{key}", "index/by.html", group, found, context)
    for one in all_rows:
        yield one["page"], _row_page(one, items[one["id"]], shared)


def _ledger(
    stem: str, template: str, group: list[Json], found: list[rows.Facet], context: Json
) -> Iterator[tuple[str, str]]:
    """Yield the pages of one list of rows; the first page of the front carries everything else."""
    pages = max(-(-len(group) // PER_PAGE), 1)
    names = [f"{stem}.html", *(f"{stem}-{n}.html" for n in range(2, pages + 1))]
    for at, path in enumerate(names):
        text = page.render(
            template,
            root="../" * stem.count("/"),
            rows=[_line(one) for one in group[at * PER_PAGE : (at + 1) * PER_PAGE]],
            facets=[(facet.name, facet.values[:_CHIPS]) for facet in found],
            number=at + 1,
            total_rows=len(group),
            pages=[(n + 1, name.rpartition("/")[2]) for n, name in enumerate(names)],
            **context,
        )
        yield path, text


def _line(one: Json) -> Json:
    """Return a row as the ledger shows it, short enough for two hundred on a page."""
    taken = one["time_to_fix"]
    return {
        **one,
        "tone": rows.tone(one),
        "words": shorten(rows.verdict_words(one), 120),
        "stake": shorten(one["at_stake"], 90),
        "took": taken["words"] if taken else "",
        "order": int(taken["seconds"] or taken["days"] * 86400) if taken else "",
    }


def _row_page(one: Json, item: Item, shared: Json) -> str:
    return page.render(
        "index/row.html",
        root="../",
        row=one,
        tone=rows.tone(one),
        words=rows.verdict_words(one),
        state_words=rows.STATE_WORDS,
        mechanisms=[mechanism(kind) for kind in one["mechanisms"]],
        evidence=[
            {**shown, **_document(item.documents.get(at))}
            for at, shown in enumerate(one["evidence"])
        ],
        # Made by `feeds` from escaped text; shown inline because the policy allows no image files.
        badge=Markup(feeds.badge_svg(one)),
        badge_words=feeds.badge_words(one),
        **shared,
    )


def _document(loaded: Any) -> Json:
    """Return what a row's page shows of an evidence document."""
    shown: Json = {"probe": None, "scans": [], "battery": None}
    schema = loaded.get("schema") if isinstance(loaded, dict) else None
    if schema == "fencekit.probe/1":
        shown["probe"] = {
            "headline": probe_view.headline(loaded),
            "facts": probe_view.facts(loaded),
            "ways": probe_view.ways(loaded),
            "commands": loaded["commands"],
        }
    elif schema == "fencekit.battery/1":
        shown["battery"] = loaded
    elif loaded:
        documents = loaded if isinstance(loaded, list) else [loaded]
        scans = [
            d for d in documents if isinstance(d, dict) and d.get("schema") == "fencekit.scan/1"
        ]
        shown["scans"] = [_scan(document) for document in scans]
    return shown


def _scan(document: Json) -> Json:
    one = scan_view.view(document)
    return {
        "counts": one.counts,
        "left_out": max(len(one.rows) - _CHAINS, 0),
        "rows": [
            {
                "tool": tool,
                "marks": scan_view.marks(tool),
                "chain": scan_view.hops(tool["writes"][0]) if tool["writes"] else [],
                "facts": list(scan_view.facts(tool)),
            }
            for tool in one.rows[:_CHAINS]
        ],
    }


def _evidence_files(register: Register, all_rows: list[Json]) -> dict[str, bytes]:
    """Return the evidence documents of named rows, byte for byte as their SHA-256 says."""
    named = {one["id"] for one in all_rows}
    return {
        f"evidence/{item.entry.id}/{evidence.document.rpartition('/')[2]}": (
            register.root / evidence.document
        ).read_bytes()
        for item in register.items
        if item.entry.id in named
        for evidence in item.entry.evidence
        if evidence.document
    }


def publish(files: dict[str, bytes], out: Path) -> None:
    """Write the site beside its place and swap it in. Raises RegisterError for a foreign folder."""
    if out.exists() and not _is_site(out):
        words = "is not an earlier build: choose a new or empty directory, so that nothing is lost"
        raise RegisterError([Problem(str(out), 1, "out", words)])
    out.parent.mkdir(parents=True, exist_ok=True)
    fresh, old = (out.with_name(f".{out.name}.{kind}-{os.getpid()}") for kind in ("new", "old"))
    try:
        for path, content in files.items():
            target = fresh / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content)
        if out.exists():
            out.rename(old)
        fresh.rename(out)
    finally:
        shutil.rmtree(fresh, ignore_errors=True)
        shutil.rmtree(old, ignore_errors=True)


def _is_site(out: Path) -> bool:
    if out.is_symlink() or not out.is_dir():
        return False
    if not any(out.iterdir()):
        return True
    try:
        document = json.loads((out / "index.json").read_bytes())
    except (OSError, ValueError):
        return False
    return isinstance(document, dict) and document.get("schema") == feeds.SCHEMA
