"""The rows of the register as plain data: what the pages, the JSON, the table and the feed show.

Pure. A row holds nothing that was not in a public entry or its evidence.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Any

from fencekit.index import rules
from fencekit.index.entry import Entry
from fencekit.index.register import Item, Register
from fencekit.report.mechanisms import mechanism

Json = dict[str, Any]

STATE_WORDS = {
    "verified-safe": "Verified safe",
    "fixed": "Found and fixed",
    "unassessable": "Could not be assessed",
}
ENDED = "Observation ended"
TONES = {"verified-safe": "good", "fixed": "info", "unassessable": "warn"}
_TIER_ORDER = ("battery run", "probe run", "code read")


def slug(text: str) -> str:
    """Return a text as a file name: a-z, 0-9 and dashes."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:40] or "other"


def rows(register: Register, today: date) -> list[Json]:
    """Return every row that may be named, the one that changed last first."""
    made = [
        row(item, ended=rules.ended(item.entry, today, register.ended_ids))
        for item in register.items
        if rules.is_row(item.entry)
    ]
    made.sort(key=lambda one: one["id"])
    return sorted(made, key=lambda one: one["since"], reverse=True)


def row(item: Item, *, ended: bool) -> Json:
    """Return one row. An ended one keeps its last observation and loses its re-check date."""
    entry = item.entry
    tier = min((e.tier for e in entry.evidence), key=_TIER_ORDER.index, default="")
    return {
        "id": entry.id,
        "implementation": entry.implementation,
        "vendor": entry.vendor,
        "source": entry.source or None,
        "kind": entry.kind,
        "language": entry.language or None,
        "versions": entry.versions,
        "commit": entry.commit or None,
        "at_stake": entry.at_stake,
        "mechanisms": list(entry.mechanisms),
        "state": entry.state,
        "observation_ended": ended,
        "observed": observed(item),
        "verdict": entry.verdict,
        "reason": entry.reason or None,
        "tier": tier or None,
        "dispute": entry.dispute or None,
        "reported": _iso(entry.reported),
        "fixed": _iso(entry.fixed),
        "time_to_fix": _time_to_fix(entry),
        "fix": entry.fix or None,
        "disclosure": entry.disclosure or None,
        "credit": entry.credit or None,
        "notes": entry.notes or None,
        "recheck": None if ended else _iso(entry.recheck),
        "since": entry.history[-1].date.isoformat(),
        "evidence": [_evidence(entry.id, evidence) for evidence in entry.evidence],
        "history": [
            {"date": line.date.isoformat(), "state": line.state, "note": line.note or None}
            for line in entry.history
        ],
        "page": f"rows/{entry.id}.html",
        "badge": f"badges/{entry.id}.svg",
    }


def observed(item: Item) -> str:
    """Return what was seen, in the words that must stand beside the state."""
    entry = item.entry
    if entry.state == "verified-safe":
        at, run = max(
            ((at, run) for at, run in item.runs.items() if run.self_check),
            key=lambda pair: (pair[1].held, pair[1].ways, pair[0]),
        )
        seen = entry.evidence[at].date.isoformat()
        return f"held in {run.held} of {run.ways} {run.noun}, version {entry.versions}, {seen}"
    if entry.state == "fixed" and entry.reported and entry.fixed:
        words = rules.fix_time(entry.reported, entry.fixed).words
        return f"fixed in {words}, version {entry.versions}, {_day(entry.fixed)}"
    return f"version {entry.versions}, {entry.history[-1].date.isoformat()}"


def verdict_words(one: Json) -> str:
    """Return the state with what was observed; the state never stands alone."""
    state = STATE_WORDS[one["state"]]
    return (
        f"{ENDED}. {state} when last seen: {one['observed']}"
        if one["observation_ended"]
        else (f"{state}: {one['observed']}")
    )


def tone(one: Json) -> str:
    """Return the CSS class of a row's state."""
    return "quiet" if one["observation_ended"] else TONES[one["state"]]


@dataclass(frozen=True)
class Facet:
    """One way to filter: its name and its values, each with a label, a file name and the rows."""

    name: str
    values: list[tuple[str, str, list[Json]]]


def facets(all_rows: list[Json]) -> list[Facet]:
    """Return the filters that have rows: by state, kind, evidence, language and mechanism."""
    readers: dict[str, Callable[[Json], list[str]]] = {
        "state": lambda one: [ENDED if one["observation_ended"] else STATE_WORDS[one["state"]]],
        "kind": lambda one: [one["kind"]],
        "evidence": lambda one: [one["tier"]] if one["tier"] else [],
        "language": lambda one: [one["language"]] if one["language"] else [],
        "mechanism": lambda one: [mechanism(kind).title for kind in one["mechanisms"]],
    }
    found = []
    for name, reads in readers.items():
        groups: dict[str, tuple[str, list[Json]]] = {}
        for one in all_rows:
            for value in dict.fromkeys(reads(one)):
                groups.setdefault(slug(value), (value, []))[1].append(one)
        if groups:
            values = [(label, key, group) for key, (label, group) in sorted(groups.items())]
            found.append(Facet(name, values))
    return found


def totals(register: Register, all_rows: list[Json]) -> Json:
    """Return the numbers of the front page, all of them computed from the rows and the tally."""
    live = [one for one in all_rows if not one["observation_ended"]]
    entries = {item.entry.id: item.entry for item in register.items}
    fast = rules.fastest(entries[one["id"]] for one in all_rows)
    return {
        "verified_safe": sum(one["state"] == "verified-safe" for one in live),
        "fixed": sum(one["state"] == "fixed" for one in all_rows),
        "unassessable": sum(one["state"] == "unassessable" for one in live),
        "observation_ended": len(all_rows) - len(live),
        "fastest_fix": fast[1].words if fast else None,
        "counted_not_named": register.tally.words,
        "counted_by_month": [
            {"from": first, "to": last, "count": number}
            for first, last, number in register.tally.spans
        ],
    }


def withdrawn(register: Register) -> list[Json]:
    """Return the withdrawn entries whose owner agrees to a line."""
    return [
        {
            "implementation": item.entry.implementation,
            "date": item.entry.history[-1].date.isoformat(),
        }
        for item in register.items
        if item.entry.state == "withdrawn"
        and item.entry.owner_agrees
        and item.entry.listing == "named"
    ]


def _evidence(entry_id: str, evidence: Any) -> Json:
    name = evidence.document.rpartition("/")[2]
    return {
        "tier": evidence.tier,
        "date": evidence.date.isoformat(),
        "command": evidence.command or None,
        "document": f"evidence/{entry_id}/{name}" if name else None,
        "sha256": evidence.sha256 or None,
        "link": evidence.link or None,
        "note": evidence.note or None,
    }


def _time_to_fix(entry: Entry) -> Json | None:
    if entry.state != "fixed" or entry.reported is None or entry.fixed is None:
        return None
    taken = rules.fix_time(entry.reported, entry.fixed)
    return {"words": taken.words, "seconds": taken.seconds, "days": taken.days}


def _iso(moment: date | None) -> str | None:
    return None if moment is None else moment.isoformat()


def _day(moment: date) -> str:
    whole = moment.astimezone(UTC).date() if isinstance(moment, datetime) else moment
    return whole.isoformat()
