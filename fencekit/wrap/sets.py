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
    first: Frame | None
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
        if running is not None and running.first is not None and running.epoch == self.epoch:
            running.twins.append(frame)
            return True
        self.admitted()
        running = _Running(key, self.epoch, frame)
        self._by_key[key] = self._by_id[frame.key] = running
        return False

    def answered(self, answer: Frame) -> list[Frame]:
        """Answer the twins; returns those that must be sent after all (it asked for input)."""
        running = self._by_id.pop(answer.key, None)
        if running is None:
            return []
        if self._by_key.get(running.key) is running:
            del self._by_key[running.key]
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

    def cancel(self, key: IdKey) -> bool:
        """Detach a cancelled caller; True where the cancel must not reach the server."""
        for running in self._by_id.values():
            for twin in running.twins:
                if twin.key == key:
                    running.twins.remove(twin)
                    return True
        first = self._by_id.get(key)
        if first is None:
            return False
        first.first = None
        return bool(first.twins)

    def waiting(self) -> list[Frame]:
        """Return the twins that wait for another call's answer."""
        return [twin for running in self._by_id.values() for twin in running.twins]
