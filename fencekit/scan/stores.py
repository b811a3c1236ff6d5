"""Own deduplication: calls that look up, enter or remove what was seen before."""

from __future__ import annotations

from fencekit.scan import words
from fencekit.scan.effect import receiver_words
from fencekit.scan.facts import Call, Index, Member
from fencekit.scan.walked import Walked

# Names that hold what was done; the others (`cache`, `known`) hold anything at all, and count
# only where the same one is filled after the write.
STRONG = words.STORES - {"cache", "known", "existing", "store", "keys", "sent", "completed"}


def note_put(found: Walked, target: Index, file: str, order: int) -> None:
    """Note `seen[key] = value`."""
    near = receiver_words(target.obj) & words.STORES
    if near:
        found.stored.append((file, target.line, ".".join(sorted(near)), order))


def note(found: Walked, call: Call, name: str, file: str, order: int, *, failing: bool) -> None:
    """Note look-ups in, entries into, and removals from a store of what was seen.

    `order` counts the calls of the walk; `failing` tells that the call stands in an error handler.
    """
    callee = call.callee
    if not isinstance(callee, Member):
        return
    near = receiver_words(callee.obj)
    parts = set(words.split(name))
    if not near & words.STORES and not parts & words.STORES:
        return
    where = ".".join(sorted(near & words.STORES)) or name
    first = words.split(name)[0] if words.split(name) else ""
    if parts == {"is", "empty"}:
        return  # asks nothing about one entry
    weak = not (near | parts) & STRONG
    if first in (
        "get",
        "has",
        "find",
        "lookup",
        "contains",
        "exists",
        "is",
        "check",
        "seen",
        "load",
        "was",
    ):
        (found.lookups if weak else found.stores).append((file, call.line, where, order))
    elif first in (
        "set",
        "add",
        "put",
        "save",
        "store",
        "record",
        "mark",
        "insert",
        "remember",
        "append",
    ):
        found.stored.append((file, call.line, where, order))
    elif first in ("delete", "remove", "release", "discard", "clear", "pop", "unlock") and failing:
        found.releases.append((file, call.line, where))
