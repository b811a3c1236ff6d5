"""The gate of the proxy: a frame in, actions out.

Pure: no I/O, no clock, no randomness; the pump gives it frames, answers of the ledger, and the
time. What is not a fenced `tools/call` is handed on as the bytes it came in. A frame that two
parsers could read differently never passes as bytes: duplicate keys are written anew as they were
understood, batches are split, and what is no JSON-RPC is answered here.

Over 400 lines: one arm for each kind of frame in each direction, which is what a gate is.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

from fencekit.core.errors import InvalidRequest
from fencekit.ledger.base import Outcome
from fencekit.wire import protocol
from fencekit.wire.frames import (
    Frame,
    IdKey,
    Kind,
    encode,
    error_bytes,
    id_key,
    parse,
    request_bytes,
)
from fencekit.wrap import expose
from fencekit.wrap.actions import Action, Ask, Call, Moment, Stage, Waiter
from fencekit.wrap.calls import Calls
from fencekit.wrap.handles import FOLLOWED, TOLD, takes_tasks
from fencekit.wrap.identity import Identity, identify
from fencekit.wrap.near import Near
from fencekit.wrap.outcome import Asker
from fencekit.wrap.policy import Treatment
from fencekit.wrap.reconcile import envelope
from fencekit.wrap.rules import ToolKind
from fencekit.wrap.sets import Sets
from fencekit.wrap.tools import Catalogue, Pages
from fencekit.wrap.turn import Settings, Turn
from fencekit.wrap.undo import Undo

LIST_TIMEOUT = 30.0  # seconds for the gate's own look at the tools


@dataclass(slots=True)
class _Listing:
    """The gate's own walk over the list of tools."""

    pages: Pages
    meta: dict[str, object]
    key: IdKey
    until: float


class Gate:
    """Decides what happens to every frame between one client and one server."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.turn = Turn()
        self.catalogue = Catalogue(settings.rules, self.turn.say)
        self.undo = Undo(settings, self.turn, self.catalogue)
        self.calls = Calls(settings, self.turn, self.catalogue, self.undo)
        self.sets = Sets(self.turn)
        self.calls.on_send = self.sets.admitted
        self.calls.on_again = self._call
        # Requests of the client that the server will answer by itself, by id.
        self._plain: dict[IdKey, Frame] = {}
        self._held: list[Frame] = []
        self._listing: _Listing | None = None
        self._exchanged = False
        self._near = Near()
        self.modern = False

    # --- what happens ---

    def client(self, frame: Frame, at: Moment) -> list[Action]:
        """Take a frame of the client."""
        self.turn.at = at
        try:
            self._client(frame)
        except ValueError as problem:  # a number that no JSON can carry on
            if frame.kind is Kind.REQUEST:
                self._invalid_params(frame, str(problem))
        return self.turn.take()

    def _client(self, frame: Frame) -> None:
        match frame.kind:
            case Kind.INVALID:
                self._invalid(frame)
            case Kind.REQUEST if frame.method == "tools/call":
                self._call(frame)
            case Kind.REQUEST:
                self._pass_request(_plain_bytes(frame))
            case Kind.RESPONSE | Kind.ERROR if self.calls.questions.answered(frame):
                pass
            case Kind.NOTIFICATION if frame.method == "notifications/cancelled":
                self._cancelled(frame)
            case Kind.NOTIFICATION if frame.method == "tools/call":
                self.turn.say("a tools/call without an id was dropped: nobody could be answered")
            case _:
                self.turn.to_server(_plain_bytes(frame))

    def server(self, frame: Frame, at: Moment) -> list[Action]:
        """Take a frame of the server."""
        self.turn.at = at
        if frame.kind is Kind.INVALID:
            frame = _leniently(frame)
        match frame.kind:
            case Kind.RESPONSE | Kind.ERROR:
                self._answered(frame)
            case Kind.NOTIFICATION if frame.method == "notifications/progress":
                if not self.calls.progress(frame):
                    self.turn.to_client(frame.raw)
            case Kind.NOTIFICATION if frame.method in TOLD:
                self.turn.to_client(frame.raw)
                self.calls.tasks.notified(frame)
            case Kind.NOTIFICATION if frame.method == "notifications/tools/list_changed":
                self.catalogue.changed()
                self.turn.to_client(frame.raw)
            case _:
                self.turn.to_client(frame.raw)
        return self.turn.take()

    def ledger(self, ask: Ask, outcome: Outcome, at: Moment) -> list[Action]:
        """Take the ledger's answer."""
        self.turn.at = at
        ask.then(outcome)
        return self.turn.take()

    def sent(self, call: Call, at: Moment) -> list[Action]:
        """At least one byte of a fenced call left."""
        self.turn.at = at
        self.calls.sent(call)
        return self.turn.take()

    def unsent(self, call: Call, why: str, at: Moment) -> list[Action]:
        """No byte of a fenced call left, and none will."""
        self.turn.at = at
        self.calls.unsent(call, why)
        return self.turn.take()

    def broken(self, call: Call, why: str, at: Moment) -> list[Action]:
        """Bytes of a fenced call left, and no answer will come."""
        self.turn.at = at
        self.calls.broken(call, why)
        return self.turn.take()

    def refused(self, frame: Frame, why: str, at: Moment) -> list[Action]:
        """A plain frame did not reach the server, or its answer was lost on the way."""
        self.turn.at = at
        if frame.kind is Kind.REQUEST:
            failed = error_bytes(frame.id, protocol.CONNECTION_CLOSED, why)
            if frame.key in self._plain or self._is_listing(frame.key):
                self._answered(parse(failed)[0])
        return self.turn.take()

    def client_gone(self, at: Moment) -> list[Action]:
        """The client will send nothing more; what is in flight may still end."""
        self.turn.at = at
        self.calls.questions.left()
        return self.turn.take()

    def server_gone(self, why: str, at: Moment, *, answer_all: bool) -> list[Action]:
        """The server ended: fenced calls are unknown; `answer_all` answers the plain ones too."""
        self.turn.at = at
        self.calls.server_gone(why)
        self.calls.reconciler.server_gone()
        if self._listing is not None:
            self._listed(f"the server ended: {why}")
        if answer_all:
            for frame in [*self._plain.values(), *self.sets.waiting()]:
                self.turn.to_client(error_bytes(frame.id, protocol.CONNECTION_CLOSED, why))
        self._plain.clear()
        self.sets = Sets(self.turn)
        self.calls.on_send = self.sets.admitted
        self._exchanged = False
        return self.turn.take()

    def peeked(self, call: Call, number: int, at: Moment) -> list[Action]:
        """Take what a look at another process's record showed."""
        self.turn.at = at
        self.calls.peeked(call, number)
        return self.turn.take()

    def tick(self, at: Moment) -> list[Action]:
        """Do what is due."""
        self.turn.at = at
        self.calls.tick()
        self.calls.reconciler.tick()
        if self._listing is not None and at.mono >= self._listing.until:
            self._listed(f"no list of tools within {LIST_TIMEOUT:g} s")
        return self.turn.take()

    def due(self) -> float | None:
        """Return the monotonic time at which `tick` has something to do, or None."""
        times = [*self.calls.reconciler.due()]
        if (calls := self.calls.due()) is not None:
            times.append(calls)
        if self._listing is not None:
            times.append(self._listing.until)
        return min(times) if times else None

    @property
    def busy(self) -> bool:
        """Whether a request of the client is still to be answered, or an outcome to be recorded."""
        waits = any(f.method != "subscriptions/listen" for f in self._plain.values())
        return bool(self.calls.by_key or len(self.calls.owed) or self._held or waits)

    @property
    def holding(self) -> bool:
        """Whether an admitted call runs, which must not lose its ledger."""
        running = (Stage.SENDING, Stage.RUNNING)
        calls = list(self.calls.by_key.values())
        return any(call.ticket is not None and call.stage in running for call in calls)

    # --- frames of the client ---

    def _invalid(self, frame: Frame) -> None:
        """Answer what is no JSON-RPC; handing it on could slip a call past the fence."""
        if not frame.raw.strip():
            return
        code = protocol.INVALID_REQUEST if frame.message else protocol.PARSE_ERROR
        self.turn.to_client(error_bytes(None, code, f"not handed on: {frame.fault[:200]}"))

    def _pass_request(self, frame: Frame) -> None:
        self._learn_era(frame)
        if frame.key in self.calls.by_server_id:
            problem = "this id is in use by a call that has not ended yet"
            self.turn.to_client(error_bytes(frame.id, protocol.INVALID_REQUEST, problem))
            return
        if frame.method == "initialize":
            self.calls.questions.introduced(frame.params)
        self._plain[frame.key] = frame
        self.turn.to_server(frame)

    def _learn_era(self, frame: Frame) -> None:
        if not self.modern and is_modern(frame):
            self.modern = True

    def _cancelled(self, frame: Frame) -> None:
        key = id_key(frame.params.get("requestId"))
        held = [one for one in self._held if one.key == key]
        if held:
            self._held.remove(held[0])
            return
        if key in self.calls.by_client_id:
            call, _ = self.calls.by_client_id[key]
            self.calls.cancel(key)
            if self.calls.is_left(call):
                self.turn.to_server(_about(frame, call.frame))
                self.calls.broken(call, "its caller cancelled it")
            return
        if self.sets.holds(key):
            request = self.sets.cancel(key)
            if request is None:
                return
        else:
            request = self._plain.get(key)
        if request is not None:  # a cancelled request need not be answered
            self._plain.pop(request.key, None)
            frame = _about(frame, request)
        self.turn.to_server(_plain_bytes(frame))

    def _call(self, frame: Frame) -> None:
        self._learn_era(frame)
        tool = frame.params.get("name")
        problem = self._problem(frame, tool)
        if problem is not None:
            self._invalid_params(frame, problem)
            return
        assert isinstance(tool, str)
        if self._needs_list(tool):
            self._held.append(frame)
            self._list(frame)
            return
        treatment = self.catalogue.treatment(tool)
        match treatment.kind:
            case ToolKind.READ:
                self._pass_request(_plain_bytes(frame))
            case ToolKind.PASS:
                self.sets.admitted()
                self._pass_request(_plain_bytes(frame))
            case ToolKind.SET:
                self._set(frame, treatment)
            case ToolKind.APPEND:
                self._fence(frame, treatment)

    def _problem(self, frame: Frame, tool: object) -> str | None:
        """Say why a call cannot be told apart from others, if so."""
        if not isinstance(tool, str):
            return "params.name must be text"
        if frame.id is None:
            return "a call needs an id"
        if frame.key in self._plain or frame.key in self.calls.by_client_id:
            return "this id is in use by a request that is not answered yet"
        if frame.key in self.calls.by_server_id:
            return "this id is in use by a call that has not ended yet"
        return None

    def _invalid_params(self, frame: Frame, problem: str) -> None:
        self.turn.to_client(error_bytes(frame.id, protocol.INVALID_PARAMS, problem))

    def _set(self, frame: Frame, treatment: Treatment) -> None:
        try:
            identity = self._identity(frame, treatment)
        except InvalidRequest:  # nothing to share by; the server judges it
            self.sets.admitted()
            self._pass_request(_plain_bytes(frame))
            return
        if not self.sets.join(frame, identity, "modern" if is_modern(frame) else ""):
            self._pass_request(_plain_bytes(frame))

    def _fence(self, frame: Frame, treatment: Treatment) -> None:
        try:
            sent, reply = self.calls.questions.taken(_plain_bytes(frame))
            named = ""
            if self.settings.expose_intent:
                sent, named = expose.taken(sent)
            identity = self._identity(expose.keyed(sent, named), treatment)
        except (InvalidRequest, ValueError) as problem:
            if self.settings.observe:
                self._pass_request(frame)
            else:
                self._invalid_params(frame, str(problem))
            return
        self._look_alike(sent, identity, treatment)
        meta = frame.params.get("_meta")
        token = meta.get("progressToken") if isinstance(meta, dict) else None
        asker = Asker(frame.id, is_modern(frame), takes_tasks(frame))
        waiter = Waiter(frame, asker, self.turn.at.mono, token)
        if not self.calls.take(Call(identity, treatment, sent, reply=reply), waiter):
            self._pass_request(sent)

    def _look_alike(self, frame: Frame, identity: Identity, treatment: Treatment) -> None:
        """Report a call that is another action but looks like a recent one written anew."""
        arguments = frame.params.get("arguments")
        if treatment.rule.near_duplicates == "off" or not isinstance(arguments, dict):
            return
        intent, now = identity.key.intent, self.turn.at.mono
        before = self._near.like(treatment.tool, arguments, intent, now)
        if before is not None:
            self.turn.say(
                f"near duplicate: {treatment.tool} differs from a recent call only in what looks "
                f"like ids, times or free text, and runs (intent {intent}, before it {before})"
            )

    def _identity(self, frame: Frame, treatment: Treatment) -> Identity:
        s = self.settings
        return identify(frame.params, treatment.rule, s.rules, s.scope, s.agent)

    # --- frames of the server ---

    def _answered(self, frame: Frame) -> None:
        if self._is_listing(frame.key):
            self._page(frame)
            return
        if self.calls.reconciler.answered(frame):
            return
        self._exchanged = True
        request = self._plain.pop(frame.key, None)
        if request is None:
            fenced = self.calls.by_server_id.get(frame.key)
            done = fenced is not None and self._undone(fenced.frame, frame)
            if not done and not self.calls.answered(frame):
                self.turn.to_client(frame.raw)
            self._retry_listing()
            return
        self._plain_answered(request, frame)
        self._retry_listing()

    def _undone(self, request: Frame, answer: Frame) -> bool:
        def go_on() -> None:
            if not self.calls.answered(answer):
                self.turn.to_client(answer.raw)

        return self.undo.after(request, answer, go_on)

    def _plain_answered(self, request: Frame, frame: Frame) -> None:
        if request.method == "initialize":
            self.calls.questions.welcomed(frame.result)
        if request.method == "tools/list" and isinstance(frame.result, dict):
            self._harvest(request, frame.result)
            if self.settings.expose_intent and isinstance(frame.result.get("tools"), list):
                self.turn.to_client(expose.exposed(frame, self._is_fenced))
                return
        if request.method == "tools/call":

            def go_on() -> None:
                self.turn.to_client(frame.raw)
                for twin in self.sets.answered(frame):
                    self._pass_request(_plain_bytes(twin))

            if not self.undo.after(request, frame, go_on):
                go_on()
            return
        if request.method in FOLLOWED:
            self.calls.tasks.answered(request, frame, lambda: self.turn.to_client(frame.raw))
            return
        self.turn.to_client(frame.raw)

    def _harvest(self, request: Frame, result: dict[str, object]) -> None:
        """Read a list of tools that the client asked for."""
        tools = result.get("tools")
        if "cursor" not in request.params and not result.get("nextCursor"):
            self._whole(tools if isinstance(tools, list) else [])
        else:
            self.catalogue.page(tools)

    def _is_fenced(self, tool: str) -> bool:
        return self.catalogue.treatment(tool).kind is ToolKind.APPEND

    def _whole(self, tools: list[object]) -> None:
        told = self.catalogue.complete
        self.catalogue.whole(tools)
        if not told:
            self.turn.say(f"{self.catalogue.fenced()} of {len(tools)} tools are fenced")

    # --- the gate's own list ---

    def _needs_list(self, tool: str) -> bool:
        return not self.catalogue.knows(tool) and not self.catalogue.complete

    def _is_listing(self, key: IdKey) -> bool:
        return self._listing is not None and self._listing.key == key

    def _list(self, caller: Frame) -> None:
        """Ask for the list of tools as this caller would, once its first exchange is over."""
        if self._listing is not None or (self._plain and not self._exchanged):
            return
        self._ask_page(_Listing(Pages(), dict(envelope(caller)), ("", ""), 0.0), None)

    def _retry_listing(self) -> None:
        if self._held and self._listing is None:
            self._list(self._held[0])

    def _ask_page(self, listing: _Listing, cursor: str | None) -> None:
        params: dict[str, object] = {} if cursor is None else {"cursor": cursor}
        if listing.meta:
            params["_meta"] = listing.meta
        ident = f"fencekit-list-{self.settings.new_id()}"
        frame = parse(request_bytes(ident, "tools/list", encode(params)))[0]
        listing.key, listing.until = frame.key, self.turn.at.mono + LIST_TIMEOUT
        self._listing = listing
        self.turn.to_server(frame)

    def _page(self, frame: Frame) -> None:
        listing = self._listing
        assert listing is not None
        try:
            cursor = listing.pages.take(frame.result)
        except ValueError as problem:
            self._listed(str(problem))
            return
        if cursor is not None:
            self._ask_page(listing, cursor)
            return
        self._whole(listing.pages.tools)
        self._listed("")

    def _listed(self, problem: str) -> None:
        """Go on with the calls that waited for the list; without one, what is unknown is fenced."""
        held, self._held, self._listing = self._held, [], None
        for frame in held:
            tool = frame.params.get("name")
            if problem and isinstance(tool, str) and not self.catalogue.knows(tool):
                self.turn.say(f"{tool[:80]!r} is fenced without having been listed: {problem}")
                self._fence(frame, self.catalogue.treatment(tool))
            else:
                self._call(frame)


def is_modern(frame: Frame) -> bool:
    """Whether a request speaks the stateless protocol era, in whatever revision of it."""
    meta = frame.params.get("_meta")
    version = meta.get(protocol.META_PROTOCOL_VERSION) if isinstance(meta, dict) else None
    return protocol.is_stateless(version)


def _leniently(frame: Frame) -> Frame:
    """Read an answer that many clients would take although it holds NaN, which is no JSON."""
    try:
        message = json.loads(frame.raw)
    except (ValueError, RecursionError):
        return frame
    if not isinstance(message, dict) or "method" in message or "result" not in message:
        return frame
    return Frame(frame.raw, Kind.RESPONSE, message)


def _about(cancel: Frame, request: Frame) -> Frame:
    """Return a cancellation of this request, whichever of its twins was cancelled last."""
    if id_key(cancel.params.get("requestId")) == request.key:
        return _plain_bytes(cancel)
    params = {**cancel.params, "requestId": request.id}
    return parse(encode({**cancel.message, "params": params}))[0]


def _plain_bytes(frame: Frame) -> Frame:
    """Return the frame as it may be handed on: with bytes that can be read in one way only.

    Raises ValueError for a value that JSON cannot carry on (a number beyond every double).
    """
    if not frame.duplicates:
        return frame
    return parse(encode(frame.message))[0]
