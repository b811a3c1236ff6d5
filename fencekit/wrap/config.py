"""`fencekit.toml`: what an operator says about tools, read from up to three files.

The user's own file and the one named with `--config` count in full. A file found upward from the
working directory came with somebody's repository: until its digest is trusted it may only tighten
(a kind towards `append`, longer windows); what would loosen is left out, and said.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from fencekit.core.errors import InvalidRequest
from fencekit.wrap.rules import TIGHTNESS, Reconcile, Rules, ToolKind, ToolRule

NAME = "fencekit.toml"
MAX_BYTES = 1024 * 1024
_SPAN = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)?")
_GROUP = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,49}")
_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0, None: 1.0}


class ConfigError(InvalidRequest):
    """A configuration file that cannot be used; the text names file, line and key."""


def seconds(text: object) -> float:
    """Return a length of time in seconds: a number, or text such as 90s, 15m, 24h.

    Raises ValueError for anything else, and for nothing at all.
    """
    match = None if isinstance(text, bool) else _SPAN.fullmatch(str(text).strip())
    if match is None or not (made := float(match[1]) * _UNITS[match[2]]):
        raise ValueError(f"{text!r} is no length of time; write 60, 90s, 15m or 24h")
    return made


def _text(value: object) -> str:
    if not isinstance(value, str) or not value:
        raise ValueError("must be text")
    return value


def _texts(value: object) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(one, str) and one for one in value):
        raise ValueError("must be a list of texts")
    return tuple(value)


def _one_of(*words: str) -> Callable[[object], str]:
    def read(value: object) -> str:
        if value not in words:
            raise ValueError(f"must be one of {', '.join(words)}")
        return str(value)

    return read


def _group(value: object) -> str:
    if not isinstance(value, str) or not _GROUP.fullmatch(value):
        raise ValueError("must be a name: 1 to 50 letters, digits or any of . _ -")
    return value


def _flag(value: object) -> bool:
    if not isinstance(value, bool):
        raise ValueError("must be true or false")
    return value


def _kind(value: object) -> ToolKind:
    return ToolKind(_one_of(*(str(kind) for kind in ToolKind))(value))


def _reconcile(value: object) -> Reconcile:
    if not isinstance(value, dict) or set(value) != {"tool", "args", "found"}:
        raise ValueError("must be a table with tool, args and found")
    if not isinstance(value["args"], dict):
        raise ValueError("args must be a table")
    return Reconcile(_text(value["tool"]), value["args"], _text(value["found"]))


_FOR_ALL: dict[str, Callable[[object], Any]] = {
    "quiet_replay": seconds,
    "replay_for": seconds,
    "lease": seconds,
    "wait": seconds,
    "call_deadline": seconds,
    "near_duplicates": _one_of("off", "warn"),
}
_FOR_ONE: dict[str, Callable[[object], Any]] = {
    **_FOR_ALL,
    "kind": _kind,
    "intent": _texts,
    "ignore": _texts,
    "domain": _text,
    "definitive": _texts,
    "undone_by": _texts,
    "reconcile": _reconcile,
    "cancel": _one_of("detach", "forward"),
}
_TOP: dict[str, Callable[[object], Any]] = {
    "infer": _one_of("on", "off"),
    "ledger": _text,
    "scope": _text,
    "account_env": _texts,
    "meta_keys": _texts,
}
_FOR_CLIENT: dict[str, Callable[[object], Any]] = {
    "token_env": _text,
    "token_file": _text,
    "group": _group,
    "one_account": _flag,
}
_LONGER_IS_TIGHTER = ("replay_for", "lease", "wait", "call_deadline")


@dataclass(slots=True)
class Config:
    """What the files say together, which files those were, and what was left out of them."""

    defaults: dict[str, Any] = field(default_factory=dict)
    tools: dict[str, dict[str, Any]] = field(default_factory=dict)
    clients: dict[str, dict[str, Any]] = field(default_factory=dict)
    top: dict[str, Any] = field(default_factory=dict)
    files: list[Path] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)

    def rules(self, *, infer: bool | None = None, **defaults: Any) -> Rules:
        """Return the rules; what is given here (from flags) comes before the files."""
        given = {name: value for name, value in defaults.items() if value is not None}
        base = replace(ToolRule(), **{**self.defaults, **given})
        made = Rules(
            {name: replace(base, **fields) for name, fields in self.tools.items()},
            base,
            infer=infer if infer is not None else self.top.get("infer", "on") == "on",
        )
        keys = self.top.get("meta_keys")
        return made if keys is None else replace(made, meta_keys=keys)

    def add(self, other: Config) -> None:
        """Let another file's settings come before what is here."""
        self.defaults.update(other.defaults)
        self.top.update(other.top)
        self.clients.update(other.clients)
        for name, fields in other.tools.items():
            self.tools[name] = {**self.tools.get(name, {}), **fields}
        self.files += other.files

    def tighten(self, other: Config) -> None:
        """Take over only what makes the fence tighter; the rest is named in `left_out`."""
        (path,) = other.files
        rules = self.rules()
        kept = Config(files=[path])
        for name, value in other.top.items():
            if name == "infer" and value == "off":
                kept.top[name] = value
            else:
                self._leave_out(path, name)
        for name, value in other.defaults.items():
            if _tightens(name, value, rules.default):
                kept.defaults[name] = value
            else:
                self._leave_out(path, name)
        for tool, fields in other.tools.items():
            for name, value in fields.items():
                if _tightens(name, value, rules.of(tool)):
                    kept.tools.setdefault(tool, {})[name] = value
                else:
                    self._leave_out(path, f"tools.{tool}.{name}")
        for client in other.clients:
            self._leave_out(path, f"clients.{client}")
        # A rule for a glob or a tool that another pattern treats already must not replace it.
        for tool, fields in kept.tools.items():
            if tool not in self.tools:
                fields.update({**_own(self, tool), **fields})
        self.add(kept)

    def _leave_out(self, path: Path, what: str) -> None:
        self.left_out.append(
            f"{path}: {what} could loosen the fence and is left out; if you wrote this file, run "
            f"`fencekit trust {path}`"
        )


def _own(config: Config, tool: str) -> dict[str, Any]:
    from fnmatch import fnmatchcase

    for pattern, fields in config.tools.items():
        if fnmatchcase(tool, pattern):
            return fields
    return {}


def _tightens(name: str, value: Any, now: ToolRule) -> bool:
    if name == "kind":
        known = now.kind is not None and TIGHTNESS[value] >= TIGHTNESS[now.kind]
        return value is ToolKind.APPEND or known
    if name == "near_duplicates":
        return bool(value == "warn")
    return name in _LONGER_IS_TIGHTER and bool(value >= getattr(now, name))


_Where = tuple[Path, str, tuple[str, ...]]


def read(path: Path) -> Config:
    """Read one file. Raises `ConfigError` naming the file, the line and the key."""
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise ConfigError(f"{path} could not be read: {error.strerror}") from None
    return parse(raw, path)


def parse(raw: bytes, path: Path) -> Config:
    """Parse the bytes of a file. Raises `ConfigError` naming the file, the line and the key."""
    if len(raw) > MAX_BYTES:
        raise ConfigError(f"{path} is larger than {MAX_BYTES} bytes")
    try:
        text = raw.decode("utf-8")
        data = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{path}: {error}") from None
    made = Config(files=[path])
    tools, clients = data.pop("tools", {}), data.pop("clients", {})
    for name, value in data.items():
        target = made.defaults if name in _FOR_ALL else made.top
        target[name] = _read(name, value, {**_FOR_ALL, **_TOP}, (path, text, ()))
    if not isinstance(tools, dict):
        raise ConfigError(f"{path}: tools must be a table, written [tools.NAME]")
    for tool, fields in tools.items():
        where = (path, text, ("tools", tool))
        if not isinstance(fields, dict):
            raise _wrong(where, tool, "must be a table, written [tools.NAME]")
        made.tools[tool] = {
            name: _read(name, value, _FOR_ONE, where) for name, value in fields.items()
        }
        if made.tools[tool].get("undone_by") and not made.tools[tool].get("intent"):
            raise _wrong(where, "undone_by", "needs intent, the fields that both tools share")
    if not isinstance(clients, dict):
        raise ConfigError(f"{path}: clients must be a table, written [clients.NAME]")
    for client, fields in clients.items():
        made.clients[client] = _client(fields, (path, text, ("clients", client)))
    return made


def _client(fields: object, where: _Where) -> dict[str, Any]:
    """Read who may come through the HTTP front with which token, and in which group."""
    name = where[2][1]
    if not isinstance(fields, dict):
        raise _wrong(where, name, "must be a table, written [clients.NAME]")
    made = {key: _read(key, value, _FOR_CLIENT, where) for key, value in fields.items()}
    if ("token_env" in made) == ("token_file" in made):
        raise _wrong(where, "token_env", "or token_file must say where the token is, one of them")
    if made.get("one_account") and "group" not in made:
        raise _wrong(where, "one_account", "needs group, which is then the account")
    return made


def _read(name: str, value: object, known: Mapping[str, Any], where: _Where) -> Any:
    if name not in known:
        import difflib

        near = difflib.get_close_matches(name, known, n=1)
        raise _wrong(where, name, "is not known" + (f"; did you mean {near[0]}?" if near else ""))
    try:
        return known[name](value)
    except ValueError as problem:
        raise _wrong(where, name, str(problem)) from None


def _wrong(where: _Where, key: str, what: str) -> ConfigError:
    path, text, table = where
    return ConfigError(f"{path}:{_line(text, table, key)}: {'.'.join((*table, key))} {what}")


def _line(text: str, table: tuple[str, ...], key: str) -> int:
    """Return the line on which a key is written, as well as a look at the text can tell."""
    inside, header = not table, 1
    for number, line in enumerate(text.splitlines(), start=1):
        stripped = line.strip()
        if stripped.startswith("["):
            inside = bool(table) and table[-1] in stripped
            header = number if inside else header
        elif inside and re.match(rf"[\"']?{re.escape(key)}[\"']?\s*=", stripped):
            return number
    return header
