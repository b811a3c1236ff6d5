"""Writes by SQL: the statement says, not the method it is handed to (`execute` reads as well)."""

from __future__ import annotations

import re

from fencekit.scan.effect import NOTHING, Effect
from fencekit.scan.evaluate import Evaluator
from fencekit.scan.facts import Call
from fencekit.scan.values import Env

SQL_CALLS = frozenset({
    "execute", "executemany", "query", "exec", "run", "prepare", "raw", "fetch", "fetchrow",
    "fetchval", "queryrow", "querycontext", "execcontext", "queryrowcontext", "execute_batch",
    "execute_raw", "$executeraw", "$executerawunsafe", "$queryraw", "executescript", "unsafe",
    "one",
    "none", "any", "text", "update", "executeupdate", "executequery", "preparestatement",
    "batchupdate", "createnativequery", "queryforobject", "queryforlist", "query_as",
    "query_scalar", "batch_execute", "sql_query", "sql",
    "execute_query", "execute_write", "write_transaction", "execute_read", "read_transaction",
})  # fmt: skip


SQL = re.compile(r"\s*(?:/\*.*?\*/\s*)?(\w+)", re.DOTALL)


SQL_WRITES = frozenset({
    "insert", "update", "delete", "replace", "merge", "create", "drop", "alter", "truncate",
    "grant",
    "revoke", "call", "copy", "vacuum", "upsert",
})  # fmt: skip


# Cypher (openCypher 9) reads first and writes later in one statement.
CYPHER = frozenset({"match", "unwind", "merge", "call", "foreach", "optional"})
CYPHER_WRITES = re.compile(r"\b(create|merge|set|delete|remove|drop)\b")


SQL_READS = frozenset({"select", "pragma", "show", "explain", "with", "describe", "values"})


def sql_effect(ev: Evaluator, name: str, call: Call, env: Env) -> Effect | None:
    """Return the write of a statement, `NOTHING` for one that reads; None where there is none."""
    if name.lower() not in SQL_CALLS or not call.args:
        return None
    for arg in call.args[:2]:
        for text in ev.texts(arg.value, env):
            told = SQL.match(str(text.value))
            verb = told.group(1).lower() if told else ""
            if verb in CYPHER and "(" in str(text.value):
                lowered = str(text.value).lower()
                found = CYPHER_WRITES.findall(lowered)
                if not found:
                    return NOTHING
                declares = "create" not in found
                return Effect(f"Cypher {found[0].upper()}", declares, True, str(text.value)[:80])
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
