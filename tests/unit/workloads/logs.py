"""Histories of logs for tests, and a brute-force check of the rules of a log."""

from __future__ import annotations

import itertools
import json
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from checker.formats.columns import of_operations
from harness.op import Operation, OpType
from workloads.log import LogOptions, LogWorkload

if TYPE_CHECKING:
    import random
    from collections.abc import Iterator

    from checker.formats.columns import Columns
    from checker.judging import Judgement

NEVER = 2**62


@dataclass
class Script:
    """Operations as intervals of event indexes."""

    operations: list[Operation] = field(default_factory=list)

    def add(
        self,
        f: str,
        value: Any,
        result: Any,
        start: int,
        end: int,
        *,
        kind: OpType = OpType.OK,
        process: int | None = None,
    ) -> None:
        """Adds an operation; its times are its events in milliseconds."""
        self.operations.append(
            Operation(
                process=len(self.operations) if process is None else process,
                f=f,
                value=value,
                result=result if kind is OpType.OK else None,
                type=kind,
                start_ns=start * 1_000_000,
                end_ns=end * 1_000_000,
                invoke_index=start,
                complete_index=end,
            )
        )

    def judged(self) -> Judgement:
        """Returns the judgement of the operations, in the order of their invokes."""
        return judged(self.operations)


def judged(operations: list[Operation], *, linearizable: bool = True, follow: bool = False) -> Judgement:
    """Returns the judgement."""
    return LogWorkload(LogOptions(linearizable=linearizable, follow=follow)).judge(
        of_operations(sorted(operations, key=lambda op: op.invoke_index))
    )


def of_keys(histories: list[list[Operation]]) -> Columns:
    """Joins histories into one with a key for each; each has its own events."""
    together = [
        replace(op, key=f"k{index}")
        for index, operations in enumerate(histories)
        for op in sorted(operations, key=lambda op: op.invoke_index)
    ]
    return of_operations(together)


def found(judgement: Judgement) -> set[tuple[str, str]]:
    """Returns the kinds and subjects of the anomalies."""
    return {(anomaly.kind, json.dumps(anomaly.subject)) for anomaly in judgement.anomalies}


def in_turn(*operations: tuple[Any, ...]) -> list[Operation]:
    """Returns sequential operations from function, value, result and, if it is not ok, type."""
    script = Script()
    for index, (f, value, result, *kind) in enumerate(operations):
        script.add(f, value, result, 2 * index, 2 * index + 1, kind=kind[0] if kind else OpType.OK)
    return script.operations


def text(value: Any) -> str:
    """Returns a value's identity."""
    return json.dumps(value, sort_keys=True)


class Brute:
    """Checks each rule of a log by comparing all pairs of operations.

    Attributes:
        kinds: The kinds and subjects of the anomalies.
        counts: The expected `Judgement.counts`.
    """

    def __init__(self, operations: list[Operation]) -> None:
        ops = sorted(operations, key=lambda op: op.invoke_index)
        self.appends = [op for op in ops if op.f == "append"]
        self.reads = [op for op in ops if op.f == "read" and op.type is OpType.OK]
        self.tried = [op for op in self.appends if op.type is not OpType.FAIL]
        self.acked = [op for op in self.appends if op.type is OpType.OK]
        self.of_read = [(read, offset, value) for read in self.reads for offset, value in entries(read)]
        self.claims = [(op, op.result, text(op.value)) for op in self.acked if op.result is not None] + self.of_read
        self.where: dict[str, set[int]] = {}
        for _, offset, value in self.claims:
            self.where.setdefault(value, set()).add(offset)
        self.times = Counter(text(op.value) for op in self.tried)
        self.placed = [index for op in self.tried if (index := self._placed(op)) is not None]
        self.missing = {"lost": set(self._missing("lost")), "stale": set(self._missing("stale"))}
        self.changed = {at for (one, at, _), (other, _, _) in self._differing() if self._one_after(one, other)}
        self.conflict = set(self._conflicts())
        self.reordered = [
            (op, offset)
            for op, offset, _ in self.placed
            if any(high > offset and settled < op.invoke_index for _, high, settled in self.placed)
        ]
        self.vanished = [op for op in self.acked if self._vanished(op)]
        self.kinds = {
            *(("lost", str(at)) for at in self.missing["lost"]),
            *(("lost", text(op.value)) for op in self.vanished),
            *(("stale", str(at)) for at in self.missing["stale"]),
            *(("changed", str(at)) for at in self.changed),
            *(("conflict", str(at)) for at in self.conflict),
            *(("duplicated", value) for value, at in self.where.items() if 0 < self.times[value] < len(at)),
            *(("unexpected", value) for read, _, value in self.of_read if not self._begun(value, end(read))),
            *(("reordered", str(offset)) for _, offset in self.reordered),
        }
        self.counts = self._counts()
        self.of_reading = {
            *(("skipped", str(at)) for at in self._skipped() if at not in self.missing["lost"] | self.missing["stale"]),
            *((kind, str(at)) for read in self.reads for kind, at in misplaced(read)),
        }

    def _missing(self, kind: str) -> Iterator[int]:
        for offset in {offset for _, offset, _ in self.claims}:
            known = min(end(op) for op, at, _ in self.claims if at == offset)
            has = [op.invoke_index for op, at, _ in self.of_read if at == offset]
            lacks = [
                read.invoke_index
                for read in self.reads
                if covers(read, offset) and read.invoke_index > known and offset not in dict(entries(read))
            ]
            if lacks and kind == ("stale" if max(has, default=-1) > max(lacks) else "lost"):
                yield offset

    def _skipped(self) -> Iterator[int]:
        for (_, offset, _), read in itertools.product(self.claims, self.reads):
            seen = [at for at, _ in entries(read) if covers(read, at)]
            if covers(read, offset) and offset not in seen and any(at > offset for at in seen):
                yield offset

    def _differing(self) -> Iterator[tuple[tuple[Operation, int, str], tuple[Operation, int, str]]]:
        """Yields pairs of reads with different values at one offset."""
        for one, other in itertools.combinations(self.of_read, 2):
            if one[1] == other[1] and one[2] != other[2]:
                yield one, other

    def _one_after(self, one: Operation, other: Operation) -> bool:
        return end(one) < other.invoke_index or end(other) < one.invoke_index

    def _conflicts(self) -> Iterator[int]:
        yield from (at for (_, at, _), _ in self._differing() if at not in self.changed)
        for (one, at, value), (other, also_at, other_value) in itertools.combinations(self.claims, 2):
            answers = [one.f, other.f].count("append")
            if at == also_at and (answers == 2 or (answers == 1 and value != other_value)):
                yield at

    def _begun(self, value: str, before: int) -> bool:
        return any(text(op.value) == value and op.invoke_index < before for op in self.tried)

    def _placed(self, op: Operation) -> tuple[Operation, int, int] | None:
        """Returns the offset of an append's entry and the event from which it is known; None if unknown."""
        value, settled = text(op.value), end(op)
        single = self.times[value] == 1 and len(self.where.get(value, ())) == 1
        if single:
            settled = min([settled, *(end(read) for read, _, other in self.of_read if other == value)])
        if op.type is OpType.OK and op.result is not None:
            return op, op.result, settled
        return (op, next(iter(self.where[value])), settled) if single else None

    def _vanished(self, op: Operation) -> bool:
        if op.result is not None or self.where.get(text(op.value)):
            return False
        first = min([0, *(offset for _, offset, _ in self.claims)]) - 1
        low = max([offset for _, offset, settled in self.placed if settled < op.invoke_index], default=first)
        high = min([offset for one, offset, _ in self.placed if one.invoke_index > end(op)], default=None)
        return (high is not None and high > low) and all(
            any(covers(read, offset) and read.invoke_index > end(op) for read in self.reads)
            for offset in range(low + 1, high)
        )

    def _counts(self) -> Counter[str]:
        counts = Counter(kind for kind, _ in self.kinds)
        counts["reordered"] = len(self.reordered)
        counts["lost"] = len(self.missing["lost"]) + len(self.vanished)
        counts["acknowledged"] = len(self.acked)
        counts["failed"] = len(self.appends) - len(self.tried)
        counts["unanswered"] = len(self.tried) - len(self.acked)
        wrong = self.missing["lost"] | self.missing["stale"] | self.conflict
        for op in self.acked:
            at = next((offset for one, offset, _ in self.placed if one is op), None)
            if at is None:
                anywhere = bool(self.where.get(text(op.value)))
                counts["ok"] += anywhere
                counts["never-read"] += not anywhere and op not in self.vanished
            elif at not in wrong:
                read = any(offset == at for _, offset, _ in self.of_read)
                counts["ok"] += read
                counts["never-read"] += not read
        for value in {value for _, _, value in self.of_read}:
            answered = sum(text(op.value) == value for op in self.acked)
            counts["recovered"] += max(0, min(self.times[value], len(self.where[value])) - answered)
        return counts


def end(op: Operation) -> int:
    """Returns the event at which an operation ended."""
    return NEVER if op.type is OpType.INFO or op.complete_index is None else op.complete_index


def covers(read: Operation, offset: int) -> bool:
    """Returns whether a read covers an offset."""
    first, last = read.value if isinstance(read.value, list) else (read.value, read.value)
    return bool(first <= offset <= last)


def entries(read: Operation) -> list[tuple[int, str]]:
    """Returns the offsets and values that a read returned."""
    if isinstance(read.value, list):
        return [(offset, text(value)) for offset, value in read.result]
    return [] if read.result is None else [(read.value, text(read.result))]


def misplaced(read: Operation) -> Iterator[tuple[str, int]]:
    """Yields what a read shows in a way that a watch may not."""
    offsets = [offset for offset, _ in entries(read)]
    yield from (("outside", offset) for offset in offsets if not covers(read, offset))
    yield from (("repeated", offset) for offset in offsets if offsets.count(offset) > 1)
    for index, (before, offset) in enumerate(itertools.pairwise(offsets), 1):
        if offset < before and offset not in offsets[:index]:
            yield "disordered", offset


def at_random(draws: random.Random, *, values: list[Any], answers: bool, faulty: float) -> list[Operation]:
    """Returns a short history of a log.

    Args:
        draws: Where chance comes from.
        values: The values of the appends, in order.
        answers: Whether appends return offsets.
        faulty: The probability that an operation is wrong.
    """
    # Each operation is an interval with one moment at which it takes effect.
    count = len(values) * 2
    ends = draws.sample(range(4 * count), 2 * count)
    spans = sorted((min(pair), max(pair)) for pair in zip(ends[::2], ends[1::2], strict=True))
    moments = [draws.uniform(*span) for span in spans]
    gap = draws.choice([0, 0, 0.3])
    due = list(reversed(values))
    script = Script()
    log: list[tuple[int, Any]] = []
    done: list[tuple[int, int, str, Any, Any, OpType]] = []
    for (start, end), _ in sorted(zip(spans, moments, strict=True), key=lambda pair: pair[1]):
        wrong = draws.random() < faulty
        kind = draws.choices([OpType.OK, OpType.FAIL, OpType.INFO], [0.8, 0.1, 0.1])[0]
        if due and draws.random() < 0.55:
            value = due.pop()
            offset = (log[-1][0] + 1 if log else 0) + (draws.random() < gap)
            if wrong and draws.random() < 0.5:
                del log[draws.randrange(len(log) + 1) :]
            elif wrong:
                offset = draws.randrange(offset + 2)
            if (kind is not OpType.FAIL) != (wrong and draws.random() < 0.5):
                log.append((offset, value))
            done.append((start, end, "append", value, offset if answers and draws.random() < 0.95 else None, kind))
            continue
        top = max([offset for offset, _ in log], default=0) + 2
        seen = [entry for entry in log if not wrong or draws.random() < 0.7]
        if wrong and draws.random() < 0.3 and seen:
            seen[draws.randrange(len(seen))] = (draws.randrange(top), draws.choice([*values, 99]))
        if draws.random() < 0.5:
            at = draws.randrange(top)
            result: Any = next((value for offset, value in seen if offset == at), None)
            done.append((start, end, "read", at, result, kind))
        else:
            first = draws.randrange(-1, top)
            last = first + draws.randrange(-1, top + 2)
            result = [[offset, value] for offset, value in seen if first <= offset <= last or (wrong and offset == 0)]
            draws.shuffle(result)
            done.append((start, end, "read", [first, last], result, kind))
    for start, end, f, value, result, kind in sorted(done, key=lambda row: row[0]):
        script.add(f, value, result, start, end, kind=kind)
    return script.operations
