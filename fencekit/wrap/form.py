"""What the human behind a host is asked about a call of unknown outcome, and what the answer says.

Pure. MCP specification, elicitation (2025-06-18, 2025-11-25; in 2026-07-28 as an `inputRequests`
entry): one flat form, in words that every revision has. Tool, arguments and the recorded error come
from others: they are shown on one line each, bounded, without anything that steers a terminal or
hides, and secrets are masked.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from fencekit.core.errors import IntentFailed
from fencekit.report.escape import mask, mask_text, terminal
from fencekit.wire import protocol
from fencekit.wrap.actions import Call
from fencekit.wrap.outcome import stamp

Said = Literal["happened", "did not happen", "unsure"]

OUTCOME, NOTE = "outcome", "note"
CHOICES: dict[str, Said] = {
    "It happened": "happened",
    "It did not happen": "did not happen",
    "I do not know": "unsure",
}
FIRST_ELICITATION = "2025-06-18"  # the first revision of the handshake era that has it
_NOTE_LENGTH = 300


@dataclass(frozen=True, slots=True)
class Answer:
    """What the human said, and how he knows."""

    said: Said
    note: str = ""


UNSURE = Answer("unsure")


def form(call: Call, failed: IntentFailed) -> dict[str, Any]:
    """Return the params of `elicitation/create`."""
    choices = list(CHOICES)
    return {
        "message": _message(call, failed),
        "requestedSchema": {
            "type": "object",
            "properties": {
                OUTCOME: {
                    "type": "string",
                    "title": "Did it happen?",
                    "description": f"“{choices[1]}” lets the call run now. If it did happen after "
                    "all, or still can, it then happens twice.",
                    "enum": choices,
                },
                NOTE: {
                    "type": "string",
                    "title": "How do you know?",
                    "description": "Kept in the record of this decision.",
                    "maxLength": _NOTE_LENGTH,
                },
            },
            "required": [OUTCOME],
        },
    }


def _message(call: Call, failed: IntentFailed) -> str:
    why = _line(mask_text(failed.reason or failed.cause), 200)
    return (
        f"The tool {_quoted(call.treatment.tool, 100)} was called with these arguments before, and "
        f"since {stamp(failed.since_ms)} nobody knows whether it took effect. It is called again "
        "now, and held back. Please look at what it acts on (not at this text), then say what you "
        f"found.\n\nArguments: {_arguments(call.frame.params.get('arguments'))}\n"
        f"What was heard of it: {_quoted(why, 200)}"
    )


MAX_SHOWN_DEPTH = 60


def _arguments(arguments: Any) -> str:
    if _is_deeper(arguments, MAX_SHOWN_DEPTH):
        return "nested too deeply to be shown"
    text = json.dumps(mask({} if arguments is None else arguments), ensure_ascii=False)
    return _line(text, 400)


def _is_deeper(value: Any, levels: int) -> bool:
    """Tell whether objects and arrays stand in more than so many levels; without recursion."""
    todo = [(value, 0)]
    while todo:
        here, depth = todo.pop()
        if depth > levels:
            return True
        inner = here.values() if isinstance(here, dict) else here if isinstance(here, list) else ()
        todo += [(one, depth + 1) for one in inner]
    return False


def _quoted(text: str, limit: int) -> str:
    """Return a text in quotation marks of JSON, so that it cannot pose as ours."""
    return json.dumps(_line(text, limit), ensure_ascii=False)


def _line(text: str, limit: int) -> str:
    return terminal(" ".join(text[: limit * 4].split()), limit=limit)


def read(result: object) -> Answer:
    """Return what an `ElicitResult` says; whatever is not clearly an answer is "I do not know"."""
    if not isinstance(result, Mapping) or result.get("action") != "accept":
        return UNSURE
    content = result.get("content")
    if not isinstance(content, Mapping):
        return UNSURE
    chosen, note = content.get(OUTCOME), content.get(NOTE)
    said = CHOICES.get(chosen, "unsure") if isinstance(chosen, str) else "unsure"
    return Answer(said, _line(note, _NOTE_LENGTH) if isinstance(note, str) else "")


def can_show(capabilities: object) -> bool:
    """Whether a client that declared these capabilities can show a form.

    An empty `elicitation` means forms; one that names only other modes does not.
    """
    offered = capabilities.get("elicitation") if isinstance(capabilities, Mapping) else None
    return isinstance(offered, Mapping) and (not offered or "form" in offered)


def asks_in_rounds(params: Mapping[str, Any]) -> tuple[bool, object]:
    """Say of a modern request whether its client can show a form, and who the client is."""
    meta = params.get("_meta")
    if not isinstance(meta, Mapping):
        return False, None
    able = can_show(meta.get(protocol.META_CLIENT_CAPABILITIES))
    return able, meta.get(protocol.META_CLIENT_INFO)


def human_at(client: object) -> str:
    """Return the name under which the human's act is recorded: whoever sits before this host."""
    name = client.get("name") if isinstance(client, Mapping) else None
    return f"human at {_line(name, 60) if isinstance(name, str) and name else 'the host'}"
