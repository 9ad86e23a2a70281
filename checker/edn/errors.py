"""Errors about EDN text, with its place, what was expected, and what was found."""

from __future__ import annotations

from harness.errors import InputError


class EdnError(InputError):
    """A text is not EDN, or exceeds the reader's bounds.

    Attributes:
        name: The name of the text: a file, or `-`.
        line: The line, from 1.
        column: The column in code points, from 1.
        reason: What was expected and what was found.
    """

    def __init__(self, name: str, line: int, column: int, reason: str) -> None:
        super().__init__(f"{name}:{line}:{column}: {reason}")
        self.name = name
        self.line = line
        self.column = column
        self.reason = reason
