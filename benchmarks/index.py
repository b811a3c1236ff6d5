"""Building the Index: 2,000 rows, the front page's size, and its first paint in a real browser.

`python benchmarks/index.py [ROWS]`. The baseline is a register of 200 rows built in the same run.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import sys
import tempfile
import time
from datetime import date
from pathlib import Path

from fencekit.index import drafts, register, site
from tests.browser import FLAGS
from tests.report import samples

ROWS = int(sys.argv[1]) if len(sys.argv) > 1 else 2_000

ENTRY = """\
schema = "fencekit.entry/1"
id = "server-{n:04d}"
implementation = "Server {n:04d}"
vendor = "Vendor {v:02d}"
kind = "server"
language = "{language}"
versions = "1.{n}.0"
at_stake = "A second charge of customer {n}."
state = "verified-safe"
verdict = "One effect was counted."
recheck = 2027-06-01
[[evidence]]
tier = "probe run"
date = 2026-11-30
document = "evidence/run.json"
sha256 = "{digest}"
[[history]]
date = 2026-11-30
state = "verified-safe"
"""


def measure(rows: int, folder: Path) -> tuple[float, float, dict[str, bytes]]:
    """Return the seconds to load and to build a register of so many rows, and the site."""
    root = folder / f"register-{rows}"
    drafts.init(root)
    raw = json.dumps(samples.probe_document(proven=False)).encode()
    (root / "evidence" / "run.json").write_bytes(raw)
    digest = hashlib.sha256(raw).hexdigest()
    for n in range(rows):
        language = ("python", "typescript", "go", "rust")[n % 4]
        text = ENTRY.format(n=n, v=n % 40, language=language, digest=digest)
        (root / "entries" / f"server-{n:04d}.toml").write_text(text, encoding="utf-8")
    started = time.perf_counter()
    loaded = register.load(root)
    read = time.perf_counter()
    built = site.build(loaded, date(2026, 12, 1))
    return read - started, time.perf_counter() - read, built


def first_paint(page: Path) -> float | None:
    """Return the milliseconds to the first contentful paint in headless chromium."""
    path = shutil.which("chromium")
    if path is None:
        print("chromium is not installed: first paint is not measured")
        return None
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=path, args=list(FLAGS))
        tab = browser.new_page()
        tab.goto(page.as_uri())
        tab.wait_for_function("performance.getEntriesByName('first-contentful-paint').length > 0")
        paint = tab.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime")
        browser.close()
    return float(paint)


def main() -> None:
    """Print times, sizes and the ratio per row."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        results = {}
        for rows in dict.fromkeys((200, ROWS)):
            read, build, built = measure(rows, folder)
            results[rows] = (read + build) / rows
            front = len(built["index.html"])
            print(
                f"{rows:5d} rows: read {read:.2f} s, build {build:.2f} s, {len(built)} files, "
                f"front page {front / 1000:.0f} kB"
            )
            out = folder / f"site-{rows}"
            site.publish(built, out)
            paint = first_paint(out / "index.html")
            if paint is not None:
                print(f"            first paint of the front page {paint:.0f} ms")
        print(f"seconds per row, {ROWS} rows / 200 rows: {results[ROWS] / results[200]:.2f}")


if __name__ == "__main__":
    main()
