"""Makes the verdict of what the parts of a history show, in the words of the kernel's judge."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

from checker._kernel import Cycle, Finding, Link, Ordering, Overlap, TransactionFindings, VersionReason, WrittenTwice
from checker.consistency import prohibited
from checker.judging import STEP_LIMIT
from checker.transactions.judge import IN_PARTS, judged
from checker.transactions.twice import written_twice
from checker.transactions.words import REGISTERS
from harness.errors import InputError
from harness.verdict import Verdict
from results.pipeline.spark.large_transactions.by_key import KEPT

if TYPE_CHECKING:
    from collections.abc import Mapping

    from checker.consistency import Question
    from checker.formats.columns import Columns
    from checker.judging import Judge, Judgement

OUT_OF_MEMORY: Final = "out-of-memory"
Ref = tuple[int, ...]  # the numbers that name a piece, see `pieces.REF`
Name = tuple[str | None, str | None, str | None, int]  # key, version before, version after, source
# The kernel searches these after all other cycles, in this order.
_ORDER: Final = {
    name: index
    for index, name in enumerate(
        ("G-forced", "forced-update", "observed-transaction-vanishes", "fractured-read", "G-causal", "missed-update",
         "G-prefix", "G-monotonic", "G-MSR", "G-update"), 1,
    )
}  # fmt: skip
_SOURCES: Final = ("initial", "writes-follow-reads", "sequential-keys", "linearizable-keys")


@dataclass(slots=True, kw_only=True)
class Gathered:
    """What the parts show.

    Attributes:
        told: What the keys tell about the whole history.
        findings: The anomalies that are no cycles, the first ones of each type.
        counts: The number of each type of these.
        shown: What the slices and the windows tell.
        size: The number of transactions.
        memory_limit: Bytes of a part.
    """

    told: list[dict[str, Any]]
    size: int
    memory_limit: int
    findings: list[Mapping[str, Any]] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)
    shown: list[dict[str, Any]] = field(default_factory=list)

    def wrong(self) -> tuple[int, str] | None:
        """Returns the start of the first transaction that the workload cannot judge, and what is wrong; None for none."""
        return min(((told["start"], told["wrong"]) for told in self.told if "wrong" in told), default=None)

    def hold(self) -> None:
        """Raises InputError if a row is no operation."""
        for told in self.told:
            if "error" in told:
                raise InputError(told["error"])

    def twice(self) -> tuple[str, str, list[int], list[int]] | None:
        """Returns the first write of an element that was written before: key, element, starts and places."""
        pairs = [told["twice"] for told in self.told if "twice" in told]
        return min(pairs, key=lambda pair: (pair[2][1], pair[3][1]), default=None)

    def contradicted(self) -> list[int]:
        """Returns the sources of the orders of versions that contradict the others in a key."""
        return sorted({number for told in self.told for number in told.get("contradicted", ())})

    def trouble(self) -> str | None:
        """Returns why something is not decided; None if all is."""
        limit = f"the limit of {self.memory_limit >> 20} MiB; raise it with --memory-limit"
        keys = [told for told in self.told if "large" in told]
        if keys:
            most = max(key["large"] for key in keys)
            return f"The operations on one key, or on few keys, have {most} parts of transactions, more than {limit}."
        large = [shown["large"] for shown in self.shown if "large" in shown]
        if large:
            return f"A part of the graph has {max(large)} pieces, more than {limit}."
        if any("over" in shown or "wide" in shown for shown in self.shown):
            return f"Transactions that are far apart may depend on each other, and those between them take more than {limit}."
        return None


def alone(judge: Judge, columns: Columns, size: int) -> Judgement:
    """Returns the judgement of a history with a transaction that the workload cannot judge; the columns have only this one."""
    result = judge.judge(columns)
    return replace(result, counts={**result.counts, "transactions": size})


def starts_of(gathered: Gathered) -> list[int]:
    """Returns the starts of all transactions that the explanations name."""
    starts: set[int] = set()
    twice = gathered.twice()
    if twice is not None:
        starts.update(twice[2])
    for finding in gathered.findings:
        starts.update(json.loads(finding["about"])[1])
    for cycle in _cycles(gathered):
        starts.update(start for link in cycle[3] for start in link[:2])
    for overlap in _overlaps(gathered):
        starts.update(start for start, _ in overlap[4])
    return sorted(starts)


def refs_of(gathered: Gathered) -> set[Ref]:
    """Returns the pieces whose keys and versions the explanations name."""
    refs = {tuple(ref) for cycle in _cycles(gathered) for link in cycle[3] for ref in link[3:] if ref is not None}
    return refs | {tuple(ref) for overlap in _overlaps(gathered) for _, ref in overlap[4]}


def _cycles(gathered: Gathered) -> list[Any]:
    """Returns cycles in the order of the kernel: those that are searched on demand come last."""
    some = [shown["cycle"] for shown in gathered.shown if "cycle" in shown]
    return sorted(_first(some), key=lambda cycle: _ORDER.get(cycle[0], 0))


def _overlaps(gathered: Gathered) -> list[Any]:
    """Returns overlaps; at most one of a component, as the kernel has it."""
    some = sorted(
        (shown["overlap"] for shown in gathered.shown if "overlap" in shown),
        key=lambda overlap: (overlap[0], overlap[4][:1]),
    )
    return _first(some)


def _first(some: list[Any]) -> list[Any]:
    counts: Counter[str] = Counter()
    kept = []
    for entry in sorted(some, key=lambda entry: entry[2]):
        counts[entry[0]] += 1
        if counts[entry[0]] <= KEPT:
            kept.append(entry)
    return kept


def judgement(question: Question, gathered: Gathered, columns: Columns, names: Mapping[Ref, Name]) -> Judgement:
    """Returns the judgement.

    Args:
        question: What is asked.
        gathered: What the parts show.
        columns: The transactions of `starts_of`, in the order of their starts.
        names: The words of `refs_of`.
    """
    row = {start: index for index, start in enumerate(columns.start.tolist())}
    twice = gathered.twice()
    if twice is not None:
        key, elem, starts, places = twice
        rows = [row[start] for start in starts]
        return written_twice(columns, WrittenTwice(key=key, element=elem, rows=rows, places=places))
    findings = []
    for entry in sorted(
        gathered.findings, key=lambda entry: (entry["step"], entry["at"], entry["place"], entry["number"])
    ):
        key, starts, places, elems = json.loads(entry["about"])
        rows = [row[start] for start in starts]
        findings.append(Finding(kind=entry["name"], key=key, rows=rows, places=places, elements=elems))
    reasons: set[tuple[str, str, str, str]] = set()
    cycles = []
    for name, component, _, links in _cycles(gathered):
        told = []
        for a, b, kind, before, after in links:
            data = kind not in {"process", "realtime"}
            first = names.get(tuple(before or ())) if data else None
            last = names.get(tuple(after or ())) if data else None
            named = first or last
            where = named[0] if named else None
            old, new = (first[1] if first else None), (last[2] if last else None)
            if first and first[3] >= 0 and old is not None:
                reasons.add((where or "", old, new or "", _SOURCES[first[3]]))
            told.append(Link(first=row[a], second=row[b], kind=kind, key=where, before=old, after=new))
        cycles.append(Cycle(kind=name, component=component, links=told))
    overlaps = [
        Overlap(
            kind=name,
            component=component,
            decided=decided,
            writers=[(row[start], names[tuple(ref)][0] or "") for start, ref in writers],
        )
        for name, component, _, decided, writers in _overlaps(gathered)
    ]
    counts = Counter(gathered.counts)
    for entry in gathered.shown:
        counts.update(entry.get("counts", {}))
    is_open = question.workload == REGISTERS and prohibited(question.model, question.anomalies).isdisjoint(counts)
    result = TransactionFindings(
        findings=findings,
        cycles=cycles,
        overlaps=overlaps,
        counts=dict(counts),
        data_edges=sum(told.get("edges", 0) for told in gathered.told),
        reasons=[
            VersionReason(key=key, before=before, after=after, source=source)
            for key, before, after, source in sorted(reasons)
        ],
        ordering=Ordering(answer=IN_PARTS, cases=[], rows=[]) if is_open else None,
    )
    decided = judged(columns, question, result, gathered.size)
    trouble = gathered.trouble()
    if trouble is None:
        return replace(decided, cause=OUT_OF_MEMORY) if is_open and decided.cause == STEP_LIMIT else decided
    if decided.verdict is Verdict.INVALID:
        return replace(decided, reason=f"{decided.reason} It may have other anomalies too. {trouble}")
    return replace(decided, verdict=Verdict.UNKNOWN, cause=OUT_OF_MEMORY, reason=trouble)
