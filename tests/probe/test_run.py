"""`fencekit probe` from end to end: what it prints, what it fires, how it exits."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import jsonschema
import psutil
import pytest
from click.testing import CliRunner

from fencekit.cli.probe import command
from fencekit.cli.probe_plan import commands, is_fence
from fencekit.probe import ways
from fencekit.probe.document import schema
from tests.wire.web import web

SPECIMEN = [sys.executable, "-m", "fencekit.probe.specimen"]
CHARGE = ["--tool", "charge_card", "--args", '{"order": "1"}', "--calls", "5"]


def probe(*options: str, mode: str = "fires", charge: list[str] = CHARGE):
    return CliRunner().invoke(command, [*charge, *options, "--", *SPECIMEN, mode])


def effects_in(folder: Path) -> tuple[Path, list[str]]:
    path = folder / "effects"
    return path, ["--env", f"FENCEKIT_EFFECTS={path}"]


def test_the_first_thing_a_user_sees():
    run = probe()

    assert run.exit_code == 1
    assert "calls              : 5" in run.stdout
    assert "DISTINCT effects   : 5 (by answers)" in run.stdout
    assert "PROVEN DOUBLE-FIRE" in run.stdout
    assert "$.charge_id: 5 distinct" in run.stdout
    assert "self-check passed (6 of 6 trials)" in run.stdout
    assert "-- fencekit wrap -- " in run.stdout
    assert max(map(len, run.stdout.split("the same calls")[0].splitlines())) <= 80
    assert "\x1b" not in run.stdout


def test_before_firing_it_says_what_it_will_call_and_warns():
    said = probe().stderr

    assert 'will call charge_card 5 times (twins 5) with {"order": "1"}' in said
    assert "readOnlyHint: false, destructiveHint: true" in said
    assert "WARNING" in said
    assert said.index("WARNING") < said.index("twins: 5 calls")


@pytest.mark.parametrize(
    ("options", "charge", "words"),
    [
        (["--dry-run"], CHARGE, "will call charge_card"),
        ([], ["--tool", "charge_crad"], "did you mean: charge_card"),
        ([], ["--tool", "zzz"], "it offers: charge_card, list_charges"),
        ([], ["--tool", "charge_card", "--args", '{"order": 1}'], "at $.order"),
        ([], ["--tool", "charge_card", "--args", "{}"], "'order' is a required property"),
        ([], ["--tool", "charge_card", "--args", "nonsense"], "not JSON"),
        ([], ["--tool", "charge_card", "--args", "[1]"], "not a JSON object"),
        (["--count-tool", "lst_charges"], CHARGE, "did you mean: list_charges"),
        (["--count-tool", "list_charges", "--count-path", "$.no"], CHARGE, "cannot count"),
        (["--count-cmd", "echo none"], CHARGE, "cannot count"),
        (["--control", 'charge_card:{"order": 3}'], CHARGE, "do not fit"),
        (["--sink", "NOT_THE_VARIABLE", "--control", "list_charges"], CHARGE, "not wired"),
        (["--sink", "FENCEKIT_SINK"], CHARGE, "nothing was fired"),
        ([], [], "--tool"),
        (["--url", "http://127.0.0.1:1/"], CHARGE, "not both"),
        (["--ways", "twice"], CHARGE, "twins, retry"),
        (["--compare", __file__], CHARGE, "--html"),
        (["--header", "nonsense"], CHARGE, "NAME=VALUE"),
        (["--bearer-env", "NOT_SET_ANYWHERE"], CHARGE, "not set"),
    ],
)  # fmt: skip
def test_where_it_cannot_ask_nothing_is_fired(options, charge, words, tmp_path):
    path, env = effects_in(tmp_path)
    run = probe(*env, *options, charge=charge)

    assert run.exit_code == (0 if "--dry-run" in options else 2)
    assert words in run.output
    assert not path.exists()
    assert "Traceback" not in run.output


def test_a_sink_that_is_not_wired_costs_one_call_where_the_user_allows_it(tmp_path):
    path, env = effects_in(tmp_path)
    run = probe(*env, "--sink", "NOT_THE_VARIABLE", "--sink-unverified")

    assert run.exit_code == 2
    assert "one call of charge_card was sent" in run.stderr
    assert path.read_text().count("\n") == 1


@pytest.mark.parametrize(
    ("mode", "verdict", "code"), [("keeps", "ONE EFFECT", 0), ("echoes", "PROVEN DOUBLE-FIRE", 1)]
)
def test_an_unverified_sink_counts_its_first_call_too(mode, verdict, code):
    run = probe("--sink", "FENCEKIT_SINK", "--sink-unverified", "--json", mode=mode)
    document = json.loads(run.stdout)

    assert (document["verdict"], run.exit_code) == (verdict, code)
    assert "one call was sent before" in document["notes"][0]


def test_a_server_that_cannot_be_reached_has_no_verdict():
    run = CliRunner().invoke(command, [*CHARGE, "--", "no-such-program"])

    assert run.exit_code == 2
    assert "no such program" in run.stderr
    assert run.stdout == ""


def test_what_a_server_says_cannot_steer_the_terminal():
    dying = "import sys; sys.exit('\\x1b[2J\\u202eoops token=ghp_abcdefghijklmnopqrst')"
    run = CliRunner().invoke(command, [*CHARGE, "--", sys.executable, "-c", dying])

    assert run.exit_code == 2
    assert "oops" in run.stderr
    assert "\x1b" not in run.stderr
    assert "\u202e" not in run.stderr
    assert "ghp_" not in run.stderr


NAUGHTY = "\x1b]0;owned\x07[bold red]x[/]\u202e"
NAMED = """
import json, sys
for line in sys.stdin:
    m = json.loads(line)
    if "id" not in m: continue
    info = {"name": sys.argv[1], "version": sys.argv[1]}
    if m["method"] == "initialize":
        r = {"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": info}
    elif m["method"] == "tools/list":
        r = {"tools": [{"name": "act", "description": sys.argv[1]}]}
    else: r = {"isError": m["id"] % 2 == 0, "structuredContent": {sys.argv[1]: m["id"]},
               "content": [{"type": "text", "text": sys.argv[1]}]}
    print(json.dumps({"jsonrpc": "2.0", "id": m["id"], "result": r}), flush=True)
"""


def test_nothing_from_outside_is_markup_or_a_control_character(tmp_path):
    page = tmp_path / "page.html"
    server = [sys.executable, "-c", NAMED, NAUGHTY + "<script>alert(1)</script>"]
    run = CliRunner().invoke(command, ["--tool", "act", "--html", str(page), "--", *server])

    assert run.exit_code == 1
    for text in (run.stdout, run.stderr, page.read_text()):
        assert "\x1b" not in text
        assert "\u202e" not in text
    assert "[bold red]" in run.stdout
    assert "<script>alert" not in page.read_text()


@pytest.mark.parametrize("mode", ["fires", "keeps"])
def test_the_document_fits_its_schema_in_every_way(mode, tmp_path):
    _, env = effects_in(tmp_path)
    every = "twins,retry,lost-answer,restart"
    run = probe("--json", *env, "--ways", every, "--count-tool", "list_charges",
                "--sink", "FENCEKIT_SINK", "--control", "list_charges", mode=mode)  # fmt: skip
    document = json.loads(run.stdout)

    jsonschema.validate(document, schema())
    assert [way["way"] for way in document["ways"]] == every.split(",")
    assert document["verdict"] == ("PROVEN DOUBLE-FIRE" if mode == "fires" else "ONE EFFECT")
    assert document["target"]["name"] == f"specimen-{mode}"
    assert run.exit_code == (1 if mode == "fires" else 0)


@pytest.mark.parametrize(
    ("mode", "options", "code"),
    [
        ("fires", ["--exit-zero"], 0),
        ("echoes", [], 0),
        ("echoes", ["--require", "one-effect"], 1),
        ("keeps", ["--require", "one-effect", "--count-tool", "list_charges"], 0),
    ],
)
def test_exit_codes(mode, options, code):
    assert probe(*options, mode=mode).exit_code == code


def test_secrets_are_masked_in_every_output(tmp_path):
    secret = "hunter2-hunter2"
    page = tmp_path / "page.html"
    arguments = json.dumps({"order": "1", "card_password": secret})
    charge = ["--tool", "charge_card", "--args", arguments, "--show-args", "--html", str(page)]
    for options in ([], ["--json"]):
        run = probe(*options, charge=charge)
        assert run.exit_code == 1
        assert secret not in run.stdout + run.stderr + page.read_text()
    assert "[masked]" in run.stdout


def test_arguments_come_from_a_file_or_stdin(tmp_path):
    path = tmp_path / "args.json"
    path.write_text('{"order": "from-file"}')
    words = ["--tool", "charge_card", "--dry-run"]

    assert "from-file" in probe(charge=[*words, "--args", f"@{path}"]).stderr
    run = CliRunner().invoke(
        command, [*words, "--args", "-", "--", *SPECIMEN, "fires"], input='{"order": "piped"}'
    )
    assert "piped" in run.stderr
    assert "could not be read" in probe(charge=[*words, "--args", "@absent"]).stderr


def test_the_page_and_the_comparison_are_written(tmp_path):
    raw, page = tmp_path / "raw.json", tmp_path / "page.html"
    raw.write_text(probe("--json").stdout)
    run = probe("--html", str(page), "--compare", str(raw), mode="keeps")

    assert run.exit_code == 0
    assert "PROVEN DOUBLE-FIRE" in page.read_text()
    raw.write_text("{}")
    run = probe("--html", str(page), "--compare", str(raw), mode="keeps")
    assert run.exit_code == 2
    assert "no fencekit.probe/1 document" in run.stderr


def test_an_interrupted_run_reports_what_it_has_and_exits_130(monkeypatch):
    real = ways.Rig.perform

    def interrupt(self, way):
        if way == "retry" and self.calls == 5:  # not the self-check's
            raise KeyboardInterrupt
        return real(self, way)

    monkeypatch.setattr(ways.Rig, "perform", interrupt)
    run = probe("--ways", "twins,retry", "--json")
    document = json.loads(run.stdout)

    assert run.exit_code == 130
    assert (document["complete"], document["stopped"]) == (False, "interrupted")
    assert [way["way"] for way in document["ways"]] == ["twins"]


# Answers everything but the call, and writes down its process id when the call comes.
HANG = """
import json, os, sys
for line in sys.stdin:
    m = json.loads(line)
    if "id" not in m: continue
    if m["method"] == "initialize":
        r = {"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": {}}
    elif m["method"] == "tools/list": r = {"tools": [{"name": "act"}]}
    else:
        print(os.getpid(), file=sys.stderr, flush=True)
        open(sys.argv[1], "a").write(f"{os.getpid()}\\n")
        continue
    print(json.dumps({"jsonrpc": "2.0", "id": m["id"], "result": r}), flush=True)
"""


@pytest.mark.parametrize("sign", [signal.SIGINT, signal.SIGTERM])
def test_a_real_interruption_ends_the_server_and_tells_what_is_not_known(sign, tmp_path):
    called = tmp_path / "called"
    fencekit = Path(sys.executable).parent / "fencekit"
    words = [fencekit, "probe", "--tool", "act", "--calls", "3", "--json", "--"]
    process = subprocess.Popen(
        [*words, sys.executable, "-c", HANG, called],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    deadline = time.monotonic() + 60
    while not called.exists() or called.read_text().count("\n") < 3:
        assert time.monotonic() < deadline
        time.sleep(0.02)
    process.send_signal(sign)
    out, _ = process.communicate(timeout=30)
    document = json.loads(out)

    assert process.returncode == 130
    assert document["stopped"] == "interrupted"
    assert document["notes"] == ["up to 3 calls of twins were sent whose outcome is not here"]
    assert not psutil.pid_exists(int(called.read_text().split()[0]))


def test_a_failed_self_check_makes_the_run_void(monkeypatch, tmp_path):
    from fencekit.probe import run as run_module
    from fencekit.probe.selfcheck import SelfCheck

    monkeypatch.setattr(run_module, "self_check", lambda ways, http: SelfCheck((), 0.0))
    path, env = effects_in(tmp_path)
    run = probe(*env)

    assert run.exit_code == 2
    assert "void" in run.output
    assert not path.exists()


def test_the_self_check_alone():
    run = CliRunner().invoke(command, ["--self-check"])

    assert run.exit_code == 0
    assert len(run.stdout.splitlines()) == 22


def test_a_fence_is_known_by_its_command_line():
    assert is_fence(["fencekit", "wrap", "--", "x"])
    assert is_fence(["/opt/bin/fencekit", "wrap", "--url", "u"])
    assert is_fence(["python", "-m", "fencekit.cli.main", "wrap"])
    assert not is_fence(["fencekit", "serve"])
    assert not is_fence(["my-server", "wrap"])


def test_the_command_lines_lead_from_raw_to_fenced_and_back():
    raw = commands(["srv", "-x"], ["probe", "--tool", "t", "--", "srv", "-x"])
    assert raw["fenced"] == "fencekit probe --tool t -- fencekit wrap -- srv -x"
    words = raw["fenced"].split()[1:]
    fenced = commands(words[words.index("--") + 1 :], words)
    assert fenced["raw"] == raw["this"]
    assert fenced["fenced"] == fenced["this"] == raw["fenced"]
    by_url = commands([], ["probe", "--tool", "t", "--url", "http://h/mcp", "--calls", "3"])
    assert (
        by_url["fenced"] == "fencekit probe --tool t --calls 3 -- fencekit wrap --url http://h/mcp"
    )


class Shop:
    """An HTTP server in the stateless era whose `pay` behaves as told; it counts what it did."""

    def __init__(self, behave):
        self.charges: list[str] = []
        self.behave = behave

    def __call__(self, handler, message):
        if message is None or "id" not in message:
            handler.json({}, 202)
        elif message["method"] == "server/discover":
            handler.answer(message, {"supportedVersions": ["2026-07-28"], "resultType": "complete"})
        elif message["method"] == "tools/list":
            tool = {"name": "pay", "inputSchema": {"type": "object"}}
            handler.answer(message, {"tools": [tool], "resultType": "complete"})
        else:
            self.behave(self, handler, message)

    def charge(self, handler, message):
        self.charges.append(f"ch_{len(self.charges):08d}")
        text = [{"type": "text", "text": json.dumps({"charge_id": self.charges[-1]})}]
        handler.answer(message, {"content": text, "resultType": "complete"})


def limited(shop, handler, message):
    if shop.charges:
        handler.json({"slow": "down"}, 429)
    else:
        shop.charge(handler, message)


def after_effect(shop, handler, message):
    shop.charges.append("ch")
    handler.json({"oops": 1}, 503)


@pytest.mark.parametrize(
    ("behave", "options", "verdict", "counts"),
    [
        (Shop.charge, [], "PROVEN DOUBLE-FIRE", {"succeeded": 5}),
        (limited, ["--ways", "retry"], "NO RACE SURFACE", {"succeeded": 1, "rate_limited": 1}),
        (after_effect, [], "NO RACE SURFACE", {"succeeded": 0, "transport_failures": 5}),
    ],
)
def test_over_http(behave, options, verdict, counts):
    shop = Shop(behave)
    with web(shop) as it:
        words = ["--tool", "pay", "--calls", "5", "--json", "--url", it.url]
        document = json.loads(CliRunner().invoke(command, [*words, *options]).stdout)
    (way,) = document["ways"]

    assert document["verdict"] == verdict
    assert document["target"]["era"] == "modern"
    assert {key: way["counts"][key] for key in counts} == counts
    assert len([m for _, _, m in it.asked if m and m.get("method") == "tools/call"]) == len(
        way["calls"]
    )


def test_restart_alone_does_not_apply_over_http():
    with web(Shop(Shop.charge)) as it:
        words = ["--tool", "pay", "--ways", "restart", "--url", it.url]
        run = CliRunner().invoke(command, words)

    assert run.exit_code == 2
    assert "does not apply" in run.stderr


def test_a_count_proves_what_failed_answers_hide_and_restart_does_not_apply_over_http(tmp_path):
    path = tmp_path / "count"
    path.write_text("")

    def behave(shop, handler, message):
        with path.open("a") as file:
            file.write("x\n")
        handler.json({"oops": 1}, 503)

    with web(Shop(behave)) as it:
        words = ["--tool", "pay", "--calls", "5", "--json", "--url", it.url]
        words += ["--ways", "twins,restart", "--count-cmd", f"wc -l < '{path}'"]
        run = CliRunner().invoke(command, words)
    document = json.loads(run.stdout)

    assert (document["verdict"], document["effects"], run.exit_code) == ("PROVEN DOUBLE-FIRE", 5, 1)
    assert document["skipped"][0]["way"] == "restart"
