"""A bare MCP client over either transport: what it is told to send, once, and nothing else.

It opens in either protocol era, lists tools, and calls with params whose bytes the caller built.
It never sends a request again, validates no result (a validation that raises after the effect
would hide it), and declines what a server asks of it.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from fencekit import __version__
from fencekit.wire import protocol
from fencekit.wire.carriers import Carrier, HttpCarrier, Pending, StdioCarrier
from fencekit.wire.errors import HandshakeFailed, Unanswered, WireError
from fencekit.wire.frames import Frame, Kind, encode, notification_bytes, parse, request_bytes
from fencekit.wire.http import Endpoint
from fencekit.wire.stdio import Child

EraChoice = Literal["auto", "legacy", "modern"]
MAX_PAGES = 1000
START_LIMIT = 120.0  # seconds at least for opening: `npx -y` may have to install the server first


@dataclass(frozen=True)
class Target:
    """What to connect to: a command on stdio, or a URL."""

    command: tuple[str, ...] = ()
    url: str = ""
    env: Mapping[str, str] = field(default_factory=dict)
    cwd: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    era: EraChoice = "auto"
    timeout: float = 60.0
    stderr: Literal["inherit", "capture", "null"] = "capture"

    def connect(self) -> Client:
        """Start or reach the server and open the protocol with it.

        Raises NeverLeft where it cannot be started or reached, HandshakeFailed, Unanswered.
        """
        carrier: Carrier
        if self.url:
            endpoint = Endpoint(self.url, headers=self.headers, timeout=self.timeout)
            carrier = HttpCarrier(endpoint)
        else:
            child = Child(self.command, env=self.env, cwd=self.cwd, stderr=self.stderr)
            carrier = StdioCarrier(child, self.timeout)
        client = Client(carrier, timeout=max(self.timeout, START_LIMIT))
        try:
            client.open(self.era, discover_first=bool(self.url))
            client.timeout = self.timeout
        except BaseException:
            client.close()
            raise
        return client


class Client:
    """An open connection to one MCP server. `timeout` is the default limit in seconds."""

    def __init__(self, carrier: Carrier, *, timeout: float = 60.0) -> None:
        self.carrier = carrier
        self.timeout = timeout
        self.era: protocol.Era = "legacy"
        self.server_name = ""
        self.server_version = ""
        self.capabilities: Mapping[str, Any] = {}
        self._ids = itertools.count(1)

    @property
    def protocol_version(self) -> str:
        """The negotiated protocol version."""
        return self.carrier.protocol_version or ""

    def open(self, era: EraChoice = "auto", *, discover_first: bool = False) -> None:
        """Open the protocol: the initialize handshake, or the stateless era.

        `auto` tries initialize first on stdio, because an old server may stay silent on anything
        else and an SDK server keeps the era of its first request for life; with `discover_first`
        (HTTP, where every request stands alone) it asks server/discover first. A server that
        names the version as unsupported (-32022) is not asked in the other era.
        """
        if era == "modern" or (era == "auto" and discover_first):
            refused = self._discover()
            if refused is None:
                return
            if era == "modern" or _code(refused) == protocol.UNSUPPORTED_PROTOCOL_VERSION:
                raise HandshakeFailed(f"the server refused the stateless era: {_said(refused)}")
        refused = self._initialize()
        if refused is None:
            return
        if era == "auto" and not discover_first and self._discover() is None:
            return
        raise HandshakeFailed(f"the server refused to initialize: {_said(refused)}")

    def _initialize(self) -> Frame | WireError | None:
        self.era, self.carrier.protocol_version = "legacy", None
        params = {
            "protocolVersion": protocol.LATEST_HANDSHAKE,
            "capabilities": {},
            "clientInfo": _client_info(),
        }
        try:
            answer = self.request("initialize", params)
        except WireError as error:
            if isinstance(error, Unanswered) or not error.may_have_run:
                raise
            return error
        if answer.kind is Kind.ERROR or not isinstance(answer.result, dict):
            return answer
        version = answer.result.get("protocolVersion")
        if version not in protocol.HANDSHAKE_VERSIONS:
            raise HandshakeFailed(f"the server speaks {version!r}, which this client does not")
        self.carrier.protocol_version = version
        self._learn(answer.result.get("serverInfo"), answer.result.get("capabilities"))
        self.carrier.tell(notification_bytes("notifications/initialized"))
        return None

    def _discover(self) -> Frame | WireError | None:
        self.era, self.carrier.protocol_version = "modern", protocol.LATEST_MODERN
        try:
            answer = self.request("server/discover", {})
        except WireError as error:
            if not error.may_have_run:
                raise
            return error
        result = answer.result
        if answer.kind is Kind.ERROR or not isinstance(result, dict):
            return answer
        if protocol.LATEST_MODERN not in result.get("supportedVersions", [protocol.LATEST_MODERN]):
            return answer
        meta = result.get("_meta")
        stamp = meta.get(protocol.META_SERVER_INFO) if isinstance(meta, dict) else None
        self._learn(stamp or result.get("serverInfo"), result.get("capabilities"))
        return None

    def _learn(self, info: object, capabilities: object) -> None:
        if isinstance(info, dict):
            self.server_name = str(info.get("name", ""))
            self.server_version = str(info.get("version", ""))
        if isinstance(capabilities, dict):
            self.capabilities = capabilities

    @property
    def pipelines(self) -> bool:
        """Whether `send` returns before the answer, so that one thread can send many calls."""
        return isinstance(self.carrier, StdioCarrier)

    def params_bytes(self, params: Mapping[str, Any]) -> bytes:
        """Return params as bytes, with the envelope that the stateless era asks for."""
        if self.era == "legacy":
            return encode(params)
        given = params.get("_meta")
        meta = {
            **(given if isinstance(given, dict) else {}),
            protocol.META_PROTOCOL_VERSION: self.protocol_version,
            protocol.META_CLIENT_CAPABILITIES: {},
            protocol.META_CLIENT_INFO: _client_info(),
        }
        return encode({**params, "_meta": meta})

    def prepare(
        self, method: str, params: bytes, headers: Mapping[str, str] | None = None
    ) -> Pending:
        """Return a request with a fresh id and exactly these params, not sent yet."""
        raw = request_bytes(next(self._ids), method, params)
        return Pending(parse(raw)[0], headers or {})

    def send(self, pending: Pending) -> None:
        """Send a prepared request once. Over HTTP this returns with the answer."""
        self.carrier.send(pending)

    def request(
        self, method: str, params: Mapping[str, Any], timeout: float | None = None
    ) -> Frame:
        """Send one request and return its answer, an error answer included.

        Raises NeverLeft, Unanswered, TimedOut or HttpRefused.
        """
        pending = self.prepare(method, self.params_bytes(params))
        self.send(pending)
        return pending.wait(self.timeout if timeout is None else timeout)

    def list_tools(self) -> list[dict[str, Any]]:
        """Return every tool, page after page.

        Raises HandshakeFailed if the server answers with an error or repeats a page's cursor.
        """
        tools: list[dict[str, Any]] = []
        cursor: object = None
        seen: set[object] = set()
        for _ in range(MAX_PAGES):
            answer = self.request("tools/list", {} if cursor is None else {"cursor": cursor})
            result = answer.result
            if answer.kind is Kind.ERROR or not isinstance(result, dict):
                raise HandshakeFailed(f"the server did not list its tools: {_said(answer)}")
            page = result.get("tools")
            if isinstance(page, list):
                tools += [tool for tool in page if isinstance(tool, dict)]
            cursor = result.get("nextCursor")
            if not isinstance(cursor, str) or not cursor:
                return tools
            if cursor in seen:
                break
            seen.add(cursor)
        raise HandshakeFailed("the server's list of tools does not end: its pages repeat")

    def close(self, *, kill: bool = False) -> None:
        """Close the connection; `kill` ends a child at once, as a crash would."""
        self.carrier.close(kill=kill)


def _client_info() -> dict[str, str]:
    return {"name": "fencekit", "version": __version__}


def _code(refused: Frame | WireError) -> object:
    return refused.error.get("code") if isinstance(refused, Frame) else None


def _said(refused: Frame | WireError) -> str:
    if isinstance(refused, WireError):
        return str(refused)
    if refused.kind is Kind.ERROR:
        return f"{refused.error.get('message', 'no reason given')} ({refused.error.get('code')})"
    return "its answer has no usable result"
