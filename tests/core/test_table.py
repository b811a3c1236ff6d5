"""The table that code, docs and tests share."""

from __future__ import annotations

from pathlib import Path

from fencekit.core.table import Situation, render, row

PAGE = Path(__file__).parents[2] / "docs" / "state-table.md"


def test_the_page_shows_the_table_that_the_code_runs():
    text = PAGE.read_text(encoding="utf-8")
    shown = text.split("<!-- table -->\n")[1].split("<!-- /table -->")[0]

    assert shown == render()


def test_every_situation_has_a_row_of_its_own():
    assert len({situation.value for situation in Situation}) == len(Situation)
    for situation in Situation:
        assert row(situation) is not None
