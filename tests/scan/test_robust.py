"""Broken, hostile and oversized input: survived, reported, inert in every view."""

from __future__ import annotations

import functools
import json
import os
import random
import re
import resource
import time
from pathlib import Path

import jsonschema
import pytest
from click.testing import CliRunner

from fencekit.cli.scan import command
from fencekit.scan import document, engine
from fencekit.scan.languages import language_for
from fencekit.scan.parse import ParseTimeoutError, parse
from fencekit.scan.walk import MAX_BYTES

REPOS = Path(__file__).parents[2] / "fixtures" / "repos"
SOURCES = sorted(
    (p for p in REPOS.rglob("*") if p.is_file() and language_for(p.name) is not None),
    key=lambda p: p.as_posix(),
)
ROUNDS = 6  # mutants of each source
SECONDS_PER_FILE = 20.0  # far over what any takes; a hang fails here
SERVER = """from mcp.server.fastmcp import FastMCP
import httpx
mcp = FastMCP("x")
@mcp.tool()
def place_order(item: str) -> str:
    return httpx.post("https://api.example.org/orders", json={"item": item}).text
"""
PIECES = (
    b"(" * 60, b"}" * 9, b'"""', b"`${", b"=> {", b"\xff\xfe", b"\x00", b"\xe2\x80\xae", b"\r",
    b"async ", b"<script>", b"[[", b"#[tool]", b"@mcp.tool(", b"func (", b"\\u{110000}", b"/*",
)  # fmt: skip


def mutant(source: bytes, chance: random.Random) -> bytes:
    """Return a source cut, cut through, doubled, or with something that does not belong there."""
    at, to = sorted(chance.randrange(len(source) + 1) for _ in range(2))
    match chance.randrange(5):
        case 0:
            return source[:at]
        case 1:
            return source[:at] + source[to:]
        case 2:
            return source[:to] + source[at:]
        case 3:
            return source[:at] + chance.choice(PIECES) + source[at:]
        case _:
            flipped = bytearray(source)
            for _ in range(8):
                if flipped:
                    flipped[chance.randrange(len(flipped))] = chance.randrange(256)
            return bytes(flipped)


@pytest.mark.parametrize("suffix", sorted({p.suffix for p in SOURCES}))
def test_no_mutant_of_a_fixture_breaks_the_scan(suffix, tmp_path):
    chance = random.Random(20261201)
    for number, path in enumerate(p for p in SOURCES if p.suffix == suffix):
        source = path.read_bytes()
        for turn in range(ROUNDS):
            broken = tmp_path / f"m{number}-{turn}" / path.name
            broken.parent.mkdir()
            broken.write_bytes(mutant(source, chance))
            began = time.monotonic()
            made = engine.scan(broken.parent)
            assert time.monotonic() - began < SECONDS_PER_FILE, broken.read_bytes()
            jsonschema.validate(made, document.schema())


def test_many_mutants_in_one_repository_break_nothing(tmp_path):
    chance = random.Random(7)
    for number, path in enumerate(SOURCES):
        name = f"{path.stem}_{number}{path.suffix}"
        (tmp_path / name).write_bytes(mutant(path.read_bytes(), chance))

    made = engine.scan(tmp_path)

    jsonschema.validate(made, document.schema())
    assert made["partial"]
    assert all(a <= b for p in made["partial"] for a, b in p["ranges"])


NESTED = {
    "deep.py": "x = " + "(" * 4000 + "1" + ")" * 4000 + "\n",
    "calls.py": "x = " + "f(" * 3000 + ")" * 3000 + "\n",
    "either.py": "x = " + " or ".join(["a"] * 6000) + "\n",
    "sum.py": "x = " + " + ".join(["'a'"] * 6000) + "\n",
    "deep.ts": "const x = " + "[" * 4000 + "]" * 4000 + ";\n",
    "blocks.ts": "if (a) {" * 3000 + "}" * 3000 + "\n",
    "chain.js": "z" + ".a()" * 5000 + ";\n",
    "deep.go": "package p\nvar x = " + "(" * 4000 + "1" + ")" * 4000 + "\n",
    "deep.rs": "fn f() { " + "{" * 3000 + "}" * 3000 + " }\n",
}


@pytest.mark.parametrize("name", NESTED)
def test_deep_nesting_does_not_end_the_scan(name, tmp_path):
    (tmp_path / name).write_text(NESTED[name], "utf-8")
    (tmp_path / "server.py").write_text(SERVER, "utf-8")

    made = engine.scan(tmp_path)

    assert [t["name"] for t in made["tools"] if t["candidate"]] == ["place_order"]


def test_a_handler_nested_too_deeply_to_read_is_still_listed(tmp_path):
    body = "    return " + "f(" * 5000 + ")" * 5000 + "\n"
    (tmp_path / "server.py").write_text(SERVER + "@mcp.tool()\ndef send_all():\n" + body, "utf-8")

    made = engine.scan(tmp_path)

    assert sorted(t["name"] for t in made["tools"]) == ["place_order", "send_all"]
    assert ("send_all", "server.py") in {(u["name"], u["file"]) for u in made["unknowns"]}


def test_what_did_not_parse_is_reported_with_its_lines_and_the_rest_is_used(tmp_path):
    (tmp_path / "server.py").write_text(SERVER + "\ndef broken(:\n    pass\n)))\n", "utf-8")

    made = engine.scan(tmp_path)

    assert [t["name"] for t in made["tools"]] == ["place_order"]
    (partial,) = made["partial"]
    assert partial["path"] == "server.py"
    assert any(8 <= a <= b <= 10 for a, b in partial["ranges"])


def test_a_file_that_takes_too_long_to_parse_is_given_up_and_named(tmp_path, monkeypatch):
    big = b"x = [" + b"1, " * 200_000 + b"]\n" * 2
    language = language_for("a.py")
    assert language is not None
    with pytest.raises(ParseTimeoutError):
        parse(big, language, seconds=-1.0)
    lines = "x = [\n" + "1,\n" * 200_000 + "]\n"
    (tmp_path / "slow.py").write_text(lines, "utf-8")
    (tmp_path / "server.py").write_text(SERVER, "utf-8")
    monkeypatch.setattr(engine, "parse", functools.partial(parse, seconds=-1.0))

    made = engine.scan(tmp_path)

    assert {"path": "slow.py", "reason": "took too long to parse"} in made["skipped"]
    assert [t["name"] for t in made["tools"]] == ["place_order"]


def reasons(root):
    """Return why files were skipped, by path."""
    return {s["path"]: s["reason"] for s in engine.scan(root)["skipped"]}


def test_files_that_are_no_source_are_named_with_the_reason(tmp_path):
    (tmp_path / "blob.py").write_bytes(b"\x7fELF\x00\x01" * 100)
    (tmp_path / "huge.py").write_bytes(b"#" * (MAX_BYTES + 1))
    (tmp_path / "packed.js").write_text("a=1;" * 20_000, "utf-8")
    (tmp_path / "loop.py").symlink_to("loop.py")
    (tmp_path / "out.py").symlink_to("/etc/hostname")
    (tmp_path / "in").symlink_to(tmp_path)
    (tmp_path / "server.py").write_text(SERVER, "utf-8")

    found = reasons(tmp_path)

    assert found["blob.py"] == "binary"
    assert found["huge.py"] == "larger than 5 MB"
    assert found["packed.js"] == "minified"
    assert found["out.py"] == "symbolic link out of the tree"
    assert found["in"] == "symbolic link to a directory"
    assert "loop.py" in found
    assert "server.py" not in found


def test_an_unreadable_file_and_folder_are_named(tmp_path, monkeypatch):
    (tmp_path / "server.py").write_text(SERVER, "utf-8")
    (tmp_path / "locked.py").write_text(SERVER, "utf-8")
    (tmp_path / "closed").mkdir()
    real_read, real_list = Path.read_bytes, os.scandir

    def read(self):
        if self.name == "locked.py":
            raise PermissionError(13, "denied")
        return real_read(self)

    def listed(path):
        if str(path).endswith("closed"):
            raise PermissionError(13, "denied")
        return real_list(path)

    monkeypatch.setattr(Path, "read_bytes", read)
    monkeypatch.setattr(os, "scandir", listed)

    found = reasons(tmp_path)

    assert found["locked.py"] == "unreadable"
    assert found["closed"] == "unreadable"


@pytest.mark.parametrize("encoding", ["latin-1", "utf-8-sig", "utf-16"])
def test_sources_in_other_encodings_are_read(encoding, tmp_path):
    text = SERVER.replace('FastMCP("x")', 'FastMCP("Überweisung")')
    (tmp_path / "server.py").write_bytes(text.encode(encoding))

    made = engine.scan(tmp_path)

    assert [(t["name"], t["candidate"]) for t in made["tools"]] == [("place_order", True)]


def test_memory_stays_bounded_on_megabytes_of_data(tmp_path):
    line = "    ('name', 'some text of a table', 17, {'a': 1}),\n"
    (tmp_path / "table.py").write_text(
        SERVER + "ROWS = [\n" + line * (MAX_BYTES // 2 // len(line)) + "]\n"
        "@mcp.tool()\ndef add_rows():\n    for row in ROWS:\n"
        "        httpx.post('https://api.example.org/rows', json=row)\n",
        "utf-8",
    )
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    made = engine.scan(tmp_path)

    assert {t["name"] for t in made["tools"] if t["candidate"]} == {"place_order", "add_rows"}
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown < 1_500_000, f"{grown} kB"


EVIL = "[bold red]x[/]<script>alert(1)</script>\x1b[31m\u202egnp|`*_\u2028\r"


@pytest.fixture
def evil(tmp_path):
    """Return a repository whose paths, names and descriptions try to act."""
    folder = tmp_path / "[red]<img src=x onerror=alert(1)>\x1b[2J\u202e\n# head"
    folder.mkdir()
    quoted = json.dumps(EVIL)
    (folder / "server.py").write_text(
        SERVER.replace("@mcp.tool()", f"@mcp.tool(name='pay\u202e_x', description={quoted})")
        + f"@mcp.tool()\ndef charge_card(amount: int, idempotency_key: str = {quoted}):\n"
        + f"    {quoted}\n    return httpx.post('https://x/charges' + {quoted}, json=amount)\n",
        "utf-8",
    )
    return tmp_path


@pytest.mark.parametrize("form", ["", "--json", "--sarif", "--markdown", "--html"])
def test_hostile_names_are_inert_in_every_view(form, evil, tmp_path):
    page = tmp_path.parent / f"{tmp_path.name}.html"
    arguments = [str(evil), *([form] if form else [])] + ([str(page)] if form == "--html" else [])

    ran = CliRunner().invoke(command, arguments)

    assert ran.exit_code == 0, ran.output
    shown = page.read_text("utf-8") if form == "--html" else ran.stdout
    assert "charge_card" in shown
    assert "\x1b" not in shown
    if form in ("--json", "--sarif"):
        json.loads(shown)
        return
    assert "\u202e" not in shown
    if form == "--markdown":
        assert "\n# head" not in shown
        shown = re.sub(r"(`+).*?\1", "", shown)  # code spans are shown as they are
    if form in ("--html", "--markdown"):
        assert "<script>alert" not in shown
        assert "<img src=x" not in shown
