"""What a name of an outside package stands for: a client, a type, a part of an answer."""

from __future__ import annotations

from itertools import pairwise

from fencekit.scan import words
from fencekit.scan.facts import Call
from fencekit.scan.values import Env, Ext

FETCHES = frozenset({("get",), ("retrieve",), ("find",), ("fetch",)})
# Steps that only wait for what was asked: `retrieveMessageById(id).complete().delete()`.
WAITS = frozenset({"complete", "join", "block", "orElse", "orElseThrow", "unwrap", "await"})
READ_RESULT = ("Get", "List", "Search", "Find", "Fetch")


def part_of_answer(value: Ext, env: Env) -> bool:
    """Tell whether a call in Go works on what a read gave, or makes a value or an option.

    `api.GetHistory(ctx).Messages[0].BlockType()`, `slack.MsgOptionText(…)`, `rate.NewLimiter(…)`.
    """
    module = env.function.module
    if module is None or module.language != "go":
        return False
    parts = words.split(value.last)
    if parts[:1] == ("new",):
        return True
    if len(value.steps) == 1:  # a function or a type of a package: `githubv4.IssueState(text)`
        acts = words.verb_of(parts[0]) in ("adding", "declaring")
        plain = not acts or (parts[0] in words.NOUNS and len(parts) > 1)
        return plain or parts[0] == "convert" or bool({"option", "options"} & set(parts))
    for at, step in enumerate(value.steps[:-2]):
        if value.steps[at + 1] == "()" and step.startswith(READ_RESULT):
            return True
    return False


def fills_new(value: Ext) -> bool:
    """Tell whether a call puts something into a value that was just made: `new Form().add(x)`."""
    made = value.steps[-3:-1]
    if len(made) < 2 or made[1] != "()" or not made[0][:1].isupper():
        return False
    return bool(set(words.split(made[0])) & words.FILLED)


def acts_on_fetched(value: Ext, call: Call) -> bool:
    """Tell whether a call acts on one thing that a client was asked for by its id.

    `client.containers.get(name).stop()` does; `found.get("tags").remove(tag)` changes a list.
    """
    if value.last not in words.ACTS or value.steps[-2:-1] != ("()",) or len(value.steps) < 4:
        return False
    plain = value.last in ("delete", "remove", "save")
    if plain and any(a.name is None and not a.spread for a in call.args):
        return False
    called = [s for s, after in pairwise(value.steps[:-1]) if after == "()" and s not in WAITS]
    return words.split(called[-1])[:1] in FETCHES if called else False


def makes_client(parts: tuple[str, ...]) -> bool:
    """Tell whether a name only makes a client: `makeApiClient`, `newClient`."""
    makes = parts[0] in ("make", "new", "build", "init") and bool(set(parts[1:]) & words.CLIENT)
    return makes or parts in (
        ("create", "api", "client"), ("create", "client", "connection"), ("create", "transport")
    )  # fmt: skip


def configures(parts: tuple[str, ...]) -> bool:
    """Tell whether a name only sets up a client in this process: `SetBasicAuth`, `use_proxy`."""
    return parts[:1] in (("set",), ("use",)) and len(parts) > 1 and set(parts[1:]) <= words.SET_UP


def plain_noun(parts: tuple[str, ...]) -> bool:
    """Tell whether a name may name a thing as well as an act: `client.invite(code)` reads one."""
    if not parts:
        return False
    behind = words.verb_of(parts[0]) == "" and parts[0] not in words.LEADING
    alone = len(parts) == 1 or behind  # `client.audit_log(id)`
    many = parts[0] in words.NOUNS and parts[-1].endswith("s")  # `client.issueLabels()`
    reads = behind and len(parts) == 2  # `client.projectUpdate(id)` reads one, or makes one
    return (parts[-1] in words.NOUNS and alone) or many or reads


def sent_builder(value: Ext, name: str, call: Call, env: Env) -> bool:
    """Tell whether a call only carries out what a builder's earlier step says."""
    if name in ("createStatement", "executeQuery"):
        return True
    if name == "send" and not call.args:
        return "()" in value.steps
    module = env.function.module
    if module is not None and module.language == "java" and name in CARRIES_OUT and not call.args:
        return value.steps[-2:-1] == ("()",)
    asked = any(s.startswith(("query", "prepare", "sql")) for s in value.steps[:-1])
    if (
        len(value.steps) > 2 and value.steps[-2] == "()" and not call.args
    ):  # `events().list(…).execute()`
        asked = asked or bool(words.verb_of(value.steps[-3]))
    asked = asked or "prepareStatement" in value.steps
    return asked and name in ("execute", "run", "exec", "send", "executeUpdate", "executeBatch")


# Steps of Java's libraries that only send what the step before says: `ban(user).queue()`.
CARRIES_OUT = frozenset({"complete", "queue", "submit", "execute", "block", "subscribe", "join"})


def outside_type(value: Ext, env: Env) -> bool:
    """Tell whether a value is made by a Rust type that nothing here declares, as preludes give."""
    module = env.function.module
    rust = module is not None and module.language == "rust"
    return rust and value.steps[0][:1].isupper() and value.steps[0] not in RUST_TYPES


RUST_TYPES = frozenset({
    "Vec", "String", "Box", "Option", "Result", "Rc", "Arc", "Some", "Ok", "Err", "None", "Default",
    "Iterator", "HashMap", "BTreeMap", "HashSet", "Self",
})  # fmt: skip


# Methods of Rust's own texts and lists.
RUST_OWN = frozenset({
    "push_str", "insert_str", "copy_from_slice", "clone_from_slice", "extend_from_slice",
    "write_str", "write_fmt", "get_or_insert_with", "or_insert_with", "push_back", "push_front",
    "add_assign",
})  # fmt: skip


VALUES = frozenset({"builder", "options", "config", "settings", "filter", "metadata", "headers"})


MAKERS = frozenset({"new", "try", "from", "builder", "default", "with", "of", "open", "init"})


def makes_type(value: Ext, env: Env) -> bool:
    """Tell whether a call in Rust only makes a value: `Request::new(…)`, `.with_page(…)`."""
    module = env.function.module
    if module is None or module.language != "rust":
        return False
    own = [s for s in value.steps if s[:1].isupper()]
    named = set(words.split(own[-1])) if own else set()
    built = named & VALUES or "builder" in value.steps[:-1]
    if built and not {"build", "send"} & set(value.steps):
        return True
    if value.last.startswith("with_") or (
        value.last.startswith("set_") and value.steps.count("()") == 1 and not named & words.CLIENT
    ):
        return True  # an option of a value that was just made
    on_type = len(value.steps) > 1 and value.steps[-2][:1].isupper()
    made = on_type and "()" not in value.steps
    return made and bool(set(words.split(value.last)[:1]) & MAKERS)
