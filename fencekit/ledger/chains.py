"""Walking the parent chains of recorded certificates: what is missing, where they fork. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from fencekit.core.state import Done, Sealed
from fencekit.ledger.base import Problem, Shown


def check_chains(intents: Iterable[Shown]) -> Iterator[Problem]:
    """Yield every certificate whose parent is not recorded, and every parent with two children.

    A parent may be missing because its retention ended; that is told too, for whoever audits a
    chain has to know where it stops.
    """
    sealed: dict[str, Sealed] = {}
    for shown in intents:
        if isinstance(shown.record.state, Done):
            sealed[shown.record.state.sealed.hash] = shown.record.state.sealed
        for ended in shown.record.ended:
            if ended.sealed is not None:
                sealed[ended.sealed.hash] = ended.sealed
    children: dict[str, list[str]] = {}
    for one in sealed.values():
        parent = one.ticket.request.parent
        if parent is None:
            continue
        children.setdefault(parent, []).append(one.ticket.intent)
        if parent not in sealed:
            yield Problem(
                f"intent {one.ticket.intent!r}",
                f"its parent {parent[:12]} is not recorded here (expired, or in another ledger)",
            )
    for parent, intents_of in sorted(children.items()):
        if len(intents_of) > 1:
            names = ", ".join(repr(name) for name in sorted(intents_of))
            yield Problem(f"certificate {parent[:12]}", f"the chain forks here: {names}")
