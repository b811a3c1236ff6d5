"""Work is shared and bounded: values made of themselves, long lists, circles, twins of loops."""

from __future__ import annotations

import textwrap

from fencekit.scan import engine
from fencekit.scan.evaluate import MAX_TEXT, Evaluator
from fencekit.scan.languages import language_for
from fencekit.scan.parse import index_file, lower_module, parse
from fencekit.scan.project import Project
from fencekit.scan.reach import reach
from fencekit.scan.scopes import scope_of
from fencekit.scan.values import MAX_ITEMS, Const, Func, Seq


def module_of(text: str):
    """Return a lowered module, and the evaluator of a project that holds only it."""
    source = textwrap.dedent(text).encode()
    language = language_for("m.py")
    assert language is not None
    tree = parse(source, language)
    facts = {"m.py": index_file("m.py", source, language, tree)}
    module = lower_module("m.py", source, language, tree)
    return module, Evaluator(Project(facts, lambda _path: module))


def named(module, name: str):
    """Return a function of a module by name."""
    return next(f for f in scope_of(module.top).nested if f.name == name)


def test_a_text_that_is_made_of_itself_ends():
    module, ev = module_of("""
        def build(items):
            line = "start"
            rows = ["a" * 3, "b"]
            for row in rows:
                line = f"{line} {row} {line}"
                rows = [f"{line}-{r}-{row}" for r in rows for row in rows]
            return line
    """)
    ev.fresh(20_000)
    env = ev.open_env(named(module, "build"))

    found = ev.eval(scope_of(env.function).returns[0], env)

    assert found
    assert ev.steps < 5_000
    assert all(len(str(v.value)) <= MAX_TEXT for v in found if isinstance(v, Const))


def test_a_list_is_cut_where_nobody_writes_that_many():
    assert len(Seq([Const(i) for i in range(MAX_ITEMS + 9)]).items) == MAX_ITEMS
    assert Seq([Const(i) for i in range(MAX_ITEMS + 9)]).open
    assert not Seq([Const(1)]).open


def test_what_an_expression_hangs_on_is_its_parameters_and_loops():
    module, _ = module_of("""
        def handler(a, b):
            base = "https://x"
            url = base + a
            for item in load():
                both = (item, url)
            later = lambda: a
            return both
    """)
    function = named(module, "handler")
    names = scope_of(function).names
    a, b = function.params

    def hangs(name: str):
        value = names[name][0].value
        assert value is not None
        return reach(function, value)

    assert hangs("base") == frozenset()
    assert hangs("url") == {id(a)}
    assert hangs("both") == {id(a), id(names["item"][0].value)}
    assert hangs("later") is None
    assert id(b) not in (hangs("both") or ())


def test_what_no_argument_changes_is_evaluated_once_for_all_calls():
    module, ev = module_of("""
        def settings():
            return dict(url="https://x")

        def send(verb):
            config = settings()
            return call(verb, config)
    """)
    send = named(module, "send")
    config = scope_of(send).names["config"][0].value
    verb = scope_of(send).returns[0]
    assert config is not None
    one, two = (
        ev.enter(Func(send), [[Const(v)]], {}, None) for v in ("GET", "POST")
    )  # fmt: skip

    assert ev.eval(config, one) is ev.eval(config, two)
    assert ev.eval(verb, one) is not ev.eval(verb, two)


def test_modules_that_import_from_each_other_end(tmp_path):
    (tmp_path / "server.py").write_text(
        "from mcp.server.fastmcp import FastMCP\nfrom a import push\nmcp = FastMCP('x')\n"
        "@mcp.tool()\ndef send_note(text: str):\n    return push(text)\n",
        "utf-8",
    )
    (tmp_path / "a.py").write_text("from b import push\n", "utf-8")
    (tmp_path / "b.py").write_text("from a import push\n", "utf-8")

    made = engine.scan(tmp_path)

    assert [t["name"] for t in made["tools"]] == ["send_note"]


def test_a_wide_helper_leaves_its_caller_the_steps_for_the_write(tmp_path):
    wide = "\n".join(
        f"def look{i}(x):\n" + "    note(x)\n" * 60 + f"    return look{i + 1}(x)\n"
        for i in range(100)
    )
    begins = "\n".join(f"    look{i}('{i}')" for i in range(0, 100, 2))
    (tmp_path / "server.py").write_text(
        "import httpx\nfrom mcp.server.fastmcp import FastMCP\nmcp = FastMCP('x')\n"
        f"{wide}\ndef look100(x):\n    return x\n\n"
        f"def check(name):\n{begins}\n\n"
        "@mcp.tool()\ndef pay(name: str):\n    check(name)\n"
        "    return httpx.post('https://api.example.org/payments', json={'to': name})\n"
    )

    (tool,) = engine.scan(tmp_path)["tools"]

    assert tool["candidate"]
    assert [w["what"] for w in tool["writes"]] == ["HTTP POST"]
