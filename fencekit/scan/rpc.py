"""Calls that name a remote method or carry a query: does the name only ask?"""

from __future__ import annotations

import re

from fencekit.scan import words
from fencekit.scan.effect import NOTHING, Effect
from fencekit.scan.evaluate import Evaluator
from fencekit.scan.facts import Call, Expr, Member
from fencekit.scan.values import Const, Env, Ext, Inst, Record, Unknown, Value


def body_says(ev: Evaluator, call: Call, env: Env) -> str:
    """Return "read", "write" or "declare" where the body names an RPC method, or a GraphQL one."""
    for arg in call.args:
        for value in _unfold(ev, _plain(ev.eval(arg.value, env))):
            if not isinstance(value, Record):
                continue
            for query in ev.entry(value, "query"):
                if isinstance(query, Const) and isinstance(query.value, str):
                    text = query.value.strip().lower()
                    if text.startswith("mutation"):
                        return mutation_says(query.value)
                    if text.startswith(("query", "{", "select")):
                        return "read"
            has_rpc = not isinstance(ev.entry(value, "jsonrpc")[0], Unknown)
            for rpc in ev.entry(value, "method") if has_rpc else ():
                told = rpc.value if isinstance(rpc, Const) and isinstance(rpc.value, str) else ""
                if (
                    told and told.upper() not in words.HTTP_VERBS_UPPER
                ):  # of a spread, which may hold anything
                    return rpc_says(told)
    return ""


def _plain(values: list[Value]) -> list[Value]:
    """Return the records that instances of plain structs are."""
    return [v.record if isinstance(v, Inst) and v.record is not None else v for v in values]


def mutation_says(text: str) -> str:
    """Judge a GraphQL mutation by the field it asks for: `issueArchive` declares."""
    field = re.search(r"\{\s*(?:\w+\s*:\s*)?(\w+)", text)
    for word in reversed(words.split(field[1])) if field else ():
        if word in words.DECLARING:
            return "declare"
        if word in words.ADDING:
            return "write"
    return "write"


def rpc_says(method: str) -> str:
    """Judge an RPC method by its verb; namespaces and prefixes before it are passed over."""
    parts = words.split(re.split(r"[._/]", method)[-1]) or words.split(method)
    for word in parts:
        if word == "block" and len(parts) > 1:  # `eth_blockNumber`
            continue
        said = verb_says((word,))
        if said:
            return said
    first = parts[0] if parts else ""
    for end in range(len(first) - 1, 2, -1):  # `sendtoaddress`: no sign parts the words
        said = verb_says((first[:end],))
        if said:
            return said
    return "read"


def method_reads(segment: str) -> bool:
    """Tell whether the end of a path names a method that only asks: `documents.info`."""
    before, dot, method = segment.rpartition(".")
    parts = words.split(method)
    return bool(before and dot) and verb_says(parts[:1]) == "read"


def verb_says(parts: tuple[str, ...]) -> str:
    """Return what the first of some words says; an empty string for no verb."""
    word = parts[0] if parts else ""
    if word in words.READING:
        return "read"
    if word in words.DECLARING:
        return "declare"
    return "write" if word in words.ADDING else ""


def _unfold(ev: Evaluator, values: list[Value]) -> list[Value]:
    out = list(values)
    for value in values:
        if isinstance(value, Record):
            for key in ("body", "json", "data"):
                out += [v for v in ev.entry(value, key) if isinstance(v, Record)]
    return out


RPC_CALLS = frozenset({
    "send", "request", "call", "rpc", "invoke", "send_rpc", "rpc_call", "call_method",
    "raw_request", "json_rpc", "rpc_request", "callRpc", "rpcCall", "sendRpc",
})  # fmt: skip


SOCKET_SENDS = frozenset({
    "send", "sendall", "sendto", "sendmsg", "send_json", "send_string", "send_text", "write",
})  # fmt: skip
# Keys under which a message says what the far side shall do.
COMMAND_KEYS = ("type", "command", "cmd", "method", "action", "op", "operation")


def socket_effect(ev: Evaluator, name: str, call: Call, env: Env) -> Effect:
    """Judge a message that is sent over a socket by the command it names, if it names one."""
    if name not in SOCKET_SENDS or not call.args:
        return NOTHING
    told = [t for a in call.args for t in _commands(ev, a.value, env)]
    if not told:
        return NOTHING
    said = {words.verb_of(t) for t in told}
    if not said - {"reading"}:
        return NOTHING
    return Effect(f"socket {told[0]}", said == {"declaring"}, "" not in said, told[0])


def _commands(ev: Evaluator, sent: Expr, env: Env) -> list[str]:
    """Return the commands named in what is sent, through `json.dumps(…).encode()`."""
    here = sent
    while isinstance(here, Call):
        if isinstance(here.callee, Member) and here.callee.name in ("encode", "toString"):
            here = here.callee.obj
        elif here.args:
            here = here.args[0].value
        else:
            return []
    out: list[str] = []
    for value in _plain(ev.eval(here, env)):
        if isinstance(value, Record):
            for key in COMMAND_KEYS:
                out += [str(v.value) for v in ev.entry(value, key) if isinstance(v, Const)]
    return [t for t in out if RPC_WORD.fullmatch(t)]


RPC_WORD = re.compile(r"[A-Za-z][\w.:/-]{1,60}")
RPC_NAME = re.compile(r"[a-z][a-z0-9]{1,14}[_.][A-Za-z][A-Za-z0-9_]+")  # `eth_sendTransaction`


def rpc_effect(ev: Evaluator, value: Value, name: str, call: Call, env: Env) -> Effect | None:
    """Judge a call that names a remote method, by that name."""
    if name not in RPC_CALLS or not call.args or not isinstance(value, Ext | Unknown):
        return None
    told: list[str] = []
    for given in _plain(ev.eval(call.args[0].value, env)):
        if isinstance(given, Const) and isinstance(given.value, str) and not given.holes:
            told += [given.value] if RPC_NAME.fullmatch(given.value) else []
        elif isinstance(given, Record):
            texts = [v for v in ev.entry(given, "method") if isinstance(v, Const)]
            told += [
                t for t in (str(v.value) for v in texts) if t.upper() not in words.HTTP_VERBS_UPPER
            ]
            named = given.expr.type_name if given.expr is not None else None
            if not told and isinstance(named, Member) and words.verb_of(named.name):
                told.append(named.name)  # `functions::messages::SendMessage { … }`
    if len(told) != 1:
        return None
    said = rpc_says(told[0])
    if said == "read":
        return NOTHING
    return Effect(f"RPC {told[0]}", said == "declare", isinstance(value, Ext), told[0])
