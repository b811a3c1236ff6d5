"""Is this call a write? Decided by where the called thing comes from and what it is given.

Reads dressed as writes are told apart: SELECT through `execute`, a search by POST, a JSON-RPC
method that only asks, a query in GraphQL, a child process that lists.

Over 400 lines: one rule per kind of write, which ask each other.
"""

from __future__ import annotations

import functools
import re
import sys
from dataclasses import dataclass

from fencekit.scan import words
from fencekit.scan.evaluate import Evaluator
from fencekit.scan.facts import Call, Expr, Index, Member, Name
from fencekit.scan.scopes import scope_of
from fencekit.scan.values import Const, Env, Ext, Input, Inst, Record, Seq, Unknown, Value

SQL_CALLS = frozenset({
    "execute", "executemany", "query", "exec", "run", "prepare", "raw", "fetch", "fetchrow",
    "fetchval", "queryrow", "querycontext", "execcontext", "queryrowcontext", "execute_batch",
    "execute_raw", "$executeraw", "$executerawunsafe", "$queryraw", "executescript", "unsafe",
    "one",
    "none", "any", "text", "update", "executeupdate", "executequery", "preparestatement",
    "batchupdate", "createnativequery", "queryforobject", "queryforlist", "query_as",
    "query_scalar", "batch_execute", "sql_query", "sql",
})  # fmt: skip
SQL = re.compile(r"\s*(?:/\*.*?\*/\s*)?(\w+)", re.DOTALL)
SQL_WRITES = frozenset({
    "insert", "update", "delete", "replace", "merge", "create", "drop", "alter", "truncate",
    "grant",
    "revoke", "call", "copy", "vacuum", "upsert",
})  # fmt: skip
SQL_READS = frozenset({"select", "pragma", "show", "explain", "with", "describe", "values"})
PROCESS = frozenset({
    "subprocess.run", "subprocess.Popen", "subprocess.call", "subprocess.check_call",
    "subprocess.check_output", "os.system", "os.popen", "asyncio.create_subprocess_exec",
    "asyncio.create_subprocess_shell", "child_process.exec", "child_process.execSync",
    "child_process.spawn", "child_process.spawnSync", "child_process.execFile",
    "child_process.execFileSync", "child_process.fork", "execa", "execa.execa", "os/exec.Command",
    "os/exec.CommandContext", "std::process::Command.new", "tokio::process::Command.new",
    "std::process.Command.new", "tokio::process.Command.new", "zx.$", "ProcessBuilder",
    "Runtime.getRuntime.exec",
})  # fmt: skip
FILE_ADDS = frozenset({"appendFile", "appendFileSync", "append_text"})
FILE_WRITES = frozenset({
    "writeFile", "writeFileSync", "createWriteStream", "unlink", "unlinkSync", "rename",
    "renameSync",
    "rm", "rmSync", "rmdir", "copyFile", "copyFileSync", "cp", "cpSync", "truncate", "outputFile",
    "outputJson", "writeJson", "remove", "move", "symlink", "write_text", "write_bytes", "replace",
    "rmtree", "copy", "copy2", "copytree", "removedirs", "WriteFile", "Create", "Remove",
    "RemoveAll",
    "Rename", "write", "create", "remove_file", "remove_dir_all", "copyfile", "writeFile_",
    "remove_dir", "hard_link", "writeString", "deleteIfExists", "newBufferedWriter", "createFile",
})  # fmt: skip
FILE_MOVES = frozenset({
    "rename", "renameSync", "Rename", "copyFile", "copyFileSync", "cp", "cpSync", "move", "copy",
    "copy2", "copytree", "copyfile",
})  # fmt: skip
HANDLE_WRITES = frozenset({"write", "writeFile", "appendFile", "truncate", "end", "writev"})
TEXT_STEPS = frozenset({
    "read_text", "read_bytes", "name", "stem", "suffix", "as_posix", "readFile", "readFileSync",
    "readlinkSync", "realpathSync",
})  # fmt: skip
FOLDERS = frozenset({
    "mkdir", "mkdirSync", "makedirs", "Mkdir", "MkdirAll", "create_dir", "create_dir_all",
    "ensureDir", "createDirectory", "createDirectories",
})  # fmt: skip
FILE_ROOTS = frozenset({
    "fs", "fs/promises", "node:fs", "node:fs/promises", "fs-extra", "os", "shutil", "pathlib",
    "std::fs", "tokio::fs", "aiofiles", "io/ioutil", "java.nio.file", "anyio",
})  # fmt: skip
SENDERS = frozenset({"smtplib", "nodemailer", "aiosmtplib", "lettre"})
WRAPS_METHOD = frozenset({
    "request", "fetch", "send", "stream", "newrequest", "newrequestwithcontext", "axios", "got",
    "ky",
    "execute", "$fetch", "ofetch", "request_async", "method", "open", "urlopen", "call", "apicall",
    "exchange",
})  # fmt: skip


@dataclass(slots=True, frozen=True)
class Effect:
    """One write: what it is, and whether a repeat adds to it or only declares it again."""

    what: str
    declarative: bool
    certain: bool
    target: str = ""
    weak: bool = False


def classify(ev: Evaluator, value: Value, call: Call, env: Env, around: str) -> Effect | None:
    """Return the write a call makes, or None; `around` is the name of the function it stands in."""
    name = called_name(call)
    if not name:
        return None
    if isinstance(value, Ext):
        found = _known(ev, value, call, env, around)
        if found is not None:
            return found if found.what else None
    sql = _sql(ev, name, call, env)
    if sql is not None:
        return sql if sql.what else None
    http = _http_by_verb(ev, value, name, call, env, around)
    if http is not None:
        return http if http.what else None
    rpc = _rpc(ev, value, name, call, env)
    if rpc is not None:
        return rpc if rpc.what else None
    return _by_verb(ev, value, name, call, env, around)


NOTHING = Effect("", False, True)


def called_name(call: Call) -> str:
    """Return the last name of what is called."""
    callee = call.callee
    if isinstance(callee, Member):
        return callee.name
    return callee.id if isinstance(callee, Name) else ""


def root_of(value: Ext) -> str:
    """Return the module an outside value comes from, without the `node:` scheme."""
    return value.root.removeprefix("node:")


@functools.lru_cache(maxsize=20_000)
def from_library(root: str, libraries: tuple[str, ...]) -> bool:
    """Tell whether a module belongs to one of some libraries."""
    if not root:
        return False
    first = re.split(r"[/.:]", root.lstrip("@"))[0]
    for library in libraries:
        if root == library or root.startswith((library + "/", library + ".", library + "::")):
            return True
        if first == library and library not in ("http", "https", "os", "time", "log", "request"):
            return True
        if root.endswith("/" + library):
            return True
    return False


def _known(ev: Evaluator, value: Ext, call: Call, env: Env, around: str) -> Effect | None:
    """Judge calls of libraries that the rules know; `NOTHING` for a known read."""
    root = root_of(value)
    steps = [s for s in value.steps if s != "()"]
    last = value.last
    path = ".".join([root, *steps]) if root else ".".join(steps)
    if path in PROCESS or (
        root in ("child_process", "execa", "subprocess") and steps and "()" not in value.steps
    ):
        return _process(ev, call, env)
    if root in ("std::fs", "tokio::fs", "async_std::fs") and "()" in value.steps:
        return _opened(value)
    if root in FILE_ROOTS and "()" in value.steps and last in ("destroy", "close", "cancel"):
        return NOTHING  # of a stream that is read
    text_of_os = root == "os" and "()" in value.steps  # `os.getenv("X").replace(…)`
    given = value.steps[:-1]
    if "()" in given and root in ("fs", "fs/promises", "fs-extra"):
        opened = {"open", "openSync", "createWriteStream"} & set(given)
        if not opened or last not in HANDLE_WRITES or _only_reads(ev, value):
            return NOTHING  # text that was read, a stream, a handle that is closed
        return Effect("file write", True, True)
    if root in FILE_ROOTS and TEXT_STEPS & set(given):
        return NOTHING
    if (root in FILE_ROOTS or path.split(".")[0] in ("Bun", "Deno")) and steps and not text_of_os:
        if words.split(last)[-2:] in (("read", "stream"), ("read", "file")):
            return NOTHING
        if last == "replace" and value.steps.count("()") > (root == "pathlib"):
            return NOTHING  # of the text that was read: `readFileSync(p).replace(…)`
        found = _file(ev, last, call, env)
        if found is not None:
            return found
        if root in ("fs", "fs/promises", "fs-extra"):
            return NOTHING  # `lstatSync` reads: its last word is no verb
    if (not root and path == "open") or path in ("io.open", "aiofiles.open"):
        return _open(ev, call, env)
    if from_library(root, words.REDIS_LIBRARIES) and "()" in value.steps:
        return _redis(last)
    if root in SENDERS and last in ("sendMail", "send_message", "sendmail", "send", "send_raw"):
        return Effect("mail", False, True, last)
    if from_library(root, words.HTTP_LIBRARIES) or path in (
        "fetch",
        "globalThis.fetch",
        "window.fetch",
    ):
        return _http(ev, value, call, env, around)
    if from_library(root, words.QUIET_LIBRARIES) or _standard(root, env):
        return NOTHING
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


def _process(ev: Evaluator, call: Call, env: Env) -> Effect:
    told: list[str] = []
    unsure = False
    for arg in call.args:
        if arg.name not in (None, "args", "command", "cmd"):
            continue
        for value in ev.eval(arg.value, env):
            unsure = _command_words(value, told) or unsure
    for later in steps_after(call, env):  # `Command::new("git").arg("push")`
        for arg in later.args if called_name(later) in ("arg", "args") else ():
            for value in ev.eval(arg.value, env):
                unsure = _command_words(value, told) or unsure
    flat = [w.strip("\"'").lower() for text in told for w in text.split()]
    program = flat[0] if flat else ""
    rest = [w for w in flat[1:] if not w.startswith("-")]
    first = next((w for w in rest if w in words.COMMAND_WRITES or w in words.COMMAND_READS), "")
    if first in words.COMMAND_GROUPS:  # `config use-context`, `rollout status`
        after = rest[rest.index(first) + 1 :][:1]
        first = after[0] if set(after) & (words.COMMAND_WRITES | words.COMMAND_READS) else first
    what = f"child process {program}".strip()
    if program in words.SHELLS or not flat:
        return Effect(what, False, False, " ".join(flat[:4]))
    if first in words.COMMAND_WRITES or program in words.COMMAND_WRITES:
        declares = bool(set(rest[:3]) & {"apply", "delete", "scale", "set", "uninstall", "upgrade",
                                         "cordon", "drain", "uncordon", "label", "annotate", "rm",
                                         "use-context", "set-context"})  # fmt: skip
        return Effect(f"{what} {first}".strip(), declares, True, " ".join(flat[:4]))
    if first in words.COMMAND_READS or program in words.COMMAND_READS:
        return NOTHING
    if unsure:
        return Effect(what, False, False, " ".join(flat[:4]))
    return Effect(what, False, False, " ".join(flat[:4]), weak=True)


def _command_words(value: Value, told: list[str]) -> bool:
    """Collect the words of a command line; True where a part is not known."""
    if isinstance(value, Const) and isinstance(value.value, str):
        told.append(value.value)
        return value.holes
    if isinstance(value, Seq):
        return any(_command_words(item, told) for item in value.items) or value.open
    return isinstance(value, Input | Unknown)


def _only_reads(ev: Evaluator, value: Ext) -> bool:
    """Tell whether a handle was opened by `open(path, "r")`, or without a mode."""
    if "createWriteStream" in value.steps or value.call is None or value.env is None:
        return False
    inner: Expr = value.call
    while isinstance(inner, Member | Call):
        if isinstance(inner, Call) and called_name(inner) in ("open", "openSync"):
            modes = [str(t.value) for a in inner.args[1:2] for t in ev.texts(a.value, value.env)]
            return not modes or all(m in ("r", "rs") for m in modes)
        inner = inner.callee if isinstance(inner, Call) else inner.obj
    return False


def _file(ev: Evaluator, last: str, call: Call, env: Env) -> Effect | None:
    if last == "open":
        return _open(ev, call, env)
    named = call.args[1:2] if last in FILE_MOVES else call.args[:1]
    target = " ".join(_shown(v) for a in named for v in ev.eval(a.value, env))
    told = set(words.split(target)).union(*(receiver_words(a.value) for a in named))
    if told & words.TEMPORARY:
        return NOTHING
    if last in FILE_ADDS:
        return Effect("file append", False, True, target)
    if last in FILE_WRITES:
        return Effect(f"file {words.split(last)[0]}", True, True, target)
    if last in FOLDERS:
        return Effect("file mkdir", True, True, target, weak=True)
    return None


def _opened(value: Ext) -> Effect:
    """Judge a call on a file: `OpenOptions::new().append(true).open(…)` writes, the rest did."""
    if value.last != "open" or "OpenOptions" not in value.steps:
        return NOTHING
    if "append" in value.steps:
        return Effect("file append", False, True)
    writes = {"write", "create", "create_new", "truncate"} & set(value.steps)
    return Effect("file write", True, True) if writes else NOTHING


def _open(ev: Evaluator, call: Call, env: Env) -> Effect | None:
    modes = [a.value for a in call.args if a.name == "mode"] or [a.value for a in call.args[1:2]]
    for mode in modes:
        for text in ev.texts(mode, env):
            told = str(text.value)
            if told and set(told) <= set("rwaxbt+") and set(told) & set("wax"):
                target = " ".join(_shown(v) for v in ev.eval(call.args[0].value, env))
                if set(words.split(target)) & words.TEMPORARY:
                    return NOTHING
                return Effect(
                    "file append" if "a" in told else "file write", "a" not in told, True, target
                )
    return NOTHING


def _shown(value: Value) -> str:
    if isinstance(value, Const):
        return str(value.value)
    return value.path if isinstance(value, Ext) else ""


# A client's own spelling of a verb: `rpost`, `jget`, `post_json`, `delete_async`.
VERB_SPELLED = re.compile(r"[ajr]?(post|put|patch|delete|get|head|options|del)(?:_?json|_?async)?")


def _sql(ev: Evaluator, name: str, call: Call, env: Env) -> Effect | None:
    if name.lower() not in SQL_CALLS or not call.args:
        return None
    for arg in call.args[:2]:
        for text in ev.texts(arg.value, env):
            told = SQL.match(str(text.value))
            verb = told.group(1).lower() if told else ""
            if verb in SQL_READS and " " in str(text.value).strip():
                lowered = str(text.value).lower()
                if verb != "with" or not re.search(
                    r"\b(insert into|update|delete from)\b", lowered
                ):
                    return NOTHING
            if verb in SQL_WRITES and " " in str(text.value).strip():
                lowered = " ".join(str(text.value).lower().split())
                grows = bool(re.search(r"set (\w+) = \1 [+-]", lowered))
                declares = verb in ("update", "delete", "replace", "drop") and not grows
                declares = declares or "on conflict" in lowered or "or ignore" in lowered
                return Effect(f"SQL {verb.upper()}", declares, True, str(text.value)[:80])
    return None


def _methods(ev: Evaluator, call: Call, env: Env) -> tuple[set[str], bool]:
    """Return the HTTP verbs among a call's arguments; the flag says that one is open."""
    found: set[str] = set()
    unsure = False
    for arg in call.args:
        if arg.name in ("method", None):
            for value in ev.eval(arg.value, env):
                if (
                    isinstance(value, Const)
                    and str(value.value).upper() in HTTP_NAMES
                    and isinstance(value.value, str)
                ):
                    found.add(value.value.upper())
                elif isinstance(value, Record):
                    for inner in ev.entry(value, "method"):
                        if isinstance(inner, Const) and isinstance(inner.value, str):
                            found.add(inner.value.upper())
                        elif not (
                            isinstance(inner, Unknown)
                            and inner.name == "method"
                            and inner.line == value.line
                        ):
                            unsure = True
                elif isinstance(value, Ext) and value.last.upper() in HTTP_NAMES:
                    found.add(value.last.upper())
                elif (
                    isinstance(value, Ext)
                    and value.last.upper().removeprefix("METHOD") in HTTP_NAMES
                ):
                    found.add(value.last.upper().removeprefix("METHOD"))
        if arg.name == "method" and not found:
            unsure = True
    return found & HTTP_NAMES, unsure


HTTP_NAMES = frozenset({"GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"})


def _http(ev: Evaluator, value: Ext, call: Call, env: Env, around: str) -> Effect:
    last = value.last.lower()
    verb = next(
        (words.HTTP_VERBS[w] for w in words.split(value.last)[:1] if w in words.HTTP_VERBS), ""
    )
    if last in ("post", "put", "patch", "delete", "get", "head", "options") or (
        verb and last not in ("get",) and last.startswith(tuple(words.HTTP_VERBS))
    ):
        return http_effect(ev, verb, call, env, around)
    if last in WRAPS_METHOD or (not value.steps) or value.steps in (("default",), ("request",)):
        if last == "send" and any(s.lower() in words.HTTP_VERBS for s in value.steps):
            return NOTHING  # the builder's own verb was judged already
        found, unsure = _methods(ev, call, env)
        writes = found - words.HTTP_READS
        if writes:
            return http_effect(ev, most_adding(writes), call, env, around, len(found) == 1)
        if unsure and not found:
            return http_effect(ev, "?", call, env, around, False)
    return NOTHING


def most_adding(verbs: set[str]) -> str:
    """Return the verb of several whose repeat adds most."""
    return "POST" if "POST" in verbs else max(verbs)


def targets(ev: Evaluator, call: Call, env: Env) -> str:
    """Return the texts in a call that look like a path or an address."""
    out: list[str] = []
    for arg in call.args[:3]:
        for value in ev.eval(arg.value, env)[:6]:
            if isinstance(value, Const) and isinstance(value.value, str):
                out.append(value.value)
            elif isinstance(value, Record):
                for key in ("url", "path"):
                    out += [str(v.value) for v in ev.entry(value, key) if isinstance(v, Const)]
    return " ".join(t for t in out if "/" in t or "{}" in t)


def address(ev: Evaluator, call: Call, env: Env) -> str:
    """Return the path of a request, also where a builder is given it in another step."""
    found = targets(ev, call, env)
    steps = steps_after(call, env)
    inner: Expr = call.callee
    while isinstance(inner, Member | Call):
        if isinstance(inner, Call):
            steps.append(inner)
        inner = inner.callee if isinstance(inner, Call) else inner.obj
    for step in steps if not found else ():
        if called_name(step) in ("uri", "url", "path", "endpoint"):
            found = found or targets(ev, step, env)
    return found


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
                if told and told.upper() not in HTTP_NAMES:  # of a spread, which may hold anything
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
        said = _verb_says((word,))
        if said:
            return said
    first = parts[0] if parts else ""
    for end in range(len(first) - 1, 2, -1):  # `sendtoaddress`: no sign parts the words
        said = _verb_says((first[:end],))
        if said:
            return said
    return "read"


def _method_reads(segment: str) -> bool:
    """Tell whether the end of a path names a method that only asks: `documents.info`."""
    before, dot, method = segment.rpartition(".")
    parts = words.split(method)
    return bool(before and dot) and _verb_says(parts[:1]) == "read"


def _verb_says(parts: tuple[str, ...]) -> str:
    """Return what the first of some words says; an empty string for no verb."""
    word = parts[0] if parts else ""
    if word in words.READING:
        return "read"
    if word in words.DECLARING:
        return "declare"
    return "write" if word in words.ADDING else ""


def later_calls(call: Call, env: Env) -> list[Call]:
    """Return the calls on what a call gives, along a builder, nearest first."""
    above = {
        id(c.callee.obj): c
        for c in scope_of(env.function).calls
        if isinstance(c.callee, Member) and isinstance(c.callee.obj, Call)
    }
    out: list[Call] = []
    while id(call) in above:
        call = above[id(call)]
        out.append(call)
    return out


def steps_after(call: Call, env: Env) -> list[Call]:
    """Return the later calls of a builder, also those on the name it is given."""
    scope = scope_of(env.function)
    chain = later_calls(call, env)
    last = chain[-1] if chain else call
    names = {n for n, bound in scope.names.items() for b in bound if b.value is last}
    for other in scope.calls if names else ():
        inner: Expr = other
        while isinstance(inner, Call | Member):
            inner = inner.callee if isinstance(inner, Call) else inner.obj
        if isinstance(inner, Name) and inner.id in names:
            chain.append(other)
    return chain


def _unfold(ev: Evaluator, values: list[Value]) -> list[Value]:
    out = list(values)
    for value in values:
        if isinstance(value, Record):
            for key in ("body", "json", "data"):
                out += [v for v in ev.entry(value, key) if isinstance(v, Record)]
    return out


def http_effect(
    ev: Evaluator, verb: str, call: Call, env: Env, around: str, certain: bool = True
) -> Effect:
    """Return the write of one HTTP verb, or nothing where it only asks."""
    if verb in words.HTTP_READS:
        return NOTHING
    said = body_says(ev, call, env)
    for later in steps_after(call, env):  # `post(url).json(&body)`
        said = said or body_says(ev, later, env)
    return by_verb_and_path(verb, address(ev, call, env), around, said=said, certain=certain)


def by_verb_and_path(
    verb: str, where: str, around: str, *, said: str = "", certain: bool = True
) -> Effect:
    """Return the write of a verb on a path, or nothing where it only asks.

    `around` is the name of what sends it; `said` what its body says of itself ("read", "write").
    """
    if verb in words.HTTP_READS or said == "read":
        return NOTHING
    tail = [s for s in re.split(r"[/?]|\{\}", where.split(" ", maxsplit=1)[0]) if s]
    last_words = set(words.split(tail[-1])) if tail else set()
    asks: object = last_words & words.QUERYING and not last_words & (words.ADDING - {"request"})
    asks = (
        asks
        or (bool(tail) and _method_reads(tail[-1]))
        or (
            "search" in tail[-2:-1]
            and _verb_says(words.split(tail[-1])[:1]) not in ("write", "declare")
        )
    )
    if verb in ("POST", "?") and not said and (asks or words.reads_by_name(around)):
        return NOTHING
    declares = verb in words.HTTP_DECLARATIVE and not set(words.split(where)) & words.ADDS_ANYWAY
    if verb == "POST":
        declares = bool(last_words & words.DECLARES_ANYWAY) and not last_words & words.ADDS_ANYWAY
        declares = declares or said == "declare"
    if tail and "." in tail[-1] and verb == "POST" and not said:
        certain = certain and bool(_verb_says(words.split(tail[-1].rpartition(".")[2])[:1]))
    return Effect(f"HTTP {verb}" if verb != "?" else "HTTP", declares, certain, where)


def _http_by_verb(
    ev: Evaluator, value: Value, name: str, call: Call, env: Env, around: str
) -> Effect | None:
    """Judge `x.post("/path", …)` on an object of unknown or outside making."""
    lower = name.lower()
    if isinstance(value, Ext) and not value.root and len(value.steps) == 1:
        return None
    spelled = VERB_SPELLED.fullmatch(lower)
    if spelled is not None and call.args:
        where = targets(ev, call, env)
        if "/" in where:
            verb = words.HTTP_VERBS[spelled[1]]
            return http_effect(ev, verb, call, env, around, isinstance(value, Ext))
    asks = lower in (
        "request", "fetch", "req", "execute", "call", "do", "newrequest", "newrequestwithcontext"
    )  # fmt: skip
    if call.args and (asks or _names_verb_and_path(ev, call, env)):
        found, _ = _methods(ev, call, env)
        if found:
            writes = found - words.HTTP_READS
            if not writes:
                return NOTHING
            return http_effect(ev, most_adding(writes), call, env, around, False)
    return None


def _names_verb_and_path(ev: Evaluator, call: Call, env: Env) -> bool:
    """Tell whether a call is given a verb and a path: `callApi("/notes", args, "POST")`."""
    given = [v.value for a in call.args[:4] for v in ev.eval(a.value, env) if isinstance(v, Const)]
    texts = [t for t in given if isinstance(t, str)]
    return any(t in HTTP_NAMES for t in texts) and any(t.startswith("/") for t in texts)


RPC_CALLS = frozenset({
    "send", "request", "call", "rpc", "invoke", "send_rpc", "rpc_call", "call_method",
    "raw_request", "json_rpc", "rpc_request", "callRpc", "rpcCall", "sendRpc",
})  # fmt: skip
RPC_NAME = re.compile(r"[a-z][a-z0-9]{1,14}[_.][A-Za-z][A-Za-z0-9_]+")  # `eth_sendTransaction`


def _rpc(ev: Evaluator, value: Value, name: str, call: Call, env: Env) -> Effect | None:
    """Judge a call that names a remote method, by that name."""
    if name not in RPC_CALLS or not call.args or not isinstance(value, Ext | Unknown):
        return None
    told: list[str] = []
    for given in _plain(ev.eval(call.args[0].value, env)):
        if isinstance(given, Const) and isinstance(given.value, str) and not given.holes:
            told += [given.value] if RPC_NAME.fullmatch(given.value) else []
        elif isinstance(given, Record):
            texts = [v for v in ev.entry(given, "method") if isinstance(v, Const)]
            told += [t for t in (str(v.value) for v in texts) if t.upper() not in HTTP_NAMES]
            named = given.expr.type_name if given.expr is not None else None
            if not told and isinstance(named, Member) and words.verb_of(named.name):
                told.append(named.name)  # `functions::messages::SendMessage { … }`
    if len(told) != 1:
        return None
    said = rpc_says(told[0])
    if said == "read":
        return NOTHING
    return Effect(f"RPC {told[0]}", said == "declare", isinstance(value, Ext), told[0])


def receiver_words(expr: Expr) -> set[str]:
    """Return the words of the names a receiver is made of."""
    out: set[str] = set()
    here: Expr | None = expr
    while here is not None:
        if isinstance(here, Member):
            out |= set(words.split(here.name))
            here = here.obj
        elif isinstance(here, Name):
            out |= set(words.split(here.id))
            here = None
        elif isinstance(here, Call):
            here = here.callee
        elif isinstance(here, Index):
            here = here.obj
        else:
            here = None
    return out


def _by_verb(
    ev: Evaluator, value: Value, name: str, call: Call, env: Env, around: str
) -> Effect | None:
    """Judge a call by its verb where its receiver is a client of something outside."""
    if not isinstance(call.callee, Member):
        return _chosen_by_name(value, name, target=name)
    if name in RUST_OWN:
        return None
    if name in ("replace", "replaceAll") and len(call.args) == 2:
        return None  # of text
    if name in ("join", "concat") and not isinstance(value, Ext):
        return None  # of texts and lists
    kind = words.verb_of(name)
    parts = words.split(name)
    near = receiver_words(call.callee.obj)
    target = ".".join([*sorted(near), name])
    if isinstance(value, Ext) and (value.root or _outside_type(value, env)):
        calls = value.steps.count("()")
        if (
            _makes_type(value, env)
            or _sent_builder(value, name, call)
            or _makes_client(parts)
            or _part_of_answer(value, env)
        ):
            return None  # a value is made, or a builder sent whose own verb was judged
        plain = len(parts) == 1 and parts[0] in words.CONTAINER
        if plain and near & words.IN_PROCESS:
            return None
        if plain and calls > 1 and not near & words.CLIENT:
            return None
        if kind in ("adding", "declaring"):
            asks = set(parts[1:]) & words.QUERYING
            if asks and kind == "adding" and parts[0] not in ("create", "send", "add"):
                return None
            doubtful = plain_noun(parts) or parts[:1] == ("mutate",)  # whose mutation is in a type
            return Effect(value.path, kind == "declaring", not doubtful, target)
        if kind == "" and call.args and calls:
            return Effect(value.path, False, False, target, weak=True)
        return None
    if isinstance(value, Unknown) and kind in ("adding", "declaring"):
        single = len(parts) == 1
        bare = call.callee.obj.id if isinstance(call.callee.obj, Name) else ""
        client = (set(words.split(bare)[-1:]) if bare else near) & words.CLIENT  # not `table_names`
        if single and parts[0] in words.CONTAINER and not client:
            return None
        if near & words.CLIENT or not single:
            text = ".".join([*_dotted(call.callee.obj), name])
            return Effect(text, kind == "declaring", False, target, weak=not near & words.CLIENT)
    return None


READ_RESULT = ("Get", "List", "Search", "Find", "Fetch")


def _part_of_answer(value: Ext, env: Env) -> bool:
    """Tell whether a call in Go works on what a read gave, or makes a value or an option.

    `api.GetHistory(ctx).Messages[0].BlockType()`, `slack.MsgOptionText(…)`, `rate.NewLimiter(…)`.
    """
    module = env.function.module
    if module is None or module.language != "go":
        return False
    parts = words.split(value.last)
    if parts[:1] == ("new",):
        return True
    if len(value.steps) == 1:  # a function or a type of a package: `githubv4.IssueState(text)`
        acts = words.verb_of(parts[0]) in ("adding", "declaring")
        plain = not acts or (parts[0] in words.NOUNS and len(parts) > 1)
        return plain or parts[0] == "convert" or bool({"option", "options"} & set(parts))
    for at, step in enumerate(value.steps[:-2]):
        if value.steps[at + 1] == "()" and step.startswith(READ_RESULT):
            return True
    return False


def _makes_client(parts: tuple[str, ...]) -> bool:
    """Tell whether a name only makes a client: `makeApiClient`, `newClient`."""
    makes = parts[0] in ("make", "new", "build", "init") and bool(set(parts[1:]) & words.CLIENT)
    return makes or parts in (
        ("create", "api", "client"), ("create", "client", "connection"), ("create", "transport")
    )  # fmt: skip


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


def plain_noun(parts: tuple[str, ...]) -> bool:
    """Tell whether a name may name a thing as well as an act: `client.invite(code)` reads one."""
    alone = len(parts) == 1 or words.verb_of(parts[0]) == ""  # `client.audit_log(id)`
    return bool(parts) and parts[-1] in words.NOUNS and alone


def _sent_builder(value: Ext, name: str, call: Call) -> bool:
    """Tell whether a call only carries out what a builder's earlier step says."""
    if name in ("createStatement", "executeQuery"):
        return True
    if name == "send" and not call.args:
        return "()" in value.steps
    asked = any(s.startswith(("query", "prepare", "sql")) for s in value.steps[:-1])
    if (
        len(value.steps) > 2 and value.steps[-2] == "()" and not call.args
    ):  # `events().list(…).execute()`
        asked = asked or bool(words.verb_of(value.steps[-3]))
    asked = asked or "prepareStatement" in value.steps
    return asked and name in ("execute", "run", "exec", "send", "executeUpdate", "executeBatch")


def _outside_type(value: Ext, env: Env) -> bool:
    """Tell whether a value is made by a Rust type that nothing here declares, as preludes give."""
    module = env.function.module
    rust = module is not None and module.language == "rust"
    return rust and value.steps[0][:1].isupper() and value.steps[0] not in RUST_TYPES


RUST_TYPES = frozenset({
    "Vec", "String", "Box", "Option", "Result", "Rc", "Arc", "Some", "Ok", "Err", "None", "Default",
    "Iterator", "HashMap", "BTreeMap", "HashSet", "Self",
})  # fmt: skip
# Methods of Rust's own texts and lists.
RUST_OWN = frozenset({
    "push_str", "insert_str", "copy_from_slice", "clone_from_slice", "extend_from_slice",
    "write_str", "write_fmt", "get_or_insert_with", "or_insert_with", "push_back", "push_front",
    "add_assign",
})  # fmt: skip
VALUES = frozenset({"builder", "options", "config", "settings", "filter", "metadata", "headers"})
MAKERS = frozenset({"new", "try", "from", "builder", "default", "with", "of", "open", "init"})


def _makes_type(value: Ext, env: Env) -> bool:
    """Tell whether a call in Rust only makes a value: `Request::new(…)`, `.with_page(…)`."""
    module = env.function.module
    if module is None or module.language != "rust":
        return False
    own = [s for s in value.steps if s[:1].isupper()]
    named = set(words.split(own[-1])) if own else set()
    built = named & VALUES or "builder" in value.steps[:-1]
    if built and not {"build", "send"} & set(value.steps):
        return True
    if value.last.startswith("with_") or (
        value.last.startswith("set_") and value.steps.count("()") == 1 and not named & words.CLIENT
    ):
        return True  # an option of a value that was just made
    on_type = len(value.steps) > 1 and value.steps[-2][:1].isupper()
    made = on_type and "()" not in value.steps
    return made and bool(set(words.split(value.last)[:1]) & MAKERS)


def _dotted(expr: Expr) -> list[str]:
    if isinstance(expr, Member):
        return [*_dotted(expr.obj), expr.name]
    return [expr.id] if isinstance(expr, Name) else []
