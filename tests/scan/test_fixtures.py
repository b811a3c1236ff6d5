"""Every small repository in `fixtures/repos` is reported exactly as its own marks say."""

from __future__ import annotations

from pathlib import Path

import pytest

from fencekit.scan.engine import scan
from tests.scan import marks

REPOS = Path(__file__).parents[2] / "fixtures" / "repos"
CASES = sorted(p for p in REPOS.iterdir() if p.is_dir())


@pytest.mark.parametrize("root", CASES, ids=lambda p: p.name)
def test_a_fixture_is_reported_as_marked(root):
    assert marks.differences(root, scan(root)) == []


NOTES = """import httpx
from mcp.server.fastmcp import FastMCP

mcp = FastMCP("notes")


@mcp.tool()
# expect: tool=add_note candidate
def add_note(text: str) -> str:
    return httpx.post("https://api.example.org/notes", json={"text": text}).text{mark}
"""


def written(root, mark):
    (root / "notes.py").write_text(NOTES.replace("{mark}", mark), encoding="utf-8")
    return marks.differences(root, scan(root))


def test_marks_fail_where_a_write_is_not_marked_or_not_there(tmp_path):
    assert written(tmp_path, "  # expect: write=add_note") == []
    assert written(tmp_path, "") == ["not marked: write add_note notes.py:10"]
    mark = "  # expect: write=add_note; retry=add_note"
    assert written(tmp_path, mark) == ["missing: retry add_note notes.py:10"]


@pytest.mark.parametrize("mark", ["tol=add_note", "candidate", "write=add_note surely"])
def test_a_mark_that_says_nothing_is_refused(tmp_path, mark):
    with pytest.raises(ValueError, match="no mark"):
        written(tmp_path, f"  # expect: {mark}")
