"""The builder enforces the rules: what may be named, what is only counted, what never changes."""

from __future__ import annotations

import hashlib
import json
import os
import tomllib
from datetime import date
from pathlib import Path

import pytest
from click.testing import CliRunner

from fencekit.cli.main import cli
from fencekit.index import feeds, register, rules, site
from fencekit.index.entry import parse
from fencekit.index.problem import RegisterError
from tests.browser import chromium  # noqa: F401 - a fixture
from tests.hostile import EVERYTHING
from tests.report import samples

HOSTILE_KEYS = (
    "implementation",
    "vendor",
    "versions",
    "at_stake",
    "verdict",
    "language",
    "disclosure",
    "credit",
    "notes",
    "dispute",
)
TODAY = date(2026, 12, 1)


def run(*args, code=0, **more):
    result = CliRunner().invoke(cli, ["index", *map(str, args)], **more)
    assert result.exit_code == code, result.output
    return result


@pytest.fixture
def root(tmp_path):
    run("init", tmp_path / "register")
    return tmp_path / "register"


@pytest.fixture
def private(tmp_path):
    run("init", tmp_path / "private", "--private")
    return tmp_path / "private"


def probe_document(**changes):
    """A probe run in which one effect was counted and the self-check passed."""
    return {**samples.probe_document(proven=False, ways=("twins", "retry")), **changes}


def put(root, entry_id, *, document=None, history=None, **changes):
    """Write one entry with one probe run as its evidence; None leaves a key out."""
    raw = json.dumps(document or probe_document(elapsed_ms=float(sum(entry_id.encode())))).encode()
    (root / "evidence" / f"{entry_id}.json").write_bytes(raw)
    values = {
        "schema": "fencekit.entry/1",
        "id": entry_id,
        "implementation": f"impl {entry_id}",
        "vendor": "somebody",
        "kind": "server",
        "versions": "1.2.3",
        "at_stake": "a second charge",
        "state": "verified-safe",
        "verdict": f"Counted once, says {entry_id}.",
        "recheck": "2027-01-01",
        **changes,
    }
    bare = {"recheck", "reported", "fixed", "owner_agrees"}
    lines = [
        f"{k} = {v if k in bare else json.dumps(v)}" for k, v in values.items() if v is not None
    ]
    lines += [
        "[[evidence]]",
        'tier = "probe run"',
        "date = 2026-10-02",
        f'document = "evidence/{entry_id}.json"',
        f'sha256 = "{hashlib.sha256(raw).hexdigest()}"',
    ]
    for day, state in history or [("2026-10-02", values["state"])]:
        lines += ["[[history]]", f"date = {day}", f'state = "{state}"']
    (root / "entries" / f"{entry_id}.toml").write_text("\n".join(lines) + "\n", encoding="utf-8")


FIX = "https://example.org/o/r/commit/" + "a" * 40


def put_fixed(root, entry_id, reported, fixed, **changes):
    put(
        root,
        entry_id,
        state="fixed",
        recheck=None,
        reported=reported,
        fixed=fixed,
        fix=changes.pop("fix", FIX),
        **changes,
    )


def problems(root, private=None):
    with pytest.raises(RegisterError) as told:
        register.load(root, private)
    return "\n".join(map(str, told.value.problems))


# --- what may be named --------------------------------------------------------------------------


@pytest.mark.parametrize("state", ["open", "undetermined"])
def test_an_open_entry_in_the_public_directory_stops_the_build(root, state):
    put(root, "xx", state=state, recheck=None)
    assert "private directory" in problems(root)
    out = run("build", root, "--out", root.parent / "site", code=2)
    assert f"xx.toml:8: state: state is '{state}'" in out.stderr
    assert not (root.parent / "site").exists()


def test_twenty_places_where_a_name_could_leak(root, private):
    """Every field of an open entry carries a canary; no byte of the site holds one."""
    put(root, "named")
    canaries = {
        key: f"canary{n:02d}x"
        for n, key in enumerate(
            ("implementation", "vendor", "versions", "at_stake", "verdict", "language", "reason",
             "disclosure", "credit", "notes")
        )
    }  # fmt: skip
    for n in range(6):
        put(
            private,
            f"canary{30 + n}x",
            state="open",
            recheck=None,
            source=f"https://canary{40 + n}x.example.org/",
            document=probe_document(reason="canary50x"),
            **canaries,
        )
    out = root.parent / "site"
    run("build", root, "--out", out, "--private", private, "--base-url", "https://r.example.org")
    published = {
        str(path.relative_to(out)): path.read_bytes() for path in out.rglob("*") if path.is_file()
    }
    assert len(published) > 8
    for path, content in published.items():
        assert b"canary" not in content, path
        assert "canary" not in path
    assert b"canary" not in (root / "tally.toml").read_bytes()
    assert json.loads(published["index.json"])["totals"]["counted_not_named"] == "6"


@pytest.mark.parametrize("count", [0, 1, 4])
def test_a_count_below_five_is_never_told(root, private, count):
    put(root, "named")
    for n in range(count):
        put(private, f"zqhush{n}", state="open", recheck=None)
    out = root.parent / "site"
    run("build", root, "--out", out, "--private", private)
    assert b"fewer than 5" in (out / "index.html").read_bytes()
    loaded = register.load(root, private)
    assert (loaded.tally.total, loaded.tally.spans) == (None, ())


def test_no_span_of_months_is_below_five_and_nothing_can_be_subtracted(root, private):
    months = ["2026-01"] * 5 + ["2026-02"] * 2 + ["2026-03"] * 3 + ["2026-04"] * 4
    for n, month in enumerate(months):
        put(private, f"h{n}", state="open", recheck=None, history=[(f"{month}-03", "open")])
    tally = register.load(root, private).tally

    assert tally.total == 14
    assert sum(n for *_, n in tally.spans) == 14
    assert min(n for *_, n in tally.spans) >= rules.K


def test_an_owner_who_does_not_want_a_row_gets_none(root, private):
    put(root, "xx", listing="not named")
    assert "may not be named" in problems(root)
    (root / "entries" / "xx.toml").unlink()
    put(private, "xx", listing="not named")
    assert register.load(root, private).items == []


# --- what a state needs -------------------------------------------------------------------------


def test_a_failed_self_check_is_no_evidence(root):
    put(root, "xx", document=samples.probe_document(proven=False, self_check=False))
    assert "self-check" in problems(root)


def test_a_run_that_proved_a_double_fire_cannot_be_a_verified_row(root):
    put(root, "xx", document=samples.probe_document())
    assert "proved a double-fire" in problems(root)


def test_a_missing_or_changed_evidence_file_stops_the_build(root):
    put(root, "xx")
    path = root / "evidence" / "xx.json"
    path.write_bytes(path.read_bytes() + b" ")
    assert "xx.toml" in problems(root)
    path.unlink()
    assert "xx.toml" in problems(root)


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("fix", None, "public fix"),
        ("fix", "https://example.org/o/r/tree/main", "commit"),
        ("reported", None, "needs this time"),
        ("fixed", "2026-09-01T10:00:00", "zone"),
        ("fixed", "2026-08-01T10:00:00Z", "before the report"),
    ],
)
def test_found_and_fixed_needs_its_proof(root, key, value, words):
    times = {"reported": "2026-09-01T09:00:00Z", "fixed": "2026-09-01T13:00:00Z", key: value}
    put_fixed(root, "xx", **times)
    assert words in problems(root)


def test_time_to_fix_crosses_zones_and_daylight_saving():
    def words(reported, fixed):
        values = tomllib.loads(f"a = {reported}\nb = {fixed}")
        return rules.fix_time(values["a"], values["b"])

    assert words("2026-09-01T23:30:00-07:00", "2026-09-02T09:00:00+02:00").words == "30 min"
    # The night on which Europe's clocks go back has 25 hours.
    assert words("2026-10-24T12:00:00+02:00", "2026-10-25T12:00:00+01:00").words == "25.0 h"
    assert words("2026-09-01", "2026-09-03T10:00:00Z").words == "about 2 days"
    assert words("2026-09-01", "2026-09-01").seconds is None


def test_the_fastest_fix_is_chosen_among_full_timestamps_only(root):
    put_fixed(root, "rough", "2026-09-01", "2026-09-01")
    put_fixed(root, "exact", "2026-09-01T09:00:00Z", "2026-09-02T09:00:00Z")
    entries = [item.entry for item in register.load(root).items]

    assert rules.fastest(entries)[0].id == "exact"


# --- history ------------------------------------------------------------------------------------


def test_a_published_history_line_never_changes_silently(root):
    put(root, "xx", history=[("2026-10-02", "verified-safe")])
    run("build", root, "--out", root.parent / "site")
    put(root, "xx", history=[("2026-10-03", "verified-safe")])
    assert "xx.toml" in problems(root) or "register.lock" in problems(root)
    put(root, "xx", history=[("2026-10-02", "verified-safe"), ("2026-11-02", "verified-safe")])
    register.load(root)


def test_an_entry_that_is_gone_is_told(root):
    put(root, "xx")
    run("build", root, "--out", root.parent / "site")
    (root / "entries" / "xx.toml").unlink()
    assert "register.lock" in problems(root)
    run("retire", root, "xx", code=2)


def test_an_observation_past_its_recheck_reads_like_one_that_was_ended(root, private):
    put(root, "past", recheck="2026-11-30")
    put(root, "ended", recheck="2027-01-01")
    put(private, "zqhush", state="open", recheck=None, ends="ended")
    loaded = register.load(root, private)
    files = site.build(loaded, TODAY)
    pages = [files[f"rows/{name}.html"].decode() for name in ("past", "ended")]
    for page in pages:
        assert "observation ended" in page
    for word in ("past", "ended"):
        pages = [page.replace(f"impl {word}", "impl").replace(f"{word}.", ".") for page in pages]


# --- the site -----------------------------------------------------------------------------------


def test_the_same_entries_give_the_same_bytes(root):
    put(root, "aa")
    put_fixed(root, "bb", "2026-09-01T09:00:00Z", "2026-09-01T13:00:00Z")
    first = site.build(register.load(root), TODAY, "https://r.example.org")
    again = site.build(register.load(root), TODAY, "https://r.example.org")

    assert first == again
    assert json.loads(first["index.json"])["schema"] == feeds.SCHEMA


def test_no_page_of_an_earlier_build_stays_and_a_foreign_folder_is_left_alone(root):
    put(root, "aa")
    out = root.parent / "site"
    run("build", root, "--out", out)
    (out / "old.html").write_text("stale")
    run("build", root, "--out", out)
    assert not (out / "old.html").exists()
    foreign = root.parent / "foreign"
    foreign.mkdir()
    (foreign / "theirs").write_text("xx")
    assert "not an earlier build" in run("build", root, "--out", foreign, code=2).stderr
    assert (foreign / "theirs").exists()


def test_badges_are_dated_and_worded_by_what_was_measured(root):
    put(root, "aa")
    badge = site.build(register.load(root), TODAY)["badges/aa.svg"].decode().lower()

    assert "2026" in badge
    for word in ("safe", "secure", "certified"):
        assert word not in badge


def test_without_a_base_url_nothing_points_to_a_host(root):
    put(root, "aa")
    files = site.build(register.load(root), TODAY)
    assert "sitemap.xml" not in files
    assert "badges/aa.json" not in files
    assert b"tag:" in files["feed.xml"]


def test_an_entry_with_a_wrong_key_names_key_and_line():
    entry, found = parse("xx.toml", 'schema = "fencekit.entry/1"\nid = "xx"\nstat = "open"\n')
    assert entry is None
    assert any(problem.line == 3 and problem.key == "stat" for problem in found)


def test_every_string_of_every_input_is_inert_in_a_real_browser(root, chromium, tmp_path):  # noqa: F811
    hostile = EVERYTHING.replace("\x00", "")
    put(
        root,
        "xx",
        document=probe_document(
            reason=hostile, commands={"this": hostile, "raw": hostile, "fenced": hostile}
        ),
        **dict.fromkeys(HOSTILE_KEYS, hostile),
    )  # fmt: skip
    out = tmp_path / "site"
    site.publish(site.build(register.load(root), TODAY), out)
    for path in ("index.html", "rows/xx.html"):
        for size in ("phone", "desktop"):
            with chromium.visit((out / path).as_uri(), size=size, scheme="dark") as seen:
                assert seen.ran() == []
                assert [url for url in seen.requests if not url.startswith("file:")] == []
                assert seen.overflow() == 0
                assert seen.axe() == []


def test_a_keepers_walk_in_five_commands(tmp_path):
    """init, add, (a person writes the verdict), check, build: a published row."""
    root, out = tmp_path / "register", tmp_path / "site"
    document = tmp_path / "probe.json"
    document.write_text(json.dumps(probe_document()))
    run("init", root)
    run("add", root, "--probe", document, "--id", "mine")
    draft = root / "entries" / "mine.toml"
    assert "verdict" in run("check", root, code=2).stderr
    text = draft.read_text()
    for key, value in {
        "vendor": "me", "at_stake": "a second charge", "state": "verified-safe",
        "verdict": "One effect was counted.",
    }.items():  # fmt: skip
        text = text.replace(f'{key} = ""', f'{key} = "{value}"')
    text = text.replace("# recheck = …", "recheck = 2027-06-01 #")
    draft.write_text(text)
    run("check", root)
    run("build", root, "--out", out)
    assert b"mine" in (out / "index.html").read_bytes()


def test_a_submission_becomes_a_draft(root, tmp_path):
    form = tmp_path / "form.toml"
    text = run("submit").stdout
    assert "money_path" in text
    assert "is empty" in run("submit", root, "--form", _write(form, text), code=2).stderr
    for key in ("implementation", "vendor", "money_path", "one_effect_command"):
        text = text.replace(f'{key} = ""', f'{key} = "a {key}"')
    text = text.replace('kind = ""', 'kind = "server"')
    run("submit", root, "--form", _write(form, text))
    assert len(list((root / "entries").iterdir())) == 1


def _write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def test_the_brief_is_for_the_owner_and_names_command_and_mechanism(private):
    put(private, "xx", state="open", recheck=None, document=samples.probe_document())
    text = run("brief", private / "entries" / "xx.toml").stdout

    assert "impl xx" in text
    assert "What would settle it" in text


def test_source_date_epoch_decides_which_rechecks_are_past(root):
    put(root, "aa", recheck="2026-11-30")
    out = root.parent / "site"
    for epoch, ended in (("1767225600", False), ("1798761600", True)):
        run("build", root, "--out", out, env={**os.environ, "SOURCE_DATE_EPOCH": epoch})
        assert (b"observation ended" in (out / "rows/aa.html").read_bytes()) is ended
