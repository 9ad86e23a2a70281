"""The expected rate of a case, `expect-rate = "<= 0.05"`: how often its runs may be unexpected, over all nights.

One run says little about a rate. So a sequential test decides by the runs of the case in the store, from the oldest on, with
those of this suite at the end. It decides that the rate is too high if the runs fit better to a rate of `TIMES` times the limit
than to the limit. If the rate is the limit or less, it does so with a probability of at most 5 %. If it is `TIMES` times the
limit or more, it misses this with a probability of at most 10 %. After each decision it begins anew, so that it also sees a
change. The last decision counts; before the first one, the case passes.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from harness.console.documents import shown
from harness.console.plain import counted_of
from harness.errors import InputError
from harness.suites.proportions import SequentialTest

if TYPE_CHECKING:
    from collections.abc import Iterable

EXPECT_RATE: Final = "expect-rate"
TIMES: Final = 3.0
MOST: Final = 0.3  # of a limit: three times as much must be a proportion
FALSE, MISSES = 0.05, 0.1
_RATE: Final = re.compile(r"\s*<=\s*(0?\.\d{1,6}|0)\s*")


def rate_from(where: str, value: Any) -> float | None:
    """Returns the limit of an expected rate; None if there is none.

    Args:
        where: The file and the test, for messages.
        value: The value of the key.

    Raises:
        InputError: It is no limit such as `<= 0.05`.
    """
    if value is None:
        return None
    match = _RATE.fullmatch(value) if isinstance(value, str) else None
    limit = 0.0 if match is None else float(match[1])
    if not 0 < limit <= MOST:
        raise InputError(f'{where}: {EXPECT_RATE} takes a limit up to {MOST:g}, such as "<= 0.05", not {shown(value)}')
    return limit


@dataclass(frozen=True, slots=True, kw_only=True)
class RateDecision:
    """What the runs of a case say about its rate.

    Attributes:
        limit: The expected rate.
        hits: The number of unexpected runs.
        runs: The number of runs.
        too_high: The last decision; None if the runs do not decide yet.
    """

    limit: float
    hits: int
    runs: int
    too_high: bool | None

    def __str__(self) -> str:
        decided = {True: "its rate is higher than", False: "its rate is within", None: "too few runs decide on"}
        return (
            f"{counted_of(self.hits, self.runs, 'run', 'were')} unexpected, and {decided[self.too_high]} the limit of "
            f"{self.limit:g} (errors: {FALSE:.0%} and {MISSES:.0%})"
        )


def decide(limit: float, unexpected: Iterable[bool]) -> RateDecision:
    """Returns what runs say about a rate.

    Args:
        limit: The expected rate.
        unexpected: For each run, from the oldest on, whether it was unexpected.
    """
    hits = runs = 0
    too_high: bool | None = None
    test = _test(limit)
    for hit in unexpected:
        hits, runs = hits + hit, runs + 1
        test.add(hit=hit)
        if test.decided is not None:
            too_high, test = test.decided, _test(limit)
    return RateDecision(limit=limit, hits=hits, runs=runs, too_high=too_high)


def _test(limit: float) -> SequentialTest:
    return SequentialTest(frequent=limit * TIMES, rare=limit, false=FALSE, misses=MISSES)
