"""What is put into a name elsewhere: changes to a record or a list, values given later."""

from __future__ import annotations

from fencekit.scan.facts import Binding, Function, Mutation
from fencekit.scan.parts import Parts
from fencekit.scan.scopes import scope_of
from fencekit.scan.values import Const, Env, Unknown, Value


class Changes(Parts):
    """The part of the evaluator that looks for what other code puts into a name."""

    def changes_to(self, name: str, env: Env) -> list[tuple[Mutation, Env]]:
        """Return what a body changes in a name; for a module's name, all its functions."""
        scope = scope_of(env.function)
        out = [(change, env) for change in scope.changes.get(name, ())]
        module = env.function.module
        if module is not None and env.function is module.top:
            known = self._module_changes.get(id(module))
            if known is None:
                known = {}
                self._module_changes[id(module)] = known
                self._collect_changes(module.top, known)
            out.extend(known.get(name, ()))
        elif scope.nested:
            out += self._changes_below(name, env.function)
        return out

    def _given_later(self, name: str, bindings: list[Binding], env: Env) -> list[Value]:
        """Return what a name that is only declared holds later: what is assigned, or its type."""
        found: list[Value] = []
        for binding, inner in self._rebound(name, env):
            found.extend(self._binding(binding, inner))
        if all(is_empty(v) for v in found):
            for binding in bindings:
                found.extend(self.from_type(binding.type_text, env))
        return found

    def _rebound(self, name: str, env: Env) -> list[tuple[Binding, Env]]:
        """Return the assignments to a name of this scope that nested functions make."""
        known = self._given_below.get(id(env.function))
        if known is None:
            known = {}
            self._given_below[id(env.function)] = known
            self._collect_rebound(env.function, frozenset(), known)
        return [(b, self.open_env(inner)) for b, inner in known.get(name, ())]

    def _collect_rebound(
        self,
        function: Function,
        hidden: frozenset[str],
        known: dict[str, list[tuple[Binding, Function]]],
    ) -> None:
        for inner in scope_of(function).nested:
            scope = scope_of(inner)
            for name, bindings in scope.rebound.items():
                if name not in hidden:
                    known.setdefault(name, []).extend((b, inner) for b in bindings)
            declared = frozenset(scope.names) - frozenset(scope.rebound)
            self._collect_rebound(inner, hidden | declared, known)

    def _changes_below(self, name: str, function: Function) -> list[tuple[Mutation, Env]]:
        """Return what functions nested in another change in a name of it."""
        out: list[tuple[Mutation, Env]] = []
        for inner in scope_of(function).nested:
            scope = scope_of(inner)
            if name not in scope.names:
                out += [(c, self.open_env(inner)) for c in scope.changes.get(name, ())]
                out += self._changes_below(name, inner)
        return out

    def _collect_changes(
        self, function: Function, known: dict[str, list[tuple[Mutation, Env]]]
    ) -> None:
        for inner in scope_of(function).nested:
            inner_scope = scope_of(inner)
            for name, changes in inner_scope.changes.items():
                if name not in inner_scope.names:
                    known.setdefault(name, []).extend((c, self.open_env(inner)) for c in changes)
            self._collect_changes(inner, known)


def is_empty(value: Value) -> bool:
    """Tell whether a value is unknown, or the nothing that a declaration begins with."""
    return isinstance(value, Unknown) or (isinstance(value, Const) and value.value is None)
