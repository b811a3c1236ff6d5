"""Strings that come alive wherever text from outside is not escaped."""

from __future__ import annotations

from typing import Any

ALIVE = (
    '"><script>pwn(1)</script>',
    "<img src=x onerror=pwn(2)>",
    "'\" onfocus=pwn(3) autofocus x='",
    "</style><script>pwn(4)</script>",
    "</script><script>pwn(5)</script>",
    "javascript:pwn(6)",
    "<svg/onload=pwn(7)>",
    "{{ pwn(8) }}{% raw %}",
    "<iframe srcdoc='<script>parent.pwn(9)</script>'>",
    "]]><script>pwn(10)</script>--><script>pwn(11)</script>",
)
STEERING = "\x1b[31mred\x1b]0;title\x07 \u202egnp.exe \u2066x\u2069 \u200bz\ufeff \x00\x9b1m \r\n"
MARKUP = "[bold red]loud[/] [link=https://example.org]x[/link] [/]"
EVERYTHING = "".join(ALIVE) + STEERING + MARKUP

URL_FIELDS = frozenset({"source", "link", "commit_link", "announcement"})


def poison(value: Any, text: str = EVERYTHING, *, keep: frozenset[str] = frozenset()) -> Any:
    """Return a copy of a JSON value with every string replaced, except under the keys in `keep`."""
    if isinstance(value, dict):
        return {k: v if k in keep else poison(v, text, keep=keep) for k, v in value.items()}
    if isinstance(value, list):
        return [poison(item, text, keep=keep) for item in value]
    return text if isinstance(value, str) else value
