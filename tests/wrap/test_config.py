"""`fencekit.toml`: read with messages that name key and line, and never a way around the fence."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from fencekit.cli.main import cli
from fencekit.wrap import config
from fencekit.wrap.config import Config, ConfigError, seconds
from fencekit.wrap.rules import ToolKind
from fencekit.wrap.trust import config_folder, load

PATH = Path("/x/fencekit.toml")
GUIDE = Path(__file__).parent.parent.parent / "docs" / "wrap.md"


def parsed(text: str) -> Config:
    return config.parse(text.encode(), PATH)


def test_the_documented_spelling_is_read():
    clients, guide = (
        block.split("```")[0] for block in GUIDE.read_text(encoding="utf-8").split("```toml\n")[1:]
    )
    assert set(parsed(clients).clients) == {"ann", "ben"}
    rules = parsed(guide + '[tools."delete_*"]\nkind = "pass"').rules()
    payment = rules.of("create_payment")

    assert payment.kind is ToolKind.APPEND
    assert payment.intent == ("order", "/customer/id")
    assert payment.replay_for == 86_400
    assert payment.quiet_replay == 120
    assert payment.reconcile is not None
    assert payment.reconcile.args == {"order": "$.order"}
    assert rules.of("delete_all").kind is ToolKind.PASS
    assert rules.undone_by("cancel_payment", ())[0][0] == "create_payment"


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ('[tools.a]\nkind = "apend"', 2, "must be one of read, set, append, pass"),
        ('[tools.a]\n\nkid = "append"', 3, "did you mean kind?"),
        ('lease = "soon"', 1, "no length of time"),
        ("[tools.a]\nlease = 0", 2, "no length of time"),
        ("[tools.a]\nintent = 3", 2, "a list of texts"),
        ('[tools.a]\nkind = "append"\nundone_by = ["b"]', 3, "needs intent"),
        ("[tools.a]\nreconcile = { tool = 'b' }", 2, "tool, args and found"),
        ('[tools.b]\nkind = "read"\n[tools.a]\nkind = 3', 4, "must be one of"),
    ],
)
def test_what_is_wrong_is_named_with_its_line(text, line, words):
    with pytest.raises(ConfigError) as caught:
        parsed(text)

    assert f"/x/fencekit.toml:{line}: " in str(caught.value)
    assert words in str(caught.value)


def test_broken_toml_names_the_file_and_the_line():
    with pytest.raises(ConfigError, match=r"fencekit.toml: .*line 2"):
        parsed("a = 1\nb = ]\n")


@pytest.mark.parametrize(("text", "made"), [("90", 90), (90, 90), ("1.5h", 5400), ("20ms", 0.02)])
def test_lengths_of_time(text, made):
    assert seconds(text) == made


@pytest.mark.parametrize(
    "loosening",
    [
        '[tools."*"]\nkind = "pass"',
        '[tools."*"]\nkind = "read"',
        '[tools.x]\nkind = "set"',
        '[tools.x]\nignore = ["order"]',
        '[tools.x]\nintent = ["order"]',
        '[tools.x]\ndefinitive = [""]'.replace('""', '"e"'),
        '[tools.x]\nreplay_for = "1s"',
        'replay_for = "1s"',
        'quiet_replay = "9d"',
        'ledger = "memory:"',
        'scope = "elsewhere"',
        'account_env = ["HOME"]',
        'meta_keys = ["x"]',
        'infer = "on"',
        '[tools.x]\nreconcile = { tool = "t", args = {}, found = "$.n" }',
    ],
)
def test_a_file_of_a_cloned_repository_cannot_loosen_until_it_is_trusted(tmp_path, loosening):
    path = tmp_path / "fencekit.toml"
    path.write_text(loosening)
    below = tmp_path / "a" / "b"
    below.mkdir(parents=True)

    before = load(None, below)
    assert before.rules() == Config().rules()
    assert before.top == {}
    assert "fencekit trust" in before.left_out[0]

    made = CliRunner().invoke(cli, ["trust", str(path)])
    assert made.exit_code == 0, made.output
    after = load(None, below)
    assert after.left_out == []
    assert after.rules() != Config().rules() or after.top != {}

    path.write_text(loosening + "\n")
    assert load(None, below).left_out != []


def test_a_file_of_a_cloned_repository_may_tighten(tmp_path):
    (tmp_path / "fencekit.toml").write_text(
        'infer = "off"\nnear_duplicates = "warn"\n[tools.get_x]\nkind = "append"\nreplay_for = "9d"'
    )

    made = load(None, tmp_path)

    assert made.left_out == []
    assert not made.rules().infer
    assert made.rules().of("get_x").kind is ToolKind.APPEND
    assert made.rules().of("get_x").replay_for == 9 * 86_400


def test_tightening_keeps_what_the_users_own_file_says(tmp_path):
    config_folder().mkdir(parents=True)
    own = '[tools."create_*"]\nkind = "append"\nintent = ["order"]'
    (config_folder() / "fencekit.toml").write_text(own)
    (tmp_path / "fencekit.toml").write_text('[tools.create_x]\nreplay_for = "9d"')

    rule = load(None, tmp_path).rules().of("create_x")

    assert rule.intent == ("order",)
    assert rule.replay_for == 9 * 86_400


def test_flags_come_before_files():
    made = parsed('lease = "5s"\n[tools.a]\nlease = "7s"')

    assert made.rules(lease=9.0).default.lease == 9
    assert made.rules(lease=9.0).of("a").lease == 7
    assert made.rules().default.lease == 5


def test_wrap_refuses_a_broken_file_before_anything_starts(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text("[tools.a]\nkind = 1")

    made = CliRunner().invoke(cli, ["wrap", "--config", str(path), "--", "true"])

    assert made.exit_code == 2
    assert f"{path}:2: tools.a.kind" in made.output.replace("\n", "")
