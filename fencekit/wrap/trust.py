"""Which configuration files count: found, and trusted by their digest."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from pathlib import Path

from fencekit.core.errors import InvalidRequest
from fencekit.wrap import config
from fencekit.wrap.config import Config, ConfigError

MAX_UP = 64  # folders


def config_folder() -> Path:
    """Return the user's configuration folder."""
    import platformdirs

    return platformdirs.user_config_path("fencekit")


def load(named: Path | None, cwd: Path) -> Config:
    """Read every file that counts for a server started in `cwd`.

    Raises `ConfigError` for a file that is broken; a project's own file included, because a fence
    that silently lacks its rules is none.
    """
    made = Config()
    own = config_folder() / config.NAME
    if own.is_file():
        made.add(config.read(own))
    if named is not None:
        made.add(config.read(named))
    project = found_upward(cwd)
    if project is not None and project not in (own, named and named.absolute()):
        raw = _bytes(project)
        other = config.parse(raw, project)
        if is_trusted(project, raw):
            made.add(other)
        else:
            made.tighten(other)
    return made


def found_upward(cwd: Path) -> Path | None:
    """Return the nearest `fencekit.toml` in a folder or above it."""
    for folder in [cwd, *cwd.parents][:MAX_UP]:
        path = folder / config.NAME
        if path.is_file():
            return path
    return None


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise ConfigError(f"{path} could not be read: {error.strerror}") from None


def _store() -> Path:
    return config_folder() / "trusted.json"


def _trusted() -> dict[str, str]:
    try:
        data = json.loads(_store().read_bytes())
    except (OSError, ValueError):
        return {}
    return data if isinstance(data, dict) else {}


def is_trusted(path: Path, raw: bytes) -> bool:
    """Whether exactly these bytes at this place were trusted."""
    return _trusted().get(str(path.resolve())) == hashlib.sha256(raw).hexdigest()


def trust(path: Path) -> str:
    """Trust a file as it is now, after checking that it can be used; returns its digest.

    Raises `ConfigError` for a broken file, `InvalidRequest` where trust cannot be recorded.
    """
    raw = _bytes(path)
    config.parse(raw, path)
    digest = hashlib.sha256(raw).hexdigest()
    data = {**_trusted(), str(path.resolve()): digest}
    store = _store()
    try:
        store.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor, name = tempfile.mkstemp(dir=store.parent, prefix=".trusted-")
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            json.dump(data, file, indent=1, sort_keys=True)
        os.replace(name, store)
    except OSError as error:
        raise InvalidRequest(f"{store} could not be written: {error.strerror}") from None
    return digest
