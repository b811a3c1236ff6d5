"""The shape of the code: what a reader may rely on without reading it."""

from __future__ import annotations

from pathlib import Path

PACKAGE = Path(__file__).parent.parent / "fencekit"
LIMIT = 400


def test_no_module_is_over_the_limit_without_a_reason():
    """A module over 400 lines says why in a line `Over 400 lines: …` of its docstring."""
    over = []
    for path in PACKAGE.rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        if text.count("\n") > LIMIT and "Over 400 lines:" not in text[:3000]:
            over.append(f"{path.relative_to(PACKAGE)}: {text.count(chr(10))}")

    assert over == []


def test_nothing_is_called_utils():
    assert [p for p in PACKAGE.rglob("*") if p.stem in ("utils", "util", "helpers", "misc")] == []
