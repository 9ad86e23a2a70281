"""The decoder reads the events of faults, and takes no other event for one."""

from __future__ import annotations

from typing import Any

import pytest

from harness.fault_events import FaultEvent, event_name, fault_event, fault_records
from harness.op import NEMESIS, Op, OpType
from harness.units import NS_PER_S as S


def op(second: int, f: str, value: Any, process: int | str = NEMESIS) -> Op:
    """Returns an event in a second."""
    return Op(index=second, time_ns=second * S, type=OpType.INFO, process=process, f=f, value=value)


@pytest.mark.parametrize("begins", [True, False])
def test_a_written_event_is_read(begins: bool) -> None:
    """The name of a kind may also begin with `start-`."""
    for kind in ("kill", "start-kill", "stop-it"):
        event = fault_event(event_name(kind, begins=begins), {"fault": 3, "targets": ["n1", "n2"]})
        assert event == FaultEvent(fault=3, kind=kind, begins=begins, targets=("n1", "n2"))


@pytest.mark.parametrize(
    ("f", "value"),
    [
        ("start-kill", None),
        ("start-kill", [1]),
        ("start-kill", {}),
        ("start-kill", {"fault": "3"}),
        ("start-kill", {"fault": True}),
        ("start-kill", {"fault": 2**63}),
        (7, {"fault": 3}),
    ],
)
def test_an_event_of_another_form_is_no_event_of_a_fault(f: Any, value: Any) -> None:
    """A history may come from anyone."""
    assert fault_event(f, value) is None


def test_targets_that_are_no_list_are_ignored() -> None:
    """The event still counts as that of a fault."""
    assert fault_event("start-kill", {"fault": 3, "targets": "n1"}) == FaultEvent(
        fault=3, kind="kill", begins=True, targets=()
    )


def test_the_faults_of_a_history() -> None:
    """A fault lasts from its first start to its last stop, or to the end of the history; none has a proof."""
    records = fault_records(
        [
            op(1, "start-kill", {"fault": 0, "targets": []}),
            op(2, "start-kill", {"fault": 0, "targets": ["n2"]}),
            op(3, "start-kill", {"fault": 9, "targets": ["n7"]}, process=4),
            op(4, "stop-kill", {"fault": 0, "targets": ["n2"]}),
            op(5, "stop-kill", {"fault": 0, "targets": ["n2"]}),
            op(6, "start-pause", {"fault": 1, "targets": ["n1"]}),
            op(7, "stop-nothing", {"fault": 5}),
        ]
    )
    faults = [
        (record.planned.id, record.planned.kind, record.targets, record.start_ns, record.end_ns) for record in records
    ]
    assert faults == [(0, "kill", ("n2",), S, 5 * S), (1, "pause", ("n1",), 6 * S, 7 * S)]
    assert all(record.proof is None and record.error for record in records)
