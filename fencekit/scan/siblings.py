"""What a tool leaves out that the code it calls could carry, compared over all tools.

A function on the way to a write has a parameter for a key. Where no tool's path gives it a value,
the control is out of reach; where other tools give one and this call does not, the call lacks what
its siblings have. Pure: works on the rows.
"""

from __future__ import annotations

from fencekit.scan.candidates import Row
from fencekit.scan.mechanisms import Mechanism
from fencekit.scan.walked import Control

STRONG = ("caller-key", "derived-key")


def compare(rows: list[Row]) -> None:
    """Add `control-unreachable` and `sibling-without-key` to the rows they are facts about."""
    given = {c.place for row in rows for c in row.walked.controls if c.given}
    for row in rows:
        found = [_mechanism(c, given) for c in row.walked.controls if not c.given and _used(row, c)]
        row.mechanisms += [m for m in dict.fromkeys(found) if m not in row.mechanisms]


def _used(row: Row, control: Control) -> bool:
    """Tell whether a write to which a repeat adds lies behind the function with the parameter."""
    return any(
        (hop.file, hop.line) == control.entered
        for hit in row.hits
        if not hit.effect.declarative and not any(k.kind in STRONG for k in hit.keys)
        for hop in hit.chain
    )


def _mechanism(control: Control, given: set[tuple[str, int, str]]) -> Mechanism:
    if control.place in given:
        note = f"Other tools give `{control.name}` to `{control.function}`; this call gives none."
        return Mechanism("sibling-without-key", *control.call, note)
    note = f"`{control.function}` would take `{control.name}`, but no tool sets it."
    return Mechanism("control-unreachable", control.place[0], control.place[1], note)
