"""Ending records whose effect another tool has undone: create, delete, create must work.

Pure. A success of a tool that the configuration names under `undone_by` forgets the finished call
with equal fields, before that success is handed on.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from fencekit.core.errors import InvalidRequest
from fencekit.core.messages import Forget, Look, Seen
from fencekit.core.state import Done, IntentKey
from fencekit.ledger.base import Outcome
from fencekit.wire.frames import Frame, Kind
from fencekit.wrap.handles import handle_of
from fencekit.wrap.identity import identify
from fencekit.wrap.tools import Catalogue
from fencekit.wrap.turn import Settings, Turn


class Undo:
    """Forgets what a successful call has undone."""

    def __init__(self, settings: Settings, turn: Turn, catalogue: Catalogue) -> None:
        self.settings = settings
        self.turn = turn
        self.catalogue = catalogue

    def after(self, request: Frame, answer: Frame, then: Callable[[], None]) -> bool:
        """Forget what this answered request has undone, then go on.

        False where it undoes nothing: then nothing is called.
        """
        if not _succeeded(answer):
            return False
        return self.done(request.params.get("name"), request.params.get("arguments"), then)

    def done(self, tool: object, arguments: object, then: Callable[[], None]) -> bool:
        """Forget what a success of `tool` has undone, as `after`."""
        keys = self._keys(tool, arguments)
        if not keys:
            return False
        left = len(keys)

        def one_less(_said: Outcome) -> None:
            nonlocal left
            left -= 1
            if left == 0:
                then()

        for key in keys:
            self._forget(key, str(tool), one_less)
        return True

    def _keys(self, tool: object, arguments: object) -> list[IntentKey]:
        s = self.settings
        if not isinstance(tool, str) or s.observe:
            return []
        keys = []
        for name, rule in s.rules.undone_by(tool, self.catalogue.declared):
            undone = {"name": name, "arguments": arguments}
            try:
                keys.append(identify(undone, rule, s.rules, s.scope).key)
            except InvalidRequest:  # it lacks one of the fields: it names no such call
                continue
        return keys

    def _forget(self, key: IntentKey, by: str, then: Callable[[Outcome], None]) -> None:
        s = self.settings

        def looked(said: Outcome) -> None:
            state = said.record.state if isinstance(said, Seen) else None
            if not isinstance(state, Done):
                then(said)
                return
            now = self.turn.at.wall_ms
            self.turn.ask(
                Forget(s.new_id(), now, key, state.ticket.id, "undone_by", f"undone by {by}"), then
            )

        self.turn.ask(Look(s.new_id(), self.turn.at.wall_ms, key), looked)


def _succeeded(answer: Frame) -> bool:
    result = answer.result
    return (
        answer.kind is Kind.RESPONSE
        and isinstance(result, Mapping)
        and result.get("isError") is not True
        and result.get("resultType", "complete") == "complete"
        and handle_of(result) is None
    )
