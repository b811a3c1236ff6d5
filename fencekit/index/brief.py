"""The owner's private report on one entry: Markdown, for one pair of eyes.

The mechanism, the chain with file and line, the command that shows it, and a test that fails today.
It is written from the entry and its evidence and is never part of the site.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from fencekit.index import evidence as evidence_
from fencekit.index.entry import Entry
from fencekit.index.problem import RegisterError
from fencekit.report import probe_view, scan_view
from fencekit.report.escape import markdown_code as code
from fencekit.report.escape import terminal
from fencekit.report.mechanisms import mechanism

Json = dict[str, Any]

_CHAINS = 8


def write(root: Path, entry: Entry) -> str:
    """Return the report. Raises RegisterError where its evidence is missing or changed."""
    documents, _, problems = evidence_.read(root, entry)
    if problems:
        raise RegisterError(problems)
    lines = [
        f"# {_prose(entry.implementation)}: an effect that may happen twice",
        "",
        (
            "This report is for you. The finding is counted in the register and not named; after a"
            " public fix the row carries your name, the credit you choose, and the hours it took."
        ),
        "",
        f"- Version looked at: {_prose(entry.versions)}"
        + (f", commit {code(entry.commit)}" if entry.commit else ""),
        f"- At stake: {_prose(entry.at_stake)}",
        "",
        "## The mechanism",
        "",
    ]
    lines += [_prose(entry.verdict), ""] if entry.verdict else []
    for kind in entry.mechanisms:
        one = mechanism(kind)
        lines += [f"**{one.title}.** {one.explains} {one.look_for}", ""]
    for at, item in enumerate(entry.evidence):
        lines += _evidence(root, item, documents.get(at))
    return "\n".join([*lines, *_end()])


def _prose(text: str) -> str:
    """Return text on one line with nothing that Markdown or HTML would read."""
    plain = terminal(text)
    return "".join(f"\\{char}" if char in "\\`*_[]<>|#!&" else char for char in plain)


def _fenced(text: str, language: str) -> list[str]:
    fence = "```"
    while fence in text:
        fence += "`"
    return [fence + language, terminal(text, limit=60_000, lines=True).rstrip(), fence, ""]


def _evidence(root: Path, item: Any, loaded: Any) -> list[str]:
    lines = [f"## {item.tier.capitalize()}, {item.date.isoformat()}", ""]
    lines += [_prose(item.note), ""] if item.note else []
    lines += [f"Code: <{item.link}>", ""] if item.link else []
    if item.command:
        lines += ["See it for yourself:", "", *_fenced(item.command, "sh")]
    documents = loaded if isinstance(loaded, list) else [loaded]
    for document in documents:
        schema = document.get("schema") if isinstance(document, dict) else None
        if schema == "fencekit.probe/1":
            lines += _probe(document)
        elif schema == "fencekit.scan/1":
            lines += _scan(document)
    if item.test and (path := root / item.test).is_file() and not path.is_symlink():
        lines += ["A test that fails today and passes when the effect runs once:", ""]
        lines += _fenced(path.read_text(encoding="utf-8"), "python")
    return lines


def _probe(document: Json) -> list[str]:
    head = probe_view.headline(document)
    lines = [f"**{_prose(head.words)}**: {_prose(head.reason)}", ""]
    for way in document["ways"]:
        lines.append(f"- {way['way']}: {_prose(way['verdict_words'])}; {_prose(way['reason'])}")
    return [*lines, ""]


def _scan(document: Json) -> list[str]:
    lines: list[str] = []
    for tool in scan_view.view(document).rows[:_CHAINS]:
        lines += [f"### {code(tool['name'])}", ""]
        for write in tool["writes"][:2]:
            lines += [
                f"{at}. {code(hop['symbol'])} at {code(str(hop['file']) + ':' + str(hop['line']))}"
                for at, hop in enumerate(scan_view.hops(write), 1)
            ]
            lines.append("")
        lines += [
            f"- {what}: {code(words)} at {code(f'{file}:{line}')}"
            for what, file, line, words in scan_view.facts(tool)
        ]
        lines.append("")
    return lines


def _end() -> list[str]:
    return _END.splitlines()


_END = """\
## What would settle it

- One key per action, taken from the caller's arguments, that reaches the write unchanged.
- Or a record of the action, made before the request leaves, that only one of two calls wins.
- An error after the request has left means unknown: keep the evidence, and do not try again.

If this is wrong, answer with the line that stops the chain; the correction is kept with the same
weight. If you do not want to be listed at all, say so.
"""
