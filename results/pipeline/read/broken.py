"""What happens to a job when Spark cannot read one of its inputs: the input is told of, and the job begins anew without it.

The law: one damaged file never ends the analysis of all others, and it is never left out. Most damage is found before Spark
runs, by `read.sources`. Some shows only in the rows: a damaged page, the torn end of a compressed file, a file that is deleted
meanwhile. Spark names the file then. Its source gets the reason, and the caller judges the others again. Such a
failure may pass, so the source loses its fingerprint: the next incremental job reads it again.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from py4j.protocol import Py4JError

from results.pipeline.errors import Unreadable, causes_of, root_of
from results.pipeline.read.events import plain_uri
from results.pipeline.read.sources import RESULTS, TEST

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from results.pipeline.read.sources import Input

# So many inputs are set aside in one job. Where more of them fail, the file system does, and the job ends.
MOST_SET_ASIDE: Final = 32
# Spark's names of what it says when it cannot read a file; each comes with the file's path.
_OF_FILES: Final = ("FAILED_READ_FILE", "PATH_NOT_FOUND")


def without(sources: Sequence[Input], error: Exception) -> list[Input] | None:
    """Returns the sources, the one that an error is about with its trouble; None if the error is about none of them."""
    if isinstance(error, Unreadable):
        about, said = error.path, str(error)
    else:
        found = next(_files(error), None)
        if found is None:
            return None
        about, said = found, f"{found}: cannot be read: {root_of(error)}"
    changed = [_troubled(source, about, said) for source in sources]
    return changed if changed != list(sources) else None


def _troubled(source: Input, about: str, said: str) -> Input:
    if source.trouble is not None:
        return source
    if about in {source.path, source.data} or (source.is_folder and about.startswith(f"{source.data}/")):
        return replace(source, trouble=said, fingerprint="")
    if about in {f"{source.path}/{TEST}", f"{source.path}/{RESULTS}"} and source.is_run:
        return replace(source, trouble=said, fingerprint="")
    return source


def _files(error: Exception) -> Iterator[str]:
    """Yields the files that Spark says it cannot read, as Hadoop writes them."""
    try:
        causes = causes_of(error)
    except Py4JError:
        return  # Java has gone, and no file is to blame
    for thrown in causes:
        condition, parameters = _told(thrown)
        path = None if parameters is None else parameters.get("path")
        if condition is not None and condition.startswith(_OF_FILES) and path is not None:
            # A path is escaped as a URI only where it is written with three slashes.
            yield plain_uri(path) if ":///" in path else path


def _told(thrown: Any) -> tuple[str | None, Any]:
    try:
        return thrown.getCondition(), thrown.getMessageParameters()
    except Exception:  # noqa: BLE001 - not every Java exception has a condition
        return None, None
