"""`fencekit uninstall`: see `fencekit.cli.install`."""

from __future__ import annotations

from fencekit.cli.install import uninstall as command

__all__ = ["command"]
