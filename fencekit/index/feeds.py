"""The register for machines: JSON, CSV, an Atom feed, badges, a sitemap. Pure, and byte-exact."""

from __future__ import annotations

import csv
import io
import json
from importlib import resources
from typing import Any
from xml.sax.saxutils import escape, quoteattr

from fencekit.index import rows as rows_
from fencekit.report.escape import csv_cell, visible

Json = dict[str, Any]

SCHEMA = "fencekit.index/1"
RULE = "Could not determine is an answer of its own. It never means that it did not happen."
_FEED_LENGTH = 200
_LABEL = "retry"
_COLUMNS = (
    "id", "implementation", "vendor", "kind", "language", "versions", "state", "observation_ended",
    "observed", "verdict", "tier", "time_to_fix", "reported", "fixed", "fix", "at_stake",
    "mechanisms", "disputed", "since", "recheck", "source", "page",
)  # fmt: skip
_BADGE_COLOURS = {"good": "#1b6538", "info": "#234b97", "warn": "#7a4a00", "quiet": "#59564f"}


def schema_text() -> str:
    """Return the JSON Schema of `index.json`."""
    return (resources.files("fencekit.index") / "index.schema.json").read_text(encoding="utf-8")


def as_json(
    config: Json, updated: str, totals: Json, rows: list[Json], withdrawn: list[Json]
) -> str:
    """Return `index.json`."""
    document = {
        "schema": SCHEMA,
        "title": config["title"],
        "keeper": config["keeper"],
        "updated": updated or None,
        "rule": RULE,
        "totals": totals,
        "rows": rows,
        "withdrawn": withdrawn,
    }
    return json.dumps(document, indent=1, ensure_ascii=True) + "\n"


def as_csv(rows: list[Json]) -> str:
    """Return `index.csv` (RFC 4180); no cell is a formula."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\r\n")
    writer.writerow(_COLUMNS)
    for row in rows:
        values = {
            **row,
            "time_to_fix": (row["time_to_fix"] or {}).get("words"),
            "mechanisms": " ".join(row["mechanisms"]),
            "disputed": "yes" if row["dispute"] else "no",
            "observation_ended": "yes" if row["observation_ended"] else "no",
        }
        writer.writerow([csv_cell(values[column]) for column in _COLUMNS])
    return out.getvalue()


def _xml(text: object) -> str:
    """Escape text for XML; characters that XML forbids are spelled out."""
    return escape(visible(str(text)).replace("\ufffe", "").replace("\uffff", ""))


def as_atom(config: Json, updated: str, rows: list[Json], base_url: str | None) -> str:
    """Return the Atom feed (RFC 4287) of every change of state of a named row, newest first.

    Ids are `tag:` addresses (RFC 4151), so that the feed means the same wherever it is served.
    """
    tag = f"tag:{config['tag']}"
    changes = [
        (line["date"], row, at, line) for row in rows for at, line in enumerate(row["history"])
    ]
    changes.sort(key=lambda change: (change[0], change[1]["id"], change[2]), reverse=True)
    parts = [
        '<?xml version="1.0" encoding="utf-8"?>',
        '<feed xmlns="http://www.w3.org/2005/Atom">',
        f"<title>{_xml(config['title'])}</title>",
        f"<id>{_xml(tag)}:index</id>",
        f"<updated>{updated or '1970-01-01'}T00:00:00Z</updated>",
        f"<author><name>{_xml(config['keeper'])}</name></author>",
    ]
    if base_url:
        parts.append(f'<link rel="self" href={quoteattr(base_url + "feed.xml")}/>')
        parts.append(f'<link rel="alternate" href={quoteattr(base_url)}/>')
    for day, row, at, line in changes[:_FEED_LENGTH]:
        words = rows_.STATE_WORDS.get(line["state"], line["state"])
        parts += [
            "<entry>",
            f"<title>{_xml(row['implementation'])}: {_xml(words)}</title>",
            f"<id>{_xml(tag)}:{row['id']}:{at}</id>",
            f"<updated>{day}T00:00:00Z</updated>",
        ]
        if base_url:
            parts.append(f'<link rel="alternate" href={quoteattr(base_url + row["page"])}/>')
        last = at == len(row["history"]) - 1
        text = rows_.verdict_words(row) if last else line["note"] or words
        parts += [f'<content type="text">{_xml(text)}</content>', "</entry>"]
    return "\n".join([*parts, "</feed>"]) + "\n"


def badge_words(row: Json) -> str:
    """Return what a badge says: what was measured and when, never a word of praise."""
    if row["observation_ended"]:
        return f"observation ended, last {row['since']}"
    if row["state"] == "unassessable":
        return f"not assessed, {row['since']}"
    return str(row["observed"])


def badge_svg(row: Json) -> str:
    """Return a badge: one file, no script, no font of its own."""
    words = visible(badge_words(row))[:90]
    left, right = 8 + 6.4 * len(_LABEL), 12 + 6.2 * len(words)
    width, colour = round(left + right), _BADGE_COLOURS[rows_.tone(row)]
    label = escape(f"{_LABEL}: {words}")
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="20" role="img"'
        f" aria-label={quoteattr(f'{_LABEL}: {words}')}><title>{label}</title>"
        f'<rect width="{width}" height="20" rx="3" fill="#33363b"/>'
        f'<path fill="{colour}" d="M{left:.0f} 0h{width - left - 3:.0f}a3 3 0 0 1 3 3v14'
        f'a3 3 0 0 1-3 3H{left:.0f}z"/>'
        '<g fill="#fff" font-family="Verdana,DejaVu Sans,sans-serif" font-size="11">'
        f'<text x="5" y="14" textLength="{left - 10:.0f}">{_LABEL}</text>'
        f'<text x="{left + 6:.0f}" y="14" textLength="{right - 12:.0f}">{escape(words)}</text>'
        "</g></svg>\n"
    )


def badge_json(row: Json) -> str:
    """Return the endpoint document that shields.io reads."""
    colour = _BADGE_COLOURS[rows_.tone(row)].lstrip("#")
    document = {
        "schemaVersion": 1,
        "label": _LABEL,
        "message": visible(badge_words(row)),
        "color": colour,
    }
    return json.dumps(document) + "\n"


def sitemap(pages: list[str], base_url: str) -> str:
    """Return the sitemap of the HTML pages."""
    urls = "".join(f"<url><loc>{escape(base_url + page)}</loc></url>\n" for page in pages)
    head = '<?xml version="1.0" encoding="utf-8"?>\n'
    space = "http://www.sitemaps.org/schemas/sitemap/0.9"
    return f'{head}<urlset xmlns="{space}">\n{urls}</urlset>\n'
