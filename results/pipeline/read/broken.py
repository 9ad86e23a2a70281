"""What happens if an input turns out to be damaged while its rows are read.

The rule: one damaged file never ends the analysis of the others, and no file is left out silently. `read.sources` finds most
damage before any row is read. Some damage shows only in the rows: a damaged page, the torn end of a compressed file, a file
that is deleted during the job. Its source gets the reason, and the job starts again without it. Such a failure may be
temporary. So the source loses its fingerprint, and the next incremental job reads it again.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from results.pipeline.read.sources import RESULTS, TEST

if TYPE_CHECKING:
    from collections.abc import Sequence

    from results.pipeline.read.sources import Input

# The maximum number of inputs that a job can do without. If more fail, the file system is at fault, and the job ends.
MOST_SET_ASIDE: Final = 32


def without(sources: Sequence[Input], about: str, reason: str) -> list[Input] | None:
    """Returns the sources, where the source of a file has the reason; None if the file belongs to none of them."""
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
