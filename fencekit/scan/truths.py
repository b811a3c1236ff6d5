"""Whether a test holds, as far as the values of its sides are known."""

from __future__ import annotations

from fencekit.scan import natives
from fencekit.scan.facts import Call, Case, Choice, Compare, Expr, Lit, Member, Name, Switch
from fencekit.scan.parts import Parts
from fencekit.scan.values import Const, Env


class Truths(Parts):
    """The part of the evaluator that judges tests."""

    def truth(self, expr: Expr, env: Env) -> bool | None:
        """Return whether a test holds, or None where that is not known."""
        if isinstance(expr, Compare):
            return self._compare(expr, env)
        if isinstance(expr, Choice) and expr.test is not None and expr.options:
            sides = [self.truth(expr.test, env)] if expr.test is not expr.options[0] else []
            sides += [self.truth(option, env) for option in expr.options]
            if len(expr.options) == 2:  # a or b
                return True if True in sides else (False if set(sides) == {False} else None)
            return False if False in sides else (True if set(sides) == {True} else None)
        if not isinstance(expr, Name | Lit | Call | Member) or self._looks_up(expr, env):
            return None
        found = self.eval(expr, env)
        sides = []
        for value in found:
            missing = isinstance(value, Const) and isinstance(expr, Name) and value.value is None
            if not isinstance(value, Const) or value.holes or missing:
                return None
            sides.append(bool(value.value))
        return sides[0] if sides and len(set(sides)) == 1 else None

    def arm(self, stmt: Switch, env: Env) -> tuple[bool, Case | None]:
        """Return whether the subject of a switch is known, and then its arm, if it has one."""
        subjects = self.eval(stmt.subject, env)
        subject = subjects[0] if len(subjects) == 1 else None
        if not isinstance(subject, Const) or subject.value is None or subject.holes:
            return False, None
        default = None
        for case in stmt.cases:
            if not case.values:
                default = case
            for value in case.values:
                told = self.eval(value, env)
                if any(isinstance(v, Const) and v.value == subject.value for v in told):
                    return True, case
        return True, default

    def _looks_up(self, expr: Expr, env: Env) -> bool:
        """Tell whether a test asks a container for something that is not known: it may miss."""
        if not isinstance(expr, Call) or not isinstance(expr.callee, Member):
            return False
        if expr.callee.name not in ("get", "has", "find", "pop", "contains", "includes"):
            return False
        asked = [v for a in expr.args[:1] for v in self.eval(a.value, env)]
        return any(not isinstance(v, Const) or v.holes for v in asked)

    def _compare(self, expr: Compare, env: Env) -> bool | None:
        left = self.eval(expr.left, env)
        if len(left) != 1 or not isinstance(left[0], Const) or left[0].holes:
            return None
        subject = left[0].value
        if subject is None:
            return None
        options = self.eval(expr.right, env)
        if expr.member:
            options = natives.elements(self, options)
        if not all(isinstance(v, Const) and not v.holes for v in options) or not options:
            return None
        hit = any(isinstance(v, Const) and v.value == subject for v in options)
        if hit and not expr.member and len(options) > 1:
            return None
        return hit != expr.negated
