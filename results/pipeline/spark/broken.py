"""What happens if Spark cannot read an input: the input gets its reason, and the job starts again without it.

The rule: one damaged file never ends the analysis of the others, and no file is left out silently. `read.sources` finds most
damage before Spark runs. Some damage shows only in the rows: a damaged page, the torn end of a compressed file, a file that is
deleted during the job. Spark then names the file. Its source gets the reason, and the caller judges the others again. Such a
failure may be temporary. So the source loses its fingerprint, and the next incremental job reads it again.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from py4j.protocol import Py4JError

from results.pipeline.errors import Unreadable, causes_of, root_of
from results.pipeline.read.sources import RESULTS, TEST
from results.pipeline.spark.events import plain_uri

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from results.pipeline.read.sources import Input

# The maximum number of inputs that a job can do without. If more fail, the file system is at fault, and the job ends.
MOST_SET_ASIDE: Final = 32
# Spark's names of errors about unreadable files; each has the path as a parameter.
_OF_FILES: Final = ("FAILED_READ_FILE", "PATH_NOT_FOUND")


def without(sources: Sequence[Input], error: Exception) -> list[Input] | None:
    """Returns the sources, where the source of an error has the reason; None if the error is about none of them."""
    if isinstance(error, Unreadable):
        about, reason = error.path, str(error)
    else:
        found = next(_files(error), None)
        if found is None:
            return None
        about, reason = found, f"{found}: cannot be read: {root_of(error)}"
    changed = [_troubled(source, about, reason) for source in sources]
    return changed if changed != list(sources) else None


def _troubled(source: Input, about: str, reason: str) -> Input:
    if source.trouble is not None:
        return source
    if about in {source.path, source.data} or (source.is_folder and about.startswith(f"{source.data}/")):
        return replace(source, trouble=reason, fingerprint="")
    if about in {f"{source.path}/{TEST}", f"{source.path}/{RESULTS}"} and source.is_run:
        return replace(source, trouble=reason, fingerprint="")
    return source


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
