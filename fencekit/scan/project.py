"""The repository as one thing: lowered modules by path, names by where they are defined.

Resolves import texts to files of the repository: relative and dotted (Python), relative with the
usual suffixes and aliases (JavaScript), by folder (Go), by module path (Rust), by class (Java).
"""

from __future__ import annotations

import posixpath
from collections import defaultdict
from collections.abc import Callable, Iterator

from fencekit.scan.documents import Documents
from fencekit.scan.facts import Class, FileFacts, Function, Import, Module
from fencekit.scan.packages import GO_MODULE
from fencekit.scan.scopes import scope_of

JS_SUFFIXES = (".ts", ".tsx", ".mts", ".js", ".jsx", ".mjs", ".cjs", ".cts")
JS_LANGUAGES = frozenset({"javascript", "typescript", "tsx"})
PACKAGE_LANGUAGES = frozenset({"go", "java"})  # files of one folder share their names


class Project:
    """All files of one repository, lowered when asked for.

    `load` turns a path into a lowered module, or None where it cannot be read or parsed.
    """

    def __init__(
        self,
        facts: dict[str, FileFacts],
        load: Callable[[str], Module | None],
        packages: dict[str, str] | None = None,
        documents: Documents | None = None,
    ) -> None:
        """Index the facts of all files by the names they define and call.

        `packages` says in which folder a package of this repository lies, by the name it is
        imported by; `documents` reads the data files that code names.
        """
        self.facts = facts
        self.documents = documents or Documents()
        self._packages = packages or {}
        self._load = load
        self._modules: dict[str, Module | None] = {}
        self.functions: dict[str, list[str]] = defaultdict(list)
        self.classes: dict[str, list[str]] = defaultdict(list)
        self.callers: dict[str, list[str]] = defaultdict(list)
        self.folders: dict[str, list[str]] = defaultdict(list)
        self.marked: dict[str, list[str]] = defaultdict(list)
        self.by_stem: dict[str, list[str]] = defaultdict(list)
        for path, fact in facts.items():
            for name in fact.functions:
                self.functions[name].append(path)
            for name in fact.classes:
                self.classes[name].append(path)
            for name in fact.calls:
                self.callers[name].append(path)
            for name in fact.marks:
                self.marked[name].append(path)
            self.folders[posixpath.dirname(path)].append(path)
            stem = posixpath.basename(path).rsplit(".", 1)[0]
            if stem in ("__init__", "index", "mod"):
                stem = posixpath.basename(posixpath.dirname(path))
            self.by_stem[stem].append(path)
        self._bases: dict[str, list[Class]] | None = None
        self._resolved: dict[tuple[str, str, int], list[str]] = {}
        self._parts: dict[tuple[str, str, int], list[Class]] = {}

    def module(self, path: str) -> Module | None:
        """Return the lowered module of a path."""
        if path not in self._modules:
            self._modules[path] = self._load(path) if path in self.facts else None
        return self._modules[path]

    def cut(self) -> list[tuple[str, str, int]]:
        """Return name, path and line of what is nested too deeply to be read."""
        lowered = [m for m in self._modules.values() if m is not None]
        return sorted({(name, m.path, line) for m in lowered for name, line in m.cut})

    def modules(self, paths: list[str]) -> Iterator[Module]:
        """Yield the lowered modules of several paths."""
        for path in paths:
            module = self.module(path)
            if module is not None:
                yield module

    def package(self, module: Module) -> list[Module]:
        """Return the modules whose top-level names a module sees without importing them."""
        if module.language not in PACKAGE_LANGUAGES:
            return [module]
        folder = self.folders[posixpath.dirname(module.path)]
        return [m for m in self.modules(folder) if m.language == module.language]

    # Import texts to paths.

    def resolve(self, importer: Module, item: Import) -> list[str]:
        """Return the paths an import text may mean, best first; empty for the outside."""
        told = f"{item.module}.{item.name}" if importer.language == "java" else item.module
        key = (importer.path, told, item.level)
        if key not in self._resolved:
            self._resolved[key] = self._paths(importer, item)
        return self._resolved[key]

    def _paths(self, importer: Module, item: Import) -> list[str]:
        language = importer.language
        if language == "python":
            return self._python(importer.path, item.module, item.level)
        if language in JS_LANGUAGES:
            return self._javascript(importer.path, item.module)
        if language == "go":
            return self._folder(item.module)
        if language == "rust":
            return self._rust(importer.path, item.module)
        if language == "java":
            return self._java(item)
        return []

    def _java(self, item: Import) -> list[str]:
        folder = item.module.replace(".", "/")
        if item.name == "*":
            found = [f for f in self.folders if f == folder or f.endswith("/" + folder)]
            return [p for f in found for p in self.folders[f] if p.endswith(".java")]
        tail = f"{folder}/{item.name}.java"
        near = self.by_stem.get(str(item.name), ())
        return [p for p in near if p == tail or p.endswith("/" + tail)]

    def _python(self, importer: str, module: str, level: int) -> list[str]:
        tail = module.replace(".", "/")
        if level:
            base = posixpath.dirname(importer)
            for _ in range(level - 1):
                base = posixpath.dirname(base)
            return self._python_at(posixpath.join(base, tail) if tail else base)
        found = self._python_at(tail)
        near = self._python_at(posixpath.join(posixpath.dirname(importer), tail))
        near = [p for p in near if p != importer]  # `import mcp` in a file mcp.py is the SDK
        if near or found:
            return near or found
        stem = tail.rsplit("/", 1)[-1]
        ends = (f"/{tail}.py", f"/{tail}/__init__.py")
        return [p for p in self.by_stem.get(stem, ()) if p.endswith(ends)]

    def _python_at(self, base: str) -> list[str]:
        return [p for p in (f"{base}.py", posixpath.join(base, "__init__.py")) if p in self.facts]

    def _javascript(self, importer: str, module: str) -> list[str]:
        if module.startswith("."):
            base = posixpath.normpath(posixpath.join(posixpath.dirname(importer), module))
            return self._javascript_at(base)
        for folder, rest in self._own_package(module):
            for start in (folder, posixpath.join(folder, "src"), posixpath.join(folder, "lib")):
                found = self._javascript_at(posixpath.join(start, rest) if rest else start)
                if found:
                    return found
        if module.startswith(("@/", "~/", "#", "src/", "$lib/")):
            tail = module.lstrip("@~#$/").removeprefix("src/")
            tail = tail.rsplit(".", 1)[0] if tail.endswith(JS_SUFFIXES) else tail
            tail = tail.removesuffix("/index")
            return [
                p
                for p in self.by_stem.get(posixpath.basename(tail), ())
                if f"/{p}".rsplit(".", 1)[0].removesuffix("/index").endswith("/" + tail)
            ]
        return []

    def _own_package(self, module: str) -> Iterator[tuple[str, str]]:
        """Yield the folder of a package of ours and what is imported of it, longest name first."""
        for name in sorted(self._packages, key=len, reverse=True):
            if module == name or module.startswith(name if name.endswith("/") else name + "/"):
                yield self._packages[name], module.removeprefix(name).strip("/")

    def _javascript_at(self, base: str) -> list[str]:
        stem, dot, suffix = base.rpartition(".")
        tries = [base]
        if dot and f".{suffix}" in JS_SUFFIXES:  # a built `.js` stands for the source beside it
            tries = [*(stem + s for s in JS_SUFFIXES), base]
        tries += [base + s for s in JS_SUFFIXES]
        tries += [posixpath.join(base, "index" + s) for s in JS_SUFFIXES]
        found = [p for p in tries if p in self.facts]
        return found[:1]

    def _folder(self, module: str) -> list[str]:
        for folder, rest in self._own_package(module):
            own = posixpath.join(folder, rest) if rest else folder
            return [p for p in self.folders.get(own, ()) if p.endswith(".go")]
        parts = module.split("/")
        if GO_MODULE in self._packages or "." not in parts[0]:
            return []  # of another module, or of Go itself
        for start in range(len(parts)):
            tail = "/".join(parts[start:])
            for folder, paths in self.folders.items():
                if folder == tail or (folder.endswith("/" + tail) and start <= len(parts) - 2):
                    go = [p for p in paths if p.endswith(".go")]
                    if go:
                        return go
        return []

    def _rust(self, importer: str, module: str) -> list[str]:
        if module == "self":
            return [importer]
        parts = module.split("::")
        here = posixpath.dirname(importer)
        stem = posixpath.basename(importer)[:-3]
        own = here if stem in ("mod", "lib", "main") else posixpath.join(here, stem)
        root = here
        while root and posixpath.basename(root) != "src":
            root = posixpath.dirname(root)
        bases = [root or "src"]
        if parts[0] == "crate":
            parts = parts[1:]
        elif parts[0] == "self":
            bases, parts = [own], parts[1:]
        elif parts[0] == "super":
            bases, parts = [posixpath.dirname(own)], parts[1:]
            while parts and parts[0] == "super":
                bases, parts = [posixpath.dirname(bases[0])], parts[1:]
        else:
            bases = [own, root]
            near = [f"{b}/{parts[0]}{end}" for b in bases for end in (".rs", "/mod.rs")]
            crates = self._crates(parts[0])
            if crates and not any(p in self.facts for p in near):
                bases, parts = crates, parts[1:]
        for count in range(len(parts), -1, -1):
            tail = "/".join(parts[:count])
            for base in bases:
                stems = [posixpath.join(base, tail)] if tail else [base]
                for at in stems:
                    tries = (f"{at}.rs", f"{at}/mod.rs", f"{at}/lib.rs", f"{at}/main.rs")
                    found = [p for p in tries if p in self.facts]
                    if found and (count or parts != module.split("::")):
                        return found[:1]
        return []

    def _crates(self, name: str) -> list[str]:
        """Return the source folders of a workspace member called `name`."""
        dashed = name.replace("_", "-")
        told = self._packages.get(f"crate {dashed}")
        if told is not None:
            return [posixpath.join(told, "src")]
        return [
            f
            for f in self.folders
            if f.endswith("src") and posixpath.basename(posixpath.dirname(f)) in (name, dashed)
        ]

    # Classes.

    def class_named(self, name: str, near: Module | None = None) -> list[Class]:
        """Return the classes of a name; those of the same file or folder first, then any."""
        paths = self.classes.get(name, ())
        if near is not None:
            folder = posixpath.dirname(near.path)
            paths = sorted(paths, key=lambda p: (p != near.path, posixpath.dirname(p) != folder, p))
        out: list[Class] = []
        for module in self.modules(list(paths)):
            for binding in scope_of(module.top).names.get(name, ()):
                if isinstance(binding.item, Class):
                    out.append(binding.item)
        return out

    def parts_of(self, cls: Class) -> list[Class]:
        """Return what other files of the same crate add to a type, or where they declare it."""
        if cls.module is None or cls.module.language != "rust":
            return []
        key = (cls.name, cls.module.path, cls.line)
        if key not in self._parts:
            crate = _crate(cls.module.path)
            others = [p for p in self.classes.get(cls.name, ()) if p != cls.module.path]
            found = [c for p in others if _crate(p) == crate for c in self._classes_in(p, cls.name)]
            whole = [c for c in found if not c.partial]
            if cls.partial:  # a name that several files declare belongs to none of them
                own = whole[0] if len(whole) == 1 else None
                found = [c for c in found if c is own or (own is not None and c.partial)]
            else:
                found = [c for c in found if c.partial] if not whole else []
            self._parts[key] = found
        return self._parts[key]

    def _classes_in(self, path: str, name: str) -> list[Class]:
        module = self.module(path)
        if module is None:
            return []
        bound = scope_of(module.top).names.get(name, ())
        return [b.item for b in bound if isinstance(b.item, Class)]

    def subclasses(self, name: str) -> list[Class]:
        """Return the classes that name `name` among their bases."""
        if self._bases is None:
            self._bases = defaultdict(list)
            for cls in self.all_classes():
                for base in cls.bases:
                    told = getattr(base, "id", "") or getattr(base, "name", "")
                    if told:
                        self._bases[told].append(cls)
        return self._bases.get(name, [])

    def all_classes(self) -> Iterator[Class]:
        """Yield every class of the repository (lowers the files that have any)."""
        for path, fact in self.facts.items():
            if not fact.classes:
                continue
            module = self.module(path)
            if module is not None:
                for bindings in scope_of(module.top).names.values():
                    for binding in bindings:
                        if isinstance(binding.item, Class):
                            yield binding.item

    # Functions.

    def function_at(self, path: str, offset: int) -> Function | None:
        """Return the innermost function that holds a byte offset of a file."""
        module = self.module(path)
        if module is None:
            return None
        here = module.top
        while True:
            inner = [f for f in scope_of(here).nested if f.start <= offset < f.end]
            if not inner:
                return here
            here = inner[-1]

    def functions_named(self, name: str) -> list[Function]:
        """Return every function or method of a name."""
        out: list[Function] = []
        for path in self.functions.get(name, ()):
            for offset in self.facts[path].functions[name]:
                found = self.function_at(path, offset)
                if found is None:
                    continue
                if found.name == name:
                    out.append(found)
                    continue
                for binding in scope_of(found).names.get(name, ()):
                    if isinstance(binding.item, Function) and binding.item not in out:
                        out.append(binding.item)
        return out


def _crate(path: str) -> str:
    """Return the folder of the crate a Rust file belongs to."""
    folder = posixpath.dirname(path)
    while folder and posixpath.basename(folder) != "src":
        folder = posixpath.dirname(folder)
    return folder or posixpath.dirname(path)
