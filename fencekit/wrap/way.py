"""The reverse proxy's way to its HTTP server: connections, and what the server would refuse."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping

import httpx2
from mcp.shared.inbound import (
    ERROR_CODE_HTTP_STATUS,
    InboundLadderRejection,
    classify_inbound_request,
    find_duplicated_routing_header,
    validate_mcp_param_headers,
)

from fencekit.wire import protocol
from fencekit.wire.frames import Frame, error_bytes
from fencekit.wire.hops import Headers, on_wire
from fencekit.wrap.gate import Gate, is_modern
from fencekit.wrap.remote import ANSWER_TIMEOUT

CONNECT_TIMEOUT = 10.0  # seconds


class Way:
    """The way to the server: its address, our headers for it, and connections."""

    def __init__(self, url: str, own: Mapping[str, str]) -> None:
        self.url = url
        self.own = own
        limits = httpx2.Limits(max_connections=None, max_keepalive_connections=20)
        alone = httpx2.Limits(max_connections=None, max_keepalive_connections=0)
        timeout = httpx2.Timeout(ANSWER_TIMEOUT, connect=CONNECT_TIMEOUT)
        self.pooled = httpx2.AsyncClient(limits=limits, timeout=timeout, follow_redirects=False)
        # A connection of its own, so that "never left" can be told from "sent".
        self.fresh = httpx2.AsyncClient(limits=alone, timeout=timeout, follow_redirects=False)

    async def tell(self, raw: bytes, headers: Headers) -> None:
        """Send what needs no answer; that nobody takes it is the server's to notice."""
        with contextlib.suppress(httpx2.HTTPError):
            await self.pooled.post(self.url, headers=on_wire(headers), content=raw)

    @staticmethod
    def refusal(frame: Frame, headers: Headers, gate: Gate) -> tuple[int, bytes] | None:
        """Return status and body with which a server refuses headers that contradict the body."""
        given = dict(headers)
        twice = find_duplicated_routing_header(headers)
        if not is_modern(frame) and given.get(protocol.HEADER_PROTOCOL_VERSION) not in (
            protocol.MODERN_VERSIONS
        ):
            return None
        found = classify_inbound_request(frame.message, headers=given)
        if twice is not None:
            found = InboundLadderRejection(protocol.HEADER_MISMATCH, f"{twice} is there twice")
        if not isinstance(found, InboundLadderRejection):
            declared = gate.catalogue.declared.get(str(frame.params.get("name")), {})
            arguments = frame.params.get("arguments")
            arguments = arguments if isinstance(arguments, dict) else {}
            wrong = validate_mcp_param_headers(declared.get("inputSchema"), arguments, given)
            if wrong is None:
                return None
            found = wrong
        body = error_bytes(frame.id, found.code, found.message, found.data)
        return ERROR_CODE_HTTP_STATUS.get(found.code, 400), body

    async def close(self) -> None:
        """Drop every connection."""
        await self.pooled.aclose()
        await self.fresh.aclose()
