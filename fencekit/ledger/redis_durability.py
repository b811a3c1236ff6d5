"""Whether a Redis could lose what it acknowledged, by its own settings."""

from __future__ import annotations

from typing import Any

import redis

# Policies that never drop a key without an expiry; ours have none.
_KEEPING = ("noeviction", "volatile-lru", "volatile-lfu", "volatile-random", "volatile-ttl")


def weaknesses_of(db: redis.Redis) -> list[str]:
    """Return why this server could lose an acknowledged write; what cannot be read counts."""
    wanted = {
        "appendonly": ("yes",),
        "appendfsync": ("always",),
        "no-appendfsync-on-rewrite": ("no",),
        "maxmemory-policy": _KEEPING,
    }
    found = []
    for name, allowed in wanted.items():
        try:
            got: Any = db.config_get(name)
        except redis.ResponseError:
            got = {}
        value = got.get(name)
        if value not in allowed:
            found.append(f"{name} is {value if value is not None else 'not readable'}")
    return found
