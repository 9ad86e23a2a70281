"""What `results.overviews` draws: rows of keys, cells of faults and workloads, and runs beside one another.

It is apart from the drawing, because to load the drawing library takes longer than to make these rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from harness.plain import one_line

if TYPE_CHECKING:
    from collections.abc import Sequence

NAME_CHARACTERS = 22
NOT_JUDGED = "not judged"


@dataclass(frozen=True, slots=True, kw_only=True)
class Strip:
    """The operations of one key over time.

    Attributes:
        name: The key.
        verdict: What was found of it; None if nothing is known.
        cells: For each bucket that has any: its number, how many operations were wanted in it, and how many were answered.
    """

    name: str
    verdict: str | None
    cells: Sequence[tuple[int, int, int]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """Runs of one workload under one kind of fault.

    Attributes:
        row: The fault.
        column: The workload.
        outcome: The worst outcome of the runs, as `harness.expectation.Outcome` names it; None if none was judged.
        runs: How many runs.
        unexpected: How many of them came out unexpectedly.
        availability: The share answered under the fault; None if nothing was asked.
    """

    row: str
    column: str
    outcome: str | None
    runs: int
    unexpected: int
    availability: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TrendRun:
    """A run beside others of its line.

    Attributes:
        outcome: How it came out, as `harness.expectation.Outcome` names it; None if it was not judged.
        label: What stands below it: its day, and its version.
        link: Where its report is, as seen from the page; None if it has none.
        marked: Whether its outcome became worse.
    """

    outcome: str | None
    label: str
    link: str | None = None
    marked: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Trend:
    """One figure of the runs of one line.

    Attributes:
        title: What it is.
        values: For each run, in order; None where there is none.
        regressions: The places of those that became worse.
    """

    title: str
    values: Sequence[float | None]
    regressions: Sequence[int]


def short(name: str, characters: int = NAME_CHARACTERS) -> str:
    """Returns a foreign name fit to stand beside an axis."""
    line = one_line(name)
    return line if len(line) <= characters else f"{line[: characters - 1]}…"
