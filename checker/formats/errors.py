"""Errors about files with histories. Each has the file, the place in it, what was expected, and what was found."""

from __future__ import annotations

from harness.errors import InputError

SHOWN_CHARACTERS = 80


class BadHistory(InputError):  # noqa: N818 - the name states the problem
    """A file does not contain a valid history.

    Attributes:
        file: The file's name as the user gave it; `-` is standard input.
        line: The line, from 1; None if the error is about the whole file.
        reason: What was expected and what was found.
    """

    def __init__(self, file: str, line: int | None, reason: str) -> None:
        super().__init__(f"{file}: {reason}" if line is None else f"{file}:{line}: {reason}")
        self.file = file
        self.line = line
        self.reason = reason


class NoObject(BadHistory):
    """A line is no JSON object. It is torn if it is the last one, and has no end."""


class BrokenSource(BadHistory):
    """A file cannot be read to its end, whatever it contains."""


def shown(text: str) -> str:
    """Returns the beginning of a text from a file, quoted and escaped for a message."""
    return repr(text if len(text) <= SHOWN_CHARACTERS else text[:SHOWN_CHARACTERS] + "...")
