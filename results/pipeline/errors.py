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


class BadOutput(InputError):  # noqa: N818 - says what is the case
    """The output folder holds something else, or something of a version that this one does not know."""


class RowsRefused(InputError):  # noqa: N818 - says what is the case
    """Rows went to quarantine, and the user asked for none of that (`--strict`)."""


def words_of(error: BaseException) -> str:
    """Returns in one line what an error of Spark's, Java's or a worker's says, and the error that it comes from."""
    # Spark's errors carry the Java exception that they stand for, and so do those of the bridge to Java.
    thrown: Any = getattr(error, "java_exception", None) or getattr(error, "_origin", None)
    try:
        first = _line(thrown.toString() if hasattr(error, "java_exception") else str(error))
        for _ in range(_MOST_CAUSES):
            cause = None if thrown is None else thrown.getCause()
            if cause is None:
                break
            thrown = cause
        last = "" if thrown is None else _line(thrown.getMessage() or thrown.toString())
    except Exception:  # noqa: BLE001 - Java may have gone meanwhile, and that must not hide what it had said before
        first, last = _line(BaseException.__str__(error)), ""
    said = first or type(error).__name__
    return said if not last or last in said else f"{said} {last}"


def _line(text: str) -> str:
    """Returns the first line of a text, and of what a worker's Python says also the last one, which has the reason."""
    lines = [line.strip() for line in text.splitlines() if line.strip()] or [""]
    said = f"{lines[0]} {lines[-1]}" if any(line.startswith("Traceback (") for line in lines) else lines[0]
    return said[:_MOST_CHARACTERS]
