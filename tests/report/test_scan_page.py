"""The scan page in a real browser: hostile repositories stay inert, everybody can read it."""

from __future__ import annotations

import pytest

from fencekit.report import scan_html
from tests.browser import SIZES
from tests.hostile import poison
from tests.report.samples import SOURCES, scan_document

pytestmark = pytest.mark.browser


@pytest.fixture
def page_of(tmp_path):
    def write(document, sources=SOURCES):
        file = tmp_path / "scan.html"
        text = scan_html.render([document], lambda _at, path: sources.get(path))
        file.write_text(text, encoding="utf-8")
        return file.as_uri()

    return write


def test_a_hostile_repository_runs_nothing_and_asks_for_nothing(chromium, page_of):
    url = page_of(poison(scan_document()))
    with chromium.visit(url) as seen:
        assert seen.ran() == []
        assert seen.errors == []
        assert seen.requests == [url]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing(chromium, page_of, scheme):
    with chromium.visit(page_of(scan_document()), scheme=scheme) as seen:
        seen.page.evaluate("document.querySelectorAll('details').forEach((d) => (d.open = true))")

        assert seen.axe() == []


@pytest.mark.parametrize("size", SIZES)
def test_nothing_is_wider_than_the_window(chromium, page_of, size):
    long = poison(scan_document(), "averylongnamewithoutanybreak_" * 8)
    with chromium.visit(page_of(long), size=size) as seen:
        assert seen.overflow() <= 0


def test_the_filter_shows_only_the_mechanism(chromium, page_of):
    with chromium.visit(page_of(scan_document())) as seen:
        button = seen.page.get_by_role("button", name="Key minted per call")
        button.press("Enter")

        assert button.get_attribute("aria-pressed") == "true"
        shown = seen.page.locator("article:not([hidden])")
        assert shown.count() == 2
        assert "charge_card" in shown.first.inner_text()
        assert seen.page.get_by_role("status").inner_text() == "2 of 4 shown"


def test_without_scripts_everything_is_there(chromium, page_of):
    with chromium.visit(page_of(scan_document()), scripts=False) as seen:
        assert seen.page.locator("article").count() == 4
        assert not seen.page.locator("[data-filters]").is_visible()
