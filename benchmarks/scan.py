"""The scanner against raw tree-sitter parsing, semgrep with one local rule, and another scanner.

`python benchmarks/scan.py [TREE…] [--semgrep PROGRAM] [--fencescan FILE] [--rounds N] [--wide N]`

Without TREE a synthetic one is made that takes a second or more to parse. Process start is
included everywhere, times are the best of the rounds, summed over the trees. What is not there
(semgrep on PATH or by `--semgrep`, a `fencescan.py` by `--fencescan`) is left out with a loud
word. `--wide N` scans a made tree of N small files once instead, and prints seconds and memory.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path

SCAN = "from fencekit.cli.main import main; import sys; sys.exit(main())"
PARSE = """
import sys
from pathlib import Path
from fencekit.scan.languages import language_for
from fencekit.scan.parse import parse
from fencekit.scan.walk import read_source, walk
tree = walk(Path(sys.argv[1]))
for path in tree.sources:
    language = language_for(path)
    source, why = read_source(tree.root / path)
    if language is not None and not why:
        parse(source, language)
print(len(tree.sources))
"""
RULE = """
rules:
  - id: write
    message: a write
    severity: INFO
    languages: [LANGUAGE]
    patterns:
      - pattern: $CLIENT.$VERB(...)
      - metavariable-regex: {metavariable: $VERB, regex: "^(post|put|patch|delete|request)$"}
"""
LANGUAGES = ("python", "javascript", "typescript", "go", "rust", "java")
PYTHON = """import httpx
from mcp.server.fastmcp import FastMCP
from pkg{near}.helper import send{near}
mcp = FastMCP("s{n}")
{rows}
@mcp.tool()
def create_item_{n}(name: str, count: int = 1) -> str:
    \"\"\"Create item {n}.\"\"\"
    return send{near}("POST", f"/items/{{name}}", {{"count": count}})
@mcp.tool()
def read_item_{n}(name: str) -> str:
    return send{near}("GET", f"/items/{{name}}", None)
"""
HELPER = """import httpx
def send{n}(method, path, body):
    return httpx.request(method, "https://api.example.org" + path, json=body).text
"""
PYTHON_ROW = """def step_{n}_{i}(values, limit={i}):
    total = sum(v.amount * {i} for v in values if v.amount > limit)
    for index, value in enumerate(sorted(values, key=lambda v: v.name)):
        if index % 3 == 0 and value.name.startswith("x{i}"):
            total += compute(value.amount, rate={i} / 100, label=f"{{value.name}}-{{index}}")
    return {{"total": total, "count": len(values), "kind": "step{i}"}}
"""
SCRIPT_ROW = """export function step{n}_{i}(values: Item[], limit = {i}): Result {{
  const kept = values.filter((v) => v.amount > limit).map((v) => ({{ ...v, rate: {i} / 100 }}));
  for (const [index, value] of kept.entries()) {{
    if (index % 3 === 0 && value.name.startsWith("x{i}")) {{
      log.debug(`step ${{value.name}}-${{index}}`, {{ total: compute(value.amount, {i}) }});
    }}
  }}
  return {{ total: kept.length, kind: "step{i}", first: kept[0]?.name ?? "none" }};
}}
"""
GO_ROW = """func step{n}x{i}(values []Item, limit int) (Result, error) {{
	total := 0
	for index, value := range values {{
		if value.Amount > limit && index%3 == 0 {{
			total += compute(value.Amount, {i}, fmt.Sprintf("%s-%d", value.Name, index))
		}}
	}}
	return Result{{Total: total, Kind: "step{i}"}}, nil
}}
"""


def synthetic(root: Path, files: int = 1500, rows: int = 20) -> Path:
    """Write a tree of Python, TypeScript and Go files, a tenth of them with two tools each."""
    for n in range(files):
        folder = root / f"pkg{n % 30}"
        folder.mkdir(parents=True, exist_ok=True)
        if n < 30:
            (folder / "helper.py").write_text(HELPER.format(n=n), "utf-8")
        if n % 3 == 0:
            body = "".join(PYTHON_ROW.format(n=n, i=i) for i in range(rows))
            text = PYTHON.format(n=n, near=n % 30, rows=body) if n % 10 == 0 else body
            (folder / f"module{n}.py").write_text(text, "utf-8")
        elif n % 3 == 1:
            body = "".join(SCRIPT_ROW.format(n=n, i=i) for i in range(rows))
            (folder / f"module{n}.ts").write_text(body, "utf-8")
        else:
            body = "".join(GO_ROW.format(n=n, i=i) for i in range(rows))
            (folder / f"module{n}.go").write_text(f"package pkg{n % 30}\n{body}", "utf-8")
    return root


def seconds(command: list[str]) -> float:
    """Return how long a command runs, its start included; raises where it fails."""
    started = time.perf_counter()
    subprocess.run(command, check=True, capture_output=True, timeout=1800)
    return time.perf_counter() - started


def best(rounds: int, command: Callable[[Path], list[str]], trees: Iterable[Path]) -> float:
    """Return the sum over the trees of the best of several runs."""
    return sum(min(seconds(command(tree)) for _ in range(rounds)) for tree in trees)


def scan_command(tree: Path, jobs: int = 1) -> list[str]:
    """Return the command line of a scan."""
    return [sys.executable, "-c", SCAN, "scan", "--json", "--jobs", str(jobs), str(tree)]


def parse_command(tree: Path) -> list[str]:
    """Return the command line that only parses, in one thread."""
    return [sys.executable, "-c", PARSE, str(tree)]


def semgrep_command(program: str, rules: Path) -> Callable[[Path], list[str]]:
    """Return what builds the command line of semgrep with the one rule of each language."""
    texts = [RULE.replace("LANGUAGE", one).split("rules:\n")[1] for one in LANGUAGES]
    named = [
        t.replace("id: write", f"id: write-{o}") for t, o in zip(texts, LANGUAGES, strict=True)
    ]
    rules.write_text("rules:\n" + "".join(named), "utf-8")
    fixed = ["--metrics", "off", "--disable-version-check", "--jobs", "1", "--json", "--quiet"]

    def command(tree: Path) -> list[str]:
        return [program, "scan", "--config", str(rules), "--no-git-ignore", *fixed, str(tree)]

    return command


def wide(files: int, folder: Path) -> None:
    """Scan a tree of many small files once; print seconds, memory and what was found."""
    for n in range(files):
        place = folder / f"d{n // 200}"
        if n % 200 == 0:
            place.mkdir()
        text = HELPER.format(n=n) if n % 50 else PYTHON.format(n=n, near=n, rows="")
        (place / f"f{n}.py").write_text(text, "utf-8")
    started = time.perf_counter()
    child = subprocess.Popen(scan_command(folder), stdout=subprocess.PIPE)
    printed, _ = child.communicate(timeout=1800)
    spent = time.perf_counter() - started
    import resource

    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    found = json.loads(printed)["summary"]
    print(f"{found['files']} files, {found['tools']} tools: {spent:.1f} s, {peak:.0f} MB")


def options() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("trees", nargs="*", type=Path)
    parser.add_argument("--semgrep", default=shutil.which("semgrep"))
    parser.add_argument("--fencescan", type=Path)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--wide", type=int, default=0)
    return parser.parse_args()


def line(name: str, spent: float, ratio: str) -> None:
    """Print one row."""
    print(f"{name:34} {spent:8.2f} s  {ratio}")


def main() -> None:
    """Measure and print each time, and its ratio to the parse or to the scan."""
    told = options()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if told.wide:
            wide(told.wide, folder)
            return
        trees = told.trees or [synthetic(folder / "synthetic")]
        count = [
            int(subprocess.run(parse_command(t), check=True, capture_output=True).stdout)
            for t in trees
        ]
        print(f"{len(trees)} trees, {sum(count)} files; {os.cpu_count()} cores")
        parsed = best(told.rounds, parse_command, trees)
        line("parse only, one thread", parsed, "1.0")
        one = best(told.rounds, scan_command, trees)
        line("fencekit scan", one, f"{one / parsed:.2f} times the parse (wanted: at most 2.3)")
        two = best(told.rounds, lambda t: scan_command(t, 2), trees)
        line("fencekit scan --jobs 2", two, f"{one / two:.2f} times as fast (wanted: 1.5 from 3 s)")
        if told.fencescan is None:
            print("LEFT OUT: fencescan.py (give it by --fencescan FILE)")
        else:
            other = best(
                told.rounds, lambda t: [sys.executable, str(told.fencescan), str(t)], trees
            )
            line("fencescan.py", other, f"{other / one:.2f} times fencekit's (wanted: at least 1)")
        if not told.semgrep:
            print("LEFT OUT: semgrep (not on PATH; give it by --semgrep PROGRAM)")
        else:
            command = semgrep_command(told.semgrep, folder / "rule.yml")
            other = best(1, command, trees)
            line("semgrep, one local rule", other, f"{other / one:.1f} times (wanted: at least 8)")


if __name__ == "__main__":
    main()
