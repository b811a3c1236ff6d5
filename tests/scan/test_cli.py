"""`fencekit scan` on the command line: every form says the same, and nothing outside is read."""

from __future__ import annotations

import json

import jsonschema
import pytest
from click.testing import CliRunner

from fencekit.cli.main import cli
from fencekit.scan.document import schema

SERVER = '''
import httpx
from mcp.server.fastmcp import FastMCP

mcp = FastMCP("billing")


@mcp.tool()
def charge_card(order: str) -> str:
    """Charge a card."""
    return httpx.post("https://api.example.org/charges", json={"order": order}).text


@mcp.tool()
def list_charges() -> str:
    """List charges."""
    return httpx.get("https://api.example.org/charges").text
'''


@pytest.fixture
def repo(tmp_path):
    (tmp_path / "repo").mkdir()
    (tmp_path / "repo" / "server.py").write_text(SERVER, encoding="utf-8")
    return tmp_path / "repo"


def run(*args, code=0):
    result = CliRunner().invoke(cli, ["scan", *map(str, args)])
    assert result.exit_code == code, result.output
    return result.stdout


def test_one_path_prints_one_object_of_the_schema(repo):
    document = json.loads(run("--json", repo))
    jsonschema.validate(document, schema())
    rows = {tool["name"]: tool["candidate"] for tool in document["tools"]}
    assert rows == {"charge_card": True, "list_charges": False}


def test_several_paths_print_a_list(repo):
    assert len(json.loads(run("--json", repo, repo))) == 2


def test_every_form_names_the_candidate_and_its_write(repo, tmp_path):
    page = tmp_path / "page.html"
    run("--html", page, repo)
    for text in (run(repo), run("--sarif", repo), run("--markdown", repo), page.read_text("utf-8")):
        assert "charge_card" in text
        assert "server.py" in text
    assert "httpx.post" in page.read_text("utf-8")


def test_the_terminal_form_fits_80_columns_when_piped(repo):
    assert max(map(len, run(repo).splitlines())) <= 80


def test_sarif_is_for_review_and_has_a_location(repo):
    (result,) = json.loads(run("--sarif", repo))["runs"][0]["results"]
    assert (result["kind"], result["level"]) == ("review", "none")
    assert result["locations"]


def test_a_baseline_hides_what_was_already_looked_at(repo, tmp_path):
    earlier = tmp_path / "earlier.json"
    earlier.write_text(run("--json", repo))
    later = json.loads(run("--json", "--baseline", earlier, repo))
    assert later["summary"]["candidates"] == 0
    source = repo / "server.py"
    source.write_text("\n\n" + SERVER.replace("charge_card", "refund_card"), encoding="utf-8")
    new = json.loads(run("--json", "--baseline", earlier, repo))
    assert [t["name"] for t in new["tools"] if t["candidate"]] == ["refund_card"]


def test_moving_lines_changes_no_fingerprint(repo, tmp_path):
    earlier = tmp_path / "earlier.json"
    earlier.write_text(run("--json", repo))
    (repo / "server.py").write_text("# moved\n" * 9 + SERVER, encoding="utf-8")
    assert json.loads(run("--json", "--baseline", earlier, repo))["summary"]["candidates"] == 0


def test_exit_codes(repo, tmp_path):
    run(repo, code=0)
    run("--exit-code", repo, code=1)
    run(tmp_path / "nowhere", code=2)
    run("--baseline", repo / "server.py", repo, code=2)


def test_the_page_reads_nothing_outside_the_tree(repo, tmp_path):
    (tmp_path / "secret.py").write_text("TOP = 'SECRET'\n")
    (repo / "link.py").symlink_to(tmp_path / "secret.py")
    page = tmp_path / "page.html"
    run("--html", page, repo)
    assert "SECRET" not in page.read_text("utf-8")
