"""The summary of an output folder, in a few numbers and rows; see `results.pipeline.write.summary`."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from harness.suites.expectation import Outcome
from harness.verdict import Verdict
from results.pipeline.single.tables import LAYOUTS, read_table
from results.pipeline.write.summary import SHOWN_ROWS, Refusal, Summary

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from results.pipeline.write.output import Manifest


def summary(root: str, manifest: Manifest, *, read: int = 0) -> Summary:
    """Returns the summary of an output folder; see `results.pipeline.write.summary.summary`."""
    there = read_table(root, manifest, "verdicts", [n for n in LAYOUTS["verdicts"].names if n != "counterexample"])
    outcomes = {row["run"]: row["outcome"] for row in read_table(root, manifest, "trends", ("outcome",))}
    for row in there:
        row["outcome"] = outcomes.get(row["run"])
    there.sort(key=_unexpected_first)
    refused: dict[str, list[str]] = {}
    for row in read_table(root, manifest, "quarantine", ("source", "reason")):
        refused.setdefault(row["reason"], []).append(row["source"])
    reasons = sorted(refused, key=lambda reason: (-len(refused[reason]), reason))

    def first(column: str, verdict: Verdict) -> Sequence[Mapping[str, Any]]:
        return [row for row in there if row[column] == str(verdict)][:SHOWN_ROWS]

    return Summary(
        out=root,
        runs=sum(len(runs) for runs in manifest.runs.values()),
        read=read,
        operations=sum(row["operations"] for row in there),
        counts=Counter(row["verdict"] for row in there),
        outcomes=Counter(outcome for outcome in outcomes.values() if outcome is not None),
        refuted=first("verdict", Verdict.INVALID),
        undecided=first("verdict", Verdict.UNKNOWN),
        orders=Counter(row["order_agrees"] for row in there if row["order_agrees"] is not None),
        misordered=first("order_agrees", Verdict.INVALID),
        reasons=[
            Refusal(reason=reason, rows=len(places), source=min(places), sources=len(set(places)))
            for reason, places in ((reason, refused[reason]) for reason in reasons[:SHOWN_ROWS])
        ],
        quarantined=sum(map(len, refused.values())),
        tables=manifest.tables(root),
    )


def _unexpected_first(row: Mapping[str, Any]) -> tuple[bool, str, bool, str]:
    return row["outcome"] != Outcome.UNEXPECTED, row["run"], row["key"] is not None, row["key"] or ""
