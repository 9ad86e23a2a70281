"""The severity of a verdict, as a number that Spark can sort."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - the name that all of Spark's users know

from harness.verdict import Verdict

if TYPE_CHECKING:
    from pyspark.sql import Column


def badness(verdict: Column) -> Column:
    """Returns the severity of a verdict; null has the severity of unknown, since nothing was judged."""
    known = (F.when(verdict == str(each), each.severity) for each in Verdict)
    return F.coalesce(*known, F.lit(Verdict.UNKNOWN.severity))
