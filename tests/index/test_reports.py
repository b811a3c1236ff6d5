"""The project's own register: sound, and the committed site is what it builds."""

from __future__ import annotations

from datetime import date
from pathlib import Path

from fencekit.index import register, site

REPORTS = Path(__file__).parents[2] / "reports"
# `make reports` sets SOURCE_DATE_EPOCH to this day.
DAY = date(2026, 12, 1)


def test_the_committed_site_is_what_the_entries_build():
    built = site.build(register.load(REPORTS / "register"), DAY)
    committed = {
        path.relative_to(REPORTS / "site").as_posix(): path.read_bytes()
        for path in (REPORTS / "site").rglob("*")
        if path.is_file()
    }

    assert sorted(committed) == sorted(built)
    assert [path for path in built if built[path] != committed[path]] == []


def test_nothing_in_the_reports_names_a_machine():
    for path in REPORTS.rglob("*"):
        if path.is_file():
            text = path.read_bytes()
            assert [w for w in (b"/home/", b"/root/", b"/work/", b"/tmp/") if w in text] == []
