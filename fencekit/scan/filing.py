"""Writes to files: by the library, the mode a file is opened in, and the target."""

from __future__ import annotations

from fencekit.scan import words
from fencekit.scan.effect import NOTHING, Effect, called_name, receiver_words, shown
from fencekit.scan.evaluate import Evaluator
from fencekit.scan.facts import Call, Expr, Member
from fencekit.scan.values import Env, Ext

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


def only_reads(ev: Evaluator, value: Ext) -> bool:
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


def file_effect(ev: Evaluator, last: str, call: Call, env: Env) -> Effect | None:
    """Return the write of a file library's function; None where its name says nothing."""
    if last == "open":
        return open_effect(ev, call, env)
    named = call.args[1:2] if last in FILE_MOVES else call.args[:1]
    target = " ".join(shown(v) for a in named for v in ev.eval(a.value, env))
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


def opened_effect(value: Ext) -> Effect:
    """Judge a call on a file: `OpenOptions::new().append(true).open(…)` writes, the rest did."""
    if value.last != "open" or "OpenOptions" not in value.steps:
        return NOTHING
    if "append" in value.steps:
        return Effect("file append", False, True)
    writes = {"write", "create", "create_new", "truncate"} & set(value.steps)
    return Effect("file write", True, True) if writes else NOTHING


def open_effect(ev: Evaluator, call: Call, env: Env) -> Effect | None:
    """Return the write of an opened file: its mode says."""
    modes = [a.value for a in call.args if a.name == "mode"] or [a.value for a in call.args[1:2]]
    for mode in modes:
        for text in ev.texts(mode, env):
            told = str(text.value)
            if told and set(told) <= set("rwaxbt+") and set(told) & set("wax"):
                target = " ".join(shown(v) for v in ev.eval(call.args[0].value, env))
                if set(words.split(target)) & words.TEMPORARY:
                    return NOTHING
                return Effect(
                    "file append" if "a" in told else "file write", "a" not in told, True, target
                )
    return NOTHING
