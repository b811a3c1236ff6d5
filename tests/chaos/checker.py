"""What must hold of a whole history, whatever was killed, stopped or cut while it was made. Pure.

A history is what every client asked and heard, the effects counted outside the fence, and what the
ledger holds in the end. `check` names every promise that it breaks.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from fencekit.core.errors import Expired
from fencekit.core.messages import Commit, Committed, Fresh, Heartbeat, Prepare, Replay
from fencekit.core.state import Done, IntentKey, Sealed
from fencekit.core.stats import FenceStats, counter_of
from tests.chaos.linear import Operation, Outside, Undecided, by_intent, linearizable, same
from tests.chaos.record import Held

# From which states an event of the audit may come, and where it leads.
EVENTS = {
    "admitted": ({"free"}, "open"),
    "superseded": ({"open"}, "free"),
    "committed": ({"open"}, "done"),
    "late commit": ({"unknown"}, "done"),
    "settled": ({"open", "unknown"}, "done"),
    "released": ({"open", "unknown"}, "free"),
    "cleared": ({"open", "unknown"}, "free"),
    "forgotten": ({"done"}, "free"),
    "unknown": ({"free", "open", "done", "unknown"}, "unknown"),
}


@dataclass(slots=True)
class History:
    """Everything that is known of one run."""

    operations: list[Operation]
    # Counted outside the fence: (ticket, principal, intent), once for each time the effect ran.
    effects: list[tuple[str, str, str]]
    held: Held
    outside: Outside = field(default_factory=Outside)
    stats: dict[str, FenceStats] = field(default_factory=dict)


def check(history: History) -> list[str]:
    """Return every promise that the history breaks, in words."""
    return [*check_promises(history), *_each_intent_is_linearizable(history)]


def check_promises(history: History) -> list[str]:
    """The same without the search: two ledgers with two clocks have no one specification."""
    return [
        *_runs_once(history),
        *_acknowledged_is_kept(history),
        *_replays_are_true(history),
        *_nothing_unknown_became_runnable(history),
        *_sent_again_answers_the_same(history),
        *_numbers_have_no_gaps(history),
        *_certificates_verify(history),
        *_counters_agree(history),
    ]


def _runs_once(history: History) -> Iterable[str]:
    """One effect a ticket, and one an intent, but for attempts that an operator ended by his word.

    And but for those that asked for `reclaim` themselves and were superseded.
    """
    excused = {
        event["ticket"]
        for event in history.held.audit
        if event["event"] in ("cleared", "forgotten", "superseded")
    }
    ran: dict[tuple[str, str], set[str]] = defaultdict(set)
    for (ticket, principal, intent), times in Counter(history.effects).items():
        if times > 1:
            yield f"1: the effect of attempt {ticket[:8]} at {intent} ran {times} times"
        if ticket not in excused:
            ran[principal, intent].add(ticket)
    for (_, intent), tickets in sorted(ran.items()):
        if len(tickets) > 1:
            yield f"1: the effect of {intent} ran for {len(tickets)} attempts"


def _acknowledged_is_kept(history: History) -> Iterable[str]:
    records = history.held.records
    noted = {(e["event"], e.get("ticket")) for e in history.held.audit}
    for op in history.operations:
        if isinstance(op.answer, Committed):
            kept = set()
            record = records.get(op.command.key)
            if record is not None:
                if isinstance(record.state, Done):
                    kept.add(record.state.sealed.hash)
                kept |= {e.sealed.hash for e in record.ended if e.sealed is not None}
            if op.answer.sealed.hash not in kept:
                yield f"2: {op.client} heard that {_name(op)} is done, and the ledger lost it"
        if isinstance(op.answer, Fresh) and ("admitted", op.answer.ticket.id) not in noted:
            yield f"2: {op.client} heard that {_name(op)} is admitted, and the ledger lost it"


def _replays_are_true(history: History) -> Iterable[str]:
    made: dict[IntentKey, dict[str, str]] = defaultdict(dict)
    for op in history.operations:
        if isinstance(op.command, Commit):
            sealed = op.command.sealed
            made[op.command.key][sealed.hash] = sealed.result.text
        if isinstance(op.answer, Committed):
            sealed = op.answer.sealed
            made[op.command.key][sealed.hash] = sealed.result.text
    for key, record in history.held.records.items():
        for sealed in _sealed_of(record):
            made[key][sealed.hash] = sealed.result.text
    for op in history.operations:
        if not isinstance(op.answer, Replay):
            continue
        sealed, key = op.answer.sealed, op.command.request.key
        if sealed.ticket.key != key:
            yield f"11: {op.client} got a result of {sealed.ticket.key} for {key}"
        elif made[key].get(sealed.hash) != sealed.result.text:
            yield f"3: {op.client} got a result of {_name(op)} that nobody recorded"


def _sealed_of(record: Any) -> list[Sealed]:
    found = [record.state.sealed] if isinstance(record.state, Done) else []
    return found + [e.sealed for e in record.ended if e.sealed is not None]


def _nothing_unknown_became_runnable(history: History) -> Iterable[str]:
    states: dict[tuple[str, str], str] = defaultdict(lambda: "free")
    for event in history.held.audit:
        if event["event"] not in EVENTS:
            continue
        allowed, leads_to = EVENTS[event["event"]]
        key = (event["principal"], event["intent"])
        if states[key] not in allowed:
            yield f"4: {key[1]} was {states[key]} when it was {event['event']}"
        states[key] = leads_to


def _sent_again_answers_the_same(history: History) -> Iterable[str]:
    first: dict[str, Any] = {}
    for op in sorted(history.operations, key=lambda op: op.end):
        command = op.command
        kept = not isinstance(command, Prepare | Heartbeat) and hasattr(command, "ticket")
        if not kept or op.answer is None or isinstance(op.answer, Expired):
            continue
        if isinstance(op.answer, Committed):
            before = first.setdefault(command.id, op.answer)
            if not same(before, op.answer):
                yield f"6: {type(command).__name__} of {_name(op)} answered two things"


def _numbers_have_no_gaps(history: History) -> Iterable[str]:
    """Every number of a domain was given once, the next one each time: to a reservation, or to what
    ran outside. A domain that was evicted begins again above all that was evicted."""
    given: dict[str, set[int]] = defaultdict(set)
    stands: dict[str, int] = {}
    floor = 0
    for event in history.held.audit:
        name, domain = event["event"], event.get("domain")
        if domain is None:
            continue
        before = stands.get(domain, floor)
        if name in ("admitted", "reserved"):
            if event["seq"] != before + 1:
                yield f"{domain} gave the sequence number {event['seq']} after {before}"
            given[domain].add(event["seq"])
            stands[domain] = event["seq"]
        elif name == "doubt" or (name == "unknown" and event.get("cause") == "stale holder"):
            stands[domain] = before + 1
        elif name == "evicted":
            floor = max(floor, before)
            stands.pop(domain, None)
    for op in history.operations:
        ticket = op.answer.ticket if isinstance(op.answer, Fresh) else None
        if ticket is None or ticket.seq is None:
            continue
        if ticket.seq not in given[ticket.request.domain or ""]:
            yield f"{ticket.request.domain} gave number {ticket.seq}, and nobody noted it"
    for domain, head in sorted(history.held.heads.items()):
        if head.seq != stands.get(domain, floor):
            yield f"{domain} stands at {head.seq} after {stands.get(domain, floor)}"


def _certificates_verify(history: History) -> Iterable[str]:
    yield from (f"8: {problem}" for problem in history.held.problems)
    for op in history.operations:
        if isinstance(op.answer, Committed | Replay):
            sealed = op.answer.sealed
            if Sealed.make(sealed.ticket, sealed.result).hash != sealed.hash:
                yield f"8: the certificate that {op.client} got for {_name(op)} does not verify"


def _counters_agree(history: History) -> Iterable[str]:
    """Every attempt lands in exactly one counter: what a client counted is what it heard."""
    for client, stats in history.stats.items():
        heard: Counter[str] = Counter()
        for op in history.operations:
            if op.client == client and op.answer is not None:
                name = counter_of(op.command, op.answer)
                if name is not None:
                    heard[name] += 1
        if FenceStats.from_counters(heard) != stats:
            yield f"{client} counted {stats.line()} and heard {dict(heard)}"


def _each_intent_is_linearizable(history: History) -> Iterable[str]:
    for key, operations in sorted(by_intent(history.operations).items()):
        try:
            holds = linearizable(operations, history.outside)
        except Undecided as gave_up:
            yield f"{key.intent}: {gave_up}"
        else:
            if not holds:
                yield f"{key.intent} of {key.principal!r} is not linearizable"


def _name(op: Operation) -> str:
    return str(op.command.key.intent)
