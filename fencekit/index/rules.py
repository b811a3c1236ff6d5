"""What may be published, and the numbers that are computed from it. Pure: no files, no clock.

The rules, in the order in which they are checked:

1. Open and undetermined entries, and those that must not be named, live in the private directory.
2. Verified safe needs evidence whose self-check passed, that held in at least one way and was
   proven otherwise in none; found and fixed needs a public fix and two times, in order.
3. A history is dated in order and ends with the present state.
4. Counts of what is not named are one total and spans of months, each at least `K`; there is no
   cell below that, so none can be had by subtraction.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, timezone

from fencekit.index.entry import Entry
from fencekit.index.problem import Problem

K = 5
PRIVATE_STATES = frozenset({"open", "undetermined"})
ROW_STATES = ("verified-safe", "fixed", "unassessable")
NEEDS_RUN = frozenset({"battery run", "probe run"})


@dataclass(frozen=True)
class Run:
    """What a probe or battery document says, read beforehand.

    `self_check` is None where none was made; `held` of `ways` counted one effect; `proven` says
    that a way proved more.
    """

    self_check: bool | None
    held: int
    ways: int
    proven: bool
    noun: str = "ways"


@dataclass(frozen=True)
class FixTime:
    """The time from report to public fix: exact seconds, or None where only dates are known."""

    words: str
    seconds: float | None
    days: int


@dataclass(frozen=True)
class Tally:
    """What is counted and not named. `total` is None where there are fewer than `K`."""

    total: int | None
    spans: tuple[tuple[str, str, int], ...] = ()

    @property
    def words(self) -> str:
        """The total as it is printed."""
        return f"fewer than {K}" if self.total is None else str(self.total)


def must_be_private(entry: Entry) -> bool:
    """Whether an entry may only be counted."""
    return (
        entry.state in PRIVATE_STATES
        or entry.listing == "not named"
        or (entry.state == "unassessable" and not entry.owner_agrees)
    )


def is_row(entry: Entry) -> bool:
    """Whether a public entry gets a row of its own."""
    return entry.state in ROW_STATES and not must_be_private(entry)


def check(entry: Entry, runs: Mapping[int, Run], *, private: bool) -> list[Problem]:
    """Return everything that stops this entry. `runs` are its evidence documents by number."""
    found: list[Problem] = []
    if must_be_private(entry) and not private:
        why = f"state is {entry.state!r}" if entry.listing == "named" else "it may not be named"
        if entry.state == "unassessable":
            why = "it is unassessable without its owner's agreement (owner_agrees = true)"
        key = "listing" if entry.listing == "not named" else "state"
        found.append(
            entry.problem(f"{why}: move this file to the private directory (--private)", key)
        )
    if private and not must_be_private(entry):
        found.append(entry.problem("may be named: it belongs in the public directory", "state"))
    if entry.ends and not private:
        found.append(entry.problem("belongs in private entries only", "ends"))
    if entry.dispute and private:
        found.append(entry.problem("only entries that may be named can be disputed", "dispute"))
    return [*found, *_state_needs(entry, runs), *_history(entry)]


def _state_needs(entry: Entry, runs: Mapping[int, Run]) -> list[Problem]:
    found = _runs_are_sound(entry, runs)
    if entry.state == "verified-safe":
        found += _verified(entry, runs)
    elif entry.state == "fixed":
        found += _fixed(entry)
    elif entry.state == "unassessable" and not entry.reason:
        found.append(entry.problem("unassessable needs a reason", "reason"))
    elif entry.state in PRIVATE_STATES and not entry.evidence:
        found.append(entry.problem(f"{entry.state} needs evidence", "evidence"))
    return found


def _runs_are_sound(entry: Entry, runs: Mapping[int, Run]) -> list[Problem]:
    return [
        entry.problem("the self-check of this run failed: it is no evidence", "evidence", at)
        for at, run in sorted(runs.items())
        if run.self_check is False
    ]


def _verified(entry: Entry, runs: Mapping[int, Run]) -> list[Problem]:
    sound = {at: run for at, run in runs.items() if run.self_check}
    if not sound:
        need = "verified safe needs a probe or battery run whose self-check passed"
        return [entry.problem(need, "evidence")]
    found = [
        entry.problem("this run proved a double-fire: the row cannot be safe", "evidence", at)
        for at, run in runs.items()
        if run.proven
    ]
    if not any(run.held for run in sound.values()):
        need = "in no way was one effect counted: identical answers alone show nothing"
        found.append(entry.problem(need, "evidence", min(sound)))
    if entry.recheck is None:
        need = "verified safe needs the day of its re-check"
        found.append(entry.problem(need, "recheck"))
    return found


def _fixed(entry: Entry) -> list[Problem]:
    found = []
    if not entry.fix:
        found.append(entry.problem("found and fixed needs a public fix, by commit", "fix"))
    for key in ("reported", "fixed"):
        if getattr(entry, key) is None:
            found.append(entry.problem("found and fixed needs this time", key))
    if entry.reported and entry.fixed and _latest(entry.fixed) < _earliest(entry.reported):
        found.append(entry.problem("is before the report", "fixed"))
    return found


def _history(entry: Entry) -> list[Problem]:
    if not entry.history:
        return [entry.problem("needs at least one line: date, state", "history")]
    found = [
        entry.problem("is dated before the line above it", "history", at, "date")
        for at in range(1, len(entry.history))
        if entry.history[at].date < entry.history[at - 1].date
    ]
    if entry.history[-1].state != entry.state:
        last = len(entry.history) - 1
        words = (
            f"the last line says {entry.history[last].state!r}, the entry {entry.state!r}: add a"
        )
        found.append(entry.problem(f"{words} line with today's date", "history", last, "state"))
    return found


# A date covers every zone: from UTC+14, where it begins first, to UTC-12, where it ends last.
def _earliest(moment: date) -> datetime:
    if isinstance(moment, datetime):
        return moment.astimezone(UTC)
    return datetime.combine(moment, time.min, timezone(timedelta(hours=14))).astimezone(UTC)


def _latest(moment: date) -> datetime:
    if isinstance(moment, datetime):
        return moment.astimezone(UTC)
    end = datetime.combine(moment, time.min, timezone(timedelta(hours=-12))) + timedelta(days=1)
    return end.astimezone(UTC)


def fix_time(reported: date, fixed: date) -> FixTime:
    """Return the time to fix: exact between two full timestamps, rough where one is only a date."""
    if isinstance(reported, datetime) and isinstance(fixed, datetime):
        seconds = (fixed.astimezone(UTC) - reported.astimezone(UTC)).total_seconds()
        return FixTime(_duration(seconds), seconds, int(seconds // 86400))
    days = max((_day(fixed) - _day(reported)).days, 0)
    words = "within about a day" if days == 0 else f"about {days} day{'s' if days > 1 else ''}"
    return FixTime(words, None, days)


def _day(moment: date) -> date:
    return moment.astimezone(UTC).date() if isinstance(moment, datetime) else moment


def _duration(seconds: float) -> str:
    if seconds < 3600:
        return f"{seconds / 60:.0f} min"
    if seconds < 48 * 3600:
        return f"{seconds / 3600:.1f} h"
    return f"{seconds / 86400:.1f} days"


def fastest(entries: Iterable[Entry]) -> tuple[Entry, FixTime] | None:
    """Return the fastest fix among those with two full timestamps, or None."""
    timed = [
        (entry, fix_time(entry.reported, entry.fixed))
        for entry in entries
        if entry.state == "fixed" and entry.reported and entry.fixed
    ]
    exact = [pair for pair in timed if pair[1].seconds is not None]
    return min(exact, key=lambda pair: (pair[1].seconds, pair[0].id), default=None)


def ended(entry: Entry, today: date, ended_ids: frozenset[str]) -> bool:
    """Whether a row's observation has ended: its re-check is past, or the keeper ended it.

    Both give the same row; nothing that is published tells them apart.
    """
    return entry.id in ended_ids or (entry.recheck is not None and entry.recheck < today)


def tally(private: Iterable[Entry]) -> Tally:
    """Count what is not named: a total of at least `K`, and spans of months of at least `K` each.

    Neighbouring months are joined until a span holds `K`; what is left joins the last span. Every
    published cell is therefore at least `K`, and the cells add up to the total.
    """
    counted = [entry for entry in private if entry.state not in ("withdrawn", "unread")]
    if len(counted) < K:
        return Tally(None)
    months = Counter(f"{entry.history[0].date:%Y-%m}" for entry in counted)
    spans: list[tuple[str, str, int]] = []
    first, number = "", 0
    for month in sorted(months):
        first, number = first or month, number + months[month]
        if number >= K:
            spans.append((first, month, number))
            first, number = "", 0
    if number:
        start, _, before = spans.pop()
        spans.append((start, max(months), before + number))
    return Tally(len(counted), tuple(spans))
