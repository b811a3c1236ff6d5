"""The last guard: nothing that identifies a private entry stands anywhere in the finished site.

The builder never prints a private entry, so a hit means that a public file mentions one (a note, a
credit, an evidence document). The bytes that would be published are searched, whatever made them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import PurePath
from typing import Any
from urllib.parse import urlsplit

from fencekit.index.entry import Entry
from fencekit.index.problem import Problem
from fencekit.index.register import Item, Register

_SHORTEST = 4  # characters of a name that is searched for
_SHORTEST_PROSE = 16  # characters of a sentence or command that is searched for
_NAMES = ("id", "implementation", "vendor", "source", "commit", "fix", "credit")
_PROSE = ("at_stake", "verdict", "reason", "disclosure", "notes", "versions")


def find(register: Register, site: dict[str, bytes]) -> list[Problem]:
    """Return a problem for every published file that holds a word of a private entry."""
    words = {
        word.casefold(): item.entry for item in register.private for word in private_words(item)
    }
    own = {word.casefold() for item in register.items for word in _own_words(item)}
    wanted = {word: entry for word, entry in words.items() if word not in own}
    if not wanted:
        return []
    # The alternation finds overlapping words one at a time; one hit is enough to stop a build.
    pattern = re.compile(
        "|".join(
            rf"(?<![a-z0-9]){re.escape(word)}(?![a-z0-9])"
            for word in sorted(wanted, key=len, reverse=True)
        )
    )
    found = []
    for path, content in site.items():
        text = f"{path}\n{_decoded(content)}"
        if hit := pattern.search(text):
            entry = wanted[hit[0]]
            words_ = (
                f"the page would hold {hit[0]!r}, which belongs to the private entry {entry.id!r}:"
                " take it out of the public entry or evidence that mentions it"
            )
            found.append(Problem(path, 1, "leak", words_))
    return found


def _decoded(content: bytes) -> str:
    """Return text as a reader or a search would see it: entities and JSON escapes resolved."""
    text = content.decode("utf-8", "replace")
    text = re.sub(r"\\u([0-9a-fA-F]{4})", lambda m: chr(int(m[1], 16)), text)
    for entity, char in (("&lt;", "<"), ("&gt;", ">"), ("&#34;", '"'), ("&#39;", "'")):
        text = text.replace(entity, char)
    return text.replace("&amp;", "&").casefold()


def private_words(item: Item) -> set[str]:
    """Return what identifies a private entry: names, addresses, ids, hashes, tools, its prose."""
    entry = item.entry
    names = {str(getattr(entry, key)) for key in _NAMES} | {PurePath(entry.file).stem}
    prose = {str(getattr(entry, key)) for key in _PROSE}
    for evidence in entry.evidence:
        names |= {evidence.sha256, evidence.link, PurePath(evidence.document).name}
        prose |= {evidence.command, evidence.note}
    for line in entry.history:
        prose.add(line.note)
    for address in (entry.source, entry.fix, *(evidence.link for evidence in entry.evidence)):
        names |= _parts(address)
    for document in item.documents.values():
        names |= set(_document_words(document))
    return {word for word in names if len(word) >= _SHORTEST} | {
        word for word in prose if len(word) >= _SHORTEST_PROSE
    }


def _parts(address: str) -> set[str]:
    """Return owner, repository and `owner/repository` of an address."""
    steps = [step for step in urlsplit(address).path.split("/") if step][:2]
    return {*steps, "/".join(steps)} if len(steps) == 2 else set()


def _document_words(document: Any) -> Iterator[str]:
    """Yield the names that an evidence document gives away: the server and its tools."""
    for one in document if isinstance(document, list) else [document]:
        if not isinstance(one, dict):
            continue
        target, tool = one.get("target"), one.get("tool")
        if isinstance(target, dict) and target.get("name"):
            yield str(target["name"])
        if str(one.get("schema", "")).startswith("fencekit.probe") and isinstance(tool, dict):
            yield str(tool.get("name") or "")
        for declared in one.get("tools") or []:
            if isinstance(declared, dict) and declared.get("candidate"):
                yield str(declared.get("name") or "")
                yield str(declared.get("fingerprint") or "")


def _own_words(item: Item) -> set[str]:
    """Return the words that a public row bears by right, so that they give nothing away."""
    entry: Entry = item.entry
    words = {str(getattr(entry, key)) for key in (*_NAMES, "versions")}
    words |= _parts(entry.source) | _parts(entry.fix)
    for document in item.documents.values():
        words |= set(_document_words(document))
    return words
