"""How bad a verdict is, as a number that Spark can order and take the greatest of."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F  # noqa: N812 - the name that all of Spark's users know

from harness.verdict import Verdict

if TYPE_CHECKING:
    from pyspark.sql import Column

INVALID: Final = 2
_UNKNOWN: Final = 1


def badness(verdict: Column) -> Column:
    """Returns how bad a verdict is: 0 for a valid one and for none, 1 for an unknown one, 2 for an invalid one."""
    return F.when(verdict == str(Verdict.INVALID), INVALID).when(verdict == str(Verdict.UNKNOWN), _UNKNOWN).otherwise(0)


def word(badness: Column) -> Column:
    """Returns the verdict that is so bad; null for null."""
    return (
        F.when(badness == INVALID, str(Verdict.INVALID))
        .when(badness == _UNKNOWN, str(Verdict.UNKNOWN))
        .when(badness == 0, str(Verdict.VALID))
    )
