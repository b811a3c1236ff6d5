"""The state × verb table: what happens in every situation, as data that the code runs.

`row` maps a situation to its cells and is exhaustive for the type checker: a new situation, verb or
cell that somebody forgets is a type error here or in the module that carries the verb out. The page
`docs/state-table.md` and the tests are checked against `render`.

Words in the cells. t: the command's ticket. DOUBT: keep (t, result or abort) as a doubt, move t's
domain, answer StaleHolder. U!: becomes unknown(t) from which no late commit leads, move t's
domain. FREE: t becomes a tombstone and the intent absent; with doubts of others left, unknown
instead. NOADM: answer NotAdmitted, t becomes a tombstone. Moved: refused, nothing written. M: the
fingerprint is compared first. cl/su: t was cleared or superseded.

Before the table: a command older than the retention answers Expired; an id whose outcome is kept
answers that outcome (not prepare, heartbeat, reads); prepare, heartbeat or release of a ticket with
a tombstone answers AlreadyEnded(how).
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from enum import Enum
from typing import assert_never


class Situation(Enum):
    """How the record of an intent stands to the command's ticket."""

    ABSENT = "absent"
    ABSENT_ENDED = "absent, tombstone t"
    MINE = "in flight, mine"
    MINE_LAPSED = "mine, lease over"
    MINE_DEAD = "mine, holder dead"
    OTHERS = "other's, alive"
    OTHERS_DEAD = "other's, dead"
    OTHERS_LAPSED = "other's, lease over"
    DONE_MINE = "done, mine"
    DONE_MINE_EXPIRED = "done, mine, expired"
    DONE_OTHERS = "done, other's"
    DONE_OTHERS_EXPIRED = "done, other's, expired"
    UNKNOWN_MINE = "unknown, mine"
    UNKNOWN_OTHERS = "unknown, other's"


class OnPrepare(Enum):
    """May the attempt run?"""

    ADMIT = "gates, Fresh"
    ENDED = "AlreadyEnded"
    SAME = "same request and holder: same Fresh; else M, InFlight"
    DIED = "unknown, IntentFailed"
    IN_FLIGHT = "M, InFlight"
    DIED_OTHERS = "M, unknown, IntentFailed"
    LAPSED = "M; fence: unknown, IntentFailed; reclaim: tombstone (superseded), gates, Fresh"
    REPLAY = "M, Replay"
    EXPIRED = "tombstone (done), gates, Fresh, no M"
    FAILED = "M, IntentFailed"


class OnCommit(Enum):
    """The effect ran."""

    STRANGER = "StaleHolder, U!"
    ENDED = "it was done: same certificate or ResultDiffers; else StaleHolder, U!"
    FINISH = "read-set holds: done; stale: unknown (result kept, no late commit), ReadSetStale"
    DOUBT = "DOUBT"
    SAME = "same result: same certificate; else ResultDiffers"
    NOTED = "StaleHolder, audit only"
    LATE = (
        "late commit allowed and read-set holds: done; "
        "else StaleHolder or ReadSetStale, result kept"
    )


class OnAbort(Enum):
    """The attempt ended and nobody knows how."""

    NOT_ADMITTED = "NOADM"
    ENDED = "cl/su: StaleHolder, U!; else AlreadyEnded"
    UNKNOWN = "unknown (abort)"
    DOUBT = "cl/su: DOUBT; else NOADM"
    ALREADY = "AlreadyEnded"
    NOTED = "cl/su: audit only; else NOADM"
    NOTED_EXPIRED = "cl/su: U!; else NOADM"
    AGREED = "Ok; a lapse or death becomes abort; else nothing"


class OnRelease(Enum):
    """The attempt ended and did not run."""

    NOT_ADMITTED = "NOADM"
    ALREADY = "AlreadyEnded"
    FREE = "FREE"
    UNHEARD = "lapse or death, no result of t: FREE; else refused"


class OnHeartbeat(Enum):
    """The attempt still runs."""

    NOT_ADMITTED = "NotAdmitted"
    ALREADY = "AlreadyEnded"
    EXTEND = "lease = max"
    HARMLESS = "Ok (harmless)"
    FAILED = "IntentFailed"


class OnClear(Enum):
    """An operator says: it did not happen and cannot any more."""

    NOT_FOUND = "NotFound"
    MOVED = "Moved"
    STILL = "StillInFlight"
    JUDGE = (
        "other revision: Moved; t's result on record: ResultReported; "
        "holder alive: HolderAlive; else FREE"
    )
    DONE = "AlreadyDone"


class OnSettle(Enum):
    """An operator says: it did happen."""

    NOT_FOUND = "NotFound"
    MOVED = "Moved"
    STILL = "StillInFlight"
    JUDGE = "other revision: Moved; else done (operator)"
    DONE = "AlreadyDone"


class OnForget(Enum):
    """An operator says: it may run again."""

    NOT_FOUND = "NotFound"
    MOVED = "Moved"
    NOT_DONE = "NotDone"
    FORGET = "absent, tombstone (done)"


class OnSweep(Enum):
    """What may be deleted without anybody seeing a difference."""

    KEEP = "keeps the state"
    EXPIRE = "absent, tombstone (done)"
    PRUNE = "drops tombstones after the retention"


@dataclass(frozen=True)
class Row:
    """The cells of one situation; a forgotten verb is a type error."""

    prepare: OnPrepare
    commit: OnCommit
    abort: OnAbort
    release: OnRelease
    heartbeat: OnHeartbeat
    clear: OnClear
    settle: OnSettle
    forget: OnForget
    sweep: OnSweep


_ABSENT = Row(
    prepare=OnPrepare.ADMIT,
    commit=OnCommit.STRANGER,
    abort=OnAbort.NOT_ADMITTED,
    release=OnRelease.NOT_ADMITTED,
    heartbeat=OnHeartbeat.NOT_ADMITTED,
    clear=OnClear.NOT_FOUND,
    settle=OnSettle.NOT_FOUND,
    forget=OnForget.NOT_FOUND,
    sweep=OnSweep.PRUNE,
)
_ABSENT_ENDED = Row(
    prepare=OnPrepare.ENDED,
    commit=OnCommit.ENDED,
    abort=OnAbort.ENDED,
    release=OnRelease.ALREADY,
    heartbeat=OnHeartbeat.ALREADY,
    clear=OnClear.MOVED,
    settle=OnSettle.MOVED,
    forget=OnForget.MOVED,
    sweep=OnSweep.PRUNE,
)


def _mine(prepare: OnPrepare, heartbeat: OnHeartbeat, clear: OnClear, settle: OnSettle) -> Row:
    return Row(
        prepare=prepare,
        commit=OnCommit.FINISH,
        abort=OnAbort.UNKNOWN,
        release=OnRelease.FREE,
        heartbeat=heartbeat,
        clear=clear,
        settle=settle,
        forget=OnForget.NOT_DONE,
        sweep=OnSweep.KEEP,
    )


def _others(prepare: OnPrepare) -> Row:
    return Row(
        prepare=prepare,
        commit=OnCommit.DOUBT,
        abort=OnAbort.DOUBT,
        release=OnRelease.NOT_ADMITTED,
        heartbeat=OnHeartbeat.NOT_ADMITTED,
        clear=OnClear.MOVED,
        settle=OnSettle.MOVED,
        forget=OnForget.NOT_DONE,
        sweep=OnSweep.KEEP,
    )


def _done_mine(sweep: OnSweep) -> Row:
    return Row(
        prepare=OnPrepare.ENDED,
        commit=OnCommit.SAME,
        abort=OnAbort.ALREADY,
        release=OnRelease.ALREADY,
        heartbeat=OnHeartbeat.ALREADY,
        clear=OnClear.DONE,
        settle=OnSettle.DONE,
        forget=OnForget.FORGET,
        sweep=sweep,
    )


def _done_others(prepare: OnPrepare, commit: OnCommit, abort: OnAbort, sweep: OnSweep) -> Row:
    return Row(
        prepare=prepare,
        commit=commit,
        abort=abort,
        release=OnRelease.NOT_ADMITTED,
        heartbeat=OnHeartbeat.NOT_ADMITTED,
        clear=OnClear.MOVED,
        settle=OnSettle.MOVED,
        forget=OnForget.MOVED,
        sweep=sweep,
    )


_MINE = _mine(OnPrepare.SAME, OnHeartbeat.EXTEND, OnClear.STILL, OnSettle.STILL)
_MINE_LAPSED = _mine(OnPrepare.SAME, OnHeartbeat.EXTEND, OnClear.JUDGE, OnSettle.JUDGE)
_MINE_DEAD = _mine(OnPrepare.DIED, OnHeartbeat.HARMLESS, OnClear.JUDGE, OnSettle.JUDGE)
_OTHERS = _others(OnPrepare.IN_FLIGHT)
_OTHERS_DEAD = _others(OnPrepare.DIED_OTHERS)
_OTHERS_LAPSED = _others(OnPrepare.LAPSED)
_DONE_MINE = _done_mine(OnSweep.PRUNE)
_DONE_MINE_EXPIRED = _done_mine(OnSweep.EXPIRE)
_DONE_OTHERS = _done_others(OnPrepare.REPLAY, OnCommit.NOTED, OnAbort.NOTED, OnSweep.PRUNE)
_DONE_OTHERS_EXPIRED = _done_others(
    OnPrepare.EXPIRED, OnCommit.STRANGER, OnAbort.NOTED_EXPIRED, OnSweep.EXPIRE
)
_UNKNOWN_MINE = Row(
    prepare=OnPrepare.ENDED,
    commit=OnCommit.LATE,
    abort=OnAbort.AGREED,
    release=OnRelease.UNHEARD,
    heartbeat=OnHeartbeat.FAILED,
    clear=OnClear.JUDGE,
    settle=OnSettle.JUDGE,
    forget=OnForget.NOT_DONE,
    sweep=OnSweep.KEEP,
)
_UNKNOWN_OTHERS = _others(OnPrepare.FAILED)


def row(situation: Situation) -> Row:
    """Return the cells of one situation."""
    match situation:
        case Situation.ABSENT:
            return _ABSENT
        case Situation.ABSENT_ENDED:
            return _ABSENT_ENDED
        case Situation.MINE:
            return _MINE
        case Situation.MINE_LAPSED:
            return _MINE_LAPSED
        case Situation.MINE_DEAD:
            return _MINE_DEAD
        case Situation.OTHERS:
            return _OTHERS
        case Situation.OTHERS_DEAD:
            return _OTHERS_DEAD
        case Situation.OTHERS_LAPSED:
            return _OTHERS_LAPSED
        case Situation.DONE_MINE:
            return _DONE_MINE
        case Situation.DONE_MINE_EXPIRED:
            return _DONE_MINE_EXPIRED
        case Situation.DONE_OTHERS:
            return _DONE_OTHERS
        case Situation.DONE_OTHERS_EXPIRED:
            return _DONE_OTHERS_EXPIRED
        case Situation.UNKNOWN_MINE:
            return _UNKNOWN_MINE
        case Situation.UNKNOWN_OTHERS:
            return _UNKNOWN_OTHERS
        case _:
            assert_never(situation)


def render() -> str:
    """Return the table as Markdown, as the documentation shows it."""
    verbs = [f.name for f in fields(Row)]
    lines = ["| state | " + " | ".join(verbs) + " |", "| --- " * (len(verbs) + 1) + "|"]
    for situation in Situation:
        cells = row(situation)
        words = " | ".join(getattr(cells, verb).value for verb in verbs)
        lines.append(f"| {situation.value} | {words} |")
    return "\n".join(lines) + "\n"
