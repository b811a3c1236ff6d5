"""Text from outside, made harmless: the one place that knows how, for every output.

Names, paths, descriptions and answers come from other people's repositories and servers. What is
printed must not move the cursor, recolour the terminal, reverse the reading direction, hide
characters, start a spreadsheet formula or carry a secret. HTML is escaped by the templates
(`page`), which show invisible characters with `visible` too.
"""

from __future__ import annotations

import itertools
import re
import unicodedata
from collections.abc import Mapping
from typing import Any

MASKED = "[masked]"
DEFAULT_LIMIT = 2000

# Controls, format characters (bidi, zero width, tags), lone surrogates, line separators.
_HIDDEN = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
# Blank without being format characters: Hangul fillers, braille blank, Mongolian vowel separator.
_BLANK = frozenset("\u115f\u1160\u3164\uffa0\u2800\u180e\u00ad")
_PLAIN = re.compile(r"[ -~]*\Z")
_SHORT = {"\n": "\\n", "\r": "\\r", "\t": "\\t", "\x1b": "\\x1b"}


def _spelled(char: str) -> str:
    code = ord(char)
    if char in _SHORT:
        return _SHORT[char]
    if code <= 0xFF:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"


def visible(text: str, *, lines: bool = False) -> str:
    """Return the text with every invisible or steering character spelled out (`\\u202e`).

    With `lines`, line ends and tabs stay; otherwise the result is one line.
    """
    if _PLAIN.match(text):
        return text
    kept = "\n\t" if lines else ""
    if lines:
        text = text.replace("\r\n", "\n")
    return "".join(
        char
        if char in kept
        else _spelled(char)
        if unicodedata.category(char) in _HIDDEN or char in _BLANK
        else char
        for char in text
    )


def shorten(text: str, limit: int) -> str:
    """Cut a text to at most `limit` characters, the last of them an ellipsis where it was cut."""
    return text if len(text) <= limit else text[: max(limit - 1, 0)] + "…"


def terminal(text: object, *, limit: int = DEFAULT_LIMIT, lines: bool = False) -> str:
    """Return text that a terminal prints as it is: no control, bidi or hidden characters.

    `limit` bounds its length in characters. For a console that reads rich markup, use `markup`.
    """
    return shorten(visible(shorten(str(text), limit), lines=lines), limit)


def markup(text: object, *, limit: int = DEFAULT_LIMIT, lines: bool = False) -> str:
    """Return `terminal` text that rich prints as it is, between two pieces of markup."""
    plain = terminal(text, limit=limit, lines=lines)
    body = plain.rstrip("\\")
    # Backslashes at the end would escape the bracket that follows: rich halves what stands there.
    return _BRACKET.sub(_escaped_bracket, body) + "\\" * (2 * (len(plain) - len(body)))


# Every opening bracket, the backslashes before it, and whether rich would read a tag there.
_BRACKET = re.compile(r"(\\*)\[(?=([a-z#/@][^[]*?\])?)")


def _escaped_bracket(found: re.Match[str]) -> str:
    """Escape one bracket: before a tag rich halves the backslashes, elsewhere it drops one."""
    count = len(found[1])
    return "\\" * (2 * count + 1 if found[2] else count + 1) + "["


def markdown_code(text: object, *, limit: int = DEFAULT_LIMIT, in_table: bool = False) -> str:
    """Return the text as a Markdown code span: no HTML, link, mention or emphasis in it is live.

    `in_table` also escapes the bars that would end a table cell.
    """
    plain = terminal(text, limit=limit).strip() or " "
    if in_table:
        plain = plain.replace("|", "\\|")
    fence = "`" * (max((len(run) for run in re.findall("`+", plain)), default=0) + 1)
    pad = " " if plain[0] == "`" or plain[-1] == "`" else ""
    return f"{fence}{pad}{plain}{pad}{fence}"


def csv_cell(value: object) -> str:
    """Return a cell that no spreadsheet takes for a formula (OWASP, CSV injection)."""
    if isinstance(value, int | float):
        return str(value)
    plain = terminal("" if value is None else value)
    lead = unicodedata.normalize("NFKC", plain.lstrip()[:1])
    return "'" + plain if lead and lead in "=+-@|%" else plain


_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_SECRET_WORDS = frozenset(
    {
        "password", "passwd", "pwd", "passphrase", "passcode", "secret", "secrets", "credential",
        "credentials", "authorization", "auth", "cookie", "cookies", "bearer", "cvv", "cvc", "otp",
        "jwt", "apikey", "mnemonic", "privatekey", "accesskey", "secretkey", "accesstoken",
        "authtoken", "seedphrase", "pin", "dsn",
    }
)  # fmt: skip
_SECRET_PAIRS = frozenset(
    {
        ("api", "key"), ("private", "key"), ("access", "key"), ("signing", "key"), ("auth", "key"),
        ("encryption", "key"), ("master", "key"), ("service", "key"), ("account", "key"),
        ("seed", "phrase"), ("card", "number"), ("session", "id"), ("session", "key"),
        ("connection", "string"), ("database", "url"), ("ssh", "key"),
    }
)  # fmt: skip
# Words that make "token" a count or a place in a list rather than a secret.
_TOKEN_COUNTS = frozenset(
    {
        "max", "min", "total", "count", "limit", "budget", "input", "output", "prompt", "next",
        "page", "progress", "idempotency", "cancel", "continuation",
    }
)  # fmt: skip


def looks_secret(key: str) -> bool:
    """Whether a key names something that must not be printed (a password, token, private key).

    `max_tokens`, `idempotencyKey`, `nextPageToken` and the like are no secrets.
    """
    words = [word.lower() for word in _WORDS.findall(key)]
    if any(word in _SECRET_WORDS for word in words):
        return True
    if any(pair in _SECRET_PAIRS for pair in itertools.pairwise(words)):
        return True
    return "token" in words and not _TOKEN_COUNTS.intersection(words)


# Secrets that carry their own mark, wherever they stand.
_SECRET_TEXT = re.compile(
    r"(?P<head>\b(?:bearer|basic)\s+)[\w.~+/=-]{8,}"
    r"|(?P<user>\w[\w+.-]*://[^\s/:@]*:)[^\s/@]+(?=@)"
    r"|(?P<flag>(?:^|[\s\"'])--?[\w-]*(?:token|secret|password|passwd|api-?key)[=\s]\s*)[^\s\"']+"
    r"|\b(?:sk|rk|pk)_(?:live|test)_\w{8,}|\bsk-[\w-]{16,}|\bgh[pousr]_\w{16,}|\bgithub_pat_\w{16,}"
    r"|\bxox[abprs]-[\w-]{8,}|\b(?:AKIA|ASIA)[A-Z0-9]{12,}|\bglpat-[\w-]{16,}|\bnpm_\w{30,}"
    r"|\beyJ[\w-]{6,}\.[\w-]{6,}\.[\w-]*"
    r"|-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)",
    re.IGNORECASE,
)
_ASSIGNMENT = re.compile(r"(?P<key>[A-Za-z_][\w-]*)=(?P<value>.*)\Z", re.DOTALL)


def mask_text(text: str) -> str:
    """Return the text with secrets masked that carry a mark: bearer, key prefix, URL password."""
    return _SECRET_TEXT.sub(
        lambda m: (m["head"] or m["user"] or m["flag"] or "") + MASKED,
        text,
    )


def mask(value: Any) -> Any:
    """Return a copy of a JSON value in which everything under a secret-looking key is masked."""
    if isinstance(value, Mapping):
        return {
            key: MASKED if looks_secret(str(key)) and item not in (None, "") else mask(item)
            for key, item in value.items()
        }
    if isinstance(value, list | tuple):
        return [mask(item) for item in value]
    return mask_text(value) if isinstance(value, str) else value


def mask_argv(argv: list[str]) -> list[str]:
    """Return a command line with secrets masked: `--token X`, `--token=X`, `API_KEY=X`."""
    masked: list[str] = []
    hide_next = False
    for word in argv:
        if hide_next and not word.startswith("-"):
            masked.append(MASKED)
            hide_next = False
            continue
        assignment = _ASSIGNMENT.match(word.lstrip("-"))
        if assignment and looks_secret(assignment["key"]):
            masked.append(word[: word.index("=") + 1] + MASKED)
        else:
            masked.append(mask_text(word))
        hide_next = word.startswith("-") and "=" not in word and looks_secret(word)
    return masked
