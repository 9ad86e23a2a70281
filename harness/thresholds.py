"""Thresholds: what a suite demands of a run's numbers, beside its verdict.

    threshold  = [ FUNCTION "." ] MEASURE COMPARISON NUMBER
    COMPARISON = "<" | "<=" | ">" | ">=" | "==" | "!="

For example `p99_ms < 200`, `read.p99_ms < 50`, `availability > 0.9`. No text of a suite's file is evaluated as code. A run that
did not measure a number crosses every threshold for it, so a run that measured nothing keeps none.
"""

from __future__ import annotations

import operator
import re
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

from harness.errors import InputError
from harness.plain import name
from harness.suggest import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

# Each measure, and what it is; latencies can be asked of one function.
MEASURES: Mapping[str, str] = MappingProxyType(
    {
        "availability": "answered operations, as a share from 0 to 1",
        "availability_during_faults": "answered operations while faults were on, as a share from 0 to 1",
        "longest_gap_s": "the longest time without an answer, in seconds",
        "recovery_s": "the longest time from the healing of a fault to sustained answers, in seconds",
        "p50_ms": "the median latency, in milliseconds; of the slowest function, unless one is named",
        "p95_ms": "the 95th percentile of the latency, likewise",
        "p99_ms": "the 99th percentile of the latency, likewise",
        "max_ms": "the highest latency, likewise",
        "ok_per_s": "operations that ended ok, for each second of the workload",
        "operations": "the number of operations",
        "ok": "the number of operations that ended ok",
        "fail": "the number of operations that ended with fail",
        "info": "the number of operations whose outcome is not known",
    }
)
LATENCIES = frozenset({"p50_ms", "p95_ms", "p99_ms", "max_ms"})
_COMPARISONS: Mapping[str, Callable[[float, float], bool]] = MappingProxyType(
    {
        "<": operator.lt,
        "<=": operator.le,
        ">": operator.gt,
        ">=": operator.ge,
        "==": operator.eq,
        "!=": operator.ne,
    }
)
_THRESHOLD = re.compile(
    r"\s*(?:(?P<function>[A-Za-z0-9_-]{1,60})\.)?(?P<measure>[A-Za-z0-9_]{1,60})\s*"
    r"(?P<comparison><=|>=|==|!=|<|>)\s*(?P<limit>[+-]?[0-9]{1,15}(?:\.[0-9]{1,15})?)\s*"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Threshold:
    """One demand.

    Attributes:
        function: The function whose latency is meant; None: all.
        measure: A name of `MEASURES`.
        comparison: How the measured number has to compare with the limit.
        limit: The limit.
    """

    function: str | None
    measure: str
    comparison: str
    limit: float

    def __str__(self) -> str:
        return f"{self.subject} {self.comparison} {self.limit:.15g}"

    @property
    def subject(self) -> str:
        """Returns what is measured, e.g. `read.p99_ms`."""
        return self.measure if self.function is None else f"{self.function}.{self.measure}"

    def crossed_by(self, measured: float | None) -> str | None:
        """Returns the sentence of a run that does not keep it; None for a run that does.

        Args:
            measured: What the run measured; None if it did not.
        """
        if measured is None:
            return f"{self}: the run did not measure {self.subject}"
        return None if _COMPARISONS[self.comparison](measured, self.limit) else f"{self}: it is {measured:.6g}"


def read_threshold(text: str) -> Threshold:
    """Reads one threshold.

    Raises:
        InputError: It is not of the grammar, or its measure does not exist.
    """
    found = _THRESHOLD.fullmatch(text)
    if found is None:
        raise InputError(f"expected a threshold such as 'p99_ms < 200' or 'availability > 0.9', not {name(text)!r}")
    measure, function = found["measure"], found["function"]
    if measure not in MEASURES:
        raise InputError(f"the threshold {name(text)!r} has no measure. {did_you_mean(measure, MEASURES)}")
    if function is not None and measure not in LATENCIES:
        raise InputError(
            f"the threshold {name(text)!r} names a function, which only {', '.join(sorted(LATENCIES))} can have"
        )
    return Threshold(function=function, measure=measure, comparison=found["comparison"], limit=float(found["limit"]))


def crossed(thresholds: Iterable[Threshold], measure: Callable[[str, str | None], float | None]) -> tuple[str, ...]:
    """Returns a sentence for each threshold that a run does not keep.

    Args:
        thresholds: What is demanded.
        measure: Returns what the run measured, by the measure's name and the function's.
    """
    sentences = (each.crossed_by(measure(each.measure, each.function)) for each in thresholds)
    return tuple(sentence for sentence in sentences if sentence is not None)
