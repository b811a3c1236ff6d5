"""What is wrong with a register: a file, a line, a key and a sentence that says what to do."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, order=True)
class Problem:
    """One thing that stops a build."""

    file: str
    line: int
    key: str
    message: str

    def __str__(self) -> str:
        """Return `file:line: key: message`, the form that editors can jump to."""
        return f"{self.file}:{self.line}: {self.key}: {self.message}"


class RegisterError(Exception):
    """A register that must not be published; carries every problem found, in file order."""

    def __init__(self, problems: list[Problem]) -> None:
        self.problems = sorted(problems)
        super().__init__("\n".join(map(str, self.problems)))
