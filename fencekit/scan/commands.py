"""Writes by a child process: is the command line one that only asks?"""

from __future__ import annotations

from fencekit.scan import words
from fencekit.scan.effect import NOTHING, Effect, called_name
from fencekit.scan.evaluate import Evaluator
from fencekit.scan.facts import Call
from fencekit.scan.http_calls import steps_after
from fencekit.scan.values import Const, Env, Input, Seq, Unknown, Value

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


def command_effect(ev: Evaluator, call: Call, env: Env) -> Effect:
    """Return the write of a child process, by the words of its command line."""
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
