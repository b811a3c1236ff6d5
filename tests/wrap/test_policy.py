"""How tools are treated: the configuration, then hints, then names; precision before recall."""

from __future__ import annotations

import pytest

from fencekit.wrap.plan import config, table, treatments
from fencekit.wrap.policy import treat
from fencekit.wrap.rules import Rules, ToolKind, ToolRule
from fencekit.wrap.words import reads_only

READ, SET, APPEND, PASS = ToolKind.READ, ToolKind.SET, ToolKind.APPEND, ToolKind.PASS


def tool(name: str, **hints):
    return {"name": name, "annotations": hints} if hints else {"name": name}


@pytest.mark.parametrize(
    ("declared", "kind"),
    [
        (tool("anything", readOnlyHint=True), READ),
        (tool("delete_user", readOnlyHint=True), APPEND),
        (tool("delete_user", readOnlyHint=True, idempotentHint=True), SET),
        (tool("charge_card", idempotentHint=True), SET),
        (tool("get_user", readOnlyHint=False), APPEND),
        (tool("get_user", destructiveHint=False), APPEND),
        (tool("get_user", title="Get"), READ),
        (tool("get_user", openWorldHint=True), READ),
        (tool("get_user"), READ),
        (tool("mystery"), APPEND),
        ({"name": "mystery", "annotations": "hostile"}, APPEND),
    ],
)
def test_hints_decide_and_names_only_where_there_are_none(declared, kind):
    assert treat(declared["name"], declared, Rules()).kind is kind


def test_money_beside_idempotent_hint_is_told_and_not_overruled():
    made = treat("charge_card", tool("charge_card", idempotentHint=True), Rules())

    assert made.kind is SET
    assert "charge" in made.remark


def test_the_configuration_comes_first_exact_names_before_globs():
    rules = Rules(
        {"delete_*": ToolRule(kind=PASS), "delete_all": ToolRule(kind=APPEND)},
    )

    assert treat("delete_all", tool("delete_all", readOnlyHint=True), rules).kind is APPEND
    assert treat("delete_one", tool("delete_one"), rules).kind is PASS


def test_without_inference_everything_without_hints_is_fenced():
    rules = Rules(infer=False)

    assert treat("get_user", tool("get_user"), rules).kind is APPEND
    assert treat("get_user", tool("get_user", readOnlyHint=True), rules).kind is READ


def test_a_tool_that_was_never_listed_is_fenced():
    assert treat("get_user", None, Rules()).kind is APPEND


READERS = [
    "pods_list",
    "git_diff",
    "get_user",
    "listIssues",
    "search-code",
    "retrieve_balance",
    "pods_log",
    "get_logs",
    "db_stats",
    "top_processes",
    "server_info",
    "balance",
    "read_file",
    "list_refunds",
    "get_order",
    "describe_table",
    "git_log",
    "whoami",
    "list_payment_links",
    "get-email",
]
WRITERS = [
    "create_order",
    "get_or_create_user",
    "query",
    "run_sql",
    "fetch",
    "check_in",
    "exec_shell",
    "charge_card",
    "list_and_delete",
    "send_email",
    "log_event",
    "transfer",
    "refund_payment",
    "pay_invoice",
    "place_order",
    "add_to_list",
    "set_status",
    "write_file",
    "sync_logs",
    "buy",
    "execute_sql",
    "batch_get",
    "payout",
    "withdraw",
    "wallet_send",
    "search_and_replace",
    "create_info",
    "updateUser",
    "get_then_set",
]


@pytest.mark.parametrize("name", READERS)
def test_names_that_only_read(name):
    assert reads_only(name, "") is not None


@pytest.mark.parametrize("name", WRITERS)
def test_names_that_may_write_are_never_inferred_to_read(name):
    assert reads_only(name, "Get nothing but good.") is None


@pytest.mark.parametrize(
    ("name", "description", "reads"),
    [
        ("weather", "Returns the weather. Deletes nothing.", True),
        ("weather", "The weather. Returns it.", False),
        ("user_info", "Update the user's info.", False),
        ("account", "Lists the accounts.", True),
        ("payments", "Charge the card and get a receipt.", False),
    ],
)
def test_of_a_description_only_the_leading_verb_counts(name, description, reads):
    assert (reads_only(name, description) is not None) is reads


def test_the_plan_shows_the_fenced_tools_first_and_a_configuration_that_names_them():
    schema = {"type": "object", "required": ["order"]}
    tools = [
        tool("get_a"),
        {"name": "create a\n[x]", "inputSchema": schema},
        tool("b", idempotentHint=True),
    ]

    plan = treatments(tools, Rules())

    assert [t.kind for t in plan] == [APPEND, SET, READ]
    assert "\n[x]" not in table(plan)
    assert '[tools."create a\\n[x]"]' in config(plan, tools, {})
    assert '# intent = ["order"]' in config(plan, tools, {})
