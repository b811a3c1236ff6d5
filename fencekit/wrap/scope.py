"""Which calls are "the same server": the command line word for word, the folder, and the account.

A scope is a name that a person gave (`--scope`), or a digest of the command and the working
directory. Only `.`, `./…` and `../…` in the command are resolved, lexically, whether or not the
file exists, so that one project's servers are the same from each of its hosts.
"""

from __future__ import annotations

import hashlib
import os
import posixpath
import re
from collections.abc import Mapping, Sequence

from fencekit.core.canonical import canonical_bytes
from fencekit.core.errors import InvalidRequest
from fencekit.wrap.identity import Scope

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@:+-]{0,99}")
_CREDENTIAL = re.compile(
    r"(^|_)(TOKEN|API_?KEY|SECRET|PASSWORD|PASSWD|CREDENTIALS?|ACCESS_KEY(_ID)?|PROFILE|ACCOUNT"
    r"|ACCOUNT_ID|PRIVATE_KEY|AUTH|KUBECONFIG|CONTEXT)(_|$)"
)
# They look like credentials and differ between the hosts of one account, or on every start.
_NOT_AN_ACCOUNT = re.compile(
    r"^(SSH_AUTH_SOCK|XAUTHORITY|DBUS_|XDG_|FENCEKIT_|CLAUDE|ANTHROPIC_|OPENAI_|CURSOR_|VSCODE_"
    r"|GPG_|ITERM_|WT_|KONSOLE_|GNOME_|WINDOWID|TERM|COLORTERM|npm_|GIT_ASKPASS|SESSION)"
)


def scope_of(
    command: Sequence[str],
    cwd: str,
    environ: Mapping[str, str],
    *,
    name: str | None = None,
    account_env: Sequence[str] = (),
    url: str = "",
) -> Scope:
    """Return the scope of a wrapped server.

    With `name` neither command, folder nor guess counts; `account_env` (names of variables that
    hold a profile or an account id) separates accounts even then. Raises `InvalidRequest` for a
    name that is none, and for an account variable that is not set.
    """
    if name is not None and not _NAME.fullmatch(name):
        raise InvalidRequest(
            f"--scope {name!r} is no name: 1 to 100 letters, digits or any of . _ @ : + -"
        )
    account = _account(account_env, environ)
    if name is not None:
        return Scope(name, account)
    words = [url] if url else [_resolved(word, cwd) for word in command]
    place = "" if url else cwd
    stem = _stem(words)
    digest = _digest({"command": words, "cwd": place})[:12]
    guess = "" if account_env else _guess(environ)
    return Scope(f"{stem}@{digest}", account, guess)


def _account(names: Sequence[str], environ: Mapping[str, str]) -> str:
    if not names:
        return ""
    missing = [name for name in names if not environ.get(name)]
    if missing:
        raise InvalidRequest(f"--account-env {missing[0]}: this variable is not set or empty")
    return "account:" + _digest({name: environ[name] for name in names})[:32]


def _guess(environ: Mapping[str, str]) -> str:
    """Digest what looks like credentials; empty where nothing does."""
    found = {
        name: value
        for name, value in environ.items()
        if value and _CREDENTIAL.search(name) and not _NOT_AN_ACCOUNT.search(name)
    }
    return _digest(found)[:32] if found else ""


def guessed_names(environ: Mapping[str, str]) -> list[str]:
    """Return the names of the variables that a guess would rest on."""
    return sorted(
        name
        for name, value in environ.items()
        if value and _CREDENTIAL.search(name) and not _NOT_AN_ACCOUNT.search(name)
    )


def _resolved(word: str, cwd: str) -> str:
    if word in (".", "..") or word.startswith(("./", "../")):
        return posixpath.normpath(posixpath.join(cwd.replace(os.sep, "/"), word))
    return word


def _stem(words: Sequence[str]) -> str:
    """Return a short readable name: the package that a runner runs, else the program."""
    runners = {"npx", "uvx", "uv", "bunx", "pnpm", "node", "python", "python3", "docker", "pipx"}
    plain = [w for w in words if not w.startswith("-") and posixpath.basename(w) not in runners]
    chosen = posixpath.basename((plain or list(words))[0].rstrip("/"))
    return re.sub(r"[^A-Za-z0-9._-]+", "-", chosen).strip("-.")[:40] or "server"


def _digest(value: object) -> str:
    """Return a keyed digest, so that a ledger does not give a short secret away by its hash."""
    return hashlib.blake2b(
        canonical_bytes(value), key=b"fencekit scope v1", digest_size=32
    ).hexdigest()
