"""Every view of a scan shows the same counts and rows, accuses nobody, and says its limits."""

from __future__ import annotations

import io
import json
import re

import pytest
from rich.console import Console

from fencekit.report import scan_html, scan_markdown, scan_sarif, scan_terminal, scan_view
from tests.hostile import MARKUP, poison
from tests.report.samples import SOURCES, scan_document

FORBIDDEN = re.compile(r"\b(un)?safe\w*|\brisk\w*|\bseverity|\bvulnerab\w*|\bverdict\w*", re.I)


def terminal(documents, width=80, **options):
    out = io.StringIO()
    scan_terminal.render(documents, Console(file=out, width=width, **options))
    return out.getvalue()


def html(documents):
    return scan_html.render(documents, lambda _at, path: SOURCES.get(path))


VIEWS = {
    "terminal": terminal,
    "markdown": scan_markdown.render,
    "html": html,
    "sarif": scan_sarif.render,
}


@pytest.fixture(params=VIEWS)
def view(request):
    return VIEWS[request.param]


def test_counts_are_those_of_the_document():
    assert scan_view.counts(scan_document()) == {
        "tools": 5,
        "candidates": 4,
        "money": 1,
        "unresolved": 1,
        "declarative": 1,
        "undetermined": 1,
        "twins": 1,
        "skipped": 1,
        "partial": 1,
        "unknowns": 1,
    }


def test_views_agree_on_the_counts():
    document = scan_document()
    text, page, notes = terminal([document]), html([document]), scan_markdown.render([document])
    sarif = json.loads(scan_sarif.render([document]))

    assert re.search(r"5 tools · 4 candidates · 1 of them touch money", text)
    assert "**5** tools · **4** candidates · **1** of them touch money" in notes
    assert "<h1>4 of 5 tools can reach a write</h1>" in page
    assert page.count("<article") == 4
    assert len(sarif["runs"][0]["results"]) == 4
    assert sarif["runs"][0]["properties"]["counts"] == scan_view.counts(document)


def test_views_keep_the_order_and_put_declarative_last(view):
    text = view([scan_document()])
    places = [text.index(name) for name in ("charge_card", "send_mail", "create_later")]

    assert places == sorted(places)
    assert text.rindex("put_name") > places[-1]


def test_no_view_uses_an_accusing_word(view):
    assert FORBIDDEN.findall(view([scan_document()])) == []


def test_every_view_ends_with_its_limits_and_how_to_contest(view):
    text = re.sub(r"\s+", " ", view([scan_document()]))

    assert "nothing was executed" in text
    assert "To contest a row" in text


def test_several_repositories_are_summed():
    documents = [scan_document("one"), scan_document("two")]

    assert re.search(r"all\s+10\s+8\s+2\s+2\s+2", terminal(documents))
    assert "| all | 10 | 8 | 2 | 2 | 2 |" in scan_markdown.render(documents)
    assert "<h1>8 of 10 tools" in html(documents)
    assert len(json.loads(scan_sarif.render(documents))["runs"]) == 2


def test_the_terminal_keeps_to_80_columns():
    document = poison(scan_document(), "a" * 70, keep=frozenset({"language"}))
    lines = [*terminal([document]).splitlines(), *terminal([scan_document()]).splitlines()]

    assert max(map(len, lines)) <= 80


def test_nothing_of_a_repository_steers_the_terminal():
    text = terminal([poison(scan_document())], force_terminal=True, no_color=True)

    assert "\x1b]0;" not in text
    assert "\u202e" not in text
    assert "\x1b[31m" not in text
    assert "\x00" not in text


def test_markup_in_a_name_is_printed_as_it_is():
    assert "[bold red]loud[/]" in terminal([poison(scan_document(), MARKUP)], width=200)


def test_markdown_from_outside_stays_in_code_spans():
    text = scan_markdown.render([poison(scan_document())])
    outside = re.sub(r"(`+)(?!`).*?(?<!`)\1(?!`)", "", text)

    assert "<script" not in outside
    assert "pwn" not in outside


def test_html_escapes_every_string():
    page = html([poison(scan_document())])

    assert page.count("<script>") == 1
    assert "<img" not in page
    assert not [
        tag for tag in re.findall(r"<[a-z][^>]*>", page) if "pwn" in re.sub('"[^"]*"', "", tag)
    ]
    assert "\u202e" not in page


def test_the_chain_shows_the_source_lines_around_each_hop():
    page = html([scan_document()])

    assert '<span class="at"><i>4</i>    httpx.post(u, x)</span>' in page
    assert '<span class="at"><i>11</i>line 11</span>' in page


def test_sarif_asks_for_review_and_nothing_else():
    """SARIF 3.27.9 and 3.27.10: kind review goes with level none; the schema does not check it."""
    run = json.loads(scan_sarif.render([scan_document()]))["runs"][0]

    for result in run["results"]:
        assert (result["ruleId"], result["kind"], result["level"]) == (
            "double-fire-candidate",
            "review",
            "none",
        )
        place = result["locations"][0]["physicalLocation"]
        assert place["artifactLocation"]["uriBaseId"] == "%SRCROOT%"
        assert place["region"]["startLine"] >= 1
        assert result["partialFingerprints"]["fencekitRow/v1"].startswith("fp-")
    first = run["results"][0]
    flow = first["codeFlows"][0]["threadFlows"][0]["locations"]
    assert [step["location"]["message"]["text"] for step in flow] == [
        "tool charge_card",
        "charge_card",
        "send (by name only)",
        "POST /charges",
    ]
    assert [place["message"]["text"] for place in first["relatedLocations"]] == [
        "guard: fresh-key idem",
        "retry: wraps the write",
        "mechanism: fresh-key: uuid4() per call",
    ]


def test_sarif_is_ascii_and_its_paths_are_uris():
    document = scan_document()
    document["tools"][0]["file"] = "a b/ü\u202e#?.py"
    text = scan_sarif.render([document])

    assert text.isascii()
    assert "a%20b/%C3%BC%E2%80%AE%23%3F.py" in text
