"""The pages of a probe and of a ledger in a real browser: inert, readable by everybody, exact."""

from __future__ import annotations

import json

import jsonschema
import pytest

from fencekit.report import battery_html, ledger_html, page, probe_html, probe_view, timeline
from tests.browser import SIZES
from tests.hostile import EVERYTHING, poison
from tests.report import samples

KEEP = frozenset({"at", "schema"})  # times are parsed: only their producer can be wrong about them
PAGES = {
    "probe": lambda change: probe_html.render(change(samples.probe_document())),
    "compared": lambda change: probe_html.render(
        change(samples.probe_document(proven=False)), change(samples.probe_document())
    ),
    "void": lambda change: probe_html.render(change(samples.probe_document(self_check=False))),
    "battery": lambda change: battery_html.render(change(samples.battery_document())),
    "ledger": lambda change: ledger_html.render(change(samples.ledger_document())),
}


@pytest.fixture(params=PAGES)
def write(request, tmp_path):
    def to_file(change=lambda document: document):
        file = tmp_path / "page.html"
        file.write_text(PAGES[request.param](change), encoding="utf-8")
        return file.as_uri()

    return to_file


@pytest.mark.browser
def test_hostile_documents_run_nothing_and_ask_for_nothing(chromium, write):
    url = write(lambda document: poison(document, keep=KEEP))
    with chromium.visit(url) as seen:
        assert seen.ran() == []
        assert seen.errors == []
        assert seen.requests == [url]


@pytest.mark.browser
def test_a_page_without_escaping_would_be_caught(chromium, tmp_path):
    """The tripwire works: the same strings, written raw into a page without policy, come alive."""
    file = tmp_path / "raw.html"
    file.write_text("<!doctype html><title>x</title>" + EVERYTHING, encoding="utf-8")
    with chromium.visit(file.as_uri()) as seen:
        assert seen.ran() != []


@pytest.mark.browser
def test_the_policy_stops_what_escaping_would_miss(chromium, tmp_path):
    """Injected past the escaping, an inline handler or script still does not run."""
    text = probe_html.render(samples.probe_document())
    file = tmp_path / "page.html"
    hole = "<script>pwn(1)</script><img src=https://127.0.0.1:9/x onerror=pwn(2)>"
    file.write_text(text.replace("<main", hole + "<main"), encoding="utf-8")
    with chromium.visit(file.as_uri()) as seen:
        assert seen.ran() == []
        assert seen.requests == [file.as_uri()]


@pytest.mark.browser
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing(chromium, write, scheme):
    with chromium.visit(write(), scheme=scheme) as seen:
        seen.page.evaluate("document.querySelectorAll('details').forEach((d) => (d.open = true))")

        assert seen.axe() == []


@pytest.mark.browser
@pytest.mark.parametrize("size", SIZES)
def test_nothing_is_wider_than_the_window(chromium, write, size):
    long = "averylongnamewithoutanybreak_" * 8
    with chromium.visit(write(lambda d: poison(d, long, keep=KEEP)), size=size) as seen:
        assert seen.overflow() <= 0


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("https://example.org/x", True),
        ("http://example.org", False),
        ("javascript:alert(1)", False),
        ("https://user:pw@example.org", False),
        ("https://example.org/\u202e", False),
        ("https:///x", False),
        ("https://[", False),
        (None, False),
    ],
)
def test_only_plain_https_addresses_become_links(text, kept):
    assert page.https_url(text) == (text if kept else None)


def test_a_failed_self_check_voids_whatever_was_counted():
    head = probe_view.headline(samples.probe_document(self_check=False))

    assert head.words.startswith("VOID")
    assert (
        "PROVEN" not in probe_html.render(samples.probe_document(self_check=False)).split("<h2")[0]
    )


def test_before_and_after_show_twelve_callers_one_executed():
    raw, fenced = samples.probe_document(), samples.probe_document(proven=False)

    [row] = probe_view.comparison(raw, fenced)

    assert (row["raw"]["calls"], row["raw"]["executed"]) == (12, 12)
    assert (row["fenced"]["calls"], row["fenced"]["executed"], row["fenced"]["replayed"]) == (
        12,
        1,
        11,
    )


def test_the_timeline_places_bars_by_time_and_keeps_them_inside():
    way = samples.probe_way(calls=200)
    way["calls"][3]["answered_ms"] = None
    drawing = timeline.draw(way)

    assert drawing is not None
    assert drawing.left_out == 72
    for bar in drawing.bars:
        assert bar.x >= timeline.LEFT
        assert bar.x + bar.width <= timeline.RIGHT + 0.02
    assert drawing.bars[0].x < drawing.bars[100].x


def test_letters_go_on_after_z():
    assert [timeline.letter(n) for n in (0, 25, 26, 27, None)] == ["A", "Z", "AA", "AB", ""]


def test_a_way_without_times_has_no_drawing():
    way = samples.probe_way()
    for call in way["calls"]:
        call["sent_ms"] = None

    assert timeline.draw(way) is None


def test_the_ledger_sample_fits_its_schema():
    jsonschema.validate(samples.ledger_document(), ledger_html.schema())


def test_the_ledger_page_sorts_unknown_by_age_and_counts_causes():
    text = ledger_html.render(samples.ledger_document())

    assert text.index("charge:order-7</code>") < text.index("mail:9</code>")
    assert "1 d 3 h" in text
    assert "130 of 170 attempts did not run again" in text


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0, "0 s"), (59.9, "59 s"), (60, "1 min"), (3700, "1 h 1 min"), (90000, "1 d 1 h")],
)
def test_ages(seconds, words):
    assert ledger_html.age(seconds) == words


def test_pages_hold_no_inline_style_or_handler():
    for name, make in PAGES.items():
        text = make(lambda document: document)
        assert " style=" not in text, name
        assert " onclick=" not in text, name


def test_probe_samples_are_json():
    json.dumps([samples.probe_document(), samples.ledger_document()])
