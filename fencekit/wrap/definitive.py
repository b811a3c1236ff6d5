"""Errors that may prove that nothing ran: what there is to go by, for `--plan` to propose.

Pure. A pattern is proposed where calls that ended with it were cleared by an operator (or by a
read), where it keeps coming back, or where the tool's own declaration names it; never where a call
that ended with it had happened after all, and never for words that say that nobody knows (a 5xx,
a rate limit). It is a proposal: whether nothing ran then, only one who knows the tool can say.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from fencekit.core.draft import Event
from fencekit.report.escape import MASKED, mask_text
from fencekit.wrap.adopt import ADOPTED
from fencekit.wrap.others import is_of

MOST = 5  # proposals for a tool
RECURS = 3  # calls that ended alike before an error that nobody judged is worth a look
TICKETS = 20_000  # errors that are remembered of an audit
PATTERNS = 200  # that are looked for in the errors of one tool, the most frequent
_LONGEST, _SHORTEST = 80, 12  # characters of a pattern made of plain words

How = Literal["cleared", "happened", "open", "copied"]
_RAN = ("settled", "committed", "late commit", "late result", "refused result")

# They may follow the effect, or are the proxy's own words for "no answer".
_AMBIGUOUS = re.compile(
    r"time.?out|timed out|no answer|answered|went away|ended|closed|reset|refused|hung up|aborted|"
    r"cancel|interrupt|unavailable|overload|too many|rate.?limit|throttl|try again|retry|later|"
    r"temporar|internal|unexpected|unknown|gateway|connection|network|socket|lost|busy|conflict|"
    r"\b5\d\d\b|\b4(?:08|09|25|29)\b",
    re.IGNORECASE,
)
# Names that programs give to errors: card_declined, ERR_NO_FUNDS, InsufficientFundsError.
_CODE = re.compile(
    r"(?<![\w-])(?:[a-z]+(?:_[a-z]+)+|[A-Z]+(?:_[A-Z]+)+|(?:[A-Z][a-z]+){2,5})(?![\w-])"
)
# At least three plain words; whatever holds a digit, a path or a quotation ends a run.
_RUN = re.compile(r"(?<!\S)[A-Za-z][a-z]{0,19}(?: [A-Za-z][a-z]{0,19}){2,}(?=[\s.,:;!]|$)")
_ABOUT_ERRORS = re.compile(
    r"error|fail|declin|reject|refus|invalid|denied|insufficient|not found|raise|throw",
    re.IGNORECASE,
)


@dataclass(slots=True)
class Error:
    """One attempt that ended with an error: which, and what became of it."""

    tool: str
    reason: str
    how: How = "open"


@dataclass(frozen=True, slots=True)
class Proposal:
    """A pattern, and how many calls that ended with it were cleared, or have not been judged.

    `named` says where the tool's declaration has it.
    """

    pattern: str
    cleared: int = 0
    left_open: int = 0
    named: str = ""

    def words(self) -> str:
        """Say what there is to go by."""
        said = []
        if self.cleared:
            said.append(f"{self.cleared} cleared as not having happened")
        if self.left_open:
            said.append(f"{self.left_open} not judged yet")
        if self.named:
            said.append(f"named in {self.named}")
        return ", ".join(said)


@dataclass(slots=True)
class Errors:
    """The errors of one program's calls, read from an audit."""

    program: str
    found: dict[str, Error] = field(default_factory=dict)

    def take(self, event: Event) -> None:
        """Take one line of an audit, in its order."""
        kind, ticket = event.get("event"), str(event.get("ticket"))
        if kind == "unknown" and event.get("cause") == "aborted":
            agent, intent = str(event.get("agent")), str(event.get("intent"))
            tool = intent.partition("/")[2].rpartition("/")[0]
            if tool and is_of(agent, intent, self.program) and len(self.found) < TICKETS:
                reason, adopted, _ = str(event.get("reason")).partition(ADOPTED)
                # The same call is counted where it was made.
                how: How = "copied" if adopted else "open"
                self.found.setdefault(ticket, Error(tool, reason, how))
        elif (error := self.found.get(ticket)) is not None:
            if kind in _RAN or event.get("kind") == "result" or event.get("reported"):
                error.how = "happened"
            elif kind == "cleared" and error.how != "happened":
                error.how = "cleared"

    def of(self, tool: str) -> list[Error]:
        """Return the errors of one tool."""
        return [error for error in self.found.values() if error.tool == tool]


def proposals(
    tool: Mapping[str, Any], errors: Iterable[Error], known: Iterable[str] = ()
) -> list[Proposal]:
    """Return what to propose for a tool, the best evidence first; not what is `known` already."""
    errors = list(errors)
    named = dict(_named(tool))
    patterns = dict.fromkeys([*_recorded(errors), *named])
    made = []
    for pattern in patterns:
        alike = [error for error in errors if pattern in error.reason]
        if _contradicted(pattern, alike) or any(one in pattern for one in known):
            continue
        count = Counter(error.how for error in alike)
        one = Proposal(pattern, count["cleared"], count["open"], named.get(pattern, ""))
        if one.cleared or one.named or one.left_open >= RECURS:
            made.append(one)
    made.sort(key=lambda p: (-p.cleared, not p.named, -p.left_open, p.pattern))
    return made[:MOST]


def _contradicted(pattern: str, alike: list[Error]) -> bool:
    """Whether a pattern, or an error that it stands in, says that the effect may have happened."""
    return _AMBIGUOUS.search(pattern) is not None or any(
        error.how == "happened" or _AMBIGUOUS.search(error.reason) for error in alike
    )


def _recorded(errors: list[Error]) -> list[str]:
    """Return what recorded errors have in common: names of errors, else words that come back.

    Words that came once may be somebody's name; a name that programs give is not.
    """
    runs: Counter[str] = Counter()
    codes: Counter[str] = Counter()
    for error in errors:
        reason = mask_text(error.reason)
        named = {found[0] for found in _CODE.finditer(reason) if MASKED not in found[0]}
        codes.update(named)
        if not named:
            runs.update({found[0][:_LONGEST].rstrip() for found in _RUN.finditer(reason)})
    common = Counter({run: n for run, n in runs.items() if n > 1 and len(run) >= _SHORTEST})
    return [pattern for pattern, _ in (codes + common).most_common(PATTERNS)]


def _named(tool: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield (pattern, where) for errors that the tool's declaration names."""
    schema = tool.get("inputSchema")
    properties = schema.get("properties") if isinstance(schema, Mapping) else None
    own = {str(tool.get("name")), *(properties if isinstance(properties, Mapping) else ())}
    description = tool.get("description")
    text = description[:20_000] if isinstance(description, str) else ""
    for sentence in re.split(r"[.;\n](?:\s|$)", text):
        if _ABOUT_ERRORS.search(sentence):
            yield from (
                (found[0], "the tool's description")
                for found in _CODE.finditer(sentence)
                if found[0] not in own
            )
    yield from ((word, "its outputSchema") for word in _enumerated(tool.get("outputSchema"), ""))


def _enumerated(schema: object, name: str, depth: int = 0) -> Iterator[str]:
    """Yield the values that a schema allows under names that speak of errors."""
    if not isinstance(schema, Mapping) or depth > 8:
        return
    values = schema.get("enum")
    if re.search(r"err|decline|reject|fail|problem", name, re.IGNORECASE):
        listed = values if isinstance(values, list) else [schema.get("const")]
        yield from (v for v in listed[:50] if isinstance(v, str) and _CODE.fullmatch(v))
    inner = schema.get("properties")
    for key, sub in list(inner.items())[:200] if isinstance(inner, Mapping) else ():
        yield from _enumerated(sub, str(key), depth + 1)
    for key in ("items", "anyOf", "oneOf", "allOf"):
        sub = schema.get(key)
        for one in sub[:50] if isinstance(sub, list) else [sub]:
            yield from _enumerated(one, name, depth + 1)
