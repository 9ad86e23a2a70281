"""The errors of the Spark job, as sentences for the user."""

from __future__ import annotations

from typing import Any, Final

from harness.errors import InfrastructureError, InputError

_MOST_CHARACTERS: Final = 400
_MOST_CAUSES: Final = 20


class NoSpark(InfrastructureError):  # noqa: N818 - the name states the problem
    """Spark, or something that it needs, is not installed or does not start."""


class JobFailed(InfrastructureError):  # noqa: N818 - the name states the problem
    """A Spark job failed; the message begins with Spark's own first line."""


class BadInput(InputError):  # noqa: N818 - the name states the problem
    """A path holds nothing that the job can read, or something ambiguous."""


def run_twice(run: str, one: str, other: str) -> BadInput:
    """Returns the error for two sources with a run of the same name."""
    return BadInput(f"the run {run} is in {one} and in {other}; give only one of them")


class Unreadable(BadInput):
    """One source is unreadable; the others are not.

    Attributes:
        path: The source's path.
    """

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"{path}: {reason}")
        self.path = path


class NotSuited(InputError):  # noqa: N818 - the name states the problem
    """Only Spark can do this job; the message has the reason."""


class BadOutput(InputError):  # noqa: N818 - the name states the problem
    """The output folder holds something else, or an output of an unknown version."""


class RowsRefused(InputError):  # noqa: N818 - the name states the problem
    """Rows went to quarantine, and the user gave `--strict`."""


def causes_of(error: BaseException) -> list[Any]:
    """Returns the Java exceptions behind an error, each before its cause."""
    # Spark's errors carry their Java exception, and so do those of py4j.
    thrown: Any = getattr(error, "java_exception", None) or getattr(error, "_origin", None)
    causes: list[Any] = []
    while thrown is not None and len(causes) <= _MOST_CAUSES:
        causes.append(thrown)
        thrown = thrown.getCause()
    return causes


def words_of(error: BaseException) -> str:
    """Returns the message of an error of Spark, Java or a worker in one line, with its root cause."""
    try:
        thrown = causes_of(error)
        first = _line(thrown[0].toString() if hasattr(error, "java_exception") else str(error))
        last = _line(thrown[-1].getMessage() or thrown[-1].toString()) if thrown else ""
    except Exception:  # noqa: BLE001 - Java may have ended meanwhile, and that must not hide the error
        first, last = _line(BaseException.__str__(error)), ""
    words = first or type(error).__name__
    return words if not last or last in words else f"{words} {last}"


def root_of(error: BaseException) -> str:
    """Returns the message of the root cause of an error in one line."""
    try:
        thrown = causes_of(error)
        words = _line(thrown[-1].getMessage() or thrown[-1].toString()) if thrown else ""
    except Exception:  # noqa: BLE001 - as above
        words = ""
    return words or words_of(error)


def _line(text: str) -> str:
    """Returns the first line of a text; of a worker's Python traceback also the last line, which has the reason."""
    lines = [line.strip() for line in text.splitlines() if line.strip()] or [""]
    words = f"{lines[0]} {lines[-1]}" if any(line.startswith("Traceback (") for line in lines) else lines[0]
    return words[:_MOST_CHARACTERS]
