"""Text from outside is harmless in a terminal, in rich markup, in a spreadsheet, in Markdown."""

from __future__ import annotations

import io
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from fencekit.report import escape
from tests.hostile import EVERYTHING, MARKUP


def hidden(text: str, kept: str = "") -> list[str]:
    return [
        c
        for c in text
        if c not in kept and unicodedata.category(c) in ("Cc", "Cf", "Cs", "Zl", "Zp")
    ]


@given(st.text())
def test_terminal_text_holds_nothing_that_steers(text):
    assert hidden(escape.terminal(text)) == []
    assert hidden(escape.terminal(text, lines=True), kept="\n\t") == []


@given(st.text(alphabet="[]/\\ab= "))
def test_markup_prints_exactly_what_terminal_would(text):
    out = io.StringIO()
    console = Console(file=out, width=500, highlight=False)
    console.print(f"<[bold]{escape.markup(text)}[/bold]>", end="", soft_wrap=True)

    assert out.getvalue() == "<" + escape.terminal(text) + ">"


def test_markup_in_names_is_not_read():
    out = io.StringIO()
    Console(file=out, width=300, force_terminal=True).print(escape.markup(MARKUP), highlight=False)

    assert "[bold red]loud" in out.getvalue()
    assert "\x1b[1;31m" not in out.getvalue()


def test_length_is_bounded_also_where_every_character_grows():
    assert len(escape.terminal("\x00" * 10_000, limit=50)) == 50


@pytest.mark.parametrize(
    "cell",
    ["=1+1", "+1", "-1", "@x", "\t=1", " =cmd|' /C calc'!A0", "\uff1d1", "%0a=1", "|x", "\r=1"],
)
def test_no_cell_is_a_formula(cell):
    safe = escape.csv_cell(cell)
    first = unicodedata.normalize("NFKC", safe.lstrip()[:1])

    assert first not in "=+-@|%"


def test_numbers_stay_numbers_in_a_cell():
    assert [escape.csv_cell(n) for n in (-5, 4.5, None)] == ["-5", "4.5", ""]


@given(st.text(min_size=1))
def test_a_code_span_cannot_be_left(text):
    span = escape.markdown_code(text)
    fence = span[: len(span) - len(span.lstrip("`"))]

    assert span.endswith(fence)
    assert fence not in span[len(fence) : -len(fence)].replace(fence + "`", "")
    assert "\n" not in span


@pytest.mark.parametrize(
    "key",
    [
        "password", "api_key", "apiKey", "access_token", "Authorization", "clientSecret",
        "STRIPE_SECRET_KEY", "x-api-key", "session_id", "cvv", "cardNumber", "private_key",
        "refreshToken", "DATABASE_URL",
    ],
)  # fmt: skip
def test_secret_keys_are_known(key):
    assert escape.looks_secret(key)
    assert escape.mask({key: "hunter2", "n": [{key: 5}]}) == {
        key: escape.MASKED,
        "n": [{key: escape.MASKED}],
    }


@pytest.mark.parametrize(
    "key",
    ["max_tokens", "tokens", "idempotencyKey", "key", "nextPageToken", "author", "progress_token"],
)
def test_ordinary_keys_are_left(key):
    assert escape.mask({key: "x"}) == {key: "x"}


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        ("Authorization: Bearer abcdef123456", "abcdef123456"),
        ("postgres://app:hunter2@db/x", "hunter2"),
        ("sk_live_1234567890", "1234567890"),
        ("ghp_abcdefghijklmnopqrst", "abcdefghijkl"),
        ("eyJhbGciOi.eyJzdWIiOi.sig", "eyJzdWIiOi"),
        ("-----BEGIN PRIVATE KEY-----\nMIIB\n-----END PRIVATE KEY-----", "MIIB"),
    ],
)
def test_marked_secrets_are_masked_wherever_they_stand(text, secret):
    assert secret not in escape.mask_text(f"before {text} after")


def test_command_lines_are_masked():
    argv = ["srv", "--token", "s1", "--api-key=s2", "STRIPE_KEY=sk_live_s3s3s3s3", "--port", "80"]

    shown = " ".join(escape.mask_argv(argv))

    assert not [s for s in ("s1", "s2", "s3s3") if s in shown]
    assert "--port 80" in shown


def test_ordinary_text_is_unchanged():
    assert escape.terminal("Überweisung 5 €, 你好") == "Überweisung 5 €, 你好"


def test_everything_hostile_is_one_printable_line():
    assert "\n" not in escape.terminal(EVERYTHING)
