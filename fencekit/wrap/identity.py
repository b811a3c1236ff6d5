"""Which calls are the same action: the identity of a `tools/call`.

Pure. In this order: an idempotency key that the caller sent, the fields of the arguments that the
configuration names, else the whole canonical arguments without the ignored paths; always together
with the tool and the scope. JSON-RPC ids and all other `_meta` are no part of it. All legs of a
multi-round call (MCP 2026-07-28, `inputResponses` and `requestState`) share one identity; `leg`
tells them apart.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from fencekit.core.canonical import canonical_bytes
from fencekit.core.errors import InvalidRequest
from fencekit.core.request import EffectRequest
from fencekit.core.state import IntentKey
from fencekit.wrap.rules import Rules, ToolRule

GUESS = "fencekit/account-guess"
GROUP, CREDENTIAL = "group:", "credential:"
"""How the parts of a principal begin that clients of the HTTP front bring."""
_NOT_AN_OBJECT = "fencekit/arguments"
_NAME_IN_INTENT = 100  # characters; the digest holds the whole name
_LEG_FIELDS = ("inputResponses", "requestState")


@dataclass(frozen=True, slots=True)
class Scope:
    """Whose calls are one: the name of the server's scope, the account, and a guessed account.

    The account separates principals. A guess stands in the fingerprint only, so that it may
    withhold a recorded result but never admit a second run. `program` is what the command line
    runs, for finding other scopes of it; it is no part of identity.
    """

    name: str
    account: str = ""
    guess: str = ""
    program: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class Identity:
    """One logical action: what the ledger is asked, by what it was told apart, and its leg."""

    request: EffectRequest
    by: str
    leg: str

    @property
    def key(self) -> IntentKey:
        """The ledger key."""
        return self.request.key


def identify(
    params: Mapping[str, Any], rule: ToolRule, rules: Rules, scope: Scope, agent: str = ""
) -> Identity:
    """Return the identity of a call.

    Raises `InvalidRequest` where it has none: a number or a text that canonical JSON does not
    have, a configured field that is missing, a key that is no text.
    """
    tool = str(params["name"])
    arguments = _arguments(params)
    key = _callers_key(params, rules)
    if key is not None:
        by, seed, covered = "key", key, without(arguments, rule.ignore)
    elif rule.intent:
        picked = {path: _required(arguments, path, tool) for path in rule.intent}
        by, seed, covered = "fields", canonical_bytes(picked).decode(), picked
    else:
        covered = without(arguments, rule.ignore)
        by, seed = "arguments", canonical_bytes(covered).decode()
    return Identity(_request(tool, by, seed, covered, rule, scope, agent), by, _leg(params))


def _request(
    tool: str,
    by: str,
    seed: str,
    covered: Mapping[str, Any],
    rule: ToolRule,
    scope: Scope,
    agent: str,
) -> EffectRequest:
    name = tool if len(tool) <= _NAME_IN_INTENT and tool.isprintable() else ""
    # The scope stands in front only, so that a record can be found under another (`readdressed`).
    intent = f"{scope.name}/{name}/{_digest([tool, by, seed])[:32]}"
    args = dict(covered)
    if scope.guess:
        args[GUESS] = scope.guess
    domain = None if rule.domain is None else f"{scope.name}/{rule.domain}"
    return EffectRequest.make(
        intent, tool, args, domain=domain, agent=agent, principal=scope.account
    )


def scope_in(intent: str) -> str:
    """Return the name of the scope that an intent of the proxy belongs to."""
    return intent.partition("/")[0]


def with_guest(account: str, guest: str) -> str:
    """Return the principal of a guest of the HTTP front: the proxy's own account, and the guest."""
    return "/".join(filter(None, (account, guest)))


def guest_in(principal: str) -> tuple[str, str]:
    """Return the proxy's own account and the guest's part of a principal; each may be empty."""
    parts = principal.split("/")
    at = next((i for i, part in enumerate(parts) if part.startswith((GROUP, CREDENTIAL))), None)
    return (principal, "") if at is None else ("/".join(parts[:at]), "/".join(parts[at:]))


def readdressed(request: EffectRequest, scope: Scope, *, guesses: bool) -> EffectRequest:
    """Return the action of a record as a call under another scope asks for it.

    Where guesses count under that scope, the record keeps the account that was guessed for it, so
    that a call of another one is still withheld; one without any gets the scope's. A guest of the
    HTTP front stays who it is.
    """
    rest = request.intent.removeprefix(scope_in(request.intent))
    domain = request.domain
    if domain is not None:
        domain = scope.name + domain.removeprefix(scope_in(request.intent))
    args = {name: value for name, value in request.args.items() if guesses or name != GUESS}
    if guesses and scope.guess:
        args.setdefault(GUESS, scope.guess)
    return EffectRequest.make(
        scope.name + rest,
        request.tool,
        args,
        domain=domain,
        agent=request.agent,
        principal=with_guest(scope.account, guest_in(request.principal)[1]),
    )


def _arguments(params: Mapping[str, Any]) -> Mapping[str, Any]:
    """Missing arguments equal none at all; what is no object is kept under one name."""
    arguments = params.get("arguments")
    if arguments is None:
        return {}
    return arguments if isinstance(arguments, dict) else {_NOT_AN_OBJECT: arguments}


def _callers_key(params: Mapping[str, Any], rules: Rules) -> str | None:
    meta = params.get("_meta")
    given: list[Any] = [params.get("idempotencyKey")]
    if isinstance(meta, dict):
        given += [meta.get(name) for name in rules.meta_keys]
    for key in given:
        if key is None or key == "":
            continue
        if not isinstance(key, str):
            raise InvalidRequest("an idempotency key must be text")
        return key
    return None


def _leg(params: Mapping[str, Any]) -> str:
    """Name the leg of a multi-round call; the first one is empty."""
    sent = {name: params[name] for name in _LEG_FIELDS if params.get(name) is not None}
    return _digest(sent)[:16] if sent else ""


def steps(path: str) -> list[str]:
    """Split a path: `order`, `/customer/id` (RFC 6901) or `$.customer.id`."""
    if path.startswith("/"):
        return [s.replace("~1", "/").replace("~0", "~") for s in path[1:].split("/")]
    if path.startswith("$."):
        return path[2:].split(".")
    return [path]


_MISSING = object()


def look_up(value: Any, path: str, default: Any = _MISSING) -> Any:
    """Return what stands at a path; raises KeyError where nothing does and no default is given."""
    for step in steps(path):
        if isinstance(value, Mapping) and step in value:
            value = value[step]
        elif isinstance(value, list) and step.isdigit() and int(step) < len(value):
            value = value[int(step)]
        elif default is _MISSING:
            raise KeyError(path)
        else:
            return default
    return value


def _required(arguments: Mapping[str, Any], path: str, tool: str) -> Any:
    try:
        return look_up(arguments, path)
    except KeyError:
        raise InvalidRequest(
            f"the call of {tool} lacks {path!r}, by which the configuration tells calls apart"
        ) from None


def without(arguments: Mapping[str, Any], paths: tuple[str, ...]) -> dict[str, Any]:
    """Return the arguments without what stands at `paths`; the given value is left alone."""
    made = dict(arguments)
    for path in paths:
        *way, last = steps(path)
        here: Any = made
        for step in way:
            inner = here.get(step)
            if not isinstance(inner, Mapping):
                here = None
                break
            here[step] = dict(inner)
            here = here[step]
        if isinstance(here, dict):
            here.pop(last, None)
    return made


def _digest(value: Any) -> str:
    return hashlib.sha256(canonical_bytes(value)).hexdigest()
