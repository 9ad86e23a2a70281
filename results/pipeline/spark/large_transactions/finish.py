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
    name: place
    for place, name in enumerate(
        ("G-forced", "forced-update", "observed-transaction-vanishes", "fractured-read", "G-causal", "missed-update",
         "G-prefix", "G-monotonic", "G-MSR", "G-update"), 1,
    )
}  # fmt: skip
_SOURCES: Final = ("initial", "writes-follow-reads", "sequential-keys", "linearizable-keys")


@dataclass(slots=True, kw_only=True)
class Found:
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
        return min(((each["start"], each["wrong"]) for each in self.told if "wrong" in each), default=None)

    def hold(self) -> None:
        """Raises InputError if a row is no operation."""
        for each in self.told:
            if "error" in each:
                raise InputError(each["error"])

    def twice(self) -> tuple[str, str, list[int], list[int]] | None:
        """Returns the first write of an element that was written before: key, element, starts and places."""
        found = [each["twice"] for each in self.told if "twice" in each]
        return min(found, key=lambda each: (each[2][1], each[3][1]), default=None)

    def contradicted(self) -> list[int]:
        """Returns the sources of the orders of versions that contradict the others in a key."""
        return sorted({number for each in self.told for number in each.get("contradicted", ())})

    def trouble(self) -> str | None:
        """Returns why something is not decided; None if all is."""
        limit = f"the limit of {self.memory_limit >> 20} MiB; raise it with --memory-limit"
        keys = [each for each in self.told if "large" in each]
        if keys:
            most = max(each["large"] for each in keys)
            return f"The operations on one key, or on few keys, have {most} parts of transactions, more than {limit}."
        large = [each["large"] for each in self.shown if "large" in each]
        if large:
            return f"A part of the graph has {max(large)} pieces, more than {limit}."
        if any("over" in each or "wide" in each for each in self.shown):
            return f"Transactions that are far apart may depend on each other, and those between them take more than {limit}."
        return None


def alone(judge: Judge, columns: Columns, size: int) -> Judgement:
    """Returns the judgement of a history with a transaction that the workload cannot judge; the columns have only this one."""
    found = judge.judge(columns)
    return replace(found, counts={**found.counts, "transactions": size})


def starts_of(found: Found) -> list[int]:
    """Returns the starts of all transactions that the explanations name."""
    starts: set[int] = set()
    twice = found.twice()
    if twice is not None:
        starts.update(twice[2])
    for each in found.findings:
        starts.update(json.loads(each["about"])[1])
    for cycle in _cycles(found):
        starts.update(start for link in cycle[3] for start in link[:2])
    for overlap in _overlaps(found):
        starts.update(start for start, _ in overlap[4])
    return sorted(starts)


def refs_of(found: Found) -> set[Ref]:
    """Returns the pieces whose keys and versions the explanations name."""
    refs = {tuple(ref) for cycle in _cycles(found) for link in cycle[3] for ref in link[3:] if ref is not None}
    return refs | {tuple(ref) for overlap in _overlaps(found) for _, ref in overlap[4]}


def _cycles(found: Found) -> list[Any]:
    """Returns cycles in the order of the kernel: those that are searched on demand come last."""
    some = [each["cycle"] for each in found.shown if "cycle" in each]
    return sorted(_first(some), key=lambda each: _ORDER.get(each[0], 0))


def _overlaps(found: Found) -> list[Any]:
    """Returns overlaps; at most one of a component, as the kernel has it."""
    some = sorted(
        (each["overlap"] for each in found.shown if "overlap" in each), key=lambda each: (each[0], each[4][:1])
    )
    return _first(some)


def _first(some: list[Any]) -> list[Any]:
    counts: Counter[str] = Counter()
    kept = []
    for each in sorted(some, key=lambda each: each[2]):
        counts[each[0]] += 1
        if counts[each[0]] <= KEPT:
            kept.append(each)
    return kept


def judgement(question: Question, found: Found, columns: Columns, names: Mapping[Ref, Name]) -> Judgement:
    """Returns the judgement.

    Args:
        question: What is asked.
        found: What the parts show.
        columns: The transactions of `starts_of`, in the order of their starts.
        names: The words of `refs_of`.
    """
    row = {start: place for place, start in enumerate(columns.start.tolist())}
    twice = found.twice()
    if twice is not None:
        key, elem, starts, places = twice
        rows = [row[start] for start in starts]
        return written_twice(columns, WrittenTwice(key=key, element=elem, rows=rows, places=places))
    findings = []
    for each in sorted(found.findings, key=lambda each: (each["step"], each["at"], each["place"], each["number"])):
        key, starts, places, elems = json.loads(each["about"])
        rows = [row[start] for start in starts]
        findings.append(Finding(kind=each["name"], key=key, rows=rows, places=places, elements=elems))
    reasons: set[tuple[str, str, str, str]] = set()
    cycles = []
    for name, component, _, links in _cycles(found):
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
        for name, component, _, decided, writers in _overlaps(found)
    ]
    counts = Counter(found.counts)
    for each in found.shown:
        counts.update(each.get("counts", {}))
    is_open = question.workload == REGISTERS and prohibited(question.model, question.anomalies).isdisjoint(counts)
    result = TransactionFindings(
        findings=findings,
        cycles=cycles,
        overlaps=overlaps,
        counts=dict(counts),
        data_edges=sum(each.get("edges", 0) for each in found.told),
        reasons=[
            VersionReason(key=key, before=before, after=after, source=source)
            for key, before, after, source in sorted(reasons)
        ],
        ordering=Ordering(answer=IN_PARTS, cases=[], rows=[]) if is_open else None,
    )
    decided = judged(columns, question, result, found.size)
    trouble = found.trouble()
    if trouble is None:
        return replace(decided, cause=OUT_OF_MEMORY) if is_open and decided.cause == STEP_LIMIT else decided
    if decided.verdict is Verdict.INVALID:
        return replace(decided, reason=f"{decided.reason} It may have other anomalies too. {trouble}")
    return replace(decided, verdict=Verdict.UNKNOWN, cause=OUT_OF_MEMORY, reason=trouble)
