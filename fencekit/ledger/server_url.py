"""The URL of a database server: rebuilt without losing anything, shown without its secrets."""

from __future__ import annotations

from urllib.parse import SplitResult, parse_qsl, urlencode, urlsplit

_SECRET = ("password", "sslpassword")


def parameters(parts: SplitResult) -> dict[str, str]:
    """Return what stands behind the question mark."""
    return dict(parse_qsl(parts.query, keep_blank_values=True))


def joined(parts: SplitResult, query: dict[str, str]) -> str:
    """Return the URL with other parameters; it keeps its slashes where it names no host."""
    asked = f"?{urlencode(query, safe='/')}" if query else ""
    return f"{parts.scheme}://{parts.netloc}{parts.path}{asked}"


def without_secrets(url: str) -> str:
    """Return the URL without its passwords: what may be shown and written down."""
    parts = urlsplit(url)
    user, _, place = parts.netloc.rpartition("@")
    name = user.partition(":")[0]
    kept = {k: v for k, v in parameters(parts).items() if k not in _SECRET}
    return joined(parts._replace(netloc=f"{name}@{place}" if name else place), kept)
