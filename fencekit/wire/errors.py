"""What can go wrong on the wire, split by the one question that matters: may the request have run?

WireError
├── NeverLeft        no byte of the request was handed over: it cannot have run
├── Unanswered       at least one byte left and no answer came: it may have run
│   └── TimedOut     … because the caller's own time limit passed
├── HttpRefused      the HTTP layer answered with a status and no JSON-RPC body
└── HandshakeFailed  the peer and this client share no protocol version
"""

from __future__ import annotations


class WireError(Exception):
    """Base of everything this package raises; the text is one or two lines for a person."""

    may_have_run = True


class NeverLeft(WireError):
    """No byte of the request was handed to the peer, so the request cannot have run."""

    may_have_run = False


class Unanswered(WireError):
    """Bytes of the request left and no answer came back: whether it ran is unknown."""


class TimedOut(Unanswered):
    """The time limit passed before the answer came: whether the request ran is unknown."""


class HttpRefused(WireError):
    """The HTTP layer answered with a status and without a JSON-RPC message.

    A status alone proves nothing about the effect, so `may_have_run` stays true; a caller with a
    rule for a certain status (a 401 in front of every handler, say) reads `status`; `challenged`
    says that it came with WWW-Authenticate.
    """

    def __init__(
        self,
        status: int,
        text: str,
        *,
        retry_after: str | None = None,
        challenged: bool = False,
    ) -> None:
        super().__init__(text)
        self.status = status
        self.retry_after = retry_after
        self.challenged = challenged


class HandshakeFailed(WireError):
    """The peer answered, but no protocol version is shared or the handshake was rejected."""

    may_have_run = False
