"""The summary of an output folder, in a few numbers and rows: the output of the command, and the head of the page."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import pyarrow.compute as pc

from checker.judging import UNPROMISED
from harness.suites.expectation import CaseOutcome
from harness.verdict import Verdict, worst
from results.pipeline.schema import VERDICTS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pyarrow as pa

    from harness.errors import ExitCode
    from results.pipeline.write.output import Manifest
    from results.pipeline.write.tables import Reading

SHOWN_ROWS: Final = 20
UNKNOWN: Final = str(Verdict.UNKNOWN)


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
        outcomes: The number of runs with each outcome, by the names of `harness.suites.expectation.CaseOutcome`.
        refuted: The first invalid keys, as rows of `schema.VERDICTS` with the `outcome` of the run; unexpected ones first.
        undecided: The first unknown keys, likewise.
        orders: The number of keys with each verdict on the system's own order.
        misordered: The first keys where that order is not legal.
        reasons: The most frequent reasons in quarantine.
        quarantined: The number of rows in quarantine.
        tables: The folders of each table.
        unpromised: How many of the unknown keys promised nothing, in runs with other keys: they hide no verdict.
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
    unpromised: int = 0

    @property
    def verdict(self) -> Verdict:
        """The worst verdict of all keys; unknown if there is none, because nothing was judged."""
        telling = {**self.counts, UNKNOWN: self.counts.get(UNKNOWN, 0) - self.unpromised}
        return worst(verdict for verdict in Verdict if telling.get(str(verdict)))

    @property
    def outcome(self) -> Verdict:
        """The worst outcome of all runs as a verdict: negative controls and known failures do not count as failures."""
        verdicts = [CaseOutcome(name).verdict for name, runs in self.outcomes.items() if runs]
        return worst([*verdicts, Verdict.UNKNOWN] if sum(self.outcomes.values()) < self.runs else verdicts)

    @property
    def exit_code(self) -> ExitCode:
        """The exit code of the verdict."""
        return self.verdict.exit_code


def summary(read_tables: Reading, root: str, manifest: Manifest, *, read: int = 0) -> Summary:
    """Returns the summary of an output folder.

    Args:
        read_tables: Reads its tables.
        root: The folder's URI.
        manifest: Its manifest.
        read: How many runs this job has read.
    """
    verdicts = read_tables("verdicts", ("run", "verdict", "cause", "operations", "order_agrees"))
    counts, orders = _counted(verdicts.column("verdict")), _counted(verdicts.column("order_agrees"))
    trends = read_tables("trends", ("run", "outcome"))
    outcomes = dict(zip(trends.column("run").to_pylist(), trends.column("outcome").to_pylist(), strict=True))
    refused = read_tables("quarantine", ("reason", "source")).group_by("reason")
    by_reason = refused.aggregate([("source", "count"), ("source", "min"), ("source", "count_distinct")]).to_pylist()
    by_reason.sort(key=lambda row: (-row["source_count"], row["reason"]))

    def first(column: str, verdict: Verdict, known: Mapping[str, int]) -> Sequence[Mapping[str, Any]]:
        return _first(read_tables, column, verdict, outcomes) if str(verdict) in known else []

    return Summary(
        out=root,
        runs=sum(len(runs) for runs in manifest.runs.values()),
        read=read,
        operations=pc.sum(verdicts.column("operations")).as_py() or 0,
        counts=counts,
        outcomes=_counted(trends.column("outcome")),
        refuted=first("verdict", Verdict.INVALID, counts),
        undecided=first("verdict", Verdict.UNKNOWN, counts),
        orders=orders,
        misordered=first("order_agrees", Verdict.INVALID, orders),
        reasons=[
            Refusal(
                reason=row["reason"],
                rows=row["source_count"],
                source=row["source_min"],
                sources=row["source_count_distinct"],
            )
            for row in by_reason[:SHOWN_ROWS]
        ],
        quarantined=sum(row["source_count"] for row in by_reason),
        tables=manifest.tables(root),
        unpromised=_unpromised(verdicts),
    )


def _unpromised(verdicts: pa.Table) -> int:
    """Returns how many keys promised nothing, of the runs that have other keys."""
    cause = pc.fill_null(verdicts.column("cause"), "")
    silent = pc.and_(pc.equal(verdicts.column("verdict"), UNKNOWN), pc.equal(cause, UNPROMISED))
    telling = pc.unique(verdicts.column("run").filter(pc.invert(silent)))
    beside = pc.is_in(verdicts.column("run"), value_set=telling)
    return pc.sum(pc.and_(silent, beside)).as_py() or 0


def _counted(column: pa.ChunkedArray) -> dict[str, int]:
    """Returns how often a column has each text; nulls do not count."""
    return {row["values"]: row["counts"] for row in pc.value_counts(column.drop_null()).to_pylist()}


def _first(
    read_tables: Reading, column: str, verdict: Verdict, outcomes: Mapping[str, str | None]
) -> Sequence[Mapping[str, Any]]:
    """Returns the first rows of verdicts with a verdict; those of runs with an unexpected outcome come before the others."""
    rows = read_tables(
        "verdicts", [name for name in VERDICTS.names if name != "counterexample"], **{column: [str(verdict)]}
    )
    names = list(zip(rows.column("run").to_pylist(), rows.column("key").to_pylist(), strict=True))

    def order(index: int) -> tuple[bool, str, bool, str]:
        run, key = names[index]
        return outcomes.get(run) != CaseOutcome.UNEXPECTED, run, key is not None, key or ""

    chosen = rows.take(sorted(range(len(names)), key=order)[:SHOWN_ROWS])
    return [{**row, "outcome": outcomes.get(row["run"])} for row in chosen.to_pylist()]
