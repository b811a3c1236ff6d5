"""A real browser for tests: Debian's chromium, driven by playwright, with no way out.

`Visit` opens a page and records what a hostile page would do: scripts that ran, requests that left,
policy violations, errors, accessibility findings, content wider than the window.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest
from axe_playwright_python.base import AXE_FILE_PATH
from playwright.sync_api import sync_playwright

from tests.conftest import need

FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
SIZES = {"phone": (360, 740), "tablet": (800, 1000), "desktop": (1440, 900)}
# What the hostile strings in `tests.hostile` would do if any of them came alive.
TRIPWIRE = "window.__ran = []; window.pwn = (x) => window.__ran.push(x); window.alert = window.pwn;"


@dataclass
class Visit:
    """One page, open, with what it did."""

    page: Any
    requests: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)

    def blocked(self, request: Any) -> None:
        """Forget a request that the page's own policy stopped: it never left."""
        if request.failure == "csp":
            self.requests.remove(request.url)

    def ran(self) -> list[Any]:
        """Return the hostile calls that came alive."""
        found: list[Any] = self.page.evaluate("window.__ran")
        return found

    def overflow(self) -> int:
        """Return by how many pixels the page is wider than its window."""
        width = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
        return int(self.page.evaluate(width))

    def axe(self) -> list[str]:
        """Return every accessibility finding of axe-core, as `rule: target`."""
        # Trusted types stop a test from injecting too: axe runs in the page's own world as text.
        self.page.evaluate(AXE_FILE_PATH.read_text(encoding="utf-8"))
        result = self.page.evaluate("axe.run({resultTypes: ['violations']})")
        return [
            f"{found['id']}: {node['target']} {node['failureSummary']}"
            for found in result["violations"]
            for node in found["nodes"]
        ]


class Chromium:
    """The browser; `visit` opens one page in a fresh context."""

    def __init__(self, browser: Any) -> None:
        self.browser = browser

    @contextmanager
    def visit(
        self, url: str, *, size: str = "desktop", scheme: str = "light", scripts: bool = True
    ) -> Iterator[Visit]:
        """Open a page and watch it. `scheme` is light or dark; `scripts=False` turns them off."""
        width, height = SIZES[size]
        context = self.browser.new_context(
            viewport={"width": width, "height": height},
            color_scheme=scheme,
            java_script_enabled=scripts,
            reduced_motion="reduce",
        )
        page = context.new_page()
        seen = Visit(page)
        page.on("request", lambda request: seen.requests.append(request.url))
        page.on("requestfailed", seen.blocked)
        page.on("pageerror", lambda error: seen.errors.append(str(error)))
        page.on("dialog", lambda dialog: seen.errors.append(f"dialog: {dialog.message}"))
        page.on(
            "console",
            lambda line: seen.errors.append(line.text) if line.type == "error" else None,
        )
        if scripts:
            page.add_init_script(TRIPWIRE)
        try:
            page.goto(url)
            yield seen
        finally:
            context.close()


# NOTE: not for the session: while the driver runs, asyncio.run() is refused in this thread.
@pytest.fixture(scope="module")
def chromium() -> Iterator[Chromium]:
    """Debian's chromium, started once per run; missing, the test is skipped (in CI: fails)."""
    path = need("chromium")
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=path, args=list(FLAGS))
        yield Chromium(browser)
        browser.close()
