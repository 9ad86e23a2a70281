"""Pairing turns events into operations, and refuses a history with malformed processes."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.errors import InputError
from harness.history import MemoryHistory, pair
from harness.op import NEMESIS, Op, Operation, OpType

INVOKE, OK, FAIL, INFO = OpType.INVOKE, OpType.OK, OpType.FAIL, OpType.INFO


def op(index: int, op_type: OpType, process: int | str, f: str = "read", **fields: Any) -> Op:
    """Returns an event at ten times its index."""
    return Op(index=index, time_ns=10 * index, type=op_type, process=process, f=f)._replace(**fields)


def test_an_operation_joins_its_two_events() -> None:
    """Argument and start come from the invoke, result and end from the completion."""
    invoke = op(0, INVOKE, 3, "cas", value=[1, 2], key="k", node="n1", scheduled_ns=4, phase="final")
    paired = pair([invoke, op(1, OK, 3, "cas", value=[1, 2], key="k", node="n1", phase="final", via="n3", order=9)])
    assert paired == [
        Operation(
            process=3,
            f="cas",
            value=[1, 2],
            result=[1, 2],
            type=OK,
            start_ns=0,
            end_ns=10,
            invoke_index=0,
            complete_index=1,
            key="k",
            node="n1",
            scheduled_ns=4,
            phase="final",
            via="n3",
            order=9,
        )
    ]


@pytest.mark.parametrize("op_type", [FAIL, INFO])
def test_only_an_ok_has_a_result(op_type: OpType) -> None:
    """The value of a fail or an info is its argument."""
    (paired,) = pair([op(0, INVOKE, 0, "write", value=5), op(1, op_type, 0, "write", value=5, error="timeout")])
    assert (paired.type, paired.value, paired.result, paired.error) == (op_type, 5, None, "timeout")


def test_an_operation_without_a_completion_is_info_without_an_end() -> None:
    """The run ended during the operation."""
    (paired,) = pair([op(0, INVOKE, 0)])
    assert (paired.type, paired.end_ns, paired.complete_index) == (INFO, None, None)


def test_operations_are_in_the_order_of_their_invokes() -> None:
    """The order of the ends does not matter, and events of the nemesis are left out."""
    paired = pair(
        [
            op(0, INVOKE, 0),
            op(1, INFO, NEMESIS, "start-kill"),
            op(2, INVOKE, 1),
            op(3, OK, 1),
            op(4, INFO, NEMESIS, "start-kill"),
            op(5, OK, 0),
        ]
    )
    assert [(operation.process, operation.invoke_index, operation.complete_index) for operation in paired] == [
        (0, 0, 5),
        (1, 2, 3),
    ]


@pytest.mark.parametrize(
    ("ops", "expected"),
    [
        ([op(0, OK, 4)], "event 0: process 4 completes 'read' (ok), but has no operation open"),
        ([op(0, INVOKE, 4), op(1, OK, 4), op(2, OK, 4)], "event 2: process 4 completes 'read' (ok)"),
        (
            [op(0, INVOKE, 4), op(1, INVOKE, 4)],
            "event 1: process 4 invokes 'read', but its 'read' of event 0 is still open",
        ),
        (
            [op(0, INVOKE, 4), op(1, OK, 4, "write")],
            "event 1: expected the completion of 'read' of event 0, found 'write'",
        ),
        (
            [op(0, INVOKE, 4, key="a"), op(1, OK, 4, key="b")],
            "event 1: expected a completion on key 'a' as invoked in event 0, found 'b'",
        ),
        ([op(0, INVOKE, 4), op(1, OK, 4, time_ns=-1)], "event 1: time decreases"),
        (
            [op(0, INVOKE, 4), op(1, INFO, 4), op(2, INVOKE, 4)],
            "event 2: process 4 invokes 'read', but ended with the info of event 1",
        ),
    ],
)
def test_a_history_with_a_malformed_process_is_refused(ops: list[Op], expected: str) -> None:
    """A process has one operation at a time and none after an info, and completes only its operation."""
    with pytest.raises(InputError) as raised:
        pair(ops)
    assert expected in str(raised.value)


@settings(deadline=None)
@given(data=st.data())
def test_every_invoke_becomes_one_operation(data: st.DataObject) -> None:
    """In random histories, each operation has two events of one process, and ends after its start."""
    history = MemoryHistory()
    free, busy = list(range(4)), list[int]()
    fresh = 4
    for _ in range(data.draw(st.integers(0, 30))):
        begins = bool(free) and (not busy or data.draw(st.booleans()))
        process = data.draw(st.sampled_from(free if begins else busy))
        (free if begins else busy).remove(process)
        op_type = INVOKE if begins else data.draw(st.sampled_from([OK, FAIL, INFO]))
        history.append(time_ns=len(history.ops), op_type=op_type, process=process, f="read")
        if begins:
            busy.append(process)
        elif op_type is INFO:
            free.append(fresh)
            fresh += 1
        else:
            free.append(process)
    operations = pair(history.ops)
    invokes = [event for event in history.ops if event.type is INVOKE]
    assert [operation.invoke_index for operation in operations] == [event.index for event in invokes]
    for operation in operations:
        if operation.complete_index is not None:
            completion = history.ops[operation.complete_index]
            assert completion.process == operation.process
            assert completion.type is operation.type
            assert operation.end_ns is not None
            assert operation.end_ns > operation.start_ns
