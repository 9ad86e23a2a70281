"""A history in parts has the judgement of the whole one, in the same words: types, counts, cycles and sentences.

The steps run here one after the other, on few transactions in short slices; tests/spark has the same with Spark.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from itertools import pairwise
from random import Random
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from checker._kernel import evident_texts
from checker.consistency import IMPLIED, ON_DEMAND, PROCESS, REALTIME, Question, order_of, searched
from checker.formats.columns import NEEDED, OK, ColumnReader
from checker.transactions.judge import judge
from checker.values import json_text
from harness.op import Operation, OpType
from harness.verdict import Verdict
from results.pipeline.read.texts import kernel_texts
from results.pipeline.spark.large_transactions import by_key, by_time
from results.pipeline.spark.large_transactions.by_key import INTERNAL, KEPT
from results.pipeline.spark.large_transactions.finish import Gathered, alone, judgement, refs_of, starts_of
from results.pipeline.spark.large_transactions.parcels import PARCELS, packed, unpacked
from results.pipeline.spark.large_transactions.pieces import EDGE, PARTS, REF, SLICED, Places, numbers_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from checker.judging import Judgement

MODELS = (
    "strict-serializable", "serializable", "strong-session-serializable", "snapshot-isolation",
    "strong-snapshot-isolation", "strong-session-snapshot-isolation", "read-committed",
)  # fmt: skip
# The anomalies that these need are searched on demand.
WEAK = (
    "monotonic-atomic-view", "read-atomic", "causal-cerone", "update-atomic", "prefix", "parallel-snapshot-isolation",
    "monotonic-view", "monotonic-snapshot-read", "consistent-view", "forward-consistent-view", "update-serializable",
)  # fmt: skip
OF_LISTS = ((), (), ("sequential-keys",), ("linearizable-keys",))
SOURCES = (
    (), ("writes-follow-reads",), ("sequential-keys",), ("linearizable-keys",),
    ("writes-follow-reads", "sequential-keys", "linearizable-keys"),
)  # fmt: skip
LARGE = 1 << 30
TOKENS = ("[", "]", ",", "null", '"', "a b", "\\", "é", "-", "0", "7", "12345678901234567890", "1.5", "true")
OPEN = pa.schema({"start": pa.int64(), "end": pa.int64()})


class Asks:
    """A judge with a question."""

    name = "list-append"

    def __init__(self, asked: Question) -> None:
        self.asked = asked

    def question(self) -> Question:
        """Returns it."""
        return self.asked

    def judge(self, history: Any) -> Judgement:
        """Judges all at once."""
        asked = self.asked
        return judge(
            history, workload=asked.workload, model=asked.model, sources=asked.sources, anomalies=asked.anomalies,
            initial=asked.initial,
        )  # fmt: skip


def rows_of(operations: Sequence[Operation]) -> pa.RecordBatch:
    """Returns operations as rows of a table of operations."""
    rows = [
        {
            "key": op.key, "process": op.process, "f": op.f, "type": str(op.type), "start_ns": op.start_ns,
            "end_ns": op.end_ns, "value": json_text(op.value), "result": json_text(op.result),
            "invoke_index": op.invoke_index, "complete_index": op.complete_index,
        }
        for op in operations
    ]  # fmt: skip
    kinds = {name: pa.string() if name in {"key", "f", "type", "value", "result"} else pa.int64() for name in NEEDED}
    return pa.RecordBatch.from_pylist(rows, schema=pa.schema(kinds))


def table_of(batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> pa.Table:
    """Returns batches as one table."""
    return pa.Table.from_batches(list(batches), schema=schema).combine_chunks()


def split(table: pa.Table, by: Any, count: int) -> list[pa.Table]:
    """Returns the rows of each of some partitions."""
    return [table.filter(pa.array(by % count == number)) for number in range(count)]


def in_parts(
    batch: pa.RecordBatch, asked: Question, *, tasks: int, slices: int, limit: int = LARGE
) -> tuple[Judgement, Any]:
    """Judges a history in parts, as the job does with Spark; returns the judgement, and its transactions."""
    left_out: list[int] = []
    halves = [batch.slice(0, batch.num_rows // 2), batch.slice(batch.num_rows // 2)]
    parts = table_of(by_key.parts(iter(halves), asked), PARTS)

    def columns_at(starts: Sequence[int]) -> Any:
        rows = batch.filter(pc.is_in(batch.column("invoke_index"), pa.array(starts, pa.int64())))
        return ColumnReader("the history").of_batch(rows.sort_by("invoke_index"))

    while True:
        spread = split(parts, parts.column("address").to_numpy(), tasks)
        made = [by_key.of_keys(iter(some.to_batches()), asked, left_out, limit) for some in spread]
        pieces = pa.Table.from_batches([part.numbers for part in made])
        words = pa.Table.from_batches([part.words for part in made])
        told = [one for part in made for one in part.told]
        facts = Gathered(told=told, size=batch.num_rows, memory_limit=limit)
        facts.hold()
        if facts.contradicted() == left_out:
            break
        left_out = facts.contradicted()
    wrong = facts.wrong()
    if wrong is not None:
        columns = columns_at([wrong[0]])
        return alone(Asks(asked), columns, batch.num_rows), columns
    if facts.twice() is None:
        add_findings(pa.Table.from_batches([part.findings for part in made]), facts)
        add_cycles(batch, pieces, facts, asked, slices=slices, limit=limit)
    columns = columns_at(starts_of(facts))
    return judgement(asked, facts, columns, names_of(pieces, words, refs_of(facts))), columns


def add_findings(findings: pa.Table, facts: Gathered) -> None:
    """Adds the anomalies that are no cycles."""
    rows = findings.to_pylist()
    rows.sort(key=lambda row: (row["step"], row["at"], row["place"], row["number"]))
    counts: Counter[str] = Counter()
    for line in facts.told:
        counts.update(line.get("counts", {}))
    seen = set()
    kept: Counter[str] = Counter()
    for row in rows:
        if row["name"] == INTERNAL:
            if row["at"] in seen:
                continue
            seen.add(row["at"])
            counts[INTERNAL] += 1
        kept[row["name"]] += 1
        if kept[row["name"]] <= KEPT:
            facts.findings.append(row)
    facts.counts = dict(counts)


def add_cycles(
    batch: pa.RecordBatch, pieces: pa.Table, facts: Gathered, asked: Question, *, slices: int, limit: int
) -> None:
    """Adds the cycles."""
    numbers = pieces
    order = order_of(asked.model, asked.anomalies)
    if order == PROCESS:
        numbers = pa.concat_tables([numbers, processes(batch, numbers.schema)])
    numbers = numbers.combine_chunks()
    if not numbers.num_rows:
        return
    all_ = numbers_of(numbers)
    places = Places(*by_key.open_ones(all_))
    last = 1 + max(int(all_["a"].max()), int(np.where(all_["a_kind"] == OK, all_["a_end"], 0).max()))
    slicing = by_time.Slicing(
        width=-(-last // slices),
        extra=REALTIME if order == REALTIME else "none",
        unordered=asked.workload == "list-append",
        more=tuple(searched(asked.model, asked.anomalies)),
        memory_limit=limit,
    )
    rows = pa.Table.from_batches(by_time.sliced(all_, places, slicing.width))
    across: list[pa.RecordBatch] = []
    facts.shown = []
    for number, some in by_slice(rows):
        shown = by_time.decided(number, iter(some), slicing, windows=False)
        facts.shown += shown.told
        across += shown.rows
    for number, some in by_slice(pa.Table.from_batches(across, schema=SLICED)):
        facts.shown += by_time.decided(number, iter(some), slicing, windows=True).told


def by_slice(table: pa.Table) -> list[tuple[int, list[pa.RecordBatch]]]:
    """Returns the rows of each slice, in parcels on the way."""
    rows = [(batch.column("slice").to_numpy(), batch) for batch in table.to_batches()]
    parcels = pa.Table.from_batches(packed(iter(rows), SLICED, 1 << 14), schema=PARCELS).sort_by("bucket")
    return [(number, list(some)) for number, some in unpacked(iter(parcels.to_batches()), SLICED)]


def processes(batch: pa.RecordBatch, schema: pa.Schema) -> pa.Table:
    """Returns the edges of processes."""
    rows = [row for row in batch.to_pylist() if row["type"] == "ok"]
    rows.sort(key=lambda row: (row["process"], row["invoke_index"]))
    found = [
        {
            "what": EDGE, "kind": 8, "key_at": -1, "a": one["invoke_index"], "a_end": one["complete_index"], "a_kind": OK,
            "b": two["invoke_index"], "b_end": two["complete_index"], "b_kind": OK,
            "a_process": one["process"], "b_process": one["process"],
        }
        for one, two in pairwise(rows) if one["process"] == two["process"]
    ]  # fmt: skip
    return pa.Table.from_pylist(found, schema=schema)


def names_of(pieces: pa.Table, words: pa.Table, refs: set[tuple[int, ...]]) -> dict[tuple[int, ...], Any]:
    """Returns the words of pieces."""
    names = {}
    for row, its in zip(pieces.to_pylist(), words.to_pylist(), strict=True):
        ref = tuple(row[name] or 0 for name in REF)
        if ref in refs:
            source = -1 if its["source"] is None else its["source"]
            names[ref] = (its["key"], its["before_text"], its["after_text"], source)
    return names


def random_history(random: Random, *, most: int, lists: bool, mess: float, fresh: int = 1000) -> list[Operation]:  # noqa: C901 - a store and its mistakes
    """Returns transactions of a store that is wrong now and then: stale and torn reads, lost and repeated effects.

    After each `fresh` transactions, new keys take the place of all.
    """
    count, keys = random.randint(2, most), random.randint(1, 4)
    states: list[dict[str, Any]] = [{}]
    events, operations = 0, []
    open_: dict[int, tuple[int, list[Any]]] = {}
    begun = value = 0
    process_of = list(range(random.randint(1, 5)))
    while begun < count or open_:
        slot = random.randrange(len(process_of))
        events += 1
        if slot not in open_:
            if begun == count:
                continue
            begun += 1
            mops: list[Any] = []
            for _ in range(random.choice((0, 1, 1, 2, 2, 3, 4))):
                key = f"k{begun // fresh * keys + min(keys - 1, int(random.expovariate(1)))}"
                value += 1
                mops.append(["r", key, None] if random.random() < 0.5 else ["append" if lists else "w", key, value])
            open_[slot] = (events, mops)
            continue
        start, mops = open_.pop(slot)
        kind = random.choices((OpType.OK, OpType.FAIL, OpType.INFO), (8, 1, 1))[0]
        back = random.randrange(min(len(states), 6)) if random.random() < mess else 0
        state = {key: list(some) for key, some in states[-1 - back].items()}
        result = []
        for function, key, written in mops:
            held = state.setdefault(key, [])
            if function != "r":
                held.append(written)
                result.append([function, key, written])
                continue
            seen = list(held)
            if random.random() < mess / 4 and seen:
                random.shuffle(seen)
            if random.random() < mess / 6:
                seen.append(random.choice((value + 50, value, seen[-1] if seen else 1)))
            result.append([function, key, (seen or None) if lists else (seen[-1] if seen else None)])
        if kind is OpType.OK or random.random() < (0.1 if kind is OpType.FAIL else 0.5):
            now = {key: list(some) for key, some in states[-1].items()}
            for function, key, written in mops:
                if function != "r" and random.random() >= mess / 8:
                    now.setdefault(key, []).append(written)
            states.append(now)
        shows = kind is OpType.INFO and random.random() < 0.3
        operations.append(
            Operation(
                process=process_of[slot], f="txn", value=mops, result=result if kind is OpType.OK or shows else None, type=kind,
                start_ns=start, end_ns=None if kind is OpType.INFO else events, invoke_index=start,
                complete_index=None if kind is OpType.INFO else events, key=None, node=None, error=None, phase=None,
                via=None, order=None,
            )
        )  # fmt: skip
        if kind is OpType.INFO:
            process_of[slot] += len(process_of) * 100
    return sorted(operations, key=lambda operation: operation.invoke_index)


def told(found: Judgement, columns: Any) -> Any:
    """Returns what a judgement says, with starts in place of rows."""
    starts = columns.start.tolist()
    anomalies = [
        (anomaly.kind, anomaly.subject, anomaly.explanation, [starts[row] for row in anomaly.rows],
         [(starts[a], starts[b], why) for a, b, why in anomaly.edges])
        for anomaly in found.anomalies
    ]  # fmt: skip
    # The kernel has contradictions of versions in the order of its search; the parts have them in the order of keys.
    anomalies.sort(key=lambda row: (row[0] == "cyclic-versions", row[2] if row[0] == "cyclic-versions" else ""))
    return found.verdict, found.reason, dict(found.counts), dict(found.figures), found.cause, anomalies


def plain(kind: str) -> str:
    """Returns a type without what orders transactions besides the data."""
    return kind.removesuffix("-realtime").removesuffix("-process")


def implied(types: set[str]) -> set[str]:
    """Returns types with all that they imply."""
    while more := {kind for name in types for kind in IMPLIED.get(name, ())} - types:
        types = types | more
    return types


def begun(operations: list[Operation], initial: int) -> list[Operation]:
    """Returns the same answers of registers that begin with a value in place of nil."""
    return [
        replace(operation, result=[[f, key, initial if value is None else value] for f, key, value in operation.result])
        if operation.type is OpType.OK and isinstance(operation.result, list)
        else operation
        for operation in operations
    ]


def compare(random: Random, *, most: int, models: Sequence[str] = MODELS) -> Judgement | None:
    """Judges a random history both ways; returns the judgement, or None if it needs more than a slice."""
    lists = random.random() < 0.6
    mess = random.choice((0, 0, 0.1, 0.4))
    operations = random_history(random, most=most, lists=lists, mess=mess)
    initial = None if lists or len(operations) % 3 else "0"
    if initial is not None:
        operations = begun(operations, 0)
    batch = rows_of(operations)
    model = random.choice(models)
    anomalies = tuple(random.sample(ON_DEMAND, random.randrange(3))) if random.random() < 0.3 else ()
    sources = OF_LISTS[len(operations) % 4] if lists else random.choice(SOURCES)
    asked = Question(
        workload="list-append" if lists else "rw-register",
        model=model,
        sources=sources,
        anomalies=anomalies,
        initial=initial,
    )
    whole = ColumnReader("the history").of_batch(batch)
    expected = Asks(asked).judge(whole)
    found, columns = in_parts(batch, asked, tasks=random.randint(1, 4), slices=random.choice((1, 2, 3, 5)))
    if "far apart" in found.reason:
        assert found.verdict is not Verdict.VALID
        assert found.verdict is Verdict.UNKNOWN or expected.verdict is Verdict.INVALID
        # In a component, the kernel names no type that another one implies; a part may have only the implied one.
        types = implied({*expected.counts, *expected.figures["allowed-anomaly-types"]})
        assert {plain(anomaly.kind) for anomaly in found.anomalies} <= {plain(kind) for kind in types}
        return None
    if "Parts of a history do not search an order" in found.reason:
        assert found.verdict is Verdict.UNKNOWN
        assert expected.verdict is not Verdict.INVALID or "implied-orders" in expected.figures
        return None
    assert told(found, columns) == told(expected, whole)
    return found


@pytest.mark.parametrize("seed", [*range(3), *(pytest.param(seed, marks=pytest.mark.night) for seed in range(3, 100))])
def test_parts_have_the_judgement_of_the_whole(seed: int) -> None:
    """Random histories of up to 40 transactions, in one to five slices, by seven models."""
    random = Random(seed)
    judgements = [compare(random, most=40) for _ in range(60)]
    verdicts = {each.verdict for each in judgements if each is not None}
    assert {Verdict.VALID, Verdict.INVALID} <= verdicts


@pytest.mark.parametrize("seed", [*range(4), *(pytest.param(seed, marks=pytest.mark.night) for seed in range(4, 150))])
def test_parts_show_what_is_searched_on_demand(seed: int) -> None:
    """The same for eleven models whose anomalies compare several keys of two transactions, or single reads."""
    random = Random(seed)
    judgements = [compare(random, most=40, models=WEAK) for _ in range(60)]
    types = {anomaly.kind for judgement in judgements if judgement is not None for anomaly in judgement.anomalies}
    assert not types.isdisjoint(ON_DEMAND)


def ok(start: int, end: int, mops: list[Any]) -> Operation:
    """Returns a transaction that succeeded."""
    value = [[name, key, None if name == "r" else what] for name, key, what in mops]
    return Operation(
        process=start, f="txn", value=value, result=mops, type=OpType.OK, start_ns=start, end_ns=end, invoke_index=start,
        complete_index=end, key=None, node=None, error=None, phase=None, via=None, order=None,
    )  # fmt: skip


def far_back() -> list[Operation]:
    """Returns appends to one key, one after the other, and at the end a read that saw only the first two."""
    some = [ok(2 * at + 1, 2 * at + 2, [["r", "x", list(range(at))], ["append", "x", at]]) for at in range(20)]
    return [*some, ok(41, 42, [["r", "x", [0, 1]]])]


def judged_in_parts(operations: list[Operation], model: str, *, slices: int = 5) -> Judgement:
    """Returns the judgement of operations in slices."""
    asked = Question(workload="list-append", model=model)
    return in_parts(rows_of(operations), asked, tasks=2, slices=slices)[0]


def test_a_stale_read_over_many_slices_is_found_with_real_time() -> None:
    """The edge back and real time are a cycle by themselves, whatever lies between."""
    found = judged_in_parts(far_back(), "strict-serializable")
    assert found.verdict is Verdict.INVALID
    assert [anomaly.kind for anomaly in found.anomalies] == ["G-single-item-realtime"]
    assert "read x as [0 1]" in found.anomalies[0].explanation
    assert "far apart" in found.reason
    whole = Asks(Question(workload="list-append", model="strict-serializable"))
    expected = whole.judge(ColumnReader("the history").of_batch(rows_of(far_back())))
    assert [anomaly.kind for anomaly in expected.anomalies] == ["G-single-item-realtime"]


def test_a_stale_read_over_many_slices_is_unknown_without_real_time() -> None:
    """It may be on a cycle of the data, so the history is not called serializable."""
    found = judged_in_parts(far_back(), "serializable")
    assert (found.verdict, found.cause) == (Verdict.UNKNOWN, "out-of-memory")


def test_reads_of_a_transaction_without_an_answer_count() -> None:
    """A garbage read of one is found in parts as in the whole history; a result like its request is none."""
    first = ok(1, 2, [["append", "x", 1]])
    shown = replace(ok(3, 4, [["r", "x", [7]], ["r", "y", None]]), type=OpType.INFO, end_ns=None, complete_index=None)
    last = ok(5, 6, [["r", "x", [1]]])
    found = judged_in_parts([first, shown, last], "serializable")
    assert {"garbage-read", "incompatible-order"} <= set(found.figures["anomaly-types"])
    whole = Asks(Question(workload="list-append", model="serializable"))
    expected = whole.judge(ColumnReader("the history").of_batch(rows_of([first, shown, last])))
    assert (found.reason, found.counts) == (expected.reason, expected.counts)
    nothing = replace(shown, result=shown.value)
    assert judged_in_parts([first, nothing, last], "serializable").verdict is Verdict.VALID


@given(st.lists(st.sampled_from(TOKENS)))
def test_evident_texts_are_canonical(tokens: list[str]) -> None:
    """The kernel calls a text evident only if it is canonical JSON; then nothing is written again."""
    texts = pa.array(["".join(tokens), None])
    evident, none = evident_texts(kernel_texts(texts))
    assert none == 1
    if evident:
        assert (json_text(json.loads("".join(tokens))) or "null") == "".join(tokens)


def test_values_that_are_not_evident_are_written_again() -> None:
    """Another form of the same value becomes the same text; a text that is no JSON becomes none, which the kernel refuses."""
    texts = pa.array(['[["r", "x", null]]', None, '[["append","x",1.0]]', "[[", '[["r","x",null]]'])
    assert by_key.canonical(texts.slice(0, 3)).to_pylist() == ['[["r","x",null]]', None, '[["append","x",1.0]]']
    assert by_key.canonical(texts.slice(3)).to_pylist() == [None, '[["r","x",null]]']


@pytest.mark.parametrize("memory", [1, 1 << 30])
def test_parcels_keep_the_rows_of_each_bucket_in_their_order(memory: int) -> None:
    """Whatever the memory, and whatever the batches that Spark makes of the parcels."""
    rows = pa.RecordBatch.from_pydict({"start": list(range(1000)), "end": [7] * 1000}, schema=OPEN)
    buckets = np.arange(1000) * 7919 % 13
    some = [(buckets[at : at + 100], rows.slice(at, 100)) for at in range(0, 1000, 100)]
    parcels = pa.Table.from_batches(packed(iter(some), OPEN, memory), schema=PARCELS)
    in_order = parcels.take(pa.array(np.argsort(parcels.column("bucket").to_numpy(), kind="stable")))
    buckets_read = {
        bucket: [start for batch in batches for start in batch.column("start").to_pylist()]
        for bucket, batches in unpacked(iter(in_order.to_batches(max_chunksize=3)), OPEN)
    }
    assert buckets_read == {bucket: np.flatnonzero(buckets == bucket).tolist() for bucket in range(13)}
