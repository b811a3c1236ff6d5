"""A gate on a ledger in memory with a clock of its own: frames in, and what came of them."""

from __future__ import annotations

import itertools
import json
from typing import Any

from fencekit.core.errors import LedgerError
from fencekit.core.state import Holder
from fencekit.core.stats import counter_of
from fencekit.ledger.base import Ledger, Outcome
from fencekit.ledger.memory import MemoryLedger
from fencekit.wire import protocol
from fencekit.wire.frames import Frame, encode, parse
from fencekit.wrap.actions import Action, Ask, Call, Count, Moment, Peek, Say, ToClient, ToServer
from fencekit.wrap.gate import Gate
from fencekit.wrap.identity import Scope
from fencekit.wrap.others import agent_of
from fencekit.wrap.rules import Rules
from fencekit.wrap.turn import Settings

PAY = {
    "name": "create_payment",
    "inputSchema": {
        "type": "object",
        "properties": {"order": {"type": "string"}, "amount": {"type": "number"}},
        "required": ["order"],
    },
    "annotations": {"readOnlyHint": False},
}
SCALE = {"name": "scale", "annotations": {"idempotentHint": True}}
LIST = {"name": "list_payments", "annotations": {"readOnlyHint": True}}
TOOLS = [PAY, SCALE, LIST]

MODERN = {
    protocol.META_PROTOCOL_VERSION: protocol.LATEST_MODERN,
    protocol.META_CLIENT_CAPABILITIES: {},
}


class Door:
    """One gate; `hold` keeps the ledger's answers back until `release`."""

    def __init__(
        self,
        rules: Rules | None = None,
        *,
        ledger: Ledger | None = None,
        scope: Scope | None = None,
        observe: bool = False,
        expose_intent: bool = False,
        ask: bool = False,
        remote: bool = False,
        listed: bool = True,
    ) -> None:
        self.ledger: Ledger = ledger if ledger is not None else MemoryLedger()
        self.numbers = itertools.count(1)
        self.mono = 100.0
        self.wall_skew_ms = 0
        self.broken: LedgerError | None = None
        self.hold = False
        self.held: list[Ask] = []
        self.to_client: list[Any] = []
        self.to_server: list[Frame] = []
        self.calls: list[Call] = []
        self.said: list[str] = []
        self.raw: list[bytes] = []
        self.counted: dict[str, int] = {}
        name = f"door{id(self)}"
        scope = scope if scope is not None else Scope("s")
        self.gate = Gate(
            Settings(
                rules if rules is not None else Rules(),
                scope,
                lambda: self.ledger.holder,
                lambda: f"{name}-{next(self.numbers)}",
                agent_of(scope),
                observe=observe,
                expose_intent=expose_intent,
                ask=ask,
                remote=remote,
            )
        )
        if listed:
            self.gate.catalogue.whole(list(TOOLS))

    @property
    def at(self) -> Moment:
        return Moment(self.mono, self.ledger.now().wall_ms + self.wall_skew_ms)

    def client(self, message: Any) -> None:
        raw = message if isinstance(message, bytes) else encode(message)
        for frame in parse(raw):
            self.do(self.gate.client(frame, self.at))

    def server(self, message: Any) -> None:
        raw = message if isinstance(message, bytes) else encode(message)
        for frame in parse(raw):
            self.do(self.gate.server(frame, self.at))

    def do(self, actions: list[Action]) -> None:
        for action in actions:
            match action:
                case ToClient():
                    self.raw.append(action.raw)
                    self.to_client.append(json.loads(action.raw))
                case ToServer():
                    self.to_server.append(action.frame)
                    if action.call is not None:
                        self.calls.append(action.call)
                case Ask():
                    self.ask(action)
                case Peek():
                    number = self.ledger.peek(action.call.key)
                    self.do(self.gate.peeked(action.call, number, self.at))
                case Count():
                    name = counter_of(action.command, action.answer)
                    assert name is not None
                    self.counted[name] = self.counted.get(name, 0) + 1
                case Say():
                    self.said.append(action.text)

    def ask(self, ask: Ask) -> None:
        if self.hold:
            self.held.append(ask)
            return
        outcome: Outcome = self.broken if self.broken else self.ledger.call(ask.command)
        self.do(self.gate.ledger(ask, outcome, self.at))

    def release(self) -> None:
        self.hold, held, self.held = False, self.held, []
        for ask in held:
            self.ask(ask)

    def pass_time(self, seconds: float) -> None:
        self.mono += seconds
        self.do(self.gate.tick(self.at))

    def call(self, ident: Any, tool: str = "create_payment", /, **more: Any) -> None:
        """Call a tool; arguments by default order o1; `meta` goes to `_meta`."""
        arguments = more.pop("arguments", {"order": "o1"})
        meta = more.pop("meta", None)
        params: dict[str, Any] = {"name": tool, "arguments": arguments, **more}
        if meta is not None:
            params["_meta"] = meta
        self.client({"jsonrpc": "2.0", "id": ident, "method": "tools/call", "params": params})

    def answer(self, ident: Any, result: Any = None) -> None:
        """Let the server answer a call."""
        made = result if result is not None else {"content": [{"type": "text", "text": "paid"}]}
        self.server({"jsonrpc": "2.0", "id": ident, "result": made})

    def fail(self, ident: Any, text: str = "503 try again") -> None:
        """Let the server answer with a tool error."""
        self.answer(ident, {"content": [{"type": "text", "text": text}], "isError": True})

    def error(self, ident: Any, code: int, message: str = "no") -> None:
        """Let the server answer with a protocol error."""
        self.server({"jsonrpc": "2.0", "id": ident, "error": {"code": code, "message": message}})

    @property
    def executed(self) -> int:
        """How many calls of tools reached the server."""
        return sum(1 for f in self.to_server if f.method == "tools/call")

    @property
    def last(self) -> Any:
        """What the client heard last."""
        return self.to_client[-1]


TASKS = {
    **MODERN,
    protocol.META_CLIENT_CAPABILITIES: {"extensions": {protocol.TASKS_EXTENSION: {}}},
}


def outcome(message: Any) -> Any:
    """Return the mark on an answer, or None."""
    return message["result"].get("_meta", {}).get(protocol.META_OUTCOME)


def text(message: Any) -> str:
    """Return the first text of a result."""
    return str(message["result"]["content"][0]["text"])


OTHER = Holder("process", "another process")
