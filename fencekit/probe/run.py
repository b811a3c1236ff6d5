"""A whole run: look first, check the instrument, then fire way after way and keep what came.

Nothing is fired before the server was reached, the tool found, the arguments checked, the control
call answered, the observer found quiet, the sink seen to be wired and the self-check passed.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from fencekit.probe import fire
from fencekit.probe.answers import Comparison
from fencekit.probe.judge import compare_calls, judge, worst
from fencekit.probe.model import Evidence, Judgement, Overlap, Setting, Verdict, Way
from fencekit.probe.observer import CannotCount, Observer, ToolCounter
from fencekit.probe.plan import CannotProbe, Plan, Tool, check_arguments, find_tool
from fencekit.probe.selfcheck import SelfCheck, self_check
from fencekit.probe.sink import Sink
from fencekit.probe.ways import Rig
from fencekit.wire.client import Client
from fencekit.wire.errors import WireError
from fencekit.wire.frames import Kind

SINK_WAIT = 2.0  # seconds after the control call in which the sink must see traffic
NOT_OURS = "the probe cannot end a server that it did not start"
Say = Callable[[str], None]


@dataclass(frozen=True)
class Asked:
    """One way as it went: its evidence, how the answers compare, and the judgement."""

    way: Way
    evidence: Evidence
    overlap: Overlap
    comparison: Comparison
    judgement: Judgement


@dataclass
class Run:
    """A run in progress and what it has brought in so far, also when it was interrupted.

    Use as a context manager; `look` first, then `fire`. `say` is told what is being done.
    """

    plan: Plan
    say: Say = lambda _text: None
    tool: Tool | None = None
    server: dict[str, str] = field(default_factory=dict)
    control: dict[str, Any] = field(default_factory=dict)
    check: SelfCheck | None = None
    asked: list[Asked] = field(default_factory=list)
    skipped: dict[Way, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    stopped: str = ""
    began: datetime = field(default_factory=lambda: datetime.now(UTC))
    _stack: contextlib.ExitStack = field(default_factory=contextlib.ExitStack)
    _sink: Sink | None = None
    _client: Client | None = None
    _observer: Observer | None = None

    def __enter__(self) -> Run:
        return self

    def __exit__(self, *_exc: object) -> None:
        self._stack.close()

    @property
    def verdict(self) -> Verdict | None:
        """The worst of all ways, or None where none was asked or the self-check failed."""
        if self.check is not None and not self.check.passed:
            return None
        return worst(one.judgement.verdict for one in self.asked)

    def look(self) -> Tool:
        """Reach the server, find the tool and check the arguments; nothing is fired.

        Raises CannotProbe.
        """
        plan = self.plan
        if plan.sink is not None:
            sink = Sink(plan.sink.replies, fault=plan.sink.fault, only=plan.sink.only)
            self._sink = self._stack.enter_context(sink)
            env = {**plan.target.env, plan.sink.env: sink.url + plan.sink.path}
            self.plan = plan = replace(plan, target=replace(plan.target, env=env))
        self.say("reaching the server")
        client = self._ready()
        began = time.monotonic()
        try:
            tools = client.list_tools()
        except WireError as error:
            raise CannotProbe(f"the server did not list its tools: {error}") from error
        self.control = {"call": "tools/list", "ok": True, "ms": _elapsed(began)}
        self.server = {
            "name": client.server_name,
            "version": client.server_version,
            "protocol": client.protocol_version,
            "era": client.era,
        }
        self.tool = find_tool(tools, plan.tool)
        check_arguments(self.tool, plan.arguments)
        if isinstance(plan.counter, ToolCounter):
            find_tool(tools, plan.counter.tool)
        if plan.control is not None:
            check_arguments(find_tool(tools, plan.control[0]), plan.control[1])
        return self.tool

    def fire(self) -> None:
        """Check the instrument, then ask twice in every way. Raises CannotProbe.

        What was asked stays in `asked` when this is interrupted.
        """
        assert self.tool is not None, "look first"
        if self.plan.target.url and set(self.plan.ways) == {Way.RESTART}:
            raise CannotProbe(f"restart does not apply over HTTP: {NOT_OURS}. Nothing was fired.")
        self.say("checking the probe itself")
        self.check = self_check(self.plan.ways, http=bool(self.plan.target.url))
        if not self.check.passed:
            raise CannotProbe("the probe failed its own self-check; this run is void")
        self._control()
        self._watch()
        rig = self._rig()
        self._prove_wired(rig)
        for way in self.plan.ways:
            if way is Way.RESTART and not rig.setting.stdio:
                self.skipped[way] = NOT_OURS
                continue
            self.say(f"{way}: {self.plan.fires(way)} calls of {self.plan.tool}")
            self._ask(rig, way)

    def _ask(self, rig: Rig, way: Way) -> None:
        try:
            evidence, lap = rig.perform(way)
        except WireError as error:
            raise CannotProbe(f"{way}: the server was lost: {error}") from error
        except KeyboardInterrupt:
            fired = self.plan.fires(way)
            self.notes.append(f"up to {fired} calls of {way} were sent whose outcome is not here")
            raise
        judgement = judge(evidence, self.plan.lens)
        comparison = compare_calls(evidence, self.plan.lens)
        self.asked.append(Asked(way, evidence, lap, comparison, judgement))
        counted = judgement.effects is not None and judgement.rests_on != "answers"
        if counted and judgement.fresh:
            rig.earlier_effects = (rig.earlier_effects or 0) + (judgement.effects or 0)

    def _connect(self) -> Client:
        """Return a connection for a way to use up: the one that is open, or a new one."""
        client = self._ready()
        self._client = None
        return client

    def _ready(self) -> Client:
        """Return the open connection, opening one if there is none. Raises CannotProbe."""
        if self._client is None:
            try:
                self._client = self.plan.target.connect()
            except WireError as error:
                raise CannotProbe(f"the server could not be reached: {error}") from error
            self._stack.callback(self._client.close)
        return self._client

    def _control(self) -> None:
        """Make the control call: a server that cannot do even that gets no verdict."""
        if self.plan.control is None:
            return
        name, arguments = self.plan.control
        client, began = self._ready(), time.monotonic()
        try:
            answer = client.request("tools/call", {"name": name, "arguments": dict(arguments)})
        except WireError as error:
            raise CannotProbe(f"the control call {name} failed: {error}") from error
        failed = answer.kind is Kind.ERROR or answer.result.get("isError") is True
        self.control = {"call": name, "ok": not failed, "ms": _elapsed(began)}
        if failed:
            said = fire.classify(answer, None)[1]
            raise CannotProbe(f"the control call {name} was answered with an error: {said[:200]}")

    def _watch(self) -> None:
        if self.plan.counter is None:
            return
        self.say("watching the observer while nothing is called")
        self._observer = Observer(self.plan.counter, settle=self.plan.settle)
        client = self._ready()
        try:
            self._observer.sample_quiet(client)
        except CannotCount as error:
            raise CannotProbe(f"the observer cannot count: {error}. Nothing was fired.") from error

    def _rig(self) -> Rig:
        plan, tool = self.plan, self.tool
        assert tool is not None
        stdio = not plan.target.url
        return Rig(
            shot=fire.Shot(plan.tool, plan.arguments, tool.schema, plan.timeout),
            connect=self._connect,
            setting=Setting(
                stdio=stdio,
                reads_only=tool.reads_only,
                reads_because="the tool says that it only reads (readOnlyHint: true)",
                fenced=plan.fenced,
                cwd=(plan.target.cwd or os.getcwd()) if stdio else "",
            ),
            calls=plan.calls,
            connections=plan.connections,
            observer=self._observer,
            sink=self._sink,
            cut_after=plan.cut_after,
        )

    def _prove_wired(self, rig: Rig) -> None:
        """Fire nothing until the sink has seen traffic, so that silence cannot pass for zero."""
        plan, sink = self.plan.sink, self._sink
        if plan is None or sink is None or _wait_for(sink):
            return
        if not plan.unverified:
            raise CannotProbe(
                f"the sink is not wired: it saw no request from the control call. Check that the "
                f"server reads {plan.env}, or name a read that reaches its API with --control; "
                "nothing was fired (--sink-unverified sends one call first instead)"
            )
        client = self._ready()
        call = fire.one(rig.shot, client, rig.clock, n=1, connection=0)
        if not _wait_for(sink):
            raise CannotProbe(
                f"the sink is not wired: one call of {self.plan.tool} was sent ({call.outcome}) "
                f"and the sink saw nothing. Check that the server reads {plan.env}."
            )
        reading = sink.reading()
        rig.earlier_effects = reading.effects
        self.notes.append(
            f"one call was sent before the first way to see that the sink is wired "
            f"({call.outcome}); the sink counted {reading.effects} for it"
        )


def _wait_for(sink: Sink) -> bool:
    deadline = time.monotonic() + SINK_WAIT
    while sink.seen() == 0 and time.monotonic() < deadline:
        time.sleep(0.02)
    return sink.seen() > 0


def _elapsed(began: float) -> float:
    return round((time.monotonic() - began) * 1000, 1)
