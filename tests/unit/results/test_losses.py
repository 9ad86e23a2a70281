"""The first sentence of an invalid report says what a user lost, and claims no more than the operations and proofs show."""

from __future__ import annotations

import ast
import io
import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markupsafe import escape
from rich.console import Console

from checker.consistency import ANOMALIES
from checker.linearizable import linearizability
from clusters.systems.maelstrom.workloads.kafka import KafkaWorkload
from clusters.systems.maelstrom.workloads.named import BroadcastWorkload, GSetWorkload
from harness.faults import FaultRecord, PlannedFault, Proof
from harness.op import FINAL_PHASE, Operation, OpType
from harness.states import ONE_LEADER, replicas_equal
from harness.targets import Named
from harness.units import NS_PER_S as S
from harness.verdict import Part, Verdict
from harness.watch import Sighting
from harness.workload import Observed
from results.circumstances.fault_clauses import happened
from results.circumstances.loss_words import words_of
from results.circumstances.losses import first_sentence, reason
from results.live.terminal import print_summary
from results.page.report import render
from results.store.store import Store
from results.stored.document import build
from results.stored.load import load_record
from tests.unit.results.stored import store_run
from tests.unit.results.synthetic import record
from tests.unit.results.test_evidence import DIFFERENCE
from workloads.ledger.workload import LedgerOptions, LedgerWorkload
from workloads.log.workload import LogOptions, LogWorkload
from workloads.queue.options import QueueOptions
from workloads.queue.workload import QueueWorkload
from workloads.set.workload import SetOptions, SetWorkload

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from results.record.record import RunRecord

ALL = ("n1", "n2", "n3", "n4", "n5")


def op(start_s: float, f: str, value: Any, result: Any = None, **more: Any) -> Operation:
    """Returns a successful operation of half a second."""
    return Operation(
        f=f, value=value, result=value if result is None and f != "read" else result,
        type=OpType.OK, start_ns=int(start_s * S), end_ns=int((start_s + 0.5) * S), invoke_index=0, complete_index=1,
        **{"key": "x", "process": int(start_s) % 7, **more},
    )  # fmt: skip


def placed(operations: Sequence[Operation], *faults: FaultRecord) -> list[Operation]:
    """Returns operations with the indexes of their events in the history that they make, with the events of the faults."""
    events = [
        (time_ns, number)
        for number, operation in enumerate(operations)
        for time_ns in (operation.start_ns, operation.last_ns)
    ]
    events += [(time_ns, -1) for own_fault in faults for time_ns in (own_fault.start_ns, own_fault.end_ns)]
    indexes: dict[int, list[int]] = {}
    for index, (_, number) in enumerate(sorted(events)):
        indexes.setdefault(number, []).append(index)
    return [
        replace(operation, invoke_index=indexes[number][0], complete_index=indexes[number][1])
        for number, operation in enumerate(operations)
    ]


def fault(
    kind: str, start_s: float, end_s: float, nodes: Sequence[str], effect: str = "", **measured: Any
) -> FaultRecord:
    """Returns a fault with a proof."""
    return FaultRecord(
        planned=PlannedFault(id=int(start_s), kind=kind, target=Named(tuple(nodes)), start_s=start_s, end_s=end_s),
        targets=tuple(nodes), start_ns=int(start_s * S), end_ns=int(end_s * S),
        proof=Proof(effective=True, reason="Seen.", measured=measured), effect=effect,
    )  # fmt: skip


POWER = fault("power-loss", 5, 8, ALL, "all nodes lost power", vanished=list(ALL))
CUT = fault("partition-leader", 5, 30, ["n1"], "n1 was cut off from other nodes")


def judged(operations: Sequence[Operation], *faults: FaultRecord) -> RunRecord:
    """Returns the record of a run of a register with these operations and faults."""
    operations = placed(operations, *faults)
    parts = linearizability("cas-register", operations, faults)
    return replace(record(seed=1, operations=10), operations=operations, faults=faults, parts=parts)


OLD = [op(1, "write", 1), op(2, "write", 2), op(3, "write", 3), op(10, "read", None, 1)]


def test_a_read_of_an_old_value_misses_the_last_acknowledged_write() -> None:
    """The contradiction may need only an earlier write; the sentence has the last one that was acknowledged."""
    said = first_sentence(judged(OLD, CUT))
    assert said.startswith("A read missed an acknowledged write while n1 was cut off from other nodes.")
    assert "write of 3" in reason(judged(OLD, CUT))


def test_a_write_that_nobody_saw_after_a_loss_of_power_is_never_seen_again() -> None:
    """One read of an old value may be late. So the sentence says what was seen: the write was not, in any later answer."""
    assert first_sentence(judged(OLD, POWER)).startswith(
        "An acknowledged write was never seen again after all nodes lost power."
    )
    seen = [*OLD, op(12, "read", None, 3)]
    assert first_sentence(judged(seen, POWER)).startswith(
        "A read missed an acknowledged write after all nodes lost power."
    )


def test_a_value_that_was_seen_may_be_missed_though_no_write_of_it_was_acknowledged() -> None:
    """The write ended without an answer, and a read returned it; then another read returned an older value."""
    unanswered = replace(op(3, "write", 3, process=20), type=OpType.INFO, result=None)
    seen = [op(1, "write", 1), unanswered, op(4, "read", None, 3), op(10, "read", None, 1)]
    expected = "A read missed a value that had been seen before after all nodes lost power."
    assert first_sentence(judged(seen, POWER)) == expected
    other = [replace(operation, key="y") for operation in seen]
    assert first_sentence(judged([*seen, *other], POWER)) == (
        "Reads missed values of 2 keys that had been seen before after all nodes lost power."
    )
    again = replace(op(3.6, "write", 1, process=21), type=OpType.INFO, result=None)
    assert first_sentence(judged([*seen[:3], again, seen[3], op(11, "read", None, 3)], POWER)) == ""


@pytest.mark.parametrize(
    "proof", [op(12, "cas", [1, 9]), op(12, "read", None, 1, phase=FINAL_PHASE)], ids=["cas", "final-read"]
)
def test_a_write_is_gone_if_the_state_lacks_it(proof: Operation) -> None:
    """A compare-and-set that took effect on the older value shows the state, and so do the reads after healing."""
    found = judged([*OLD, proof], POWER)
    assert first_sentence(found).startswith("An acknowledged write is gone after all nodes lost power.")


def test_several_keys_are_counted_if_they_show_the_same() -> None:
    """A key that shows less, or another fault, is not counted."""
    other = [replace(operation, key="y") for operation in OLD]
    assert first_sentence(judged([*OLD, *other], POWER)).startswith(
        "Acknowledged writes of 2 keys were never seen again after all nodes lost power."
    )


def test_the_clause_about_the_faults_is_about_the_time_between(stale_record: RunRecord) -> None:
    """Faults before the write was acknowledged, faults without a proof, and no fault at all."""
    early = fault("kill", 0.1, 0.4, ["n2"], "n2 was killed", vanished=["n2"])
    unproven = replace(POWER, proof=Proof(effective=False, reason="Not seen."))
    late = replace(POWER, start_ns=50 * S, end_ns=60 * S)
    assert first_sentence(judged(OLD, early)).startswith("A read missed an acknowledged write while no fault was on.")
    assert first_sentence(judged(OLD, unproven)).startswith("A read missed an acknowledged write. ")
    assert first_sentence(judged(OLD)).startswith("A read missed an acknowledged write. ")
    assert first_sentence(judged(OLD, late)).startswith("A read missed an acknowledged write before any fault.")
    assert "after all nodes lost power and while n1 was cut off from other nodes." in first_sentence(
        judged(OLD, POWER, CUT)
    )
    many = [
        replace(fault(kind, 5 + index / 10, 6, [node]), effect="")
        for index, (kind, node) in enumerate([("kill", "n1"), ("pause", "n2"), ("kill", "n3")])
    ]
    assert "after 3 faults happened (kill, pause)." in first_sentence(judged(OLD, *many))
    assert happened(many[0]) == "the fault kill hit n1"
    assert first_sentence(record(seed=1, operations=30)) == ""
    of_roles = fault("kill", 1, 2, ["n1", "n2"], vanished=["n1 (broker)", "n1 (controller)"])
    assert of_roles.stopped == ["n1"]
    assert first_sentence(stale_record) != ""


@given(st.data())
def test_a_late_read_never_proves_that_a_write_is_gone(data: st.DataObject) -> None:
    """By a register that never loses anything, with reads that may be of any earlier time, except those after healing."""
    operations: list[Operation] = []
    values: list[int | None] = [None]
    for index in range(data.draw(st.integers(4, 12))):
        f = data.draw(st.sampled_from(["write", "read", "read", "cas"]))
        at_s = 10 + index
        if f == "write":
            operations.append(op(at_s, f, index + 1))
            values.append(index + 1)
        elif f == "cas" and values[-1] is not None:
            operations.append(op(at_s, f, [values[-1], index + 1]))
            values.append(index + 1)
        else:
            late = data.draw(st.booleans())
            operations.append(op(at_s, "read", None, data.draw(st.sampled_from(values)) if late else values[-1]))
    operations.append(op(40, "read", None, values[-1], phase=FINAL_PHASE))
    power = replace(POWER, start_ns=int(data.draw(st.integers(10, 20)) * S), end_ns=20 * S)
    found = judged(operations, power)
    said = first_sentence(found)
    assert "gone" not in said
    if not said:
        assert found.parts[0].verdict is Verdict.VALID
        return
    violation = found.parts[0].counterexamples[0]
    culprit = violation.culprit
    assert culprit is not None
    before = [operation for operation in operations if operation.f != "read" and operation.last_ns < culprit.start_ns]
    last = before[-1].value[1] if before[-1].f == "cas" else before[-1].value
    assert culprit.result != last  # the last acknowledged write is the one that it missed
    assert f"{last}" in reason(found)
    if "never seen again" in said:
        assert not any(
            operation.result == last
            for operation in operations
            if operation.f == "read" and operation.start_ns > culprit.start_ns
        )


def test_elements_that_are_gone_are_counted(stale_record: RunRecord) -> None:
    """The number is that of the judge; the clause is there only if it holds for all of them, or for the one below."""
    adds = [op(index, "add", index, key=None) for index in range(1, 5)]
    operations = placed([*adds, *(op(10 + index, "read", None, [1, 2], key=None) for index in range(2))])
    (part, *_) = SetWorkload(SetOptions()).check(operations, Observed(faults=[POWER]))
    run = replace(stale_record, operations=operations, faults=[POWER], parts=[part])
    assert first_sentence(run) == (
        "2 elements of the set are gone after all nodes lost power. "
        "The last of them is process 4's add of 4, acknowledged at 4.500 s."
    )
    later = replace(POWER, start_ns=4 * S, end_ns=int(4.2 * S))
    assert first_sentence(replace(run, faults=[later])) == (
        "2 elements of the set are gone, the one below after all nodes lost power, the last of them while no fault was on: "
        "process 4's add of 4, acknowledged at 4.500 s."
    )
    earlier = replace(part, details={**part.details, "counts": {"lost": 7406}, "last": {}})
    assert first_sentence(replace(run, parts=[earlier])) == (
        "7,406 elements of the set are gone, the one below after all nodes lost power."
    )


def test_what_is_gone_stands_before_another_violation(stale_record: RunRecord) -> None:
    """A log that begins anew: its offsets are given twice, and the entries that have no successor are gone."""
    first = [replace(op(index, "append", 10 + index, key=None), result=index) for index in range(1, 4)]
    again = replace(op(30, "append", 20, key=None), result=1)
    last = replace(op(40, "read", [1, 3], key=None, phase=FINAL_PHASE), result=[[1, 20]])
    operations = placed([*first, again, last], POWER)
    (part, *_) = LogWorkload(LogOptions()).check(operations, Observed(faults=[POWER]))
    assert part.details["counterexample"]["kind"] == "conflict"
    run = replace(stale_record, operations=operations, faults=[POWER], parts=[part])
    assert first_sentence(run) == (
        "2 entries of the log are gone. An offset of the log has two entries after all nodes lost power."
    )


MANY = 150  # more than the counterexamples of a part
LATE_S = 60.0  # after the loss of power
LAST_NS = int((1.0 + (MANY - 1) / 100 + 0.5) * S)  # when the last of many operations was acknowledged


def many(f: str, result: Any = "the value", key: str | None = "x") -> list[Operation]:
    """Returns so many acknowledged operations of so many processes before the loss of power; each takes half a second."""
    made = [op(1.0 + index / 100, f, 1000 + index, key=key, process=index) for index in range(MANY)]
    results = [
        operation.value if result == "the value" else None if result is None else operation.process
        for operation in made
    ]
    return [replace(operation, result=result) for operation, result in zip(made, results, strict=True)]


def late(f: str, value: Any, result: Any, *, after_s: float = 0.0, key: str | None = "x") -> Operation:
    """Returns an operation after the loss of power."""
    return replace(op(LATE_S + after_s, f, value, key=key, process=999, phase=FINAL_PHASE), result=result)


def by_judge(workload: Any, operations: Sequence[Operation]) -> tuple[Part, Sequence[Operation]]:
    """Returns the part of a workload that decides these operations."""
    operations = placed(operations, POWER)
    return workload.check(operations, Observed(faults=[POWER]))[0], operations


def of_registers() -> tuple[Part, Sequence[Operation]]:
    """Returns many keys that lost a write. Those with a counterexample are the earliest by their reads."""
    operations = [replace(operation, key=f"k{operation.process}") for operation in many("write")]
    operations += [op(0.1, "write", operation.process, key=operation.key) for operation in operations]
    operations += [op(LATE_S + index, "read", None, index, key=f"k{index}") for index in range(MANY)]
    operations = placed(operations, POWER)
    return linearizability("cas-register", operations, [POWER])[0], operations


def of_vanished() -> tuple[Part, Sequence[Operation]]:
    """Returns a log whose appends are acknowledged without an offset. Entries before and after them are all that is there."""
    around = [replace(op(at_s, "append", value), result=offset) for at_s, value, offset in ((0.1, 1, 0), (20, 2, 1))]
    operations = [*around, *many("append", None), late("read", [0, 1], [[0, 1], [1, 2]])]
    return by_judge(LogWorkload(LogOptions()), operations)


def ledger(last: int, *reads: Operation) -> tuple[Part, Sequence[Operation]]:
    """Returns a ledger that was closed with this last entry, and then read."""
    return by_judge(LedgerWorkload(LedgerOptions()), [*many("append", 0), late("close", None, last), *reads])


def empty(after_s: float = 0.0) -> Operation:
    """Returns a read of a log that finds nothing."""
    return late("read", [0, MANY], [], after_s=after_s)


def twice(workload: Any, *more: Operation) -> tuple[Part, Sequence[Operation]]:
    """Returns a log that acknowledged each offset once more after the loss of power, for another value."""
    first = many("append", 0)
    again = [
        replace(
            operation,
            start_ns=operation.start_ns + int(LATE_S * S),
            end_ns=operation.last_ns + int(LATE_S * S),
            value=operation.value + 5000,
        )
        for operation in first
    ]
    return by_judge(workload, [*first, *again, *more])


LOSSES: Mapping[str, tuple[str, str, Callable[[], tuple[Part, Sequence[Operation]]]]] = {
    # The part and the kind of each loss, and a run with many of them.
    "register": ("linearizable", "", of_registers),
    "set": ("set", "lost", lambda: by_judge(SetWorkload(SetOptions()), [*many("add"), late("read", None, [])])),
    "broadcast": ("broadcast", "lost", lambda: by_judge(BroadcastWorkload(), [*many("add"), late("read", None, [])])),
    "g-set": ("g-set", "lost", lambda: by_judge(GSetWorkload(), [*many("add"), late("read", None, [])])),
    "log": ("log", "lost", lambda: by_judge(LogWorkload(LogOptions()), [*many("append", 0), empty()])),
    "log twice": ("log", "conflict", lambda: twice(LogWorkload(LogOptions()))),
    "kafka twice": ("kafka", "conflict", lambda: twice(KafkaWorkload())),
    "ledger twice": ("ledger", "conflict", lambda: twice(LedgerWorkload(LedgerOptions()))),
    "log without offsets": ("log", "lost", of_vanished),
    "kafka": ("kafka", "lost", lambda: by_judge(KafkaWorkload(), [*many("append", 0), empty()])),
    "ledger": ("ledger", "lost", lambda: ledger(MANY - 1, empty(after_s=1.0))),
    "end of a ledger": ("ledger", "beyond-end", lambda: ledger(-1)),
    "queue": (
        "queue",
        "lost",
        lambda: by_judge(QueueWorkload(QueueOptions()), [*many("enqueue"), late("drain", None, [])]),
    ),
}


@pytest.mark.parametrize("loss", LOSSES)
def test_the_last_acknowledged_write_is_named_whatever_the_number_of_losses(loss: str, stale_record: RunRecord) -> None:
    """A part has a hundred counterexamples at most, and the last of all losses may be none of them."""
    name, kind, made = LOSSES[loss]
    part, operations = made()
    assert (part.name, part.verdict) == (name, Verdict.INVALID)
    last = next(operation for operation in operations if operation.process == MANY - 1 and operation.last_ns == LAST_NS)
    shown = [
        operation.invoke_index
        for example, told in zip(part.counterexamples, part.details["counterexamples"], strict=True)
        for operation in example.operations
        if told.get("kind") == kind
    ]
    assert len(part.counterexamples) == 100
    assert last.invoke_index not in shown
    said = {}
    for again in (part, replace(part, details=json.loads(json.dumps(part.details)), counterexamples=())):
        run = replace(stale_record, operations=operations, faults=[POWER], parts=[again])
        said[again is part] = first_sentence(run)
    assert said[True] == said[False]
    assert f"{MANY} " in said[True]
    assert "after all nodes lost power" in said[True]
    assert f"process {last.process}'s {last.f} of {last.value}" in said[True], said
    assert f"at {LAST_NS / S:.3f} s" in said[True]
    assert kind in {"", part.details["counterexample"]["kind"]}


def test_each_kind_of_loss_is_tried() -> None:
    """A kind by which something acknowledged is gone needs a run above, so that its last one is named."""
    tried = {(part, kind) for part, kind, _ in LOSSES.values()}
    judges = {
        "set",
        "broadcast",
        "g-set",
        "log",
        "kafka",
        "ledger",
        "queue",
        "lock",
        "counter",
        "unique-ids",
        "echo",
        "bank",
    }
    gone = {
        (judge, kind)
        for judge in judges
        for kind in {*kinds_of_judges(), "lost"}
        if (words := words_of(judge, None, kind)) is not None and words.gone
    }
    assert gone == tried - {("linearizable", "")}


def test_a_value_from_nowhere_has_all_faults_before_it() -> None:
    """A fault may have damaged what a read returns much later."""
    found = judged([*OLD[:3], op(20, "read", None, 77)], POWER)
    assert first_sentence(found) == "A read returned a value that nobody had written after all nodes lost power."


def test_replicas_that_differ_are_told_in_words(stale_record: RunRecord) -> None:
    """A part without operations has the faults of the whole run."""
    run = replace(stale_record, parts=[replicas_equal(DIFFERENCE)], faults=[POWER])
    assert reason(run).startswith("Replicas hold different data after all nodes lost power. Replicas differ at")


def test_two_leaders_of_a_term_are_told_with_the_faults_between() -> None:
    """A fault before the first leader, or after the second one, explains nothing."""
    first = Sighting(time_ns=2 * S, node="n1", role="leader", term=4, until_ns=3 * S)
    second = Sighting(time_ns=9 * S, node="n2", role="leader", term=4, until_ns=12 * S)
    late = fault("kill", 10, 11, ["n3"], "n3 was killed")
    healthy = record(seed=1, operations=10)
    part = Part(name=ONE_LEADER, verdict=Verdict.INVALID, reason="2 nodes reported that they led in term 4.")
    run = replace(healthy, parts=[part], sightings=[first, second], faults=[POWER, late])
    assert (
        reason(run) == "One term had two leaders after all nodes lost power. 2 nodes reported that they led in term 4."
    )
    assert first_sentence(replace(run, faults=[late])) == "One term had two leaders."


def test_terminal_results_and_page_begin_alike(tmp_path: Path) -> None:
    """One function makes the sentence, also when a report is written again from the folder of the run."""
    run = store_run(Store(tmp_path), judged(OLD, POWER))
    made = build(judged(OLD, POWER))
    again = load_record(run)
    assert build(again)["reason"] == made["reason"] == reason(again)
    out = io.StringIO()
    print_summary(Console(file=out, width=4000), made, report=None)
    assert out.getvalue().startswith(
        "✗ invalid  An acknowledged write was never seen again after all nodes lost power."
    )
    assert escape(made["reason"]) in render(again, build(again), drawn={}, logs=[])


MAKERS = {"_of_token", "_of_read", "_two", "_anomaly"}  # they take the kind as their first argument


def kinds_of_judges() -> Iterator[str]:
    """Yields each constant that the judges of workloads give to an anomaly as its kind."""
    root = Path(__file__).parents[3]
    for path in sorted({*root.glob("workloads/**/*.py"), *root.glob("clusters/systems/*/workloads/**/*.py")}):
        tree = ast.parse(path.read_text())
        texts = {
            node.target.id: node.value.value
            for node in tree.body
            if isinstance(node, ast.AnnAssign)
            and isinstance(node.value, ast.Constant)
            and isinstance(node.target, ast.Name)
        }
        for call in (node for node in ast.walk(tree) if isinstance(node, ast.Call)):
            given = [
                keyword.value
                for keyword in call.keywords
                if keyword.arg == "kind" and getattr(call.func, "id", "") == "Anomaly"
            ]
            given += call.args[:1] if getattr(call.func, "attr", "") in MAKERS else []
            for value in [
                part
                for value_node in given
                for part in (
                    [value_node.body, value_node.orelse] if isinstance(value_node, ast.IfExp) else [value_node]
                )
            ]:
                kind = texts.get(value.id) if isinstance(value, ast.Name) else getattr(value, "value", None)
                if isinstance(kind, str):
                    yield kind


def test_each_kind_of_the_judges_has_words() -> None:
    """A new kind of anomaly needs a clause; transactions take that of their anomaly."""
    known = {"set", "log", "queue", "lock", "counter", "ledger", "kafka", "unique-ids", "echo"}
    kinds = set(kinds_of_judges())
    assert {"lost", "two-holders", "token-twice", "given-twice", "under-replicated", "out-of-bounds"} <= kinds
    assert [kind for kind in kinds if not any(words_of(judge, None, kind) for judge in known)] == []
    assert [kind for kind in ANOMALIES if words_of("list-append", None, kind) is None] == []
    assert words_of("own", None, "own-kind") is None
