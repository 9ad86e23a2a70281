"""Shares the cases of a suite out among several machines: `--shard 2/5` runs the second of five parts.

Each machine computes all parts from the suite alone, so no case is lost and none runs twice. It cannot use earlier results,
because each machine has other ones. So the expected time of a case is that of its workload. A virtual second takes another
time than a second on nodes, so the cases of each place are shared out by themselves.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import click

from commands.suite.jobs import Place

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from harness.suites.case import Case

MOST: Final = 1000
_SHARD: Final = re.compile(r"(?P<number>\d{1,4})/(?P<of>\d{1,4})")


@dataclass(frozen=True, slots=True, kw_only=True)
class Shard:
    """One of the parts of a suite.

    Attributes:
        number: Its number, from 1.
        of: The number of parts.
    """

    number: int
    of: int

    def __str__(self) -> str:
        return f"{self.number}/{self.of}"


class ShardText(click.ParamType[Shard]):
    """A part of a suite, e.g. `2/5`."""

    name = "shard"

    def convert(self, value: str | Shard, param: click.Parameter | None, ctx: click.Context | None) -> Shard:
        """Reads the text."""
        if isinstance(value, Shard):
            return value
        match = _SHARD.fullmatch(value)
        if match is None or not 1 <= int(match["number"]) <= int(match["of"]) <= MOST:
            self.fail(f"expected a part such as 2/5, the second of five and at most {MOST}, not {value!r}", param, ctx)
        return Shard(number=int(match["number"]), of=int(match["of"]))


def cases_of(
    shard: Shard, cases: Sequence[Case], places: Mapping[str, Place], seconds_of: Callable[[Case], float]
) -> Sequence[Case]:
    """Returns the cases of a part, in the order of the suite.

    Algorithm: the longest case goes to the part with the least time so far (R. L. Graham, "Bounds on multiprocessing timing
    anomalies", 1969).

    Args:
        shard: The part.
        cases: The cases of all parts.
        places: Where each case runs, by its name.
        seconds_of: Returns the expected time of a case.
    """
    part_of: dict[str, int] = {}
    numbers = [0] * shard.of
    for where in Place:
        times = [0.0] * shard.of
        own = [case for case in cases if places[case.name] is where]
        for case in sorted(own, key=lambda own_case: (-seconds_of(own_case), own_case.name)):
            part = min(range(shard.of), key=lambda number: (times[number], numbers[number], number))
            times[part] += seconds_of(case)
            numbers[part] += 1
            part_of[case.name] = part + 1
    return [case for case in cases if part_of[case.name] == shard.number]
