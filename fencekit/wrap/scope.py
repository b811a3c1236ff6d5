"""Which calls are "the same server": the command line word for word, the folder, and the account.

A scope is a name that a person gave (`--scope`), or a digest of the command and the working
directory. Only `.`, `./…` and `../…` in the command are resolved, lexically, whether or not the
file exists, so that one project's servers are the same from each of its hosts.
"""

from __future__ import annotations

import hashlib
import itertools
import os
import posixpath
import re
from collections.abc import Mapping, Sequence
from urllib.parse import urlsplit

from fencekit.core.canonical import canonical_bytes
from fencekit.core.errors import InvalidRequest
from fencekit.report.escape import MASKED, mask_argv
from fencekit.wrap.identity import CREDENTIAL, Scope

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@:+-]{0,99}")
_CREDENTIAL = re.compile(
    r"(^|_)(TOKEN|API_?KEY|SECRET|PASSWORD|PASSWD|CREDENTIALS?|ACCESS_KEY(_ID)?|PROFILE|ACCOUNT"
    r"|ACCOUNT_ID|PRIVATE_KEY|AUTH|KUBECONFIG|CONTEXT)(_|$)"
)
# What only starts another program, and the options whose value is code.
_RUNNERS = frozenset(
    {
        "npx", "uvx", "uv", "bunx", "bun", "pnpm", "yarn", "npm", "node", "deno", "python",
        "python3", "docker", "podman", "pipx", "env", "sh", "bash",
        "run", "exec", "dlx", "tool", "x",
    }
)  # fmt: skip
_CODE = ("-c", "-e", "--eval", "-p", "--print")
# A scope that was made from a command line, and the version at the end of a package's name.
_MADE = re.compile(r"(.+)@[0-9a-f]{12}")
_VERSION = re.compile(r"-+(v?\d[\w.-]*|latest|next|beta|canary)$|\.(m?js|cjs|ts|py|exe|cmd)$")
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
    words = [url] if url else [_resolved(word, cwd) for word in command]
    stem = _readable(urlsplit(url).hostname or "") if url else _stem(words)
    program = _VERSION.sub("", stem)
    if name is not None:
        return Scope(name, account, program=program)
    place = "" if url else cwd
    digest = _digest({"command": words, "cwd": place})[:12]
    guess = "" if account_env else _guess(environ)
    return Scope(f"{stem}@{digest}", account, guess, program)


def program_in(scope: str) -> str:
    """Return the program that the name of a scope tells; empty for a name that a person gave."""
    made = _MADE.fullmatch(scope)
    return _VERSION.sub("", made[1]) if made else ""


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
    """Return a short readable name: the package that a runner runs, else the program.

    Never a word that may hold a secret: what a credential's option or assignment says, code.
    """
    plain = [
        word
        for before, word in itertools.pairwise(("", *mask_argv(list(words))))
        if not word.startswith("-")
        and MASKED not in word
        and "=" not in word.partition("==")[0]
        and before not in _CODE
        and posixpath.basename(word) not in _RUNNERS
    ]
    return _readable(posixpath.basename((plain or words)[0].rstrip("/")))


def _readable(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip("-.")[:40] or "server"


def forwarded(credential: bytes) -> str:
    """Return the principal of a credential that a client forwards: a keyed digest of all of it."""
    return CREDENTIAL + _digest(credential.decode("latin-1"))[:32]


def _digest(value: object) -> str:
    """Return a keyed digest, so that a ledger does not give a short secret away by its hash."""
    return hashlib.blake2b(
        canonical_bytes(value), key=b"fencekit scope v1", digest_size=32
    ).hexdigest()
