"""Who may come through the HTTP front, and as whom: front tokens, groups, forwarded credentials.

The principal of a call is whoever the upstream acts as. A front token only says that a client may
come in; clients count as different principals where the configuration puts them into different
groups, or where each forwards a credential of its own (`--forward-auth`). A forwarded credential is
known by a keyed digest only. What stands inside it, such as the `sub` of a JWT, is not believed:
nobody here has the key to verify it.
"""

from __future__ import annotations

import hmac
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fencekit.wire.http import secret_headers
from fencekit.wrap.identity import GROUP
from fencekit.wrap.scope import forwarded

TOKEN_HEADER = b"fencekit-token"
"""Where a front token stands beside a forwarded `Authorization`; it never goes further."""


@dataclass(frozen=True, slots=True)
class Client:
    """One token of the front, the group it belongs to ("" for none), and what it may rotate.

    `one_account` is the operator's word that whatever this client forwards acts as one account, so
    that its group alone is its identity and its credential may change.
    """

    token: str = field(repr=False)
    name: str
    group: str = ""
    one_account: bool = False


@dataclass(frozen=True, slots=True)
class Guests:
    """Everybody who may come in; without a client, everybody may."""

    clients: tuple[Client, ...] = ()
    forward_auth: bool = False

    def admit(self, headers: Mapping[bytes, bytes]) -> str | None:
        """Return the principal of a request ("" where all are one); None for who may not come in.

        `headers` have lower-case names.
        """
        client = self._client(headers) if self.clients else None
        if self.clients and client is None:
            return None
        parts = [f"{GROUP}{client.group}"] if client is not None and client.group else []
        if self.forward_auth and not (client is not None and client.one_account):
            parts.append(forwarded(headers.get(b"authorization", b"")))
        return "/".join(parts)

    def _client(self, headers: Mapping[bytes, bytes]) -> Client | None:
        given = headers.get(TOKEN_HEADER)
        if given is None and not self.forward_auth:
            scheme, _, token = headers.get(b"authorization", b"").partition(b" ")
            given = token.strip() if scheme.lower() == b"bearer" else b""
        found = None
        for client in self.clients:  # every one is compared, so that the time says nothing
            if hmac.compare_digest(given or b"", client.token.encode()):
                found = client
        return found


EVERYBODY = Guests()


def known(
    configured: Mapping[str, Mapping[str, Any]], envs: Sequence[str], files: Sequence[Path]
) -> tuple[Client, ...]:
    """Return the clients of the configuration, and one without a group for each further token.

    Tokens are read once, from variables and files. Raises ValueError naming what is missing, empty
    or given to two clients.
    """
    made = [
        Client(
            _token(fields.get("token_env"), fields.get("token_file"), name),
            f"clients.{name}",
            fields.get("group", ""),
            fields.get("one_account", False),
        )
        for name, fields in configured.items()
    ]
    made += [Client(_token(env, None, env), f"--front-token-env {env}") for env in envs]
    made += [
        Client(_token(None, str(path), str(path)), f"--front-token-file {path}") for path in files
    ]
    seen: dict[str, str] = {}
    for client in made:
        if client.token in seen:
            raise ValueError(f"{client.name} and {seen[client.token]} have the same token")
        seen[client.token] = client.name
    return tuple(made)


def _token(env: str | None, file: str | None, name: str) -> str:
    source = f"${env}" if env is not None else f"@{file}"
    token = secret_headers({"token": source})["token"].strip()
    if not token:
        raise ValueError(f"the token of {name} is empty")
    return token
