"""The answers that the fence itself gives: replays, refusals and waits, told to model and machine.

Pure. A recorded result is edited as text, member by member, so that every value the server wrote
stays to the letter. The model reads at most three short sentences; machines read
`_meta["fencekit/outcome"]`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from fencekit.wire import protocol
from fencekit.wire.frames import encode, members, result_bytes
from fencekit.wrap.handles import in_era
from fencekit.wrap.verdict import clean

COMPLETE = "complete"


@dataclass(frozen=True, slots=True)
class Asker:
    """Whom an answer goes to: the id of its request, and its protocol era."""

    id: object
    modern: bool
    # Whether it can read a task handle.
    tasks: bool = False


def stamp(at_ms: int) -> str:
    """Return wall time in milliseconds as ISO 8601 in UTC, to the second."""
    return datetime.fromtimestamp(at_ms / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def mark(
    state: str, intent: str, since_ms: int | None = None, cert: str = "", *, replayed: bool = False
) -> dict[str, Any]:
    """Return what stands under `_meta["fencekit/outcome"]`."""
    made: dict[str, Any] = {"state": state, "intent": intent}
    if since_ms is not None:
        made["since"] = stamp(since_ms)
    if cert:
        made["cert"] = cert
    if replayed:
        made["replayed"] = True
    made["operator"] = f"fencekit ledger show {_quoted(intent)}"
    return made


def _quoted(intent: str) -> str:
    import shlex

    return shlex.quote(intent)


def replay(asker: Asker, text: str, outcome: Mapping[str, Any], note: str = "") -> bytes:
    """Return the answer that carries a recorded result, marked, in the asker's protocol era.

    `note` is one more text block for the model, after the recorded ones.
    """
    parts = dict(members(text.encode("utf-8")))
    parts["_meta"] = _with_mark(parts.get("_meta"), outcome)
    if not asker.modern:
        parts.pop("resultType", None)
    elif "resultType" not in parts:
        parts["resultType"] = encode(COMPLETE)
    if note:
        parts["content"] = _with_block(parts.get("content"), note)
    return result_bytes(asker.id, _joined(parts))


def handle(asker: Asker, text: str, outcome: Mapping[str, Any]) -> bytes:
    """Return the answer that carries a recorded task handle, marked, in the asker's era."""
    parts = in_era(text, modern=asker.modern)
    parts["_meta"] = _with_mark(parts.get("_meta"), outcome)
    return result_bytes(asker.id, _joined(parts))


def _with_mark(meta: bytes | None, outcome: Mapping[str, Any]) -> bytes:
    try:
        parts = dict(members(meta)) if meta is not None else {}
    except ValueError:  # a `_meta` that is no object cannot carry a mark; ours takes its place
        parts = {}
    parts[protocol.META_OUTCOME] = encode(outcome)
    return _joined(parts)


def _with_block(content: bytes | None, note: str) -> bytes:
    block = encode({"type": "text", "text": note})
    body = (content or b"[]").strip()
    if not body.startswith(b"["):
        return body
    inner = body[1:-1].strip()
    return b"[" + inner + (b"," if inner else b"") + block + b"]"


def _joined(parts: Mapping[str, bytes]) -> bytes:
    return b"{" + b",".join(encode(name) + b":" + value for name, value in parts.items()) + b"}"


def refusal(asker: Asker, text: str, outcome: Mapping[str, Any]) -> bytes:
    """Return an ordinary tool result that says why a call was not run."""
    result: dict[str, Any] = {
        "content": [{"type": "text", "text": text}],
        "isError": True,
        "_meta": {protocol.META_OUTCOME: dict(outcome)},
    }
    if asker.modern:
        result["resultType"] = COMPLETE
    return result_bytes(asker.id, encode(result))


def already_ran(at_ms: int, intent: str) -> str:
    """Say for a late repeat that nothing ran now."""
    return (
        f"This is the recorded result of the same call, which ran at {stamp(at_ms)}; nothing ran "
        "now. If a second one is really wanted, ask the operator to run: fencekit ledger forget "
        f"{_quoted(intent)}"
    )


def may_have_happened(reason: str, intent: str) -> str:
    """Say why a call whose outcome is unknown is not run again."""
    said = clean(reason, 200)
    return (
        f'This call was sent before and may have taken effect: "{said}". It was not run again. '
        "Check with a read whether it happened, and ask the operator to run: "
        f"fencekit ledger show {_quoted(intent)}"
    )


def still_running(since_ms: int) -> str:
    """Say that the same call runs already."""
    return (
        f"The same call has been running since {stamp(since_ms)} and has not answered yet. "
        "It was not run again. Call again with the same arguments for its result."
    )


def accepted(since_ms: int) -> str:
    """Say to somebody who cannot read task handles that the same call became a task."""
    return (
        f"The server accepted the same call at {stamp(since_ms)} as a task that has not ended yet. "
        "It was not run again. Call again with the same arguments for its result."
    )


def other_action() -> str:
    """Say that an idempotency key was used for something else."""
    return (
        "This idempotency key was already used for a call with other arguments. Nothing was run. "
        "Use a new key for a new action, or the same arguments for a retry."
    )


def other_account() -> str:
    """Say that only a guess about the account keeps a recorded result from being given."""
    return (
        "The same call is on record under what looks like another account, so it was neither run "
        "nor answered from the record. Ask the operator to say which accounts are one: "
        "fencekit wrap --account-env NAME, or --scope NAME"
    )


def not_taken(why: str, intent: str) -> str:
    """Say that a human's answer about a call changed nothing, and that nothing ran by it."""
    return (
        f"A person was asked about this call, and the answer was not taken: {clean(why, 240)}. "
        "It was not run. Call again to see how it stands, or ask the operator to run: "
        f"fencekit ledger show {_quoted(intent)}"
    )


def confirmed(at_ms: int) -> str:
    """Say what the result of a call is whose answer was lost and that a human confirmed."""
    return (
        f"This call took effect, and its answer was lost: a person confirmed it at {stamp(at_ms)}. "
        "It was not run again. Read the present state for what it brought about."
    )


def ledger_unusable(why: str) -> str:
    """Say that nothing can be fenced, so nothing is run."""
    return (
        f"This call was not run, because the record that keeps it from running twice is unusable: "
        f"{clean(why, 240)}. Tell the operator; the same call can be made again once it is fixed."
    )


def not_kept(digest: str, size: int) -> str:
    """Say that a call ran and that its result was too large to keep."""
    return (
        f"This call already ran; its result ({size} bytes, SHA-256 {digest[:12]}) was not kept. "
        "Nothing ran now. Read the present state instead."
    )


def never_left(why: str) -> str:
    """Say that a call did not reach the server."""
    return f"This call did not reach the server: {clean(why, 240)}. Nothing ran; it can be retried."


def lost(why: str, intent: str) -> str:
    """Say that a call left and no answer will come."""
    return (
        f"No answer came: {clean(why, 200)}. The call may have taken effect, so it will not be run "
        f"again until the operator has looked: fencekit ledger show {_quoted(intent)}"
    )


def kept_digest(text: str) -> tuple[str, int]:
    """Return digest and size of a result that was not kept."""
    from fencekit.core.certificate import NOT_KEPT

    kept = json.loads(text).get(NOT_KEPT, {})
    return str(kept.get("digest", "")), int(kept.get("size", 0))
