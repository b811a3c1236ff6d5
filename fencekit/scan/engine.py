"""Scans one repository: walk, parse, find tools, link, and hand back the document.

Nothing of the repository is executed or imported, nothing leaves the machine.
"""

from __future__ import annotations

import contextlib
import gc
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fencekit.scan import document, siblings, words
from fencekit.scan.candidates import Row, judge
from fencekit.scan.clients import Clients
from fencekit.scan.documents import Documents
from fencekit.scan.evaluate import Evaluator
from fencekit.scan.facts import FileFacts, Module
from fencekit.scan.languages import language_for
from fencekit.scan.link import Walker
from fencekit.scan.operated import by_operation
from fencekit.scan.packages import packages_of
from fencekit.scan.parse import ParseTimeoutError, index_file, lower_module, parse
from fencekit.scan.project import Project
from fencekit.scan.tools import Finder
from fencekit.scan.toolspec import Tool, holds_services, is_model
from fencekit.scan.values import Const, Func, Input, Value
from fencekit.scan.walk import Skipped, Tree, read_source, walk
from fencekit.scan.walked import Walked

MAX_UNKNOWNS = 200
TOO_DEEP = "nested too deeply to be read"
STEPS_PER_WALK = 100_000  # evaluations for one tool
SECOND_LOOK = 4  # times as many, where that did not do and the tool's name says that it writes


@dataclass(slots=True)
class Options:
    """What a scan is told: patterns to bring back, processes to use, a progress callback."""

    include: tuple[str, ...] = ()
    jobs: int = 1
    progress: Callable[[int, int], None] | None = None


@dataclass(slots=True)
class Sources:
    """The files of one repository as indexed."""

    tree: Tree
    facts: dict[str, FileFacts] = field(default_factory=dict)
    skipped: list[Skipped] = field(default_factory=list)


def index_path(root: Path, path: str) -> tuple[FileFacts | None, str]:
    """Index one file; the second part says why it could not be."""
    language = language_for(path)
    if language is None:
        return None, "no grammar"
    source, why = read_source(root / path)
    if why:
        return None, why
    try:
        return index_file(path, source, language, parse(source, language)), ""
    except ParseTimeoutError:
        return None, "took too long to parse"
    except (RecursionError, MemoryError, ValueError) as error:
        return None, f"could not be parsed ({type(error).__name__})"


def _index_many(root: str, paths: list[str]) -> list[tuple[str, FileFacts | None, str]]:
    with rare_collections():
        return [(path, *index_path(Path(root), path)) for path in paths]


def index(tree: Tree, options: Options) -> Sources:
    """Index all source files, in this process or in several."""
    made = Sources(tree)
    paths = tree.sources
    done = 0
    if options.jobs > 1 and len(paths) > 200:
        size = max(20, len(paths) // (options.jobs * 8))
        batches = [paths[i : i + size] for i in range(0, len(paths), size)]
        with ProcessPoolExecutor(options.jobs) as pool:
            for found in pool.map(_index_many, [str(tree.root)] * len(batches), batches):
                done += len(found)
                _take(made, found)
                if options.progress is not None:
                    options.progress(done, len(paths))
        return made
    for path in paths:
        _take(made, [(path, *index_path(tree.root, path))])
        done += 1
        if options.progress is not None and (done % 50 == 0 or done == len(paths)):
            options.progress(done, len(paths))
    return made


def _take(made: Sources, found: list[tuple[str, FileFacts | None, str]]) -> None:
    for path, facts, why in found:
        if facts is None:
            made.skipped.append(Skipped(path, why))
        else:
            made.facts[path] = facts


def loader(root: Path) -> Callable[[str], Module | None]:
    """Return what lowers a module of a repository; None where it cannot be."""

    def load(path: str) -> Module | None:
        language = language_for(path)
        if language is None:
            return None
        source, why = read_source(root / path)
        if why:
            return None
        try:
            return lower_module(path, source, language, parse(source, language))
        except (ParseTimeoutError, RecursionError):
            return None

    return load


@contextlib.contextmanager
def rare_collections() -> Iterator[None]:
    """Let the garbage collector look less often: a scan makes much and drops little of it."""
    before = gc.get_threshold()
    gc.set_threshold(200_000, 20, 20)
    try:
        yield
    finally:
        gc.set_threshold(*before)


def scan(path: Path, options: Options | None = None) -> dict[str, Any]:
    """Return the scan document of one repository (or one file)."""
    with rare_collections():
        return _scan(path, options or Options())


def _scan(path: Path, options: Options) -> dict[str, Any]:
    sys.setrecursionlimit(max(sys.getrecursionlimit(), 8000))  # `MAX_NESTED` evaluations fit
    tree = walk(path, options.include)
    sources = index(tree, options)
    project = Project(
        sources.facts,
        loader(tree.root),
        packages_of(tree.root, sources.facts),
        Documents(tree.root, tree.data),
    )
    ev = Evaluator(project)
    finder = Finder(ev)
    walks: Walks = {}
    clients = Clients(ev)
    rows = [row_of(ev, tool, walks, clients) for tool in finder.find()]
    siblings.compare(rows)
    unknowns = [
        {
            "name": name,
            "file": file,
            "line": max(line, 1),
            "reason": "several functions bear this name",
        }
        for row in rows
        for name, file, line in row.walked.unknowns
    ]
    unknowns += [
        {"name": name or "(top level)", "file": file, "line": line, "reason": TOO_DEEP}
        for name, file, line in [*project.cut(), *(("", f, 1) for f in finder.cut)]
    ]
    unknowns = [dict(t) for t in {tuple(sorted(u.items())): u for u in unknowns}]
    partial = [
        {"path": p, "ranges": [list(r) for r in f.partial]}
        for p, f in sorted(sources.facts.items())
        if f.partial
    ]
    skipped = sorted([*tree.skipped, *sources.skipped], key=lambda s: s.path)
    return document.build(
        rows,
        str(path),
        commit_of(tree.root),
        [{"path": s.path, "reason": s.reason} for s in skipped],
        partial,
        unknowns[:MAX_UNKNOWNS],
        {"writes": [], "guards": [], "retries": []},
        len(sources.facts),
    )


# Walks by what they depend on. Twins share one; the handler is kept so that its id stays its own.
Walks = dict[tuple[object, ...], tuple[Func, Walked]]


def row_of(ev: Evaluator, tool: Tool, walks: Walks, clients: Clients) -> Row:
    """Walk from one tool's handler, unless its twin's walk is known, and judge what was found."""
    if tool.handler is None:
        return judge(tool, by_operation(tool, Walked()))
    func = tool.handler
    ids = (id(func.function), id(func.closure), id(func.bound_to))
    key = (*ids, tool.name, tool.dispatch, tool.data)
    if key not in walks or func.given:
        walks[key] = (func, walk_of(ev, tool, func))
        clients.add(walks[key][1])
    return judge(tool, by_operation(tool, walks[key][1]))


def walk_of(ev: Evaluator, tool: Tool, handler: Func) -> Walked:
    """Return what is reached from a tool's handler."""
    walker = Walker(ev, tool.name)
    _walk(walker, ev, tool, handler, STEPS_PER_WALK)
    if walker.short and not walker.found.hits and words.writes_by_name(tool.name):
        walker = Walker(ev, tool.name, SECOND_LOOK)
        _walk(walker, ev, tool, handler, STEPS_PER_WALK * SECOND_LOOK)
    return walker.found


def _walk(walker: Walker, ev: Evaluator, tool: Tool, handler: Func, steps: int) -> None:
    ev.fresh(steps)
    try:
        walker.walk(handler, entry_env(ev, tool), ())
    except RecursionError:
        walker.found.cut.append((tool.file, tool.line))


def entry_env(ev: Evaluator, tool: Tool) -> Any:
    """Return the activation of a handler whose parameters are the tool's own input."""
    func = tool.handler
    assert func is not None
    function = func.function
    params = list(function.params)
    if (
        params
        and function.owner is not None
        and not function.static
        and params[0].name in ("self", "cls", "&self", "&mut self")
    ):
        params = params[1:]
    file = function.module.path if function.module else tool.file
    positional: list[list[Value]] = []
    for i, param in enumerate(params):
        given: Value = Input(
            param.name, tool.name if tool.dispatch else "", file=file, line=param.line
        )
        if tool.dispatch and i == 0 and param.name in ("name", "tool_name", "toolName", "tool"):
            given = Const(tool.name, file=file, line=param.line)
        typed = ev.from_type(param.type_text, ev.open_env(function)) if param.type_text else []
        useful = [v for v in typed if not is_model(v) or holds_services(ev, v)]
        positional.append(useful if useful and not tool.dispatch else [given])
    return ev.enter(func, positional, {}, None)


def commit_of(root: Path) -> str | None:
    """Return the commit a checkout is at, read from its git folder, or None."""
    head = root / ".git" / "HEAD"
    try:
        text = head.read_text("utf-8").strip()
        if text.startswith("ref: "):
            ref = root / ".git" / text[5:]
            text = ref.read_text("utf-8").strip() if ".." not in text else ""
    except (OSError, UnicodeDecodeError):
        return None
    return text if len(text) == 40 else None
