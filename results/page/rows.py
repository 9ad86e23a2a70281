"""The input of `results.page.overviews`: rows of keys, cells of faults and workloads, and runs side by side.

This module is separate from the drawing, because loading the drawing library takes longer than making these rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from harness.console.plain import one_line

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

NAME_CHARACTERS = 22
NOT_JUDGED = "not judged"


@dataclass(frozen=True, slots=True, kw_only=True)
class Strip:
    """The operations of one key over time.

    Attributes:
        name: The key.
        verdict: Its verdict; None if it is unknown.
        cells: For each bucket with operations: its number, the number of operations, and how many were answered.
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
        outcomes: The number of runs with each outcome, by the names of `CaseOutcome`, the worst outcome first; None stands
            for runs that were not judged.
        availability: The share of operations answered during the fault; None without operations.
    """

    row: str
    column: str
    outcomes: Mapping[str | None, int]
    availability: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TrendRun:
    """A run beside other runs of its line.

    Attributes:
        outcome: Its outcome, by the names of `CaseOutcome`; None if it was not judged.
        label: The text below it: its day and its version.
        link: The link from the page to its report; None if it has none.
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
        title: Its title.
        values: The value of each run, in order; None if it is unknown.
        regressions: The places of the values that became worse.
    """

    title: str
    values: Sequence[float | None]
    regressions: Sequence[int]


def short(name: str, characters: int = NAME_CHARACTERS) -> str:
    """Returns a foreign name for an axis; a long name is cut."""
    line = one_line(name)
    return line if len(line) <= characters else f"{line[: characters - 1]}…"
