"""Calls of `set` tools: safe to repeat, so they pass; identical ones at one moment share an answer.

Pure. A twin shares only while nothing else was admitted to the server since the first one left and
while its caller still waits: scale to 3, to 5, to 3 must reach the server three times.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from fencekit.core.state import IntentKey
from fencekit.wire.frames import Frame, IdKey, Kind, encode, member, result_bytes
from fencekit.wrap.identity import Identity
from fencekit.wrap.turn import Turn


@dataclass(slots=True)
class _Running:
    key: tuple[IntentKey, str, str]
    epoch: int
    request: Frame
    waited_for: bool = True  # by the caller whose request it is
    twins: list[Frame] = field(default_factory=list)


class Sets:
    """The calls of `set` tools that are on their way."""

    def __init__(self, turn: Turn) -> None:
        self.turn = turn
        self.epoch = 0
        self._by_key: dict[tuple[IntentKey, str, str], _Running] = {}
        self._by_id: dict[IdKey, _Running] = {}

    def admitted(self) -> None:
        """Something that may change state is about to leave for the server."""
        self.epoch += 1

    def join(self, frame: Frame, identity: Identity, era: str) -> bool:
        """Share the answer of an identical call that is on its way; says whether there is one."""
        key = (identity.key, identity.leg, era)
        running = self._by_key.get(key)
        if running is not None and running.waited_for and running.epoch == self.epoch:
            running.twins.append(frame)
            return True
        self.admitted()
        running = _Running(key, self.epoch, frame)
        self._by_key[key] = self._by_id[frame.key] = running
        return False

    def answered(self, answer: Frame) -> list[Frame]:
        """Answer the twins; returns those that must be sent after all (it asked for input)."""
        running = self._by_id.get(answer.key)
        if running is None:
            return []
        self._forget(running)
        result = answer.result
        if isinstance(result, dict) and result.get("resultType", "complete") != "complete":
            return running.twins
        for twin in running.twins:
            if answer.kind is Kind.RESPONSE:
                raw = result_bytes(twin.id, member(answer.raw, "result") or b"{}")
            else:
                error = member(answer.raw, "error") or b"{}"
                raw = b'{"jsonrpc":"2.0","id":%b,"error":%b}' % (encode(twin.id), error)
            self.turn.to_client(raw)
        return []

    def holds(self, key: IdKey) -> bool:
        """Whether somebody waits under this id."""
        return self._of(key) is not None

    def _of(self, key: IdKey) -> _Running | None:
        own = self._by_id.get(key)
        if own is not None and own.waited_for:
            return own
        running = self._by_id.values()
        return next((one for one in running if any(t.key == key for t in one.twins)), None)

    def cancel(self, key: IdKey) -> Frame | None:
        """Detach a cancelled caller; returns the request to be cancelled if nobody else waits."""
        running = self._of(key)
        assert running is not None
        if running.request.key == key:
            running.waited_for = False
        running.twins = [twin for twin in running.twins if twin.key != key]
        if running.waited_for or running.twins:
            return None
        self._forget(running)
        return running.request

    def _forget(self, running: _Running) -> None:
        self._by_id.pop(running.request.key, None)
        if self._by_key.get(running.key) is running:
            del self._by_key[running.key]

    def waiting(self) -> list[Frame]:
        """Return the twins that wait for another call's answer."""
        return [twin for running in self._by_id.values() for twin in running.twins]
