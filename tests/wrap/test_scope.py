"""Which servers are "the same": the command, the folder, the account; a guess never admits."""

from __future__ import annotations

import pytest

from fencekit.core.errors import InvalidRequest
from fencekit.wrap.identity import Scope
from fencekit.wrap.scope import guessed_names, scope_of


def scope(*command: str, cwd: str = "/p", env: dict[str, str] | None = None, **more) -> Scope:
    return scope_of(command or ("npx", "-y", "k8s"), cwd, env or {}, **more)


def test_the_same_command_in_the_same_folder_is_one_scope():
    assert scope() == scope()
    assert scope().name.startswith("k8s@")


@pytest.mark.parametrize(
    "other",
    [
        scope("npx", "-y", "other"),
        scope("npx", "k8s", "-y"),
        scope("npx", "-y", "k8s", cwd="/q"),
        scope("/usr/bin/npx", "-y", "k8s"),
    ],
)
def test_another_word_or_folder_is_another_scope(other):
    assert other.name != scope().name


def test_only_dots_are_resolved_and_lexically():
    assert scope("x", "./a", cwd="/p") == scope("x", "../p/a", cwd="/p")
    assert scope("x", "./a", cwd="/p").name != scope("x", "a", cwd="/p").name
    assert scope("x", ".", cwd="/p").name != scope("x", "/p", cwd="/q").name


def test_a_named_scope_replaces_command_folder_and_guess_but_not_the_account():
    env = {"API_TOKEN": "t", "AWS_PROFILE": "prod"}
    one = scope("a", cwd="/p", env=env, name="shared")
    assert one == scope("b", cwd="/q", name="shared") == Scope("shared")

    prod = scope(env=env, name="shared", account_env=["AWS_PROFILE"])
    dev = scope(env={"AWS_PROFILE": "dev"}, name="shared", account_env=["AWS_PROFILE"])
    assert prod.name == dev.name
    assert prod.account != dev.account
    assert "prod" not in prod.account


def test_what_looks_like_a_credential_is_only_a_guess():
    a, b = scope(env={"GITHUB_TOKEN": "a"}), scope(env={"GITHUB_TOKEN": "b"})

    assert (a.name, a.account) == (b.name, b.account) == (scope().name, "")
    assert a.guess != b.guess
    assert "a" * 10 not in repr(a)
    assert scope(env={"GITHUB_TOKEN": "a"}, account_env=["GITHUB_TOKEN"]).guess == ""


def test_what_differs_between_hosts_of_one_account_is_no_credential():
    env = {
        "ANTHROPIC_API_KEY": "x",
        "SSH_AUTH_SOCK": "y",
        "ITERM_PROFILE": "z",
        "PATH": "/bin",
        "FENCEKIT_TOKEN": "t",
        "MONKEY": "m",
        "KEYBOARD": "k",
    }

    assert guessed_names(env) == []
    assert guessed_names({"STRIPE_SECRET_KEY": "s", "DB_PASSWORD": "d", "KUBECONFIG": "k"}) == [
        "DB_PASSWORD", "KUBECONFIG", "STRIPE_SECRET_KEY",
    ]  # fmt: skip


@pytest.mark.parametrize("name", ["", " ", "a b", "-x", "a/b", "x" * 101, "a\nb"])
def test_a_scope_is_a_name(name):
    with pytest.raises(InvalidRequest, match="--scope"):
        scope(name=name)


def test_an_account_variable_must_be_set():
    with pytest.raises(InvalidRequest, match="--account-env AWS_PROFILE"):
        scope(account_env=["AWS_PROFILE"])


def test_a_remote_server_is_its_address_wherever_the_proxy_runs():
    one = scope_of((), "/p", {}, url="https://example.com/mcp")

    assert one == scope_of((), "/q", {}, url="https://example.com/mcp")
    assert one.name != scope_of((), "/p", {}, url="https://example.com/other").name
