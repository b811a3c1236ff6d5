"""What `import fencekit` offers, and what it costs."""

from __future__ import annotations

import subprocess
import sys

import fencekit

HEAVY = ("mcp", "pydantic", "tree_sitter", "jinja2", "rich", "asyncio")


def test_every_public_name_can_be_imported():
    assert sorted([*fencekit._PUBLIC, "__version__"]) == sorted(fencekit.__all__)
    for name in fencekit.__all__:
        assert getattr(fencekit, name) is not None


def test_an_unknown_name_is_an_attribute_error():
    assert not hasattr(fencekit, "NoSuchName")


def test_importing_loads_nothing_heavy():
    program = (
        "import fencekit, sys\n"
        f"print([m for m in {HEAVY!r} if m in sys.modules])\n"
        "fencekit.Fence\n"
        f"print([m for m in {HEAVY!r} if m in sys.modules])"
    )
    out = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )

    assert out.stdout.splitlines() == ["[]", "[]"]
