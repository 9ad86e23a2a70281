"""Faults that leave no quorum up count by what reads show after them, and other faults do not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness import reached
from harness.faults import FaultRecord, PlannedFault, Proof
from harness.op import FINAL_PHASE, Operation, OpType
from harness.outages import Serving
from harness.recovery import Recovery
from harness.targets import AllNodes
from harness.verdict import Verdict
from workloads.set.workload import SetWorkload

if TYPE_CHECKING:
    from collections.abc import Sequence

ALL = ("n1", "n2", "n3")
READS = frozenset({"read"})
REGISTERS = Serving(role="store", nodes=frozenset(ALL), quorum=2, reads=READS, replaces=True)
SETS = Serving(role="store", nodes=frozenset(ALL), quorum=2, reads=READS, replaces=False)


def op(f: str, start_ns: int, end_ns: int | None, **changes: Any) -> Operation:
    """Returns an operation on the key `k`, which is ok unless a change says otherwise."""
    values: dict[str, Any] = {
        "process": 0, "f": f, "value": 1, "result": 1, "type": OpType.OK, "start_ns": start_ns, "end_ns": end_ns,
        "invoke_index": start_ns, "complete_index": end_ns, "key": "k",
    }  # fmt: skip
    return Operation(**(values | changes))


def loss(
    *vanished: str, start_ns: int = 100, end_ns: int = 200, effective: bool = True, role: str | None = None
) -> FaultRecord:
    """Returns a loss of power with which processes vanished."""
    return FaultRecord(
        planned=PlannedFault(id=0, kind="power-loss", target=AllNodes(), start_s=0, end_s=1, role=role),
        targets=tuple(ALL),
        start_ns=start_ns,
        end_ns=end_ns,
        proof=Proof(effective=effective, reason="vanished", measured={"vanished": list(vanished)}),
    )


WRITE = op("write", 10, 20)
READ = op("read", 300, 310)


def test_a_read_after_a_loss_of_all_nodes_is_progress() -> None:
    """Nothing can succeed while all nodes are down. The sentence says so, and counts the reads."""
    part = reached.progress([WRITE, READ], [loss(*ALL)], None, REGISTERS)
    assert part.verdict is Verdict.VALID
    assert part.reason == (
        "2 operations succeeded, 1 of them after the last fault. The fault left no quorum up, so nothing could succeed during "
        "it; 1 read after it shows what was acknowledged before."
    )
    assert part.details["ok_reads_after_outages"] == 1


@pytest.mark.parametrize(
    "operations",
    [
        [READ],  # nothing was acknowledged before
        [op("write", 10, 20, type=OpType.INFO), READ],
        [op("write", 90, 101), READ],  # its answer may have come after the loss
        [WRITE, op("read", 300, 310, key="other")],
        [WRITE, op("read", 300, 310, type=OpType.FAIL), op("write", 320, 330)],
        [WRITE, op("write", 250, 260), READ],  # a later write hides what was there
        [WRITE, op("write", 305, 306), READ],
        [WRITE, op("write", 90, None, type=OpType.INFO), READ],  # it may have happened after the loss
    ],
)
def test_operations_that_show_nothing_from_before_are_no_progress(operations: Sequence[Operation]) -> None:
    """No read shows what an acknowledged change left before the fault."""
    part = reached.progress(operations, [loss(*ALL)], None, REGISTERS)
    assert part.verdict is Verdict.UNKNOWN
    assert part.reason == (
        "The fault left no quorum up, so nothing could succeed during it; and no read after it shows what was acknowledged "
        "before, so the faults tested nothing."
    )


@pytest.mark.parametrize(
    ("since", "counts"),
    [
        ([op("write", 90, None, type=OpType.INFO, value=2)], True),
        ([op("cas", 95, None, type=OpType.INFO, value=[1, 2]), op("write", 250, 260, value=3)], True),
        ([op("cas", 95, None, type=OpType.INFO, value=[2, 1])], False),
        ([op("cas", 95, None, type=OpType.INFO, value=[1, 2]), op("write", 250, 260, value=1)], False),
    ],
)
def test_a_read_shows_a_value_that_only_changes_before_the_loss_left(since: Sequence[Operation], counts: bool) -> None:
    """Other changes of the key may have happened since, and leave other values."""
    for before in (WRITE, op("cas", 10, 20, value=[0, 1])):
        part = reached.progress([before, *since, READ], [loss(*ALL)], None, REGISTERS)
        assert (part.verdict is Verdict.VALID) is counts
    unlike = reached.progress([op("write", 10, 20, value=4), *since, READ], [loss(*ALL)], None, REGISTERS)
    assert unlike.verdict is Verdict.UNKNOWN


def test_elements_stay_beside_later_ones() -> None:
    """A read of a set shows the elements from before the fault, whatever was added since."""
    operations = [op("add", 10, 20), op("add", 250, 260), READ]
    assert reached.progress(operations, [loss(*ALL)], None, SETS).verdict is Verdict.VALID
    assert reached.progress(operations, [loss(*ALL)], None, REGISTERS).verdict is Verdict.UNKNOWN


@pytest.mark.parametrize(
    ("faults", "counts"),
    [
        ([loss("n1", "n2")], True),  # one of three is no quorum
        ([loss("n1")], False),
        ([loss(*ALL, effective=False)], False),
        ([loss(*ALL, role="store")], True),
        ([loss(*ALL, role="voter")], False),  # clients do not use it
        ([loss("n1 (store)", "n2 (store)")], True),
        ([loss(*ALL), loss(*ALL, start_ns=220, end_ns=230)], True),
        ([loss(*ALL), loss("n1", start_ns=220, end_ns=230)], False),  # during the second one, clients should be served
        ([loss(*ALL), loss(start_ns=220, end_ns=230, effective=False)], True),  # nothing shows that it was on
    ],
)
def test_only_faults_that_provably_leave_no_quorum_count_so(faults: Sequence[FaultRecord], counts: bool) -> None:
    """During each other fault, operations have to succeed as before."""
    part = reached.progress([WRITE, READ], faults, None, REGISTERS)
    assert (part.verdict is Verdict.VALID) is counts
    assert counts or part.reason.startswith("No operation that was invoked while a fault was on succeeded")


def test_a_quorum_of_all_nodes_is_no_outage_of_one() -> None:
    """A system may promise to serve at all nodes. A majority still answers the others' clients meanwhile."""
    every = Serving(role="store", nodes=frozenset(ALL), quorum=3, reads=READS, replaces=True)
    assert not every.is_outage(loss("n1"))
    assert every.is_outage(loss("n1", "n2"))
    one = Serving(role="store", nodes=frozenset(ALL), quorum=1, reads=READS, replaces=True)
    assert not one.is_outage(loss("n1", "n2"))
    assert one.is_outage(loss(*ALL))


def test_operations_that_succeed_during_an_outage_count_as_before() -> None:
    """A client may wait until the node is there again."""
    part = reached.progress([WRITE, op("write", 150, 250), READ], [loss(*ALL)], None, REGISTERS)
    assert part.verdict is Verdict.VALID
    assert "1 of them while a fault was on" in part.reason


def test_reads_after_a_restart_of_all_nodes_do_not_count() -> None:
    """The restart may hide the consequences of the fault."""
    recovery = Recovery(
        seconds=31.0, restarted=True, restarted_s=250e-9, first_error=None, error=None, quorum=2, nodes=3
    )
    operations = [WRITE, READ, op("read", 400, 410, phase=FINAL_PHASE)]
    part = reached.progress(operations, [loss(*ALL)], recovery, REGISTERS)
    assert part.verdict is Verdict.UNKNOWN
    assert part.details["ok_reads_after_outages"] == 0


TIMES = st.integers(0, 400)
OPERATIONS = st.builds(
    lambda f, start, lasts, type_, key, value: op(
        f, start, None if lasts is None else start + lasts, type=type_ if lasts is not None else OpType.INFO, key=key,
        value=value, result=value,
    ),
    st.sampled_from(["read", "write"]), TIMES, st.none() | st.integers(0, 150), st.sampled_from([*OpType][1:]),
    st.sampled_from(["k", "l"]), st.integers(1, 3),
)  # fmt: skip


@given(st.lists(OPERATIONS, max_size=12), st.booleans())
def test_reads_are_those_of_the_definition(operations: Sequence[Operation], replaces: bool) -> None:
    """The same as to look at each read, each outage and each change."""
    operations = [
        Operation(**{name: getattr(operation, name) for name in Operation.__slots__} | {"invoke_index": number})
        for number, operation in enumerate(operations)
    ]
    outages = [loss(*ALL, start_ns=60, end_ns=90), loss(*ALL, start_ns=200, end_ns=260)]
    expected = 0
    for read in operations:
        changes = [
            operation
            for operation in operations
            if operation.f == "write" and operation.type is not OpType.FAIL and operation.key == read.key
        ]
        shown = False
        for outage in outages:
            before = [change for change in changes if change.end_ns is not None and change.end_ns <= outage.start_ns]
            since = [change for change in changes if change not in before and change.start_ns < read.last_ns]
            acknowledged = any(change.type is OpType.OK for change in before)
            shown |= read.start_ns >= outage.end_ns and acknowledged and not (replaces and since)
            same = [each for each in before if each.type is OpType.OK and each.value == read.result]
            same_since = [each for each in since if each.value == read.result]
            shown |= bool(read.start_ns >= outage.end_ns and same and not (replaces and same_since))
        expected += read.f == "read" and read.type is OpType.OK and shown
    serving = Serving(role="store", nodes=frozenset(ALL), quorum=2, reads=READS, replaces=replaces)
    assert serving.reads_after(outages, operations) == expected


def test_what_clients_use_comes_from_the_service_and_the_workload() -> None:
    """A judge looks for each element, and a model for the last state."""

    class Front:
        role = "store"
        nodes = ()

        def quorum(self) -> int:
            return 1

    front: Any = Front()
    assert Serving.of(front, SetWorkload()).replaces is False
    register: Any = type("Register", (), {"model": "cas-register", "final": ("read",)})()
    assert Serving.of(front, register) == Serving(role="store", nodes=frozenset(), quorum=1, reads=READS, replaces=True)
