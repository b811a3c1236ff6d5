"""How a Redis ledger is laid out: its keys, its format's number, and how an older one moves up.

Format 1 had no number, and nothing of it looks for one. So what is brought up to date leaves values
of another type under the two names that format 1 reads and compares: every question and every write
of an older fencekit, a running one included, is then refused by the server.
"""

from __future__ import annotations

from typing import Any

import redis

from fencekit.core.errors import LedgerUnavailable

FORMAT = 2

# In the order of KEYS of the scripts.
_PARTS = ("records", "versions", "index", "due", "audit", "last")

# KEYS: the format, the keys of format 1, those of this one. ARGV: this format, what is left under
# the old names. Returns the format that is found in the end.
_MIGRATE = """
local found = tonumber(redis.call('GET', KEYS[1]) or '1')
if found >= tonumber(ARGV[1]) then return found end
local parts = (#KEYS - 1) / 2
for i = 2, parts + 1 do
  if redis.call('EXISTS', KEYS[i]) == 1 then redis.call('RENAME', KEYS[i], KEYS[i + parts]) end
end
redis.call('SET', KEYS[2], ARGV[2])
redis.call('SET', KEYS[3], ARGV[2])
redis.call('SET', KEYS[1], ARGV[1])
return tonumber(ARGV[1])
"""

# KEYS: the audit, how many lines were swept from its front. ARGV: after which number, how many.
# Returns the number before the first line, the newest number, then the lines.
_AUDIT = """
local swept = tonumber(redis.call('GET', KEYS[2]) or '0')
local from = math.max(tonumber(ARGV[1]) - swept, 0)
local lines = redis.call('LRANGE', KEYS[1], from, from + ARGV[2] - 1)
return {swept + from, swept + redis.call('LLEN', KEYS[1]), lines}
"""

# ARGV: how many lines were swept when it was looked at, how many are to go. Returns how many went.
_DROP = """
if (redis.call('GET', KEYS[2]) or '0') ~= ARGV[1] then return 0 end
redis.call('LTRIM', KEYS[1], ARGV[2], -1)
redis.call('INCRBY', KEYS[2], ARGV[2])
return tonumber(ARGV[2])
"""


class Layout:
    """The keys of one namespace; all carry one hash tag, so they live in one cluster slot."""

    def __init__(self, namespace: str) -> None:
        self.keys = [f"{{{namespace}}}:v{FORMAT}:{part}" for part in _PARTS]
        self.records, self.versions, self.index, self.due, self.audit, _ = self.keys
        self._swept = f"{{{namespace}}}:v{FORMAT}:swept"
        self.noted = f"{{{namespace}}}:v{FORMAT}:noted"
        self.counters = f"{{{namespace}}}:counters"
        self._old = [f"{{{namespace}}}:{part}" for part in _PARTS]
        self._format = f"{{{namespace}}}:format"

    def is_made(self, db: redis.Redis) -> bool:
        """Whether anything of the namespace is there, in whatever format."""
        found: Any = db.exists(self._format, *self._old, *self.keys)
        return bool(found)

    def check(self, db: redis.Redis, place: str) -> None:
        """Bring an older format up to date, and refuse a newer one; ten may do this at once.

        Raises `LedgerUnavailable` for a newer format.
        """
        found: Any = db.get(self._format)
        if found is None or int(found) < FORMAT:
            left = f"used by a newer fencekit (format {FORMAT}): upgrade fencekit"
            keys = (self._format, *self._old, *self.keys)
            found = db.eval(_MIGRATE, len(keys), *keys, FORMAT, left)
        if int(found) > FORMAT:
            raise LedgerUnavailable(
                f"the ledger at {place} was written by a newer fencekit (format {int(found)}, this "
                f"one reads {FORMAT}): upgrade fencekit"
            )

    def audit_lines(
        self, db: redis.Redis, after: int, limit: int
    ) -> tuple[list[tuple[int, bytes]], int]:
        """Return some audit lines after a number with their own, and the newest number."""
        told: Any = db.eval(_AUDIT, 2, self.audit, self._swept, after, limit)
        before, newest, lines = told
        return list(enumerate(lines, before + 1)), newest

    def drop_audit(self, db: redis.Redis, first: int, many: int) -> int:
        """Drop the first audit lines; none if `first` is not the first any more."""
        dropped: Any = db.eval(_DROP, 2, self.audit, self._swept, first - 1, many)
        return int(dropped)
