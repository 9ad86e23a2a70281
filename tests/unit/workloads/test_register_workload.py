"""The register workload in a run: its generators, and the parts of its verdict."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

from checker.linearizable import linearizability
from harness.combinators import ATTEMPTS, limit, time_limit
from harness.final_reads import FinalReads as Outcomes
from harness.generator import Asker
from harness.history import pair
from harness.load import ClosedLoop
from harness.node import Node
from harness.op import FINAL_PHASE, Fail, Info, Invocation, Ok, Op, Operation, OpType
from harness.testing import simulate
from harness.verdict import Verdict
from harness.workload import Observed
from tests.unit.workloads.streams import drawn
from workloads.finals import final_reads, keys_of
from workloads.register import RegisterOptions, RegisterWorkload, Values
from workloads.register.workload import reads_saw_writes

if TYPE_CHECKING:
    from harness.generator import Generator
    from harness.op import Outcome

NODE = Node(name="n1", address="10.0.0.1")


class Registers:
    """Correct registers in memory; an operation takes effect and is answered at its end."""

    def __init__(self) -> None:
        self.values: dict[str | None, Any] = {}

    def __call__(self, _: int, invocation: Invocation) -> Outcome:
        """Carries out an operation."""
        key, value = invocation.key, invocation.value
        match invocation.f:
            case "read":
                return Ok(self.values.get(key))
            case "write":
                self.values[key] = value
            case "cas":
                if self.values.get(key) != value[0]:
                    return Fail("mismatch")
                self.values[key] = value[1]
        return Ok(value)


def answered(generator: Generator, op_type: OpType, f: str, value: Any, key: str = "h0") -> None:
    """Gives a completion to a generator."""
    generator.update(Op(0, 0, op_type, 9, f, value, key))


def next_cas(generator: Generator) -> Invocation | None:
    """Returns the next compare-and-set on the hot key; None if reads replace it."""
    for _ in range(200):
        answer = generator.ask(Asker(0, 0, "n1", 0, workers=frozenset({0})))
        assert isinstance(answer, Invocation)
        if answer.f == "cas":
            return answer
    return None


@pytest.fixture
def generator() -> Generator:
    """A generator of one stream on one key."""
    return RegisterWorkload(RegisterOptions(hot_keys=1, hot_share=1)).generator(seed=1, streams=1)


def test_a_cas_expects_what_was_seen_last(generator: Generator) -> None:
    """The latest value comes from any read, write or cas that certainly happened."""
    for f, value, expected in (("read", 5, 5), ("write", 7, 7), ("cas", [7, 9], 9)):
        answered(generator, OpType.OK, f, value)
        cas = next_cas(generator)
        assert cas is not None
        assert cas.value[0] == expected
        assert cas.value[1] not in {5, 7, 9}


def test_a_cas_without_anything_seen_is_a_read(generator: Generator) -> None:
    """There is no latest value at first, after a read of null, from other keys, or from indeterminate operations."""
    assert next_cas(generator) is None
    answered(generator, OpType.OK, "write", 3, key="k0")
    answered(generator, OpType.INFO, "write", 3)
    answered(generator, OpType.FAIL, "cas", [1, 3])
    answered(generator, OpType.INVOKE, "write", 3)
    assert next_cas(generator) is None
    answered(generator, OpType.OK, "read", 3)
    assert next_cas(generator) is not None
    answered(generator, OpType.OK, "read", None)
    assert next_cas(generator) is None


@pytest.mark.parametrize("value", ["text", [1], {"a": 1}, 1.5, [[], []]])
def test_an_answer_of_any_shape_does_no_harm(generator: Generator, value: Any) -> None:
    """Results that are not values of a register are ignored."""
    for f in ("read", "write", "cas"):
        answered(generator, OpType.OK, f, value)
    assert next_cas(generator) is None


@pytest.mark.parametrize("values", Values)
def test_workers_get_their_streams_whatever_the_system_does(values: Values) -> None:
    """The n-th operation of a worker is the n-th of its stream, for any answers, except for a cas without a latest value."""
    workload = RegisterWorkload(RegisterOptions(values=values))
    for latency_s, respond in ((0.001, Registers()), (0.05, lambda _, __: Fail("no"))):
        ops = simulate(
            time_limit(2, workload.generator(seed=4, streams=3)),
            latency_s=lambda process, _, latency_s=latency_s: latency_s * (1 + process),  # type: ignore[misc]
            respond=respond,
        )
        for worker in range(3):
            invoked = [op for op in ops if op.type is OpType.INVOKE and op.process == worker]
            assert len(invoked) > 10
            planned = drawn(workload, worker, len(invoked), streams=3, seed=4, preview=True)
            for op, draw in zip(invoked, planned, strict=True):
                assert op.key == draw.key
                assert op.f == draw.f or (op.f, draw.f) == ("read", "cas")
                if op.f != "read":
                    assert (op.value[1] if op.f == "cas" else op.value) == (
                        draw.value[1] if op.f == "cas" else draw.value
                    )


@pytest.mark.parametrize("values", Values)
def test_a_correct_system_is_valid_and_was_tested(values: Values) -> None:
    """All parts are valid, and enough compare-and-sets succeed."""
    workload = RegisterWorkload(RegisterOptions(values=values))
    ops = simulate(
        time_limit(5, workload.generator(seed=4, streams=5)), load=ClosedLoop(concurrency=5), respond=Registers()
    )
    operations = pair(ops)
    assert {part.name: part.verdict for part in workload.check(operations, Observed())} == {
        "linearizable": Verdict.VALID,
        "reads-saw-writes": Verdict.VALID,
    }
    cas = Counter(operation.type for operation in operations if operation.f == "cas")
    assert cas[OpType.OK] > 0.1 * cas.total()


def test_every_key_is_read_at_the_end() -> None:
    """Each key is read once, in the order of its first use; the workers share the keys."""
    workload = RegisterWorkload()
    history = simulate(limit(300, workload.generator(seed=4, streams=3)))
    ops = simulate(workload.final_generator(history=history, node=NODE), load=ClosedLoop(concurrency=5))
    read = [op for op in ops if op.type is OpType.INVOKE]
    assert [op.key for op in read] == keys_of(history)
    assert {(op.f, op.phase) for op in ops} == {("read", FINAL_PHASE)}
    assert len({op.process for op in read}) > 1


@pytest.mark.parametrize("outcome", [Fail("not-leader"), Info("timeout")])
def test_a_final_read_that_did_not_succeed_is_tried_again(outcome: Outcome) -> None:
    """A failed read is repeated a limited number of times; the other keys do not wait for it."""
    tries: Counter[str | None] = Counter()

    def respond(_: int, invocation: Invocation) -> Outcome:
        tries[invocation.key] += 1
        lost = invocation.key == "lost" or (invocation.key == "late" and tries["late"] < ATTEMPTS)
        return outcome if lost else Ok(1)

    history = [Op(0, 0, OpType.INVOKE, 0, "read", None, key) for key in ("lost", "late", "a", "b")]
    simulate(RegisterWorkload().final_generator(history=history, node=NODE), respond=respond)
    assert tries == {"lost": ATTEMPTS, "late": ATTEMPTS, "a": 1, "b": 1}


def test_a_run_that_touched_nothing_has_no_final_reads() -> None:
    """The generator of no keys ends at once."""
    assert simulate(RegisterWorkload().final_generator(history=[], node=NODE)) == []


def operation(index: int, process: int, f: str, value: Any, op_type: OpType = OpType.OK, **more: Any) -> Operation:
    """Makes an operation after all those with a lower index."""
    fields: dict[str, Any] = {"key": "h0", "node": "n1", **more}
    return Operation(
        process=process,
        f=f,
        value=None if f == "read" else value,
        result=value if op_type is OpType.OK else None,
        type=op_type,
        start_ns=10 * index,
        end_ns=10 * index + 5,
        invoke_index=2 * index,
        complete_index=2 * index + 1,
        **fields,
    )


def test_a_stale_read_is_invalid_with_a_counterexample() -> None:
    """The part names the key, explains, and shows the operations."""
    [part] = linearizability(
        "cas-register",
        [
            operation(0, 0, "write", 1, key="k1"),
            operation(1, 0, "write", 1),
            operation(2, 0, "write", 2),
            operation(3, 1, "read", 1),
        ],
    )
    assert part.verdict is Verdict.INVALID
    assert part.details["keys"] == 2
    assert part.details["invalid_keys"] == ["h0"]
    example = part.details["counterexample"]
    assert example["key"] == "h0"
    assert {op["f"] for op in example["operations"]} == {"read", "write"}
    assert example["explanation"] in part.reason


@pytest.mark.parametrize(
    "operations",
    [
        [],
        [operation(0, 0, "write", 1), operation(1, 0, "read", 1)],
        [operation(0, 0, "write", 1), operation(1, 1, "read", None)],
        [operation(0, 0, "write", 1), operation(1, 1, "read", None, OpType.INFO)],
        [operation(0, 0, "write", 1, key="other"), operation(1, 1, "read", 1)],
        [operation(0, 0, "write", 1), operation(1, 1, "write", 1), operation(2, 1, "read", 1)],
    ],
)
def test_a_run_whose_reads_saw_nothing_of_others_is_unknown(operations: list[Operation]) -> None:
    """Own values, null, unanswered reads and other keys do not count."""
    part = reads_saw_writes(operations)
    assert part.verdict is Verdict.UNKNOWN
    assert "nothing was tested" in part.reason


@pytest.mark.parametrize(
    "write",
    [
        operation(0, 0, "write", 1),
        operation(0, 0, "cas", [7, 1]),
        operation(0, 0, "write", 1, OpType.INFO),
    ],
)
def test_a_read_of_another_process_write_counts(write: Operation) -> None:
    """Writes and compare-and-sets count, also without an answer."""
    part = reads_saw_writes([write, operation(1, 1, "read", 1)])
    assert part.verdict is Verdict.VALID
    assert part.details == {"reads": 1, "of_others": 1}


def test_a_result_of_any_shape_is_judged() -> None:
    """A list instead of a number is a value without a write."""
    operations = [operation(0, 0, "write", 1), operation(1, 1, "read", [1, {"a": []}])]
    assert linearizability("cas-register", operations)[0].verdict is Verdict.INVALID
    assert reads_saw_writes(operations).verdict is Verdict.UNKNOWN


def test_final_reads_are_counted_by_key_and_node() -> None:
    """An unread key makes the part unknown; the reason has the nodes, and the number of keys through each."""
    written = [operation(0, 0, "write", 1), operation(1, 0, "write", 1, key="k0")]
    through = Outcomes(through=("n2", "n1"), left_out={"n3": "did not become leader in 15 s"})
    first = operation(2, 1, "read", 1, phase=FINAL_PHASE, node="n2")
    lost = operation(3, 1, "read", None, OpType.INFO, phase=FINAL_PHASE, node="n2", key="k0")
    part = final_reads([*written, first, lost], through)
    assert part.verdict is Verdict.UNKNOWN
    assert part.details == {
        "keys": 2,
        "unread": ["k0"],
        "keys_by_node": {"n2": 1},
        "left_out": {"n3": "did not become leader in 15 s"},
    }
    finals = [
        operation(4 + n, 2, "read", 1, phase=FINAL_PHASE, node="n1", key=key) for n, key in enumerate(("h0", "k0"))
    ]
    part = final_reads([*written, first, lost, *finals], through)
    assert part.verdict is Verdict.VALID
    assert part.reason == (
        "All 2 keys were read after healing, through n2 (1 of 2 keys), n1."
        " n3 was left out: it did not become leader in 15 s."
    )


def test_final_reads_that_were_asked_for_are_never_absent() -> None:
    """Missing final reads make the part unknown, with the reason; without final reads in the test, there is no such part."""
    written = [operation(0, 0, "write", 1), operation(1, 1, "read", 1)]
    workload = RegisterWorkload()
    for operations, reads, reason in (
        (written, Outcomes(missing="The run ended before its final reads."), "ended before"),
        ([], Outcomes(through=("n1",)), "used no key"),
        (written, Outcomes(through=("n1",)), "1 of 1 key could not be read"),
    ):
        parts = {part.name: part for part in workload.check(operations, Observed(final_reads=reads))}
        assert parts["final-reads"].verdict is Verdict.UNKNOWN
        assert reason in parts["final-reads"].reason
    assert "final-reads" not in {part.name for part in workload.check(written, Observed())}
