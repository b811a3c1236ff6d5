"""`fencekit ledger`: an operator sees what is recorded and judges exactly what was seen."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from fencekit import Fence
from fencekit.cli.main import cli

HOSTILE = "pay\x1b[31m\u202e[bold]\n"


@pytest.fixture(params=["sqlite", "jsonl"])
def url(request, tmp_path):
    return f"{request.param}:{tmp_path / 'ledger'}"


@pytest.fixture
def filled(url):
    """One done, one unknown, one in flight; one whose name would steer a terminal."""
    with Fence.open(url) as fence:
        done = fence.prepare("done", "charge", {"n": 1}, domain="d").ticket
        cert = fence.commit(done, {"id": 7})
        fence.commit(fence.prepare("child", "charge", parent=cert.hash).ticket)
        fence.abort(fence.prepare("lost", "charge").ticket, "reset by peer")
        fence.abort(fence.prepare(HOSTILE, "charge").ticket, HOSTILE)
        fence.prepare("running", "charge")
    return url


def run(*args, code=0, **more):
    result = CliRunner().invoke(cli, ["ledger", *args], **more)
    assert result.exit_code == code, result.output
    return result


def test_list_puts_what_has_no_outcome_first(filled):
    rows = json.loads(run("list", "--json", "--ledger", filled).stdout)["intents"]

    assert [r["state"] for r in rows].index("done") >= 3 or "sqlite" not in filled
    assert {r["intent"] for r in rows} == {"done", "child", "lost", HOSTILE, "running"}
    only = json.loads(run("list", "--json", "--state", "unknown", "--ledger", filled).stdout)
    assert {r["intent"] for r in only["intents"]} == {"lost", HOSTILE}


def test_hostile_names_stay_inert_at_80_columns(filled):
    for command in (["list"], ["show", HOSTILE], ["log"]):
        out = run(*command, "--ledger", filled).stdout
        assert "\x1b" not in out
        assert "\u202e" not in out


def test_show_gives_the_ticket_and_revision_to_judge_by(filled):
    whole = json.loads(run("show", "lost", "--json", "--ledger", filled).stdout)

    assert (whole["state"], whole["cause"], whole["reason"]) == (
        "unknown",
        "aborted",
        "reset by peer",
    )
    assert whole["revision"] == 2
    done = json.loads(run("show", "done", "--json", "--ledger", filled).stdout)
    assert done["verifies"] is True
    assert done["certificate"]["result"] == {"id": 7}


def test_clear_frees_what_was_judged(filled):
    out = run("clear", "lost", "--note", "asked the bank", "--yes", "--ledger", filled)
    assert "happen twice" in out.stderr
    with Fence.open(filled) as fence:
        fence.prepare("lost", "charge")
        event = next(e for _, e in fence.ledger.audit() if e["event"] == "cleared")
    assert event["note"] == "asked the bank"
    assert event["operator"]


def test_settle_records_the_result(filled):
    run("settle", "lost", "--result", '{"id": 9}', "--note", "found", "--yes", "--ledger", filled)
    with Fence.open(filled) as fence:
        assert fence.prepare("lost", "charge").result == {"id": 9}


def test_forget_lets_it_run_again(filled):
    run("forget", "done", "--note", "refunded", "--yes", "--ledger", filled)
    with Fence.open(filled) as fence:
        assert fence.prepare("done", "charge", {"n": 1}, domain="d").ticket.generation == 2


def test_a_state_that_moved_since_it_was_judged_is_refused(filled):
    whole = json.loads(run("show", "lost", "--json", "--ledger", filled).stdout)
    judged = ["--ticket", whole["ticket"], "--revision", str(whole["revision"])]
    with Fence.open(filled) as fence:
        fence.settle("lost", whole["ticket"], whole["revision"], "ok", "somebody was faster")
    out = run("clear", "lost", *judged, "--note", "x", "--ledger", filled, code=2)
    assert "already done" in out.stderr


def test_without_a_terminal_nothing_is_decided_unasked(filled):
    assert "--yes" in run("clear", "lost", "--note", "x", "--ledger", filled, code=2).stderr
    assert "--note" in run("clear", "lost", "--yes", "--ledger", filled, code=2).stderr


def test_a_running_attempt_cannot_be_judged(filled):
    out = run("clear", "running", "--note", "x", "--yes", "--ledger", filled, code=2)
    assert "still in flight" in out.stderr


def test_an_intent_of_several_principals_must_be_named(url):
    from fencekit import FenceConfig

    for who in ("a", "b"):
        with Fence.open(url, FenceConfig(principal=who)) as fence:
            fence.abort(fence.prepare("x", "t").ticket, "?")
    assert "--principal" in run("show", "x", "--ledger", url, code=2).stderr
    run("clear", "x", "--principal", "b", "--note", "n", "--yes", "--ledger", url)
    rows = json.loads(run("list", "--json", "--ledger", url).stdout)["intents"]
    assert [r["principal"] for r in rows] == ["a"]


def test_stats_add_up_all_processes(filled):
    stats = json.loads(run("stats", "--json", "--ledger", filled).stdout)

    assert stats["stats"]["admitted"] == 5
    assert "all processes: admitted=5" in run("stats", "--ledger", filled).stdout


def test_log_is_the_audit_as_json_lines(filled):
    lines = [json.loads(line) for line in run("log", "--ledger", filled).stdout.splitlines()]

    assert [line["event"] for line in lines][:3] == ["admitted", "committed", "admitted"]
    later = run("log", "--after", "3", "--ledger", filled).stdout.splitlines()
    assert [json.loads(line)["n"] for line in later] == list(range(4, len(lines) + 1))


def test_verify_finds_missing_and_forked_parents(filled):
    assert "holds" in run("verify", "--ledger", filled).stdout
    with Fence.open(filled) as fence:
        cert = fence.prepare("done", "charge", {"n": 1}, domain="d").cert
        fence.commit(fence.prepare("second child", "charge", parent=cert.hash).ticket)
        fence.commit(fence.prepare("orphan", "charge", parent="f" * 64).ticket)
    problems = json.loads(run("verify", "--json", "--ledger", filled, code=1).stdout)

    assert any("forks" in p["what"] for p in problems)
    assert any("orphan" in p["where"] for p in problems)


def test_an_unusable_ledger_exits_3(tmp_path):
    (tmp_path / "l.db").write_bytes(b"x" * 5000)
    out = run("list", "--ledger", str(tmp_path / "l.db"), code=3)
    assert "damaged" in out.stderr
    assert "Traceback" not in out.output


def test_a_wrong_url_exits_2():
    assert "memory:" in run("list", "--ledger", "mysql://x", code=2).stderr
    assert "s3cret" not in run("list", "--ledger", "mysql://u:s3cret@h/x", code=2).output


def test_sweep_and_compact(filled):
    assert "swept" in run("sweep", "--ledger", filled).stdout
    run("compact", "--ledger", filled)
    with Fence.open(filled) as fence:
        assert len(list(fence.intents())) == 5


def test_report_is_a_document_of_its_schema_and_a_page(filled, tmp_path):
    from importlib import resources

    import jsonschema

    document = json.loads(run("report", "--ledger", filled).stdout)
    schema = resources.files("fencekit.report").joinpath("ledger.schema.json").read_text("utf-8")
    jsonschema.validate(document, json.loads(schema))
    assert document["states"] == {"in_flight": 1, "done": 2, "unknown": 2}
    assert document["stats"]["admitted"] == 5
    page = tmp_path / "page.html"
    run("report", "--html", page, "--ledger", filled)
    assert "lost" in page.read_text(encoding="utf-8")


def test_a_wrapped_commands_own_intents(url, tmp_path, monkeypatch):
    from fencekit.wrap.scope import scope_of

    monkeypatch.chdir(tmp_path)
    scope = scope_of(("npx", "-y", "srv"), str(tmp_path), {}).name
    with Fence.open(url) as fence:
        fence.prepare(f"{scope}/pay/1", "pay")
        fence.prepare("other/pay/1", "pay")
    listed = run("list", "--json", "--ledger", url, "--", "npx", "-y", "srv").stdout
    assert [r["intent"] for r in json.loads(listed)["intents"]] == [f"{scope}/pay/1"]
    named = run("list", "--json", "--scope", "other", "--ledger", url).stdout
    assert [r["intent"] for r in json.loads(named)["intents"]] == ["other/pay/1"]


def test_an_operator_may_leave_out_the_scope_of_the_wrapped_command(url, tmp_path, monkeypatch):
    from fencekit.wrap.scope import scope_of

    monkeypatch.chdir(tmp_path)
    command = ("npx", "-y", "srv")
    scope = scope_of(command, str(tmp_path), {}).name
    with Fence.open(url) as fence:
        for name in ("lost", "found", "done"):
            fence.abort(fence.prepare(f"{scope}/{name}", "t").ticket)
        fence.abort(fence.prepare("lost", "t").ticket)
    there = ("--ledger", url, "--", *command)
    shown = json.loads(run("show", "lost", "--json", *there).stdout)
    assert shown["intent"] == f"{scope}/lost"
    assert json.loads(run("show", f"{scope}/lost", "--json", *there).stdout) == shown
    run("clear", "lost", "--note", "n", "--yes", *there)
    run("settle", "found", "--note", "n", "--result", "7", "--yes", *there)
    run("settle", "done", "--note", "n", "--result", "7", "--yes", *there)
    run("forget", "done", "--note", "n", "--yes", *there)
    events = [json.loads(line) for line in run("log", *there).stdout.splitlines()]
    assert {e["intent"] for e in events} == {f"{scope}/{n}" for n in ("lost", "found", "done")}
    with Fence.open(url) as fence:
        left = {s.key.intent: s.record.state for s in fence.intents()}
    assert sorted(left) == sorted(["lost", f"{scope}/found"])


def test_confirm_clock_lets_results_expire_again(url, monkeypatch):
    from fencekit.ledger import clocks

    with Fence.open(url) as fence:
        fence.commit(fence.prepare("a", "t").ticket, 1)
    told = run("confirm-clock", "--ledger", url)
    assert told.stdout == "the clock had not jumped\n"
    real = clocks._wall_ms
    monkeypatch.setattr(
        clocks.Clocks.__init__,
        "__defaults__",
        (lambda: real() + 864_000_000, clocks._lease_ms, None),
    )
    assert "0 intents swept" in run("sweep", "--ledger", url).stdout
    assert run("confirm-clock", "--ledger", url).stdout == "confirmed: expiry goes on\n"
    assert "1 intents swept" in run("sweep", "--ledger", url).stdout
