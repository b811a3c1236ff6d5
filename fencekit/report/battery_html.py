"""A battery as one HTML page: what a client did in each mode of the hostile server."""

from __future__ import annotations

from collections import Counter
from typing import Any

from fencekit.report import page


def render(document: dict[str, Any]) -> str:
    """Return the page of a `fencekit.battery/1` document."""
    scores = Counter(str(mode["score"]) for mode in document["modes"])
    return page.render("battery.html", document=document, scores=scores)
