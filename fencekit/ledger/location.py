"""Where a ledger's files may lie: parsed from its URL, private to the user, on a local disk."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import parse_qs, unquote

from fencekit.core.errors import InvalidRequest, LedgerUnavailable

# File systems whose locks and syncs are known to be those of one kernel.
LOCAL = frozenset(
    {"ext2", "ext3", "ext4", "xfs", "btrfs", "zfs", "f2fs", "bcachefs", "jfs", "reiserfs"}
    | {"tmpfs", "ramfs", "overlay", "apfs", "hfs", "ufs", "vfat", "exfat", "msdos", "ntfs", "ntfs3"}
)


DEFAULT_NAMES = {"sqlite": "ledger.db", "jsonl": "ledger.jsonl"}
"""The file in the user's state directory, for a URL without a path."""


@dataclass(frozen=True, slots=True)
class Location:
    """The path of a ledger's file, and what its URL asks for."""

    path: Path
    trust_shared: bool = False


def locate(url: str, scheme: str) -> Location:
    """Parse `scheme:PATH?options` or a bare path; no path means the user's state directory."""
    rest = url.removeprefix(f"{scheme}:")
    text, _, query = rest.partition("?")
    options = parse_qs(query, keep_blank_values=True)
    unknown = set(options) - {"shared_fs"}
    if unknown or options.get("shared_fs", ["trust"]) != ["trust"]:
        raise InvalidRequest(f"{scheme}: takes the option ?shared_fs=trust, not ?{query}")
    if text.startswith("//"):
        text = text.removeprefix("//")
    path = Path(unquote(text)).expanduser() if text else state_directory() / DEFAULT_NAMES[scheme]
    if "\0" in text:
        raise InvalidRequest("a ledger's path cannot hold a NUL character")
    return Location(path.absolute(), "shared_fs" in options)


def state_directory() -> Path:
    """Return the directory of the user's own ledgers (`~/.local/state/fencekit` on Linux)."""
    import platformdirs

    return platformdirs.user_state_path("fencekit")


def make_private(location: Location) -> None:
    """Make the ledger's directory if it is missing, and refuse a place that is not trustworthy.

    A file of ours that others may read is made private. Raises `LedgerUnavailable` for a symlink, a
    foreign owner, a directory, a file or folder that others may change, or a file system that is
    not known to be local (unless the URL says `?shared_fs=trust`).
    """
    path = location.path
    parent = path.parent
    try:
        if not parent.exists():
            parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        _refuse_foreign_folder(parent)
        info = path.lstat() if path.is_symlink() or path.exists() else None
    except OSError as problem:
        raise LedgerUnavailable(
            f"the ledger's directory {parent} cannot be used ({problem.strerror}): "
            "choose another place with --ledger"
        ) from None
    if info is not None:
        if stat.S_ISLNK(info.st_mode):
            raise LedgerUnavailable(
                f"the ledger {path} is a symbolic link: name the file itself with --ledger"
            )
        if not stat.S_ISREG(info.st_mode):
            raise LedgerUnavailable(f"the ledger {path} is not a file: choose another place")
        if hasattr(os, "getuid") and info.st_uid != os.getuid():
            raise LedgerUnavailable(
                f"the ledger {path} belongs to another user: choose a place of your own"
            )
        if info.st_mode & stat.S_IWOTH:
            raise LedgerUnavailable(
                f"every user may write to the ledger {path}: look at what it holds, then "
                f"`chmod 600` it"
            )
        if info.st_mode & 0o077:
            path.chmod(0o600)
    if not location.trust_shared:
        _refuse_shared(parent)


def _refuse_foreign_folder(directory: Path) -> None:
    """Refuse a folder in which another user can put another file in the ledger's place.

    Root can anyway; a sticky folder (`/tmp`) lets nobody touch the files of others.
    """
    info = directory.stat()
    if info.st_mode & stat.S_IWOTH and not info.st_mode & stat.S_ISVTX:
        raise LedgerUnavailable(
            f"every user may replace files in {directory}: `chmod o-w` it, or choose another place "
            "with --ledger"
        )
    if hasattr(os, "getuid") and info.st_uid not in (0, os.getuid()) and os.getuid() != 0:
        raise LedgerUnavailable(
            f"{directory} belongs to another user, who can replace files in it: choose another "
            "place with --ledger"
        )


def _refuse_shared(directory: Path) -> None:
    kind = file_system(directory)
    if kind is not None and kind not in LOCAL:
        raise LedgerUnavailable(
            f"{directory} is on a file system ({kind}) that may be shared between machines, where "
            "locks and syncs cannot be trusted: use a local disk, a database, or add "
            "?shared_fs=trust to the URL if you know better"
        )


def file_system(directory: Path) -> str | None:
    """Return the type of the file system that holds a directory; None where nothing tells."""
    try:
        mounts = Path("/proc/self/mountinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    real = os.path.realpath(directory)
    best, kind = "", None
    for line in mounts.splitlines():
        fields, _, tail = line.partition(" - ")
        point = fields.split(" ")[4].replace("\\040", " ")
        inside = real == point or real.startswith(point.rstrip("/") + "/")
        if inside and len(point) >= len(best):
            best, kind = point, tail.split(" ")[0]
    return kind
