"""The HTML page: every report is rendered here, from one set of templates, one style, one script.

A page is one self-contained file. Its content security policy allows exactly the style and the
script that are in it (by SHA-256, CSP level 3) and nothing else: no request leaves, no inline
handler runs. Every value is escaped by jinja2 and shows invisible characters (`escape.visible`).
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from functools import cache
from importlib import resources
from typing import Any
from urllib.parse import urlsplit

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from fencekit import __version__
from fencekit.report.escape import visible

_SQUEEZE = re.compile(r"/\*.*?\*/|(?<=[{};:,>])\s+|\s+(?=[{}>])", re.DOTALL)


def _asset(name: str) -> str:
    return (resources.files("fencekit.report") / "templates" / name).read_text(encoding="utf-8")


def _sha256(text: str) -> str:
    return "'sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() + "'"


@cache
def _assets() -> dict[str, Markup]:
    """Return the style, the script and the policy that names both by digest."""
    style = re.sub(r"\s+", " ", _SQUEEZE.sub("", _asset("style.css"))).strip()
    script = _asset("page.js").strip()
    policy = (
        f"default-src 'none'; style-src {_sha256(style)}; script-src {_sha256(script)}; "
        "img-src data:; base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'"
    )
    # Assets of this package, not text from outside; the policy goes into a quoted attribute.
    return {"style": Markup(style), "script": Markup(script), "policy": Markup(policy)}


def https_url(value: object) -> str | None:
    """Return the address if it is a plain https one that a reader may follow, else None."""
    text = str(value or "")
    if visible(text) != text or any(char.isspace() for char in text):
        return None
    try:
        parts = urlsplit(text)
    except ValueError:
        return None
    if parts.scheme != "https" or not parts.hostname or parts.username or parts.password:
        return None
    return text


def pretty(value: object) -> str:
    """Return a JSON value as indented text, for a `pre` block."""
    return value if isinstance(value, str) else json.dumps(value, indent=2, ensure_ascii=False)


def _inert(value: object) -> object:
    """Show invisible characters of everything that is printed; line ends stay, for `pre`."""
    return visible(value, lines=True) if type(value) is str else value


@cache
def environment() -> Environment:
    """Return the one template environment of all reports."""
    env = Environment(
        loader=PackageLoader("fencekit.report"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_inert,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    env.filters |= {"https_url": https_url, "pretty": pretty, "visible": visible}
    env.globals |= {"version": __version__, **_assets()}
    return env


def render(template: str, **context: Any) -> str:
    """Render one page. `template` is a file below `fencekit/report/templates`."""
    return environment().get_template(template).render(**context)
