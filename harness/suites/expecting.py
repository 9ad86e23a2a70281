"""Reads what a test of a suite expects of its cases: for all of them, and with `[[test.where]]` for some combinations.

A table `[[test.where]]` names values of dimensions, and expectations that replace those of the test:

    [[test]]
    name = "reads"
    read-mode = ["read-index", "unsafe"]

    [[test.where]]
    read-mode = "unsafe"
    expect = "invalid"

It applies to each combination that has these values; a list of values stands for any of them. If several tables apply, later
ones replace earlier ones. A table that applies to no combination is an error, because its author expects it to.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from harness.console.documents import shown
from harness.console.suggest import did_you_mean
from harness.errors import InputError
from harness.suites.rates import EXPECT_RATE, rate_from
from harness.suites.thresholds import Threshold, read_threshold
from harness.verdict import Verdict

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

EXPECT: Final = "expect"
KNOWN_FAILURES: Final = "known-failures"
DURING_FAULT: Final = "expect-during-fault"
EXPECT_PARTS: Final = "expect-parts"
THRESHOLDS: Final = "thresholds"
KEYS: Final = frozenset({EXPECT, DURING_FAULT, EXPECT_PARTS, KNOWN_FAILURES, THRESHOLDS, EXPECT_RATE})
WHERE: Final = "where"


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """What a test expects of a case.

    Attributes:
        verdict: The expected verdict.
        during_fault: Whether a violation must be during or after a fault.
        known_failures: The parts with their verdicts, `name=verdict`, that do not count.
        parts: The parts that must be invalid.
        thresholds: The limits for numbers of the run.
        rate: The share of runs that may be unexpected; None: none may.
    """

    verdict: Verdict
    during_fault: bool
    known_failures: frozenset[str]
    parts: frozenset[str]
    thresholds: Sequence[Threshold]
    rate: float | None


def expected_of(where: str, table: Mapping[str, Any]) -> Expected:
    """Reads the expectations in a table.

    Args:
        where: The file and the test, for messages.
        table: The table; other keys than those of expectations are ignored.

    Raises:
        InputError: A key has a value of another type, or two keys contradict each other.
    """
    try:
        verdict = Verdict(table.get(EXPECT, Verdict.VALID))
    except (ValueError, TypeError):
        raise InputError(f"{where}: expect takes valid, invalid or unknown, not {shown(table[EXPECT])}") from None
    during_fault = table.get(DURING_FAULT, False)
    if not isinstance(during_fault, bool):
        raise InputError(f"{where}: {DURING_FAULT} takes true or false, not {shown(during_fault)}")
    if during_fault and verdict is not Verdict.INVALID:
        raise InputError(f'{where}: {DURING_FAULT} needs expect = "invalid", and {verdict} is expected')
    parts = table.get(KNOWN_FAILURES, [])
    if not isinstance(parts, list) or not all(
        isinstance(part, str) and part.endswith((f"={Verdict.INVALID}", f"={Verdict.UNKNOWN}")) for part in parts
    ):
        raise InputError(f"{where}: {KNOWN_FAILURES} takes a list of PART=invalid or PART=unknown, not {shown(parts)}")
    return Expected(
        verdict=verdict,
        during_fault=during_fault,
        known_failures=frozenset(parts),
        parts=_expected_parts(where, table, verdict),
        thresholds=_thresholds(where, table),
        rate=rate_from(where, table.get(EXPECT_RATE)),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Where:
    """The expectations for some combinations of a test.

    Attributes:
        place: The file, the test and the number of the table, for messages.
        values: For each dimension that it names, the values that it applies to.
        table: Its expectations.
    """

    place: str
    values: Mapping[str, Sequence[Any]]
    table: Mapping[str, Any]

    def applies_to(self, combination: Mapping[str, Any]) -> bool:
        """Returns whether it applies to a combination: to the value of each dimension."""
        return all(combination[key] in values for key, values in self.values.items())


def wheres_of(where: str, tables: Any, dimensions: Mapping[str, Sequence[Any]]) -> list[Where]:
    """Reads the tables `[[test.where]]` of a test.

    Args:
        where: The file and the test, for messages.
        tables: The value of the key `where`.
        dimensions: The values of each dimension of the test.

    Raises:
        InputError: It is no list of tables, or a table has an unknown key, or values that no combination has.
    """
    if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
        raise InputError(f"{where}: expected tables [[test.where]], not {WHERE} = {shown(tables)}")
    wheres = []
    for number, table in enumerate(tables, 1):
        own = f"{where}, where {number}"
        for key in table:
            if key not in KEYS and key not in dimensions:
                raise InputError(
                    f"{own}: {key!r} is neither an expectation nor an option with a list of values in this test. "
                    f"{did_you_mean(key, {*KEYS, *dimensions})}"
                )
        values = {key: value if isinstance(value, list) else [value] for key, value in table.items() if key not in KEYS}
        if not values or not set(table) & KEYS:
            raise InputError(
                f"{own}: expected a value of a dimension, which is one of {', '.join(dimensions) or 'none'}, and an "
                f"expectation, which is one of {', '.join(sorted(KEYS))}"
            )
        for key, some in values.items():
            other = next((value for value in some if value not in dimensions[key]), None)
            if other is not None or not some:
                raise InputError(
                    f"{own}: {key} takes values of the test, {shown(list(dimensions[key]))}, not {shown(some)}"
                )
        wheres.append(Where(place=own, values=values, table={key: table[key] for key in table if key in KEYS}))
    return wheres


def _expected_parts(where: str, table: Mapping[str, Any], verdict: Verdict) -> frozenset[str]:
    """Reads the parts of the verdict that must be invalid."""
    parts = table.get(EXPECT_PARTS, [])
    if not isinstance(parts, list) or not all(isinstance(part, str) for part in parts):
        raise InputError(f'{where}: {EXPECT_PARTS} takes a list such as ["linearizable"], not {shown(parts)}')
    if parts and verdict is not Verdict.INVALID:
        raise InputError(f'{where}: {EXPECT_PARTS} needs expect = "invalid", and {verdict} is expected')
    return frozenset(parts)


def _thresholds(where: str, table: Mapping[str, Any]) -> tuple[Threshold, ...]:
    """Reads the thresholds of a test."""
    texts = table.get(THRESHOLDS, [])
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        raise InputError(f'{where}: {THRESHOLDS} takes a list such as ["p99_ms < 200"], not {shown(texts)}')
    try:
        return tuple(read_threshold(text) for text in texts)
    except InputError as error:
        raise InputError(f"{where}: {THRESHOLDS}: {error}") from error
