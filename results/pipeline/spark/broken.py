"""Which file Spark cannot read, from its error; see `results.pipeline.read.broken`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from py4j.protocol import Py4JError

from results.pipeline.errors import causes_of, root_of
from results.pipeline.spark.events import plain_uri

if TYPE_CHECKING:
    from collections.abc import Iterator

# Spark's names of errors about unreadable files; each has the path as a parameter.
_OF_FILES: Final = ("FAILED_READ_FILE", "PATH_NOT_FOUND")


def blamed(error: Exception) -> tuple[str, str] | None:
    """Returns the file that Spark cannot read, and the reason; None if the error is about no file."""
    file = next(_files(error), None)
    return None if file is None else (file, f"{file}: cannot be read: {root_of(error)}")


def _files(error: Exception) -> Iterator[str]:
    """Yields the files that Spark cannot read, as Hadoop writes their paths."""
    try:
        causes = causes_of(error)
    except Py4JError:
        return  # Java has ended, and no file is at fault
    for thrown in causes:
        condition, parameters = _condition(thrown)
        path = None if parameters is None else parameters.get("path")
        if condition is not None and condition.startswith(_OF_FILES) and path is not None:
            # A path is escaped as a URI only if it has three slashes.
            yield plain_uri(path) if ":///" in path else path


def _condition(thrown: Any) -> tuple[str | None, Any]:
    try:
        return thrown.getCondition(), thrown.getMessageParameters()
    except Exception:  # noqa: BLE001 - not every Java exception has a condition
        return None, None
