"""Front tokens, groups and forwarded credentials: who comes in, and whose results they get."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fencekit.wire.client import Target
from fencekit.wire.errors import HttpRefused
from fencekit.wrap import config
from fencekit.wrap.clients import EVERYBODY, Client, Guests, known
from fencekit.wrap.config import Config, ConfigError

from .test_front import CALL, front
from .test_relay import Shop, call, mark, modern, relay, session_of
from .test_stdio import count

ALICE, BOB = {"Authorization": "Bearer alice-s3cret"}, {"Authorization": "Bearer bob-s3cret"}
FORWARDING = Guests(forward_auth=True)


def headers(**given: str) -> dict[bytes, bytes]:
    return {k.lower().replace("_", "-").encode(): v.encode() for k, v in given.items()}


@pytest.mark.parametrize(
    ("given", "who"),
    [({}, None), ({"Authorization": "Bearer tA"}, "group:a"), ({"Authorization": "tA"}, None),
     ({"Authorization": "Basic tA"}, None), ({"Authorization": "bearer  tB"}, ""),
     ({"Authorization": "Bearer "}, None), ({"Fencekit_Token": "tA"}, "group:a"),
     ({"Fencekit_Token": "no", "Authorization": "Bearer tA"}, None)],
)  # fmt: skip
def test_a_front_token_lets_in_and_its_group_says_as_whom(given, who):
    guests = Guests((Client("tA", "a", "a"), Client("tB", "b")))
    assert guests.admit(headers(**given)) == who


def test_without_clients_everybody_is_one():
    assert EVERYBODY.admit({}) == EVERYBODY.admit(headers(Authorization="Bearer x")) == ""


def test_a_forwarded_credential_is_known_by_a_digest_of_all_of_it():
    seen = {
        FORWARDING.admit(headers(**one))
        for one in (ALICE, BOB, {}, {"Authorization": "alice-s3cret"})
    }
    assert len(seen) == 4
    assert "s3cret" not in str(seen)


def test_a_forwarded_credential_does_not_let_anybody_in():
    guests = Guests((Client("door", "d"),), forward_auth=True)
    assert guests.admit(headers(Authorization="Bearer door")) is None
    assert guests.admit(headers(Authorization="Bearer x", Fencekit_Token="door"))


def test_the_claims_inside_a_credential_are_not_believed():
    """Two tokens that say the same `sub` are two principals: nobody here can verify either."""
    claims = "eyJhbGciOiJub25lIn0.eyJzdWIiOiJhbGljZSJ9."
    one, two = (headers(Authorization=f"Bearer {claims}{sign}") for sign in ("a", "b"))
    assert FORWARDING.admit(one) != FORWARDING.admit(two)


def test_only_the_operators_word_lets_a_credential_change():
    kept = Guests((Client("t", "n", "g", one_account=True),), forward_auth=True)
    one, two = (headers(Fencekit_Token="t", **who) for who in (ALICE, BOB))
    assert kept.admit(one) == kept.admit(two) == "group:g"
    split = Guests((Client("t", "n", "g"),), forward_auth=True)
    assert split.admit(one) != split.admit(two)


def test_tokens_come_from_variables_and_files_and_are_never_shown(tmp_path, monkeypatch):
    monkeypatch.setenv("ONE", "t1")
    (tmp_path / "two").write_text("t2\n")
    made = known(
        {"x": {"token_file": str(tmp_path / "two"), "group": "g"}}, ["ONE"], []
    )  # fmt: skip
    assert [(c.token, c.group) for c in made] == [("t2", "g"), ("t1", "")]
    assert "t1" not in repr(made)


def test_tokens_that_are_missing_empty_or_shared_are_told(tmp_path, monkeypatch):
    monkeypatch.setenv("ONE", "t1")
    (tmp_path / "empty").write_text("\n")
    with pytest.raises(ValueError, match=r"clients\.x have the same token"):
        known({"x": {"token_env": "ONE"}}, ["ONE"], [])
    with pytest.raises(ValueError, match="MISSING is not set"):
        known({"x": {"token_env": "MISSING"}}, [], [])
    with pytest.raises(ValueError, match="empty"):
        known({}, [], [tmp_path / "empty"])


@pytest.mark.parametrize(
    ("text", "said"),
    [('[clients.a]\ntoken_env = "T"\ntoken_file = "f"', ":2: clients.a.token_env or token_file"),
     ('[clients.a]\ngroup = "g"', ":1: clients.a.token_env or token_file"),
     ('[clients.a]\ntoken_env = "T"\n\ngroup = "a/b"', ":4: clients.a.group must be a name"),
     ('[clients.a]\ntoken = "secret"', ":2: clients.a.token is not known; did you mean token_env?"),
     ('[clients.a]\ntoken_env = "T"\none_account = true', ":3: clients.a.one_account needs group"),
     ('[clients.a]\ntoken_env = "T"\ngroup = "g"\none_account = 1', ":4: clients.a.one_account"),
     ("clients = 1", "clients must be a table"),
     ("[clients]\na = 1", "clients.a.a must be a table")],
)  # fmt: skip
def test_a_client_that_cannot_be_read_is_told_with_its_line(text, said):
    with pytest.raises(ConfigError) as caught:
        config.parse(text.encode(), Path("f.toml"))
    assert said in str(caught.value)
    assert "secret" not in str(caught.value)


def test_a_project_file_may_name_no_client():
    mine, theirs = Config(), config.parse(b'[clients.a]\ntoken_env = "T"', Path("p.toml"))
    mine.tighten(theirs)
    assert mine.clients == {}
    assert "clients.a" in mine.left_out[0]


def test_each_credential_runs_once_and_gets_only_its_own_result(tmp_path):
    class Echo(Shop):
        def charge(self, it, message):
            it.answer(message, {"content": [{"type": "text", "text": it.headers["authorization"]}]})

    shop = Echo()
    with relay(tmp_path, shop, guests=FORWARDING) as (door, _):
        bodies = []
        for who in (ALICE, BOB, ALICE, BOB):
            message, given = modern(call(1))
            bodies.append(door.send(message, **given, **who)[2])
        bare = door.send(call(1))

    texts = [json.loads(body)["result"]["content"][0]["text"] for body in bodies]
    assert texts == ["Bearer alice-s3cret", "Bearer bob-s3cret"] * 2
    assert [bool(mark(body)) for body in bodies] == [False, False, True, True]
    assert bare[0] == 200
    assert len(shop.effects) == 3
    # The proxy's own look at the tools speaks as the client for whom it looks.
    speaks = {up.get("authorization") for _, up, m in shop.seen if m["method"] == "tools/list"}
    assert speaks == {ALICE["Authorization"], BOB["Authorization"], None}


def test_a_credential_is_in_no_record(tmp_path):
    with relay(tmp_path, Shop(), guests=FORWARDING) as (door, _):
        door.send(call(1), **ALICE)
    kept = b"".join(path.read_bytes() for path in tmp_path.glob("l.db*") if path.is_file())
    assert b"charge_card" in kept
    assert b"s3cret" not in kept


def test_a_session_belongs_to_the_credential_that_opened_it(tmp_path):
    class Cut(Shop):
        def charge(self, it, message):
            it.sse('id: e1\ndata: {"jsonrpc":"2.0","id":1,"result":{"content":[]}}\n\n')

    shop = Cut()
    with relay(tmp_path, shop, guests=FORWARDING) as (door, _):
        session = session_of(door, **ALICE)
        assert door.send(call(1), Mcp_Session_Id=session, **ALICE)[0] == 200
        before = len(shop.seen)
        for who in (BOB, {}):
            back = {"Mcp_Session_Id": session, "Last_Event_ID": "e1"}
            assert door.send(b"", method="GET", **back, **who)[0] == 404
            assert door.send(call(2), Mcp_Session_Id=session, **who)[0] == 404
        assert len(shop.seen) == before


def test_the_fronts_token_stays_in_front_of_a_forwarded_credential(tmp_path):
    shop = Shop()
    guests = Guests((Client("d00r", "d"),), forward_auth=True)
    with relay(tmp_path, shop, guests=guests) as (door, _):
        assert door.send(call(1), **ALICE)[0] == 401
        assert door.send(call(1), Fencekit_Token="d00r", **ALICE)[0] == 200
    assert {up["authorization"] for _, up, _ in shop.seen} == {ALICE["Authorization"]}
    assert "d00r" not in str(shop.seen)


def test_what_the_server_says_of_a_credential_reaches_its_client(tmp_path):
    class Closed(Shop):
        def __call__(self, it, message):
            if it.headers.get("authorization") is None:
                it.json(b"", 401, WWW_Authenticate='Bearer resource_metadata="https://x/"')
            else:
                super().__call__(it, message)

    shop = Closed()
    with relay(tmp_path, shop, guests=FORWARDING) as (door, _):
        ask = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {}}
        for message in (ask, call(1)):
            status, given, _ = door.send(message)
            assert status == 401
            assert "resource_metadata" in given["www-authenticate"]
        assert door.send(call(1), **ALICE)[0] == 200
    assert len(shop.effects) == 1


def test_clients_of_one_group_share_and_those_of_another_do_not(tmp_path, monkeypatch):
    names = ("ANN", "AMY", "BEN", "NIL", "NUL")
    for name in names:
        monkeypatch.setenv(name, f"token-of-{name}")
    file = tmp_path / "mine.toml"
    groups = {"ANN": 'group = "a"', "AMY": 'group = "a"', "BEN": 'group = "b"', "NIL": ""}
    file.write_text(
        "".join(f'[clients.{n.lower()}]\ntoken_env = "{n}"\n{g}\n' for n, g in groups.items())
    )
    options = ("--config", str(file), "--front-token-env", "NUL")
    replayed = []
    with front(tmp_path, *options) as (url, _):
        for era in ("modern", "legacy"):
            for name in names:
                given = {"Authorization": f"Bearer token-of-{name}"}
                client = Target(url=url, era=era, headers=given).connect()
                answer = client.request("tools/call", CALL).result
                replayed.append("_meta" in answer and "fencekit/outcome" in answer["_meta"])
                client.close()

    assert replayed == [False, True, False, False, True, *[True] * 5]
    assert count(tmp_path / "effects") == 3


def test_a_session_before_a_child_belongs_to_the_group_that_opened_it(tmp_path, monkeypatch):
    monkeypatch.setenv("ANN", "t-ann")
    monkeypatch.setenv("BEN", "t-ben")
    file = tmp_path / "mine.toml"
    file.write_text(
        '[clients.ann]\ntoken_env = "ANN"\ngroup = "a"\n'
        '[clients.ben]\ntoken_env = "BEN"\ngroup = "b"\n'
    )
    with front(tmp_path, "--config", str(file)) as (url, _):
        ann = Target(url=url, era="legacy", headers={"Authorization": "Bearer t-ann"}).connect()
        ben = Target(url=url, era="legacy", headers={"Authorization": "Bearer t-ben"}).connect()
        ben.carrier.endpoint.session_id, own = (
            ann.carrier.endpoint.session_id,
            ben.carrier.endpoint.session_id,
        )
        with pytest.raises(HttpRefused) as caught:
            ben.request("tools/call", CALL)
        ben.carrier.endpoint.session_id = own
        assert ann.list_tools()
        assert ben.list_tools()
        ann.close()
        ben.close()

    assert caught.value.status == 404
    assert count(tmp_path / "effects") == 0


@pytest.mark.parametrize(
    ("options", "said"),
    [(["--forward-auth", "--", "true"], "needs --url and --http"),
     (["--forward-auth", "--url", "http://127.0.0.1:9/"], "needs --url and --http"),
     (["--forward-auth", "--url", "http://127.0.0.1:9/", "--http", "127.0.0.1:0",
       "--header", "authorization: x"], "exclude each other"),
     (["--one-session", "--url", "http://127.0.0.1:9/", "--http", "127.0.0.1:0"], "--one-session"),
     (["--http", "127.0.0.1:0", "--front-token-env", "NOT_SET_ANYWHERE", "--", "true"],
      "NOT_SET_ANYWHERE")],
)  # fmt: skip
def test_options_that_contradict_each_other_are_told(options, said):
    from click.testing import CliRunner

    from fencekit.cli.wrap import command

    result = CliRunner().invoke(command, ["--ledger", "memory:", *options])
    assert result.exit_code == 2
    assert said in result.output
