"""What a keeper starts from: a new register, an entry drafted from evidence, a submission form.

A draft carries what the documents say (target, version, tier, counts, mechanisms, commands, hashes)
and leaves the verdict empty: a person writes it, and `check` refuses the entry until then.
"""

from __future__ import annotations

import hashlib
import json
import tomllib
from collections import Counter
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

import tomlkit
from tomlkit.items import Table

from fencekit.index import lock, register, rows
from fencekit.index.entry import EVIDENCE_FIELDS, FIELDS, HISTORY_FIELDS, KINDS, SCHEMA
from fencekit.index.problem import Problem, RegisterError
from fencekit.report import scan_view
from fencekit.report.escape import mask, shorten
from fencekit.report.mechanisms import MECHANISMS

Json = dict[str, Any]

FORM_SCHEMA = "fencekit.submission/1"


@dataclass(frozen=True)
class Given:
    """An evidence file handed to `add`: its tier, the raw bytes, the parsed document."""

    tier: str
    suffix: str
    raw: bytes
    document: Any


def init(root: Path, *, private: bool = False) -> None:
    """Make an empty register. Raises RegisterError where one is already there."""
    if (root / register.CONFIG).exists() or (root / "entries").exists():
        words = "there is a register here already; choose another directory"
        raise RegisterError([Problem(str(root), 1, "init", words)])
    for folder in ("entries", "evidence"):
        (root / folder).mkdir(parents=True)
    if private:
        root.chmod(0o700)
        (root / ".gitignore").write_text("*\n", encoding="utf-8")
    else:
        (root / register.CONFIG).write_text(_config(), encoding="utf-8")
    (root / lock.NAME).write_text(lock.dump([], []), encoding="utf-8")


def _config() -> str:
    document = tomlkit.document()
    values = {
        "schema": register.SCHEMA,
        "title": "Retry-Safety Index",
        "keeper": "the keeper of this register",
        "contact": "https://example.org/retry-safety",
        "tag": "example.org,2026",
        "interest": "the keeper gains nothing from a row.",
    }
    for key, value in values.items():
        document[key] = value
        document[key].comment(register.CONFIG_FIELDS[key].about)
    return tomlkit.dumps(document)


def read_given(path: Path, tier: str, suffix: str) -> Given:
    """Read one evidence file. Raises RegisterError where it is no JSON document."""
    try:
        raw = path.read_bytes()
        return Given(tier, suffix, raw, json.loads(raw))
    except (OSError, ValueError, RecursionError) as error:
        words = f"cannot be read as a JSON document: {error}"
        raise RegisterError([Problem(str(path), 1, suffix, words)]) from error


def add(
    root: Path, given: list[Given], today: date, *, entry_id: str | None = None, test: str = ""
) -> Path:
    """Draft an entry from evidence; returns its file. Raises RegisterError where it exists."""
    about = _about(given)
    name = entry_id or rows.slug(about["implementation"])
    target = root / "entries" / f"{name}.toml"
    if not target.parent.is_dir():
        words = f"there is no register; `fencekit index init {root}` makes one"
        raise RegisterError([Problem(str(root), 1, "add", words)])
    if target.exists():
        words = "is there already: edit it, or choose another name with --id"
        raise RegisterError([Problem(str(target), 1, "id", words)])
    made = [_evidence(root, name, one, today) for one in given]
    if test and made:
        path = f"evidence/{name}-test.py"
        (root / path).write_text(test, encoding="utf-8")
        made[0]["test"] = path
    values = {"schema": SCHEMA, "id": name, **about, "state": "", "verdict": ""}
    target.write_text(_entry(values, made, today), encoding="utf-8")
    return target


def _about(given: list[Given]) -> Json:
    """Return what the documents say about the implementation."""
    about: Json = {
        "implementation": "", "vendor": "", "source": "", "kind": "server", "language": "",
        "versions": "", "commit": "", "at_stake": "", "mechanisms": [],
    }  # fmt: skip
    for one in given:
        documents = one.document if isinstance(one.document, list) else [one.document]
        for document in documents:
            if one.suffix == "probe":
                target = document.get("target") or {}
                about["implementation"] = str(target.get("name") or "")
                about["versions"] = str(target.get("version") or "")
            elif one.suffix == "battery":
                about["kind"] = "client"
            elif one.suffix == "scan":
                _about_scan(about, document)
    about["implementation"] = about["implementation"] or "unnamed"
    return about


def _about_scan(about: Json, document: Json) -> None:
    repository = document.get("repository") or {}
    about["commit"] = str(repository.get("commit") or "")
    languages = Counter(str(tool.get("language") or "") for tool in document.get("tools") or [])
    about["language"] = languages.most_common(1)[0][0] if languages else ""
    kinds = scan_view.view(document).mechanisms
    about["mechanisms"] = [kind for kind in kinds if kind in MECHANISMS]
    path = str(repository.get("path") or "").rstrip("/").rpartition("/")[2]
    about["implementation"] = about["implementation"] or path


def _evidence(root: Path, name: str, one: Given, today: date) -> Json:
    path = f"evidence/{name}-{one.suffix}.json"
    raw = json.dumps(mask(one.document), indent=1, ensure_ascii=False).encode() + b"\n"
    (root / path).write_bytes(raw)
    document = one.document if isinstance(one.document, dict) else {}
    ended = str(document.get("ended") or "")[:10]
    return {
        "tier": one.tier,
        "date": date.fromisoformat(ended) if ended else today,
        "command": str((document.get("commands") or {}).get("this") or ""),
        "document": path,
        "sha256": hashlib.sha256(raw).hexdigest(),
        "note": shorten(str(document.get("reason") or ""), 300),
    }


def _entry(values: Json, evidence: list[Json], today: date) -> str:
    document = tomlkit.document()
    document.add(
        tomlkit.comment("Drafted by fencekit from evidence. The verdict is yours to write.")
    )
    for key, value in values.items():
        document[key] = value
        if value in ("", []) or key in ("state", "kind"):
            document[key].comment(FIELDS[key].about)
    for key in ("reported", "fixed", "fix", "credit", "notes", "recheck"):
        document.add(tomlkit.comment(f"{key} = …  {FIELDS[key].about}"))
    document["evidence"] = _tables(evidence, EVIDENCE_FIELDS)
    document["history"] = _tables([{"date": today, "state": "", "note": "first recorded"}], {})
    return tomlkit.dumps(document)


def _tables(items: list[Json], fields: dict[str, Any]) -> Any:
    tables = tomlkit.aot()
    for item in items:
        table: Table = tomlkit.table()
        for key, value in item.items():
            if value != "" or key in HISTORY_FIELDS or (key in fields and fields[key].required):
                table[key] = value
        tables.append(table)
    return tables


def form() -> str:
    """Return a blank submission form."""
    document = tomlkit.document()
    document.add(
        tomlkit.comment("A submission to the Retry-Safety Index. Fill it and send it back.")
    )
    questions = {
        "schema": (FORM_SCHEMA, "leave as it is"),
        "implementation": ("", "the name, as its owner writes it"),
        "vendor": ("", "who makes it"),
        "source": ("", "where it lives (https)"),
        "kind": ("", "one of: " + ", ".join(KINDS)),
        "language": ("", "the language it is written in"),
        "versions": ("", "the version to look at"),
        "money_path": ("", "what moves money, mail or other effects, from tool to API"),
        "one_effect_command": ("", "one command that makes exactly one purchase or effect"),
        "named": (True, "false: no row; the result is sent to you and only counted"),
        "contact": ("", "whom to tell"),
    }
    for key, (value, about) in questions.items():
        item = tomlkit.item(value)
        item.comment(about)
        document[key] = item
    return tomlkit.dumps(document)


def from_form(root: Path, text: str, file: str, today: date) -> Path:
    """Draft an entry from a filled form; returns its file. Raises RegisterError for a bad form."""
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise RegisterError([Problem(file, 1, "TOML", str(error))]) from error
    if data.get("schema") != FORM_SCHEMA:
        words = f"is no submission form (schema {FORM_SCHEMA})"
        raise RegisterError([Problem(file, 1, "schema", words)])
    need = ("implementation", "vendor", "kind", "money_path", "one_effect_command")
    empty = [key for key in need if not str(data.get(key) or "").strip()]
    if empty:
        raise RegisterError([Problem(file, 1, key, "is empty: the form needs it") for key in empty])
    name = rows.slug(str(data["implementation"]))
    target = root / "entries" / f"{name}.toml"
    if not target.parent.is_dir() or target.exists():
        words = "is there already" if target.exists() else "there is no register here"
        raise RegisterError([Problem(str(target), 1, "id", words)])
    values = {
        "schema": SCHEMA, "id": name, "implementation": str(data["implementation"]),
        "vendor": str(data["vendor"]), "source": str(data.get("source") or ""),
        "kind": str(data["kind"]), "language": str(data.get("language") or ""),
        "versions": str(data.get("versions") or ""), "at_stake": str(data["money_path"]),
        "state": "", "verdict": "",
        "listing": "named" if data.get("named", True) else "not named",
        "notes": f"Submitted with: {data['one_effect_command']}",
    }  # fmt: skip
    target.write_text(_entry(values, [], today), encoding="utf-8")
    return target


def retire(root: Path, entry_id: str, private: Path | None) -> None:
    """Take a row out at its owner's wish: its lock lines are marked, its file moves or goes."""
    source = root / "entries" / f"{entry_id}.toml"
    if not source.is_file():
        raise RegisterError([Problem(str(source), 1, "id", "there is no such entry")])
    item = register.load_one(source)
    path = root / lock.NAME
    live, retired = lock.parse(path.read_text(encoding="utf-8"))
    mine = lock.digests([item]).keys()
    path.write_text(lock.dump(live - mine, retired | (live & mine)), encoding="utf-8")
    documents = [root / one.document for one in item.evidence if one.document]
    if private is not None:
        for file in (source, *documents):
            moved = private / file.relative_to(root)
            moved.parent.mkdir(parents=True, exist_ok=True)
            moved.write_bytes(file.read_bytes())
    for file in (source, *documents):
        file.unlink(missing_ok=True)
