"""One write, and what every rule about writes asks of a call: its name, whose library it is of."""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass

from fencekit.scan import words
from fencekit.scan.facts import Call, Expr, Index, Member, Name
from fencekit.scan.values import Const, Ext, Value


@dataclass(slots=True, frozen=True)
class Effect:
    """One write: what it is, and whether a repeat adds to it or only declares it again."""

    what: str
    declarative: bool
    certain: bool
    target: str = ""
    weak: bool = False


VERSION = re.compile(r"/v\d+$")  # of a Go module: `github.com/go-resty/resty/v2`
NOTHING = Effect("", False, True)


def called_name(call: Call) -> str:
    """Return the last name of what is called."""
    callee = call.callee
    if isinstance(callee, Member):
        return callee.name
    return callee.id if isinstance(callee, Name) else ""


def root_of(value: Ext) -> str:
    """Return the module an outside value comes from, without the `node:` scheme."""
    return value.root.removeprefix("node:")


@functools.lru_cache(maxsize=20_000)
def from_library(root: str, libraries: tuple[str, ...]) -> bool:
    """Tell whether a module belongs to one of some libraries."""
    root = VERSION.sub("", root)
    if not root:
        return False
    first = re.split(r"[/.:]", root.lstrip("@"))[0]
    for library in libraries:
        if root == library or root.startswith((library + "/", library + ".", library + "::")):
            return True
        if first == library and library not in ("http", "https", "os", "time", "log", "request"):
            return True
        if root.endswith("/" + library) and library != "core":  # `@octokit/core` is not Rust's
            return True
    return False


def shown(value: Value) -> str:
    """Return a value as text: a constant, or the path of something outside."""
    if isinstance(value, Const):
        return str(value.value)
    return value.path if isinstance(value, Ext) else ""


def receiver_words(expr: Expr) -> set[str]:
    """Return the words of the names a receiver is made of."""
    out: set[str] = set()
    here: Expr | None = expr
    while here is not None:
        if isinstance(here, Member):
            out |= set(words.split(here.name))
            here = here.obj
        elif isinstance(here, Name):
            out |= set(words.split(here.id))
            here = None
        elif isinstance(here, Call):
            here = here.callee
        elif isinstance(here, Index):
            here = here.obj
        else:
            here = None
    return out
