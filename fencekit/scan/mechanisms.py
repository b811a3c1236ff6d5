"""The mechanisms a row can point at, each with a place and one sentence of fact.

Pure: works on what the walk found and what the tool declares.
"""

from __future__ import annotations

from dataclasses import dataclass

from fencekit.scan import words
from fencekit.scan.keys import KeyFact
from fencekit.scan.toolspec import Parameter, Tool
from fencekit.scan.walked import Hit, Walked


@dataclass(slots=True, frozen=True)
class Mechanism:
    """One way in which a repeat could fire again, where it stands, and the fact."""

    kind: str
    file: str
    line: int
    note: str


@dataclass(slots=True, frozen=True)
class Guard:
    """One fact about a key or an own dedup at a place."""

    kind: str
    file: str
    line: int
    name: str


def guards_of(tool: Tool, hits: list[Hit], walked: Walked) -> list[Guard]:
    """Return every fact about a key, an own dedup or a declaring write, one per place."""
    out: list[Guard] = []
    facts = [k for h in hits for k in h.keys]
    inputs = set().union(*(h.inputs for h in hits)) if hits else set()
    for fact in facts:
        out.append(Guard(fact.kind, fact.file, fact.line, fact.name))
    for parameter in tool.parameters:
        if not words.key_like(parameter.name) or not hits:
            continue
        if says_unique(parameter):
            kind = "description-says-unique"
            out.append(Guard(kind, parameter.file, parameter.line, parameter.name))
        if reaches(parameter, inputs) and adds(hits):
            out.append(Guard("caller-key", parameter.file, parameter.line, parameter.name))
    first = min((h.order for h in hits), default=0)
    for file, line, name, _ in asked_before(walked, first):
        if hits:
            out.append(Guard("dedup-store", file, line, name))
    for hit in hits:
        if hit.effect.declarative:
            out.append(Guard("declarative", hit.file, hit.line, hit.effect.what))
    return list(dict.fromkeys(out))


def asked_before(walked: Walked, first: int) -> list[tuple[str, int, str, int]]:
    """Return the look-ups of what was seen that come before the first write.

    One in a store of anything (a cache) counts only where the same one is filled after the write.
    """
    filled = {n for _, _, n, o in walked.stored if o > first}
    found = [*walked.stores, *(s for s in walked.lookups if s[2] in filled)]
    return [s for s in found if s[3] < first]


def adds(hits: list[Hit]) -> bool:
    """Tell whether a repeat of any write adds something."""
    return any(not h.effect.declarative for h in hits)


def says_unique(parameter: Parameter) -> bool:
    """Tell whether a parameter's description asks for a new value each time, in one sentence."""
    return bool(words.UNIQUE_HINT.search(parameter.description))


def reaches(parameter: Parameter, inputs: set[str]) -> bool:
    """Tell whether a parameter, or the whole input it is part of, reaches a write."""
    flat = {"".join(words.split(i)) for i in inputs}
    if "".join(words.split(parameter.name)) in flat:
        return True
    whole = {
        "args",
        "params",
        "arguments",
        "input",
        "request",
        "data",
        "payload",
        "body",
        "parameters",
        "options",
    }
    return bool(flat & whole) or any(i.startswith("«") for i in inputs)


def mechanisms_of(tool: Tool, hits: list[Hit], walked: Walked) -> list[Mechanism]:
    """Return the mechanisms the facts of one tool point at."""
    out: list[Mechanism] = []
    facts = list(dict.fromkeys(k for h in hits for k in h.keys))
    out += _fresh(facts)
    out += _descriptions(tool, hits)
    out += _unsent(tool, hits)
    out += _retries(hits)
    out += _stores(hits, walked)
    out += _hints(tool, hits)
    return list(dict.fromkeys(out))


def _fresh(facts: list[KeyFact]) -> list[Mechanism]:
    out: list[Mechanism] = []
    for fact in facts:
        if fact.kind != "fresh-key":
            continue
        if fact.clock:
            note = f"`{fact.name}` takes its value from the clock, so every call sends another one."
            out.append(Mechanism("clock-seeded-key", fact.file, fact.line, note))
        else:
            note = f"`{fact.name}` is minted anew on every call, so no two calls share it."
            out.append(Mechanism("fresh-key", fact.file, fact.line, note))
    return out


def _descriptions(tool: Tool, hits: list[Hit]) -> list[Mechanism]:
    out: list[Mechanism] = []
    if not hits:
        return out
    for parameter in tool.parameters:
        if words.key_like(parameter.name) and says_unique(parameter):
            note = f"The description of `{parameter.name}` asks for a value that is new each time."
            out.append(Mechanism("description-says-unique", parameter.file, parameter.line, note))
    return out


def _unsent(tool: Tool, hits: list[Hit]) -> list[Mechanism]:
    out: list[Mechanism] = []
    if not hits:
        return out
    inputs = set().union(*(h.inputs for h in hits))
    for parameter in tool.parameters:
        strong = words.key_like(parameter.name) and set(words.split(parameter.name)) & {
            "idempotency", "idempotent", "dedupe", "dedup", "token", "client", "key", "nonce"
        }  # fmt: skip
        if strong and not reaches(parameter, inputs):
            note = f"`{parameter.name}` is accepted but reaches no write of this tool."
            out.append(Mechanism("key-never-sent", parameter.file, parameter.line, note))
    return out


def _retries(hits: list[Hit]) -> list[Mechanism]:
    out: list[Mechanism] = []
    for hit in hits:
        if hit.effect.declarative:
            continue
        for retry in hit.retries:
            if retry.by == "sent again" or retry.wraps is not True or not retry.blind:
                continue
            note = f"The retry sends {hit.effect.what} again without looking at what was sent."
            out.append(Mechanism("method-blind-retry", retry.file, retry.line, note))
    return out


def _stores(hits: list[Hit], walked: Walked) -> list[Mechanism]:
    out: list[Mechanism] = []
    first = min((h.order for h in hits), default=0)
    for file, line, name, _ in asked_before(walked, first):
        if any(n == name and o > first for _, _, n, o in walked.stored):
            note = f"`{name}` is asked before the write and filled after it: two calls both pass."
            out.append(Mechanism("check-then-act", file, line, note))
    for file, line, name in walked.releases:
        note = f"`{name}` is given up when an error is caught, though the write may have happened."
        if hits:
            out.append(Mechanism("guard-released-on-error", file, line, note))
    return out


def _hints(tool: Tool, hits: list[Hit]) -> list[Mechanism]:
    out: list[Mechanism] = []
    adding = [h for h in hits if not h.effect.declarative and h.effect.certain]
    if tool.annotations.get("readOnlyHint") is True and hits:
        note = f"Declared read-only; {hits[0].effect.what} is reachable."
        out.append(Mechanism("hint-contradiction", tool.file, tool.line, note))
    elif tool.annotations.get("idempotentHint") is True and adding:
        note = f"Declared idempotent; {adding[0].effect.what} is reachable and a repeat adds to it."
        out.append(Mechanism("hint-contradiction", tool.file, tool.line, note))
    return out
