"""Is this call a write? Decided by where the called thing comes from and what it is given.

Reads dressed as writes are told apart: SELECT through `execute`, a search by POST, a JSON-RPC
method that only asks, a query in GraphQL, a child process that lists.

Each kind of write has its own module; this one asks them in turn and judges what is left by name.
"""

from __future__ import annotations

import sys

from fencekit.scan import words
from fencekit.scan.commands import PROCESS, command_effect
from fencekit.scan.effect import NOTHING, Effect, called_name, from_library, receiver_words, root_of
from fencekit.scan.evaluate import Evaluator
from fencekit.scan.facts import Call, Expr, Member, Name
from fencekit.scan.filing import (
    FILE_ROOTS,
    HANDLE_WRITES,
    TEXT_STEPS,
    file_effect,
    only_reads,
    open_effect,
    opened_effect,
)
from fencekit.scan.http_calls import http_by_verb, http_call
from fencekit.scan.outside import (
    RUST_OWN,
    acts_on_fetched,
    configures,
    fills_new,
    makes_client,
    makes_type,
    outside_type,
    part_of_answer,
    plain_noun,
    sent_builder,
)
from fencekit.scan.rpc import rpc_effect, socket_effect
from fencekit.scan.sql import sql_effect
from fencekit.scan.values import Env, Ext, Unknown, Value

SENDERS = frozenset({"smtplib", "nodemailer", "aiosmtplib", "lettre"})


def classify(ev: Evaluator, value: Value, call: Call, env: Env, around: str) -> Effect | None:
    """Return the write a call makes, or None; `around` is the name of the function it stands in."""
    name = called_name(call)
    if not name:
        return None
    if isinstance(value, Ext):
        found = _known(ev, value, call, env, around)
        if found is not None:
            return found if found.what else None
    sql = sql_effect(ev, name, call, env)
    if sql is not None:
        return sql if sql.what else None
    http = http_by_verb(ev, value, name, call, env, around)
    if http is not None:
        return http if http.what else None
    rpc = rpc_effect(ev, value, name, call, env)
    if rpc is not None:
        return rpc if rpc.what else None
    return _by_verb(ev, value, name, call, env, around)


def _known(ev: Evaluator, value: Ext, call: Call, env: Env, around: str) -> Effect | None:
    """Judge calls of libraries that the rules know; `NOTHING` for a known read."""
    root = root_of(value)
    steps = [s for s in value.steps if s != "()"]
    last = value.last
    path = ".".join([root, *steps]) if root else ".".join(steps)
    if path in PROCESS or (
        root in ("child_process", "execa", "subprocess") and steps and "()" not in value.steps
    ):
        return command_effect(ev, call, env)
    if root in ("std::fs", "tokio::fs", "async_std::fs") and "()" in value.steps:
        return opened_effect(value)
    if root in FILE_ROOTS and "()" in value.steps and last in ("destroy", "close", "cancel"):
        return NOTHING  # of a stream that is read
    text_of_os = root == "os" and "()" in value.steps  # `os.getenv("X").replace(…)`
    given = value.steps[:-1]
    if "()" in given and root in ("fs", "fs/promises", "fs-extra"):
        opened = {"open", "openSync", "createWriteStream"} & set(given)
        if not opened or last not in HANDLE_WRITES or only_reads(ev, value):
            return NOTHING  # text that was read, a stream, a handle that is closed
        return Effect("file write", True, True)
    if root in FILE_ROOTS and TEXT_STEPS & set(given):
        return NOTHING
    if (root in FILE_ROOTS or path.split(".")[0] in ("Bun", "Deno")) and steps and not text_of_os:
        if words.split(last)[-2:] in (("read", "stream"), ("read", "file")):
            return NOTHING
        if last == "replace" and value.steps.count("()") > (root == "pathlib"):
            return NOTHING  # of the text that was read: `readFileSync(p).replace(…)`
        found = file_effect(ev, last, call, env)
        if found is not None:
            return found
        if root in ("fs", "fs/promises", "fs-extra"):
            return NOTHING  # `lstatSync` reads: its last word is no verb
    if (not root and path == "open") or path in ("io.open", "aiofiles.open"):
        return open_effect(ev, call, env)
    special = _of_special_library(ev, value, call, env)
    if special is not None:
        return special
    if from_library(root, words.HTTP_LIBRARIES) or path in (
        "fetch",
        "globalThis.fetch",
        "window.fetch",
    ):
        return http_call(ev, value, call, env, around)
    if from_library(root, words.QUIET_LIBRARIES) or _standard(root, env):
        return NOTHING
    return None


def _of_special_library(ev: Evaluator, value: Ext, call: Call, env: Env) -> Effect | None:
    """Judge calls of libraries whose method names mean more, or less, than their words."""
    root, last = root_of(value), value.last
    if from_library(root, words.REDIS_LIBRARIES) and "()" in value.steps:
        return _redis(last)
    if root in SENDERS and last in ("sendMail", "send_message", "sendmail", "send", "send_raw"):
        return Effect("mail", False, True, last)
    if from_library(root, words.DOCUMENT_LIBRARIES):
        kept = "".join(words.split(last)) in words.KEEPS
        return Effect("file write", True, True, last) if kept else NOTHING
    if root in words.SOCKET_LIBRARIES and "()" in value.steps:
        return socket_effect(ev, last, call, env)
    return None


def _redis(command: str) -> Effect:
    """Judge a command of a Redis client by its name."""
    name = "".join(words.split(command))
    if name in words.REDIS_ADDS or name in words.REDIS_DECLARES:
        return Effect(f"redis {command}", name in words.REDIS_DECLARES, True, command)
    return NOTHING


def _standard(root: str, env: Env) -> bool:
    module = env.function.module
    language = module.language if module is not None else ""
    first = root.split(".", maxsplit=1)[0].split("/", maxsplit=1)[0]
    if language == "python":
        return first in sys.stdlib_module_names and first not in ("sqlite3", "smtplib")
    if language == "java":
        own = ("java.", "javax.", "jakarta.")
        speaks = (
            "java.sql",
            "javax.sql",
            "jakarta.persistence",
            "javax.persistence",
            "jakarta.jms",
        )
        return root.startswith(own) and not root.startswith(speaks)
    if language == "go":
        domain = root.split("/", maxsplit=1)[0]  # `github.com/…` is no part of the language
        return bool(root) and "." not in domain and root not in ("database/sql",)
    return False


def _by_verb(
    ev: Evaluator, value: Value, name: str, call: Call, env: Env, around: str
) -> Effect | None:
    """Judge a call by its verb where its receiver is a client of something outside."""
    if not isinstance(call.callee, Member):
        return _imported(value, name, call) or _chosen_by_name(value, name, target=name)
    if name in RUST_OWN:
        return None
    if name in ("replace", "replaceAll") and len(call.args) == 2:
        return None  # of text
    lets_go = name.lower() in words.LETS_GO and not call.args and not isinstance(value, Unknown)
    if lets_go and not (isinstance(value, Ext) and acts_on_fetched(value, call)):
        return None  # of a connection, a session, a file
    if name in ("join", "concat") and not isinstance(value, Ext):
        return None  # of texts and lists
    kind = words.verb_of(name)
    parts = words.split(name)
    near = receiver_words(call.callee.obj)
    target = ".".join([*sorted(near), name])
    if isinstance(value, Ext) and (value.root or outside_type(value, env)):
        calls = value.steps.count("()")
        if (
            makes_type(value, env)
            or sent_builder(value, name, call, env)
            or makes_client(parts)
            or configures(parts)
            or part_of_answer(value, env)
        ):
            return None  # a value is made, or a builder sent whose own verb was judged
        plain = len(parts) == 1 and parts[0] in words.CONTAINER
        if plain and (near & words.IN_PROCESS or fills_new(value)):
            return None
        if parts[0] == "new" and not calls:
            return None  # `nbformat.v4.new_code_cell(text)` makes a value
        if plain and calls > 1 and not near & words.CLIENT and not acts_on_fetched(value, call):
            return None
        if name in words.MAKES_OF_MANY and value.steps[-2:-1] and value.steps[-2].endswith("s"):
            return Effect(value.path, name == "pull", True, target)
        if kind in ("adding", "declaring"):
            asks = set(parts[1:]) & words.QUERYING
            if asks and kind == "adding" and parts[0] not in ("create", "send", "add"):
                return None
            doubtful = plain_noun(parts) or parts[:1] == ("mutate",)  # whose mutation is in a type
            return Effect(value.path, kind == "declaring", not doubtful, target)
        if kind == "" and call.args and calls and name not in words.ITERATES:
            return Effect(value.path, False, False, target, weak=True)
        return None
    if isinstance(value, Unknown) and kind in ("adding", "declaring") and not configures(parts):
        return _of_unknown(name, kind, call.callee, near)
    return None


def _of_unknown(name: str, kind: str, callee: Member, near: set[str]) -> Effect | None:
    """Judge a call on something unknown by its verb, and by whether it is called a client."""
    parts, target = words.split(name), ".".join([*sorted(near), name])
    single = len(parts) == 1
    bare = callee.obj.id if isinstance(callee.obj, Name) else ""
    client = (set(words.split(bare)[-1:]) if bare else near) & words.CLIENT  # not `table_names`
    if near & words.IN_PROCESS or (single and parts[0] in words.CONTAINER and not client):
        return None
    if near & words.CLIENT or not single:
        text = ".".join([*_dotted(callee.obj), name])
        return Effect(text, kind == "declaring", False, target, weak=not near & words.CLIENT)
    return None


def of_interface(owner: str, name: str) -> Effect | None:
    """Judge a method of an interface that nothing here implements, by its verb alone."""
    kind = words.verb_of(name)
    if kind not in ("adding", "declaring") or configures(words.split(name)):
        return None
    return Effect(f"{owner}.{name}", kind == "declaring", False, name, weak=True)


def _imported(value: Value, name: str, call: Call) -> Effect | None:
    """Judge a function that was imported by its name: `sendTransaction(connection, tx)`.

    Verbs that leave no doubt count by themselves, others where a client is among the arguments or
    the tool's name agrees; so do request objects, which somebody sends.
    """
    if not isinstance(value, Ext) or not value.root or len(value.steps) != 1:
        return None
    parts = words.split(name)
    kind = words.verb_of(name)
    if kind not in ("adding", "declaring") or len(parts) < 2:
        return None
    if name[:1].isupper():
        asked = parts[-1] in ("request", "command") and parts[0] != "request"
        return Effect(value.path, kind == "declaring", True, name) if asked else None
    if parts[0] in words.MAKES or words.verb_of(parts[0]) == "":
        return None
    sends = parts[0] in words.SENDS
    with_client = any(receiver_words(a.value) & words.CLIENT for a in call.args[:2])
    if set(parts[1:]) & words.MADE and not sends:
        return None
    sure = sends or with_client
    return Effect(value.path, kind == "declaring", sure, name, weak=not sure)


def _chosen_by_name(value: Value, name: str, target: str) -> Effect | None:
    """Judge a call of a method that was picked by its name: `send = client[operation]; send()`."""
    if not isinstance(value, Ext) or not value.root or "()" not in value.steps:
        return None
    if value.steps[-1] in ("()", name):
        return None
    kind = words.verb_of(value.last)
    if kind == "reading":
        return None
    return Effect(value.path, kind == "declaring", bool(kind), target, weak=not kind)


def _dotted(expr: Expr) -> list[str]:
    if isinstance(expr, Member):
        return [*_dotted(expr.obj), expr.name]
    return [expr.id] if isinstance(expr, Name) else []
