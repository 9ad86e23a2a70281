"""The summary of an output folder, in a few numbers and rows: the output of the command, and the head of the page."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import functions as F  # noqa: N812 - the name that all of Spark's users know

from harness.suites.expectation import Outcome
from harness.verdict import Verdict, worst
from results.pipeline.write.output import read_table

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import DataFrame, SparkSession

    from harness.errors import ExitCode
    from results.pipeline.write.output import Manifest

SHOWN_ROWS: Final = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """A reason for which rows are in quarantine.

    Attributes:
        reason: The reason.
        rows: How many rows have it.
        source: The first of the files that have such rows.
        sources: How many files have such rows.
    """

    reason: str
    rows: int
    source: str
    sources: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """The summary of an output folder.

    Attributes:
        out: The folder's URI.
        runs: The number of its runs.
        read: How many of them this job has read.
        operations: The number of judged operations.
        counts: The number of keys with each verdict.
        outcomes: The number of runs with each outcome, by the names of `harness.suites.expectation.Outcome`.
        refuted: The first invalid keys, as rows of `schema.VERDICTS` with the `outcome` of the run; unexpected ones first.
        undecided: The first unknown keys, likewise.
        orders: The number of keys with each verdict on the system's own order.
        misordered: The first keys where that order is not legal.
        reasons: The most frequent reasons in quarantine.
        quarantined: The number of rows in quarantine.
        tables: The folders of each table.
    """

    out: str
    runs: int
    read: int
    operations: int
    counts: Mapping[str, int]
    outcomes: Mapping[str, int]
    refuted: Sequence[Mapping[str, Any]]
    undecided: Sequence[Mapping[str, Any]]
    orders: Mapping[str, int]
    misordered: Sequence[Mapping[str, Any]]
    reasons: Sequence[Refusal]
    quarantined: int
    tables: Mapping[str, Sequence[str]]

    @property
    def verdict(self) -> Verdict:
        """The worst verdict of all keys; unknown if there is none, because nothing was judged."""
        found = [verdict for verdict in Verdict if self.counts.get(str(verdict))]
        return worst(found)

    @property
    def outcome(self) -> Verdict:
        """The worst outcome of all runs as a verdict: negative controls and known failures do not count as failures."""
        found = [Outcome(name).verdict for name, runs in self.outcomes.items() if runs]
        return worst([*found, Verdict.UNKNOWN] if sum(self.outcomes.values()) < self.runs else found)

    @property
    def exit_code(self) -> ExitCode:
        """The exit code of the verdict."""
        return self.verdict.exit_code


def summary(spark: SparkSession, root: str, manifest: Manifest, *, read: int = 0) -> Summary:
    """Returns the summary of an output folder.

    Args:
        spark: The session.
        root: The folder's URI.
        manifest: Its manifest.
        read: How many runs this job has read.
    """
    there = read_table(spark, root, manifest, "verdicts")
    quarantine = read_table(spark, root, manifest, "quarantine")
    compared = read_table(spark, root, manifest, "trends")
    assert there is not None and quarantine is not None and compared is not None  # noqa: S101, PT018 - each job writes them
    outcomes = {row["outcome"]: row["count"] for row in compared.groupBy("outcome").count().collect()}
    there = there.join(compared.select("run", "outcome"), "run", "left")
    counted = (
        there.groupBy("verdict").agg(F.count("*").alias("keys"), F.sum("operations").alias("operations")).collect()
    )
    counts = {row["verdict"]: row["keys"] for row in counted}
    ordered = there.where("order_agrees is not null").groupBy("order_agrees").count().collect()
    orders = {row["order_agrees"]: row["count"] for row in ordered}
    quarantined = quarantine.count()
    by_reason = (
        quarantine.groupBy("reason")
        .agg(F.count("*").alias("rows"), F.min("source").alias("source"), F.count_distinct("source").alias("sources"))
        .orderBy(F.desc("rows"), "reason")
        .limit(SHOWN_ROWS)
    )
    return Summary(
        out=root,
        runs=sum(len(runs) for runs in manifest.runs.values()),
        read=read,
        operations=sum(row["operations"] for row in counted),
        counts=counts,
        outcomes={name: count for name, count in outcomes.items() if name is not None},
        refuted=_first(there, "verdict", Verdict.INVALID) if Verdict.INVALID in counts else [],
        undecided=_first(there, "verdict", Verdict.UNKNOWN) if Verdict.UNKNOWN in counts else [],
        orders=orders,
        misordered=_first(there, "order_agrees", Verdict.INVALID) if Verdict.INVALID in orders else [],
        reasons=[Refusal(**row.asDict()) for row in by_reason.collect()] if quarantined else [],
        quarantined=quarantined,
        tables=manifest.tables(root),
    )


def _first(rows: DataFrame, column: str, verdict: Verdict) -> list[dict[str, Any]]:
    expected = F.coalesce(F.col("outcome") != str(Outcome.UNEXPECTED), F.lit(True))  # noqa: FBT003 - it takes no keyword
    some = rows.where(F.col(column) == str(verdict)).orderBy(expected, "run", "key").limit(SHOWN_ROWS)
    return [row.asDict() for row in some.drop("counterexample").collect()]
