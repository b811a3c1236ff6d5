"""The first counter: how many different answers came back, and in what they differ. Pure.

Answers are compared as JSON values, without `_meta`. A path is *volatile* when its name and its
value both look like a time or a duration, or when it names one delivery (`request_id`,
`trace_id`…). It is *descriptive* when its values are words, flags or presence ("created" beside
"already exists"): a server that recognises a repeat may say so, so such a difference proves
nothing. Everything else is *identifying*: an id, a number, a text with digits in it that differ.
Lists of scalars that differ only in order are equal.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

MAX_SAMPLES = 12
MISSING = "(absent)"


class Nature(StrEnum):
    """What a difference at one path can show."""

    IDENTIFYING = "identifying"
    DESCRIPTIVE = "descriptive"
    VOLATILE = "volatile"


@dataclass(frozen=True)
class Difference:
    """One path at which the answers differ: how many distinct values, and some of them."""

    path: str
    distinct: int
    nature: Nature
    samples: tuple[str, ...]
    strong: bool = False  # the values are ids: by name, by form, or because the user said so


@dataclass(frozen=True)
class Comparison:
    """What comparing answers showed.

    `groups[i]` is the number of the distinct answer that the i-th one is (volatile paths aside).
    `executions` is how many executions the identifying paths show at least. `agrees_on` is a path
    with an id that every answer shares and that the caller did not send.
    """

    groups: tuple[int, ...] = ()
    distinct: int = 0
    executions: int = 0
    differences: tuple[Difference, ...] = ()
    agrees_on: str = ""

    @property
    def identifying(self) -> tuple[Difference, ...]:
        """The paths whose difference can show a second execution."""
        return tuple(d for d in self.differences if d.nature is Nature.IDENTIFYING)


@dataclass(frozen=True)
class Lens:
    """How to look: paths to ignore, paths to take for ids, values that prove nothing.

    `echoed` are values the caller itself sent; `minted` are ids that the sink gave out.
    """

    ignore: tuple[str, ...] = ()
    ids: tuple[str, ...] = ()
    echoed: frozenset[str] = frozenset()
    minted: frozenset[str] = frozenset()


_DELIVERY = frozenset({"request_id", "trace_id", "span_id", "correlation_id"})
_TIME_NAMES = re.compile(
    r"(?:^|_)(?:time|timestamp|ts|date|datetime|now|at|on|since|until|expires?|expiry|created|updated"
    r"|modified|started|ended|finished|last_seen|mtime|ctime|atime|birthtime|accessed|clock|today"
    r"|duration|elapsed|latency|took|age|uptime|ms|millis|milliseconds|seconds|secs|ns|usec"
    r"|timezone|day_of_week|utc_offset)(?:$|_)"
)
_ISO = re.compile(
    r"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?\s*(?:Z|UTC|[+-]\d\d:?\d\d)?)?"
    r"|\d\d:\d\d(?::\d\d(?:\.\d+)?)?"
)
_DAY_NAMES = re.compile(
    r"\b(?:mon|tue|wed|thu|fri|sat|sun|jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\b",
    re.I,
)
_DURATION = re.compile(
    r"\b\d+(?:\.\d+)?\s*(?:ns|us|µs|ms|s|sec|secs|seconds?|milliseconds?|min|minutes?)\b"
)
_ID_NAME = re.compile(
    r"(?:^|_)(?:id|ids|uuid|guid|key|ref|reference|number|no|num|sha|hash|digest|url|uri|link|handle"
    r"|slug|receipt|confirmation|transaction|txn|serial|etag)$"
)
_ID_VALUE = re.compile(
    r"[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}"
    r"|(?=[0-9a-f]*\d)[0-9a-f]{8,}|[A-Za-z]{1,12}[_-](?=\w*\d)\w{4,}|[0-9A-HJKMNP-TV-Z]{26}"
)
# Numbers that count the asking or name the worker, not the effect.
_ASKING_NAMES = re.compile(
    r"(?:^|_)(?:attempts?|tries|retry|retries|replays?|replayed|duplicates?|cached?|hits|remaining|quota"
    r"|pid|hostname|worker|thread)(?:_count|_id|_no)?$"
)
_WORD_WITH_DIGIT = re.compile(r"[\w-]*\d[\w-]*(?:\.\d+)*")


def snake(name: str) -> str:
    """Return a member's name in snake_case, so that `createdAt` and `created_at` are one."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).replace("-", "_").lower()


def _leaf(path: str) -> str:
    named = re.findall(r"\.([^.\[\]]+)", path)
    return snake(named[-1]) if named else ""


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _looks_like_time(value: object) -> bool:
    if _is_number(value):
        return True  # the name has already said that it is a time
    if not isinstance(value, str):
        return False
    rest = _DAY_NAMES.sub("", _DURATION.sub("", _ISO.sub("", value)))
    return bool(re.fullmatch(r"[\s\d.,:+TZ()/-]*(?:AM|PM|am|pm|UTC|GMT|ago)?[\s)]*", rest))


def is_volatile(path: str, values: Sequence[object]) -> bool:
    """Whether a difference at this path shows only when, or by which delivery, it was answered."""
    name = _leaf(path)
    if name in _DELIVERY:
        return True
    named = bool(_TIME_NAMES.search(name)) and not _ID_NAME.search(name)
    return named and all(_looks_like_time(v) for v in values if v is not _ABSENT)


class _Absent:
    def __repr__(self) -> str:
        return MISSING


_ABSENT = _Absent()


def normal(result: object) -> Any:
    """Return what an answer says as one JSON value.

    Structured content where there is some; else the text of the only content block, parsed where
    it is JSON; else the list of content blocks. Text blocks that repeat the structured content
    are left out.
    """
    if not isinstance(result, Mapping):
        return result
    structured = result.get("structuredContent")
    content = result.get("content")
    blocks = [_block(block) for block in content] if isinstance(content, list) else []
    if structured is not None:
        if isinstance(structured, Mapping) and set(structured) == {"result"}:
            structured = _parsed(structured["result"])  # how SDKs wrap a plain value
        items = list(structured.values()) if isinstance(structured, Mapping) else []
        items = structured if isinstance(structured, list) else items
        said = {text_of(structured), text_of(str(structured)), *map(text_of, items)}
        rest = [block for block in blocks if text_of(block) not in said]
        if not rest:
            return structured
        if isinstance(structured, Mapping) and "content" not in structured:
            return {**structured, "content": rest}
        return {"structured": structured, "content": rest}
    if len(blocks) == 1:
        return blocks[0]
    return {**{key: value for key, value in result.items() if key != "_meta"}, "content": blocks}


def _block(block: object) -> Any:
    if not isinstance(block, Mapping):
        return block
    if block.get("type") == "text" and isinstance(block.get("text"), str):
        return _parsed(block["text"])
    return {key: value for key, value in block.items() if key != "_meta"}


def _parsed(text: object) -> Any:
    """Return the object or list that a text holds as JSON, else the text itself."""
    if not isinstance(text, str):
        return text
    try:
        parsed = json.loads(text)
    except (ValueError, RecursionError):
        return text
    return parsed if isinstance(parsed, dict | list) else text


def text_of(value: object) -> str:
    """Return the one text that equal JSON values share."""
    return json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"))


def leaves(value: object, path: str = "$") -> Iterator[tuple[str, object]]:
    """Yield (path, scalar) for every leaf; a list of scalars is one sorted leaf."""
    if isinstance(value, Mapping):
        if not value:
            yield path, "{}"
        for key in value:
            yield from leaves(value[key], f"{path}.{key}")
    elif isinstance(value, list):
        if all(not isinstance(item, Mapping | list) for item in value):
            yield path, tuple(sorted((item for item in value), key=text_of)) if value else "[]"
            return
        for index, item in enumerate(value):
            yield from leaves(item, f"{path}[{index}]")
    else:
        yield path, value


PLAIN_LENS = Lens()


def compare(results: Sequence[object], lens: Lens = PLAIN_LENS) -> Comparison:
    """Compare answers (see the module's docstring for what each difference means)."""
    rows = [dict(leaves(normal(result))) for result in results]
    paths = list(dict.fromkeys(path for row in rows for path in row))
    differences = []
    for path in paths:
        values = [row.get(path, _ABSENT) for row in rows]
        kinds = {_key(value) for value in values}
        if len(kinds) > 1 and not _matches(path, lens.ignore):
            differences.append(_difference(path, values, lens))
    steady = [d.path for d in differences if d.nature is not Nature.VOLATILE]
    groups = _number([tuple(_key(row.get(p, _ABSENT)) for p in steady) for row in rows])
    agrees = _agreed(rows, paths, {d.path for d in differences}, lens)
    return Comparison(
        groups=groups,
        distinct=len(set(groups)),
        executions=_executions(rows, differences, agrees, lens),
        differences=tuple(differences),
        agrees_on=agrees,
    )


def _key(value: object) -> str:
    return MISSING if value is _ABSENT else text_of(value)


def _number(keys: Sequence[object]) -> tuple[int, ...]:
    seen: dict[object, int] = {}
    return tuple(seen.setdefault(key, len(seen)) for key in keys)


def _matches(path: str, patterns: Sequence[str]) -> bool:
    plain = re.sub(r"\[\d+\]", "[*]", path)
    return any(p in (path, plain) or plain.startswith((p + ".", p + "[")) for p in patterns)


def _difference(path: str, values: Sequence[object], lens: Lens) -> Difference:
    counted = Counter(_key(value) for value in values)
    chosen = _matches(path, lens.ids)
    named = chosen or bool(_ID_NAME.search(_leaf(path)))
    strong = named or _several({_ids(value) - lens.minted for value in values})
    if chosen:
        nature = Nature.IDENTIFYING
    elif is_volatile(path, values):
        nature = Nature.VOLATILE
    elif _ASKING_NAMES.search(_leaf(path)):
        nature = Nature.DESCRIPTIVE
    else:
        fresh = {_marks(value, named) - lens.minted - lens.echoed for value in values}
        nature = Nature.IDENTIFYING if _several(fresh) else Nature.DESCRIPTIVE
    samples = tuple(text[:80] for text, _ in counted.most_common(MAX_SAMPLES))
    return Difference(path, len(counted), nature, samples, strong)


def _several(marks: set[frozenset[str]]) -> bool:
    return len(marks - {frozenset()}) > 1


def _marks(value: object, whole: bool) -> frozenset[str]:
    """What in a value can tell two effects apart: numbers, ids, words with digits (no times)."""
    if value is _ABSENT or value is None or isinstance(value, bool):
        return frozenset()
    if isinstance(value, tuple):
        return frozenset().union(*(_marks(item, whole) for item in value))
    if whole or _is_number(value):
        return frozenset({str(value)})
    plain = _DURATION.sub(" ", _ISO.sub(" ", str(value)))
    return frozenset(_WORD_WITH_DIGIT.findall(plain))


def _ids(value: object) -> frozenset[str]:
    """What in a value has the form of an id: a UUID, a long hex number, `ch_1a2b`."""
    words = () if _is_number(value) else _marks(value, whole=False)
    return frozenset(word for word in words if _ID_VALUE.fullmatch(word))


def _agreed(
    rows: Sequence[Mapping[str, object]], paths: Sequence[str], differing: set[str], lens: Lens
) -> str:
    """Return a path with an id that all answers share and that nobody but the server made."""
    for path in paths:
        values = [row.get(path, _ABSENT) for row in rows]
        common = frozenset.intersection(*map(_ids, values)) - lens.echoed
        whole = path not in differing and bool(_ID_NAME.search(_leaf(path)))
        named = whole and isinstance(values[0], str | int) and str(values[0]) not in lens.echoed
        if common or named:
            return path
    return ""


def _executions(
    rows: Sequence[Mapping[str, object]], differences: Sequence[Difference], agrees: str, lens: Lens
) -> int:
    """Return how many executions the answers show at least: 1 where they show no second one.

    Weak marks (a number, a text) count only where no id says that it was one and the same.
    """
    identifying = [d for d in differences if d.nature is Nature.IDENTIFYING]
    strong = [d for d in identifying if d.strong]
    counted = strong or ([] if agrees else identifying)
    seen = set()
    for row in rows:
        marks = [
            _marks(row.get(d.path, _ABSENT), bool(_ID_NAME.search(_leaf(d.path)))) - lens.minted
            for d in counted
        ]
        if any(marks):
            seen.add(tuple(marks))
    return max(len(seen), 1) if rows else 0


def shared_ids(groups: Sequence[Sequence[object]]) -> bool:
    """Whether one process's answers hold every id of another one's, and more.

    Such answers (a list that grew) show a state that the processes share.
    """
    found = [
        frozenset().union(*(_ids(value) for result in group for _, value in leaves(normal(result))))
        for group in groups
    ]
    return any(a and a < b for a in found for b in found)
