"""Thresholds: limits for the numbers of a run, from `labrys test --threshold` or from a suite.

    threshold  = [ FUNCTION "." ] MEASURE COMPARISON NUMBER
    COMPARISON = "<" | "<=" | ">" | ">=" | "==" | "!="

For example `p99_ms < 200`, `read.p99_ms < 50`, `write.longest_gap_s < 5`. No text of a suite's file is evaluated as code. If a
run has no measurement for a threshold, it crosses the threshold.
"""

from __future__ import annotations

import operator
import re
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

from harness.console.plain import name
from harness.console.suggest import did_you_mean
from harness.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping

# Each measure with its meaning. With a function before it, it is that of this function alone.
MEASURES: Mapping[str, str] = MappingProxyType(
    {
        "availability": "answered operations, as a share from 0 to 1",
        "availability_during_faults": "answered operations while faults were on, as a share from 0 to 1",
        "longest_gap_s": "the longest time without an answer to any function, or to the named one, in seconds",
        "recovery_s": "the longest time from the healing of a fault to sustained answers, in seconds",
        "p50_ms": "the median latency, in milliseconds; of the slowest function, unless one is named",
        "p95_ms": "the 95th percentile of the latency, likewise",
        "p99_ms": "the 99th percentile of the latency, likewise",
        "max_ms": "the highest latency, likewise",
        "ok_per_s": "operations that ended ok, for each second of the workload",
        "operations": "the number of operations",
        "ok": "the number of operations that ended ok",
        "fail": "the number of operations that ended with fail, without refusals",
        "refused": "the number of operations that a node refused, because another node leads",
        "info": "the number of operations whose outcome is not known",
        "messages_per_op": "messages between nodes for each operation, for programs whose messages Labrys carries",
        "stable_p50_ms": "for a set: the median time from the acknowledgement of an element until every read has it",
        "stable_max_ms": "for a set: the longest such time",
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
_FUNCTION = re.compile(r"[A-Za-z0-9_-]{1,60}")
_THRESHOLD = re.compile(
    rf"\s*(?:(?P<function>{_FUNCTION.pattern})\.)?"
    r"(?P<measure>[A-Za-z0-9_]{1,60})\s*"
    r"(?P<comparison><=|>=|==|!=|<|>)\s*(?P<limit>[+-]?[0-9]{1,15}(?:\.[0-9]{1,15})?)\s*"
)


DIGITS = 3  # of a number in a sentence
MOST_DIGITS = 17  # those of a float


@dataclass(frozen=True, slots=True, kw_only=True)
class Threshold:
    """One threshold.

    Attributes:
        function: The function that is measured; None for all functions.
        measure: A name of `MEASURES`.
        comparison: The comparison of the measured number with the limit.
        limit: The limit.
    """

    function: str | None
    measure: str
    comparison: str
    limit: float

    def __post_init__(self) -> None:
        """Checks that it fits the grammar, because a file of a run may come from anyone."""
        named = self.function is None or _FUNCTION.fullmatch(self.function)
        if self.measure not in MEASURES or self.comparison not in _COMPARISONS or not named:
            raise ValueError("expected a threshold such as p99_ms < 200, with a known measure")

    def __str__(self) -> str:
        return f"{self.subject} {self.comparison} {self.limit:.15g}"

    @property
    def subject(self) -> str:
        """Returns the name of the measured number, e.g. `read.p99_ms`."""
        return self.measure if self.function is None else f"{self.function}.{self.measure}"

    def crossed_by(self, measured: float | None, missing: str = "") -> str | None:
        """Returns a sentence if a run crosses it, else None.

        Args:
            measured: The measured number; None if there is none.
            missing: Why there is none, as a clause; empty if it is not known.
        """
        if measured is None:
            return f"{self}: the run did not measure {self.subject}{f': {missing}' if missing else ''}"
        return (
            None if _COMPARISONS[self.comparison](measured, self.limit) else f"{self}: it is {self._rounded(measured)}"
        )

    def _rounded(self, measured: float) -> str:
        """Returns a number with three digits, or with as many more as show that it crosses the limit."""
        crosses = not _COMPARISONS[self.comparison](measured, self.limit)
        for digits in range(max(DIGITS, len(f"{abs(measured):.0f}")), MOST_DIGITS):
            rounded = float(f"{measured:.{digits}g}")
            if crosses is not _COMPARISONS[self.comparison](rounded, self.limit):
                return f"{rounded:.{digits}g}"
        return repr(measured)


def read_threshold(text: str) -> Threshold:
    """Reads one threshold.

    Raises:
        InputError: It does not fit the grammar, or its measure is unknown.
    """
    match = _THRESHOLD.fullmatch(text)
    if match is None:
        raise InputError(f"expected a threshold such as 'p99_ms < 200' or 'availability > 0.9', not {name(text)!r}")
    measure, function = match["measure"], match["function"]
    if measure not in MEASURES:
        raise InputError(f"the threshold {name(text)!r} has an unknown measure. {did_you_mean(measure, MEASURES)}")
    return Threshold(function=function, measure=measure, comparison=match["comparison"], limit=float(match["limit"]))


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """A threshold with the number that a run measured.

    Attributes:
        threshold: The threshold.
        number: The measured number; None if there is none.
        missing: Why there is none, as a clause; empty if there is one, or the reason is not known.
    """

    threshold: Threshold
    number: float | None
    missing: str = ""

    @property
    def crossed(self) -> str | None:
        """Returns a sentence if the run crosses the threshold, else None."""
        return self.threshold.crossed_by(self.number, self.missing)


def measured(
    thresholds: Iterable[Threshold],
    measure: Callable[[str, str | None], float | None],
    missing: Callable[[str, str | None], str] = lambda _, __: "",
) -> tuple[Measured, ...]:
    """Returns each threshold with its number.

    Args:
        thresholds: The thresholds.
        measure: Returns the measured number for the name of a measure and of a function.
        missing: Returns why there is no number, for the same arguments.
    """
    numbers = [(threshold, measure(threshold.measure, threshold.function)) for threshold in thresholds]
    return tuple(
        Measured(
            threshold=threshold,
            number=number,
            missing=missing(threshold.measure, threshold.function) if number is None else "",
        )
        for threshold, number in numbers
    )


def refuse_unknown_functions(thresholds: Iterable[Threshold], functions: Collection[str], workload: str) -> None:
    """Refuses a threshold for a function that the workload does not have, because no run could keep it.

    Args:
        thresholds: The thresholds.
        functions: The functions of the workload.
        workload: The name of the workload.

    Raises:
        InputError: A threshold names another function.
    """
    for threshold in thresholds:
        if threshold.function is not None and threshold.function not in functions:
            known = ", ".join(sorted(functions))
            raise InputError(
                f"the threshold {str(threshold)!r} names the function {threshold.function!r}, "
                f"and the workload {name(workload)} has the functions {known}"
            )
