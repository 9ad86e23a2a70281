"""What can go wrong with the Spark job, as sentences for the person who started it."""

from __future__ import annotations

from typing import Any, Final

from harness.errors import InfrastructureError, InputError

_MOST_CHARACTERS: Final = 400
_MOST_CAUSES: Final = 20


class NoSpark(InfrastructureError):  # noqa: N818 - says what is the case
    """Spark, or something that it needs, is not installed or does not start."""


class JobFailed(InfrastructureError):  # noqa: N818 - says what is the case
    """Spark gave up; the message has its own first words."""


class BadInput(InputError):  # noqa: N818 - says what is the case
    """A path holds nothing that the job can read, or something that it must not guess about."""


def run_twice(run: str, one: str, other: str) -> BadInput:
    """Returns what is said where two sources hold a run of one name."""
    return BadInput(f"the run {run} is in {one} and in {other}; give only one of them")


class Unreadable(BadInput):
    """One source cannot be read; the others can.

    Attributes:
        path: The source's path.
    """

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"{path}: {reason}")
        self.path = path


class BadOutput(InputError):  # noqa: N818 - says what is the case
    """The output folder holds something else, or something of a version that this one does not know."""


class RowsRefused(InputError):  # noqa: N818 - says what is the case
    """Rows went to quarantine, and the user asked for none of that (`--strict`)."""


def causes_of(error: BaseException) -> list[Any]:
    """Returns the Java exceptions that an error stands for, each before the one that it comes from."""
    # Spark's errors carry the Java exception that they stand for, and so do those of the bridge to Java.
    thrown: Any = getattr(error, "java_exception", None) or getattr(error, "_origin", None)
    found: list[Any] = []
    while thrown is not None and len(found) <= _MOST_CAUSES:
        found.append(thrown)
        thrown = thrown.getCause()
    return found


def words_of(error: BaseException) -> str:
    """Returns in one line what an error of Spark's, Java's or a worker's says, and the error that it comes from."""
    try:
        thrown = causes_of(error)
        first = _line(thrown[0].toString() if hasattr(error, "java_exception") else str(error))
        last = _line(thrown[-1].getMessage() or thrown[-1].toString()) if thrown else ""
    except Exception:  # noqa: BLE001 - Java may have gone meanwhile, and that must not hide what it had said before
        first, last = _line(BaseException.__str__(error)), ""
    said = first or type(error).__name__
    return said if not last or last in said else f"{said} {last}"


def root_of(error: BaseException) -> str:
    """Returns in one line what the exception says that an error comes from in the end."""
    try:
        thrown = causes_of(error)
        said = _line(thrown[-1].getMessage() or thrown[-1].toString()) if thrown else ""
    except Exception:  # noqa: BLE001 - as above
        said = ""
    return said or words_of(error)


def _line(text: str) -> str:
    """Returns the first line of a text, and of what a worker's Python says also the last one, which has the reason."""
    lines = [line.strip() for line in text.splitlines() if line.strip()] or [""]
    said = f"{lines[0]} {lines[-1]}" if any(line.startswith("Traceback (") for line in lines) else lines[0]
    return said[:_MOST_CHARACTERS]
