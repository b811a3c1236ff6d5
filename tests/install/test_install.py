"""The fence in front of a host's servers: put there, taken away, and nothing else touched."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from fencekit.cli.main import cli
from fencekit.install import apply, hosts, jsonc
from fencekit.install.apply import NotWritten

CURSOR = """{
  // my servers
  "other": [1, 2, ],
  "mcpServers": {
    "k8s": {
      "command": "npx", // runs anywhere
      "args": ["-y", "kubernetes-mcp-server"],
      "env": { "KUBECONFIG": "${env:HOME}/.kube/config" }
    },
    "plain": { "command": "my-server" },
    "remote": { "url": "https://example.com/mcp", "headers": {"Authorization": "${input:t}"} },
    "odd": 7
  }
}
"""


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    project = tmp_path / "project"
    project.mkdir()
    monkeypatch.chdir(project)
    monkeypatch.setenv("PATH", str(tmp_path / "bin") + os.pathsep + os.environ["PATH"])
    cursor = tmp_path / "home" / ".cursor"
    cursor.mkdir(parents=True)
    (cursor / "mcp.json").write_text(CURSOR)
    return tmp_path / "home"


def run(*args: str):
    return CliRunner().invoke(cli, list(args))


def cursor(home: Path) -> Path:
    return home / ".cursor" / "mcp.json"


def test_only_command_and_args_of_the_chosen_entry_change(home):
    made = run("install", "k8s")

    assert made.exit_code == 0, made.output
    text = cursor(home).read_text()
    entry = jsonc.parse(text).value["mcpServers"]["k8s"]
    assert entry["args"] == [
        "wrap", "--scope", "k8s", "--", "npx", "-y", "kubernetes-mcp-server",
    ]  # fmt: skip
    assert Path(entry["command"]).is_absolute()
    assert Path(entry["command"]).name == "fencekit"
    changed = [line for line in text.splitlines() if line not in CURSOR.splitlines()]
    assert len(changed) == 2
    assert "// runs anywhere" in changed[0]


def test_twice_changes_nothing_and_uninstall_reverts_to_the_letter(home):
    run("install", "--all")
    once = cursor(home).read_text()
    again = run("install", "--all")
    assert cursor(home).read_text() == once
    assert "already" in again.output

    run("uninstall", "--all")

    text = cursor(home).read_text()
    assert (
        jsonc.parse(text).value["mcpServers"]["k8s"]
        == jsonc.parse(CURSOR).value["mcpServers"]["k8s"]
    )
    assert "// my servers" in text
    assert run("uninstall", "--all").output.strip() == "nothing to change"


def test_uninstall_keeps_what_was_changed_since(home):
    run("install", "k8s")
    text = cursor(home).read_text().replace('"other": [1, 2, ]', '"other": "new"')
    cursor(home).write_text(text)

    run("uninstall", "k8s")

    assert cursor(home).read_text() == CURSOR.replace('"other": [1, 2, ]', '"other": "new"')


def test_an_entry_without_args_gets_them(home):
    run("install", "plain")

    entry = jsonc.parse(cursor(home).read_text()).value["mcpServers"]["plain"]
    assert entry["args"] == ["wrap", "--scope", "plain", "--", "my-server"]


def test_remote_and_odd_entries_are_left_alone_with_a_word(home):
    made = run("install", "remote", "odd")

    assert cursor(home).read_text() == CURSOR
    assert "remote in" in made.output
    assert "odd in" in made.output


def test_a_dry_run_shows_the_diff_and_writes_nothing(home):
    made = run("install", "k8s", "--dry-run")

    assert cursor(home).read_text() == CURSOR
    assert '+      "args": ["wrap", "--scope", "k8s", "--", "npx"' in made.output


def test_project_files_get_the_bare_word_and_no_scope(home, tmp_path):
    path = tmp_path / "project" / ".vscode" / "mcp.json"
    path.parent.mkdir()
    path.write_text('{"servers": {"a": {"type": "stdio", "command": "x", "args": []}}}')

    run("install", "a")

    entry = json.loads(path.read_text())["servers"]["a"]
    assert entry == {"type": "stdio", "command": "fencekit", "args": ["wrap", "--", "x"]}


def test_the_same_server_under_another_name_is_warned_of(home, tmp_path):
    path = tmp_path / "project" / ".mcp.json"
    servers = {"mcpServers": {"raw": {"command": "npx", "args": ["-y", "kubernetes-mcp-server"]}}}
    path.write_text(json.dumps(servers))

    made = run("install", "k8s")

    assert "warning: raw in" in made.output
    assert "only door" in made.output


@pytest.mark.parametrize("broken", ["{", "[]", '{"mcpServers": 3}', '{"a": nope}', '{"a" 1}', ""])
def test_broken_and_unknown_files_are_left_alone_with_a_message(home, tmp_path, broken):
    path = tmp_path / "project" / ".mcp.json"
    path.write_text(broken)

    made = run("install", "k8s")

    assert made.exit_code == 0
    assert path.read_text() == broken
    if broken != '{"mcpServers": 3}':
        assert "left alone" in made.output


def test_a_file_that_changed_since_it_was_read_is_not_overwritten(home):
    path = cursor(home)

    with pytest.raises(NotWritten, match="changed meanwhile"):
        apply.write(path, "something else", "new")

    assert path.read_text() == CURSOR
    assert [p.name for p in path.parent.iterdir()] == ["mcp.json"]


def test_permissions_links_and_line_ends_survive(home, tmp_path):
    real = tmp_path / "real.json"
    real.write_bytes(CURSOR.replace("\n", "\r\n").encode())
    real.chmod(0o600)
    cursor(home).unlink()
    cursor(home).symlink_to(real)

    run("install", "k8s")

    assert cursor(home).is_symlink()
    assert real.stat().st_mode & 0o777 == 0o600
    assert real.read_bytes().count(b"\n") == real.read_bytes().count(b"\r\n")
    assert b"wrap" in real.read_bytes()


CLAUDE = """#!{python}
import json, os, sys
log = os.path.join(os.environ["HOME"], "claude-calls")
open(log, "a").write(json.dumps(sys.argv[1:]) + "\\n")
"""


def test_claude_codes_own_entries_go_through_claude(home, tmp_path):
    (home / ".claude.json").write_text(
        json.dumps({"mcpServers": {"mine": {"command": "x", "args": ["1"], "env": {"A": "b"}}}})
    )
    claude = tmp_path / "bin" / "claude"
    claude.parent.mkdir()
    claude.write_text(CLAUDE.format(python=sys.executable))
    claude.chmod(0o755)
    before = (home / ".claude.json").read_text()

    made = run("install", "mine")

    assert made.exit_code == 0, made.output
    remove, add = map(json.loads, (home / "claude-calls").read_text().splitlines())
    assert remove == ["mcp", "remove", "--scope", "user", "mine"]
    assert add[:5] == ["mcp", "add-json", "--scope", "user", "mine"]
    assert json.loads(add[5])["args"] == ["wrap", "--scope", "mine", "--", "x", "1"]
    assert json.loads(add[5])["env"] == {"A": "b"}
    assert (home / ".claude.json").read_text() == before


@pytest.mark.parametrize("running", [True, False])
def test_without_its_command_the_file_is_edited_only_while_no_claude_code_runs(
    home, monkeypatch, running
):
    path = home / ".claude.json"
    path.write_text('{"mcpServers": {"mine": {"command": "x"}}}')
    monkeypatch.setattr(apply.shutil, "which", lambda _name: None)
    monkeypatch.setattr(apply, "claude_runs", lambda: running)

    made = run("install", "mine")

    assert made.exit_code == (2 if running else 0)
    assert ("wrap" in path.read_text()) is not running


def test_a_mistyped_name_gets_the_closest_one(home):
    made = run("install", "k8z")

    assert made.exit_code == 2
    assert "did you mean k8s?" in made.output


def test_without_names_it_lists_and_changes_nothing(home):
    made = run("install")

    assert "raw     k8s" in made.output
    assert "remote  remote" in made.output
    assert cursor(home).read_text() == CURSOR


def test_every_known_host_has_a_place(tmp_path):
    found = {place.host for place in hosts.places(tmp_path, tmp_path, {})}

    assert found == set(hosts.HOSTS)


@pytest.mark.parametrize(
    "text",
    ["[" * 200 + "]" * 200, '{"a": "\\x"}', '{"a": "b\n"}', "{} x", '{"a": 1 "b": 2}', "//", "/*"],
)
def test_what_is_no_json_is_refused_with_its_line(text):
    with pytest.raises(ValueError, match=r"line \d+: "):
        jsonc.parse(text)


REMOTE = """{
  "servers": {
    "plain": { "url": "https://example.com/mcp" },
    "keyed": {
      "type": "http", // by its address
      "url": "https://example.org/mcp",
      "headers": {
        "Authorization": "Bearer ${input:token}",
        "X-Team": "a"
      },
      "disabled": false
    },
    "old": { "type": "sse", "url": "https://example.net/sse" }
  }
}
"""


@pytest.fixture
def remote(tmp_path):
    path = tmp_path / "mcp.json"
    path.write_text(REMOTE)
    return path


def test_remote_entries_are_fenced_only_where_asked_and_keep_secrets_out_of_the_arguments(remote):
    assert "--include-url" in run("install", "--all", "--file", str(remote)).output
    assert remote.read_text() == REMOTE

    made = run("install", "--all", "--include-url", "--file", str(remote), "--scope", "team")

    assert made.exit_code == 0, made.output
    entries = jsonc.parse(remote.read_text()).value["servers"]
    assert entries["plain"] == {
        "command": "fencekit",
        "args": ["wrap", "--scope", "team", "--url", "https://example.com/mcp"],
    }
    assert entries["keyed"] == {
        "type": "stdio",
        "command": "fencekit",
        "args": [
            "wrap", "--scope", "team", "--url", "https://example.org/mcp",
            "--header", "Authorization: $FENCEKIT_HEADER_AUTHORIZATION",
            "--header", "X-Team: $FENCEKIT_HEADER_X_TEAM",
        ],
        "env": {
            "FENCEKIT_HEADER_AUTHORIZATION": "Bearer ${input:token}",
            "FENCEKIT_HEADER_X_TEAM": "a",
        },
        "disabled": False,
    }  # fmt: skip
    assert "// by its address" in remote.read_text()
    assert entries["old"] == {"type": "sse", "url": "https://example.net/sse"}
    assert "old" in made.output
    again = run("install", "--all", "--include-url", "--file", str(remote)).output
    assert "plain in" in again
    assert "behind the fence already" in again


def test_a_fenced_remote_entry_is_put_back_as_it_was(remote):
    run("install", "--all", "--include-url", "--file", str(remote))
    run("uninstall", "--all", "--file", str(remote))
    assert jsonc.parse(remote.read_text()).value == jsonc.parse(REMOTE).value


def test_variables_that_somebody_added_since_are_not_thrown_away(remote):
    run("install", "keyed", "--include-url", "--file", str(remote))
    text = remote.read_text().replace('"env": {', '"env": {"MINE": "1", ')
    remote.write_text(text)
    made = run("uninstall", "keyed", "--file", str(remote))
    assert "left alone" in made.output
    assert remote.read_text() == text


def test_an_address_that_is_still_reached_raw_is_told(remote):
    text = REMOTE.replace('"old": { "type": "sse", "url": "https://example.net/sse" }',
                          '"twin": { "url": "https://example.com/mcp" }')  # fmt: skip
    remote.write_text(text)
    made = run("install", "plain", "--include-url", "--file", str(remote))
    assert "warning: twin" in made.output


def test_what_a_fenced_remote_entry_starts_is_understood_by_wrap(remote):
    """The spelling of the arguments is the one that `wrap` reads, not only one like it."""
    from fencekit.cli.wrap import command

    run("install", "keyed", "--include-url", "--file", str(remote))
    entry = jsonc.parse(remote.read_text()).value["servers"]["keyed"]
    context = command.make_context("wrap", list(entry["args"][1:]))
    assert context.params["url"] == "https://example.org/mcp"
    assert context.params["header"] == (
        "Authorization: $FENCEKIT_HEADER_AUTHORIZATION", "X-Team: $FENCEKIT_HEADER_X_TEAM",
    )  # fmt: skip
