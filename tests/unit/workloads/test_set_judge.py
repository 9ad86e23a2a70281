"""The judge of sets: the kind of each element, the verdict, and the reasons."""

from __future__ import annotations

import json
import random
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from checker.checking import Request, check_file
from checker.deciders import Wanted
from checker.formats.columns import of_operations
from checker.formats.jepsen import write_history
from checker.formats.parquet import write_operations
from checker.identity import identity
from checker.judging import Judgement, part_of
from checker.judging.judged import Judged
from checker.models import model
from checker.search.brute import linearizable as brute
from harness.errors import InputError
from harness.op import Operation, OpType
from harness.pairing import events_of
from harness.verdict import Verdict
from tests.unit.workloads.spoiled_histories import MS, operation, random_history
from workloads.set import SetOptions, SetWorkload

if TYPE_CHECKING:
    from pathlib import Path

SORTS = ("ok", "recovered", "stale", "lost", "never-read", "unconfirmed", "failed", "unexpected")
STRICT, LOOSE = SetWorkload(), SetWorkload(SetOptions(linearizable=False, rest=0))
OTHERS = ["x", [1, 2], [1], None, 1.5, True, 10**18, -3, {"a": [1]}, "1"]


def judged(operations: list[Operation], *, linearizable: bool = True) -> Judgement:
    """Judges one set."""
    return (STRICT if linearizable else LOOSE).judge(of_operations(operations))


def add(begin: int, end: int, element: Any, kind: OpType = OpType.OK) -> Operation:
    """Returns an add."""
    return operation(begin, end, "add", element, element, kind)


def read(begin: int, end: int, *elements: Any) -> Operation:
    """Returns a read."""
    return operation(begin, end, "read", None, list(elements), process=1)


def sort_of(element: Any, operations: list[Operation]) -> str | None:
    """Returns the kind of an element, directly by the judge's docstring."""
    same = [op for op in operations if op.f == "add" and identity(op.value) == identity(element)]
    may = [op for op in same if op.type is not OpType.FAIL]
    reads = [op for op in operations if op.f == "read" and op.type is OpType.OK]
    having = [own_read for own_read in reads if identity(element) in map(identity, own_read.result)]
    lacking = [own_read for own_read in reads if own_read not in having]
    if any(all(ended(own_read) < one.invoke_index for one in may) for own_read in having):
        return "unexpected"
    if not may:
        return "failed" if same else None
    sure = [op for op in may if op.type is OpType.OK]
    known = min((ended(op) for op in [*sure, *having]), default=1 << 60)
    last_with = max((own_read.invoke_index for own_read in having), default=-1)
    last_without = max((own_read.invoke_index for own_read in lacking), default=-1)
    if any(own_read.invoke_index > known for own_read in lacking):
        return "lost" if last_with < last_without else "stale"
    if last_with > last_without:
        return "ok" if sure else "recovered"
    return "never-read" if sure else "unconfirmed"


def ended(op: Operation) -> int:
    """Returns the index of a completion."""
    assert op.complete_index is not None
    return op.complete_index


def overlapping(source: random.Random) -> list[Operation]:
    """Returns many overlapping operations, with random reads."""
    size, adds = source.randint(3, 7), source.randint(2, 3)
    begins = [source.uniform(0, 0.5) if index < adds else source.uniform(0.2, 1) for index in range(size)]
    times = [*begins, *(begin + source.uniform(0, 0.7) for begin in begins)]
    event = {time: index for index, time in enumerate(sorted(times))}
    made = []
    for index in range(size):
        begin, end = event[times[index]], event[times[size + index]]
        if index < adds:
            made.append(operation(begin, end, "add", index, index, process=index))
        else:
            returned = [element for element in (0, 1, 2, 0) if source.random() < (0.6 if element else 0.4)]
            made.append(operation(begin, end, "read", None, returned, process=index))
    return sorted(made, key=lambda op: op.invoke_index)


def drawn(seed: int) -> list[Operation]:
    """Returns a small random history with bugs now and then."""
    source = random.Random(seed)
    if seed % 2:
        return overlapping(source)
    state: list[Any] = []
    elements: list[Any] = source.choice([list(range(6)), [7, *OTHERS], [1, 10**17, -(10**17), 4]])
    again = source.random() < 0.3
    bad = source.random() < 0.6

    def call(number: int) -> tuple[str, Any]:
        if source.random() < 0.55:
            return "read", None
        return "add", source.choice(elements) if again else elements[number % len(elements)]

    def apply(f: str, value: Any) -> Any:
        if f == "add" and identity(value) not in map(identity, state):
            state.append(value)
        return value if f == "add" else list(state)

    def spoil(f: str, result: Any) -> Any:
        if f != "read" or result is None or not bad or source.random() < 0.5:
            return result
        listed = list(result)
        if listed and source.random() < 0.7:
            listed.pop(source.randrange(len(listed)))
        if source.random() < 0.2:
            listed.append(source.choice(elements))
        source.shuffle(listed)
        return listed

    return random_history(source, size=source.randint(1, 9), call=call, apply=apply, spoil=spoil)


def is_lost_at_rest(element: Any, operations: list[Operation]) -> bool:
    """Returns whether a read that began after all adds had ended shows a loss, directly by the judge's docstring."""
    if sort_of(element, operations) != "lost":
        return False
    rest_ns = max(op.start_ns if op.end_ns is None else op.end_ns for op in operations if op.f == "add")
    reads = [op for op in operations if op.f == "read" and op.type is OpType.OK]
    having = [own_read for own_read in reads if identity(element) in map(identity, own_read.result)]
    sure = [
        op for op in operations if op.f == "add" and op.type is OpType.OK and identity(op.value) == identity(element)
    ]
    known = min(ended(op) for op in [*sure, *having])
    after = max([known, *(own_read.invoke_index for own_read in having)])
    return any(own_read.start_ns >= rest_ns and own_read.invoke_index > after for own_read in reads)


def test_reads_that_may_be_late_prove_no_loss() -> None:
    """A read that lacks an element proves its loss if it came after a rest, or is a final one; else the set is unknown."""
    at_rest = SetWorkload(SetOptions(linearizable=False, rest=5.0))
    early = [add(0, 1, 7), read(2, 3), add(4, 5, 8), read(6, 7, 8)]
    judgement = at_rest.judge(of_operations(early))
    assert (judgement.verdict, judgement.counts["unsettled"], judgement.counts["lost"]) == (Verdict.UNKNOWN, 1, 0)
    assert judgement.reason == (
        "The last reads lack 1 of 2 elements, but none of them is a final read or began 5 s after the last add (--rest), so "
        "they may be only late."
    )
    final = [*early[:-1], replace(early[-1], phase="final")]
    judgement = at_rest.judge(of_operations(final))
    assert (judgement.verdict, judgement.counts["unsettled"], judgement.counts["lost"]) == (Verdict.INVALID, 0, 1)
    assert "is a final read, after healing" in judgement.anomalies[0].explanation
    later = [*early[:-1], replace(early[-1], start_ns=6_000 * MS, end_ns=6_001 * MS)]
    judgement = at_rest.judge(of_operations(later))
    assert (judgement.verdict, judgement.counts["lost"]) == (Verdict.INVALID, 1)
    assert "came 5 s or more after the last add" in judgement.anomalies[0].explanation
    untimed = [replace(op, start_ns=0, end_ns=0) for op in early]
    assert LOOSE.judge(of_operations(untimed)).verdict is Verdict.UNKNOWN
    assert STRICT.judge(of_operations(early)).verdict is Verdict.INVALID


def test_each_format_tells_the_final_reads(tmp_path: Path) -> None:
    """A file of events, the kernel's reading of a long one, and a table: the phase counts in all."""
    operations = [add(0, 1, 7), add(4, 5, 8), replace(read(6, 7, 8), phase="final")]
    write_history(tmp_path / "h.edn", events_of(operations))
    text = (tmp_path / "h.edn").read_text()
    (tmp_path / "long.edn").write_text(text + " " * (1 << 20))
    lines = [
        {"index": at, "time": op.time_ns, "type": op.type, "process": op.process, "f": op.f, "value": op.value}
        | ({} if op.phase is None else {"phase": op.phase})
        for at, op in enumerate(events_of(operations))
    ]
    header = '{"format":"labrys-history","version":1}'
    (tmp_path / "h.jsonl").write_text("\n".join([header, *map(json.dumps, lines), ""]))
    write_operations(tmp_path / "h.parquet", operations, run="r")
    request = Request(wanted=Wanted(workload="set", settings=["linearizable=false"]))
    for name in ("h.edn", "long.edn", "h.jsonl", "h.parquet"):
        [result] = check_file(str(tmp_path / name), request)
        assert isinstance(result, Judged)
        assert (result.verdict, result.to_json()["counts"]["lost"]) == (Verdict.INVALID, 1), name


def test_sorts_and_verdicts_are_those_of_a_brute_force() -> None:
    """Each element has the kind of its definition; the verdict equals that of a search through all orders."""
    verdicts: Counter[tuple[Verdict, bool]] = Counter()
    sorts: Counter[str] = Counter()
    settled: Counter[tuple[bool, bool]] = Counter()
    alone = 0
    for seed in range(1000):
        operations = drawn(seed)
        columns = of_operations(operations)
        judgement = STRICT.judge(columns)
        elements = {identity(op.value): op.value for op in operations if op.f == "add"}
        results = [op.result for op in operations if op.f == "read" and op.type is OpType.OK]
        elements |= {identity(member): member for result in results for member in result}
        expected = Counter(sort_of(element, operations) for element in elements.values())
        assert {sort: judgement.counts[sort] for sort in SORTS} == {sort: expected[sort] for sort in SORTS}, seed
        twice = {key for result in results for key, times in Counter(map(identity, result)).items() if times > 1}
        assert judgement.counts["duplicated"] == len(twice), seed
        legal = brute(model("grow-set"), operations) and not twice
        assert (judgement.verdict is not Verdict.INVALID) == legal, (seed, judgement.counts)
        if judgement.verdict is Verdict.UNKNOWN:
            assert expected["never-read"] or not expected["ok"] + expected["recovered"], seed
        broken = any(expected[sort] for sort in ("lost", "unexpected")) or bool(twice)
        proved = sum(is_lost_at_rest(element, operations) for element in elements.values())
        late = LOOSE.judge(columns)
        assert (late.counts["lost"], late.counts["unsettled"]) == (proved, expected["lost"] - proved), seed
        assert (late.verdict is Verdict.INVALID) == bool(proved or expected["unexpected"] or twice), seed
        assert late.verdict is not Verdict.VALID or not expected["lost"], seed
        settled[bool(proved), bool(late.counts["unsettled"])] += 1
        alone += not legal and not broken and not expected["stale"]
        verdicts[judgement.verdict, broken] += 1
        sorts.update(key for key in expected if key)
    assert all(sorts[sort] > 15 for sort in SORTS), sorts
    assert alone > 2
    assert settled[True, False] > 20
    assert settled[False, True] > 20
    assert {verdict for verdict, _ in verdicts} == set(Verdict)
    assert min(verdicts.values()) > 20, verdicts


def test_every_anomaly_shows_a_part_that_is_wrong_by_itself() -> None:
    """The operations of an anomaly of single elements, without others, have no legal order on these elements."""
    shown: Counter[str] = Counter()
    for seed in range(500):
        operations = drawn(seed)
        for anomaly in judged(operations).anomalies:
            assert anomaly.decisive in anomaly.rows
            part = [operations[row] for row in anomaly.rows]
            if anomaly.kind == "duplicated":
                assert any(op.f == "read" and len({*map(identity, op.result)}) < len(op.result) for op in part)
            else:
                about = {identity(anomaly.subject), *(identity(op.value) for op in part if op.f == "add")}
                kept = [only(op, about) for op in part]
                assert not brute(model("grow-set"), kept), (seed, anomaly)
            shown[anomaly.kind] += 1
    assert set(shown) == {"lost", "unexpected", "duplicated", "stale", "out-of-order", "incomparable"}


def only(op: Operation, elements: set[Any]) -> Operation:
    """Returns a read restricted to some elements."""
    if op.f == "add" or op.type is not OpType.OK:
        return op
    kept = [member for member in op.result if identity(member) in elements]
    return operation(op.invoke_index, op.complete_index, "read", None, kept)


def test_reads_that_need_not_be_exact_warn() -> None:
    """Duplicated and unexpected elements are counted then, and the sentence names the option. A loss stays one."""
    history = [add(0, 1, 5), read(2, 3, 5, 5, 9), read(4, 5, 5)]
    loose = SetWorkload(SetOptions(exact_reads=False))
    judgement = loose.judge(of_operations(history))
    assert (judgement.verdict, judgement.counts["duplicated"], judgement.counts["unexpected"]) == (Verdict.VALID, 1, 1)
    assert judgement.basis == (
        "Warning: 1 elements were read before any add of them, or without one. 1 elements were returned twice by one read. "
        "With --exact-reads, this is invalid."
    )
    assert (judged(history).verdict, judged(history).basis) == (Verdict.INVALID, "")
    early = [read(0, 1, 5), add(2, 3, 5), read(4, 5), read(6, 7)]
    assert loose.judge(of_operations(early)).counts["lost"] == 1


def test_a_lost_element_says_since_when() -> None:
    """Figures and explanation have the last read with the element and the first without it."""
    judgement = judged([add(0, 1, 5), add(2, 3, 6), read(4, 5, 5, 6), read(10, 11, 6), read(12, 13, 6)])
    assert judgement.verdict is Verdict.INVALID
    assert judgement.counts["lost"] == 1
    (anomaly,) = judgement.anomalies
    assert (anomaly.kind, anomaly.subject, anomaly.rows, anomaly.decisive) == ("lost", 5, (0, 2, 3, 4), 3)
    assert anomaly.explanation == (
        "Element 5 is lost: its add was acknowledged at 0.001000 s, and none of the 2 reads that began from 0.010000 s on"
        " returned it."
    )
    assert judgement.figures["lost-latencies"]["1"] == 3.0
    assert judgement.figures["lost-count"] == 1


def test_a_stale_element_says_from_when_until_when() -> None:
    """The figures have the first and last miss of the worst elements, with their latencies."""
    history = [add(0, 1, 5), read(2, 3, 5), read(6, 7), read(8, 9, 5), read(20, 21), read(30, 31, 5)]
    judgement = judged(history)
    (anomaly,) = judgement.anomalies
    assert (anomaly.kind, anomaly.decisive) == ("stale", 2)
    assert anomaly.explanation == (
        "Element 5 was missed: its add was acknowledged at 0.001000 s, and a read that began 5.000 ms later, at 0.006000 s,"
        " did not return it. All reads that began from 0.030000 s on returned it."
    )
    (worst,) = judgement.figures["worst-stale"]
    assert worst == {
        "element": 5, "known-ns": MS, "first-missed-ns": 6 * MS, "last-missed-ns": 20 * MS, "stable-latency": 19.0,
    }  # fmt: skip
    assert judgement.figures["stable-latencies"] == dict.fromkeys(["0", "0.5", "0.95", "0.99", "1"], 19.0)
    assert judged(history, linearizable=False).verdict is Verdict.VALID
    assert not judged(history, linearizable=False).anomalies


def test_reads_must_fit_together() -> None:
    """Two reads with different orders of two adds, or a read that skips an earlier add, are invalid."""
    crossed = [add(0, 20, 1), add(1, 21, 2), read(2, 12, 1), operation(3, 13, "read", None, [2], process=3)]
    assert judged([*crossed, read(30, 31, 1, 2)]).anomalies[0].kind == "incomparable"
    skipping = [read(0, 9, 2), add(1, 2, 1), add(3, 4, 2), operation(10, 11, "read", None, [1, 2], process=3)]
    (anomaly,) = judged(skipping).anomalies
    assert anomaly.kind == "out-of-order"
    assert (
        "returned element 2 but not element 1, although its add was acknowledged at 0.002000 s" in anomaly.explanation
    )
    assert judged(skipping, linearizable=False).verdict is Verdict.VALID


@pytest.mark.parametrize(
    ("operations", "reason"),
    [
        ([], "None of 0 elements"),
        ([add(0, 1, 5)], "1 of 1 acknowledged elements were added after the last read"),
        ([read(0, 1)], "None of 0 elements"),
        ([add(0, 1, 5, OpType.FAIL), read(2, 3)], "None of 1 elements"),
        ([add(0, 1, 5, OpType.INFO), read(2, 3)], "None of 1 elements"),
        ([add(0, 1, 5), read(2, 3, 5), add(4, 5, 6)], "1 of 2 acknowledged elements"),
        ([add(0, 1, 5), operation(2, 3, "read", None, None, OpType.FAIL)], "1 of 1 acknowledged elements"),
    ],
)
def test_what_was_not_read_is_unknown(operations: list[Operation], reason: str) -> None:
    """A loss that no read could have seen is never valid."""
    judgement = judged(operations)
    assert judgement.verdict is Verdict.UNKNOWN
    assert judgement.reason.startswith(reason)


@pytest.mark.parametrize("result", [None, 5, "5", {"5": 1}, True])
def test_a_read_of_something_else_than_a_list_is_refused(result: Any) -> None:
    """The error has the event and the expected form."""
    with pytest.raises(InputError, match="event 3: expected the list of a set's elements"):
        judged([add(0, 1, 5), operation(2, 3, "read", None, result)])


def test_a_function_of_no_set_is_refused() -> None:
    """A history of another workload is an error."""
    with pytest.raises(InputError, match="event 2: a set has the functions add and read, found 'write'"):
        judged([add(0, 1, 5), operation(2, 3, "write", 1, 1)])


def test_the_order_of_rows_does_not_matter() -> None:
    """Only indexes count; rows can have any order."""
    for seed in range(100):
        operations = drawn(seed)
        shuffled = random.Random(seed).sample(operations, len(operations))
        one, other = judged(operations), judged(shuffled)
        assert (one.verdict, one.counts, one.figures, one.plot) == (
            other.verdict,
            other.counts,
            other.figures,
            other.plot,
        )


def test_the_part_of_a_long_history_is_small() -> None:
    """Neither the reads of a counterexample nor the plot grow with the set."""
    size = 30_000
    operations = [add(2 * index, 2 * index + 1, index) for index in range(size)]
    operations += [read(2 * size + 2 * n, 2 * size + 2 * n + 1, *range(100 * n, size)) for n in range(5)]
    part = part_of(SetWorkload(), of_operations(operations))
    assert part.details["counts"]["lost"] == 400
    assert part.details["violations"]["total"] == 100
    assert part.details["counterexample"]["op"]["members"] == size - 100
    assert sum(len(marks["points"]) for marks in part.details["plot"]["marks"]) <= 2_000
    assert {marks["name"]: marks["total"] for marks in part.details["plot"]["marks"]} == {
        "there": size - 400,
        "lost": 400,
    }
    assert len(repr(part.details)) < 1_000_000
