"""A database's password from a file, so that it stands in no URL, argument or environment."""

from __future__ import annotations

from pathlib import Path

from fencekit.core.errors import InvalidRequest


def read_password(path: str | None) -> str | None:
    """Return the first text of the file without white space around it; None for no file.

    Raises `InvalidRequest` where it cannot be read.
    """
    if path is None:
        return None
    try:
        return Path(path).read_text(encoding="utf-8").strip()
    except OSError as problem:
        raise InvalidRequest(f"password_file {path} cannot be read ({problem.strerror})") from None
