"""The circumstances of a violation: only observations, each with its time."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from harness.counterexample import Counterexample
from harness.faults import FaultRecord, PlannedFault
from harness.op import Operation, OpType
from harness.targets import AllNodes
from harness.units import NS_PER_S as S
from harness.watch import Positions, Sighting
from results.circumstances.faults import circumstances

if TYPE_CHECKING:
    from results.record.record import RunRecord

READ = Operation(
    process=7, f="read", value=None, result=2, type=OpType.OK, start_ns=15 * S, end_ns=15 * S + S // 100, invoke_index=4,
    complete_index=5, key="k", node="n3",
)  # fmt: skip
EXAMPLE = Counterexample(key="k", explanation="stale", operations=[READ], culprit=READ)


def fault(number: int, start_s: int, end_s: int) -> FaultRecord:
    """Returns a kill of n1 that lasts from `start_s` to `end_s`."""
    planned = PlannedFault(id=number, kind="kill", target=AllNodes(), start_s=start_s, end_s=end_s)
    return FaultRecord(planned=planned, targets=("n1",), start_ns=start_s * S, end_ns=end_s * S, proof=None)


@pytest.fixture
def record(valid_record: RunRecord) -> RunRecord:
    """A run in which n1 led, n3 followed, and n3 was behind at 14.9 s."""
    sightings = [
        Sighting(time_ns=S, node="n1", role="leader", term=2, leader="n1", until_ns=20 * S),
        Sighting(time_ns=3 * S, node="n3", role="follower", term=2, leader="n1", until_ns=20 * S),
    ]
    positions = Positions(
        time_ns=[14 * S + 9 * S // 10, 15 * S + 9 * S // 10],
        applied={"n1": [1310, 1400], "n3": [1204, 1400], "n5": [None, 9]},
    )
    return replace(valid_record, faults=[fault(0, 12, 18)], sightings=sightings, positions=positions)


def test_faults_leader_and_the_node_that_answered(record: RunRecord) -> None:
    """All observations at the time of the violation."""
    assert circumstances(EXAMPLE, record) == [
        "kill of n1 (fault 0) was active from 12.000 s to 18.000 s.",
        "n1 reported that it led in term 2, in the polls from 1.000 s to 20.000 s.",
        (
            "Process 7's read was sent to n3. It reported that it was a follower of n1 in term 2, in the polls from 3.000 s to "
            "20.000 s."
        ),
        (
            "At 14.900 s n3 was 106 entries behind (it had applied 1,204, and n1 1,310); at 15.900 s no node had applied more "
            "entries than n3 (1,400)."
        ),
    ]


def test_a_fault_at_a_role_is_called_by_it(record: RunRecord) -> None:
    """A fault of one process is named as on the command line, so that it differs from a fault of the whole node."""
    aimed = fault(0, 12, 18)
    aimed = replace(aimed, planned=replace(aimed.planned, role="broker"))
    lines = circumstances(EXAMPLE, replace(record, faults=[aimed]))
    assert lines[0] == "kill:broker of n1 (fault 0) was active from 12.000 s to 18.000 s."


def test_a_client_that_chose_its_node_names_that_node(record: RunRecord) -> None:
    """If the client had gone to the leader, the node at which it was placed did not answer."""
    moved = replace(READ, node="n3", via="n1")
    lines = circumstances(replace(EXAMPLE, operations=[moved], culprit=moved), record)
    assert lines[2] == (
        "n1 answered process 7's read. It reported that it was the leader in term 2, in the polls from 1.000 s to 20.000 s."
    )
    assert lines[3] == (
        "At 14.900 s no node had applied more entries than n1 (1,310); at 15.900 s no node had applied more entries than n1 "
        "(1,400)."
    )


@pytest.mark.parametrize(
    ("faults", "expected"),
    [
        ([], ["The run had no fault."]),
        ([fault(0, 20, 30)], ["No fault was active.", "The first fault, kill of n1 (fault 0), began 5.0 s later."]),
        ([fault(0, 5, 10), fault(1, 20, 30)], ["No fault was active.", "kill of n1 (fault 0) had ended 5.0 s before."]),
        ([fault(0, 15, 15)], ["The run had no fault."]),
    ],
)
def test_where_no_fault_was_on_that_is_said(record: RunRecord, faults: list[FaultRecord], expected: list[str]) -> None:
    """A violation far from every fault is not attributed to one."""
    sentences = circumstances(EXAMPLE, replace(record, faults=faults))
    assert sentences[: len(expected)] == expected


def test_a_sentence_about_a_node_needs_polls_on_both_sides(record: RunRecord) -> None:
    """A poll before the operation alone, or after it alone, or one too far away, gives no sentence."""

    def told(positions: Positions) -> list[str]:
        return [line for line in circumstances(EXAMPLE, replace(record, positions=positions)) if "applied" in line]

    applied = {"n1": [10, 40], "n3": [10, 14]}
    assert told(Positions(time_ns=[14 * S, 16 * S], applied=applied)) == [
        (
            "At 14.000 s no node had applied more entries than n3 (10); at 16.000 s n3 was 26 entries behind (it had applied "
            "14, and n1 40)."
        )
    ]
    assert told(Positions(time_ns=[14 * S, 15 * S], applied=applied)) == []
    assert told(Positions(time_ns=[16 * S, 17 * S], applied=applied)) == []
    assert told(Positions(time_ns=[14 * S, 18 * S], applied=applied)) == []
    assert told(Positions(time_ns=[14 * S, 16 * S], applied={"n1": [10, 40], "n3": [10, None]})) == []
    assert told(Positions(time_ns=[14 * S, 16 * S], applied={"n1": [None, 40], "n3": [10, 14]})) == []


def test_a_node_that_changed_meanwhile_has_both_reports(record: RunRecord) -> None:
    """The report before the operation alone would say that a deposed leader still led."""
    seen = [
        Sighting(time_ns=S, node="n3", role="leader", term=2, until_ns=14 * S),
        Sighting(time_ns=16 * S, node="n3", role="follower", term=3, leader="n1", until_ns=20 * S),
    ]
    assert circumstances(EXAMPLE, replace(record, sightings=seen))[1:3] == [
        "n3 reported that it led in term 2, in the polls from 1.000 s to 14.000 s.",
        (
            "Process 7's read was sent to n3. Until 14.000 s it reported that it was the leader in term 2; since 16.000 s it "
            "reported that it was a follower of n1 in term 3."
        ),
    ]


def test_term_0_is_a_term(record: RunRecord) -> None:
    """The first term of some systems is 0; only a system without terms has none."""
    seen = [Sighting(time_ns=S, node="n3", role="leader", term=0, until_ns=20 * S)]
    lines = circumstances(EXAMPLE, replace(record, sightings=seen))
    assert lines[1] == "n3 reported that it led in term 0, in the polls from 1.000 s to 20.000 s."
    assert "was the leader in term 0" in lines[2]
    without = circumstances(EXAMPLE, replace(record, sightings=[replace(seen[0], term=None)]))
    assert not any("term" in line for line in without)


def test_what_was_not_seen_is_not_told(record: RunRecord) -> None:
    """A silent node, an old sighting and an old position are named as such, or omitted."""
    silent = [Sighting(time_ns=2 * S, node="n3", role=None, until_ns=20 * S)]
    assert (
        "It did not answer, in the polls from 2.000 s" in circumstances(EXAMPLE, replace(record, sightings=silent))[-2]
    )
    unknown = "Process 7's read was sent to n3."
    old = [Sighting(time_ns=2 * S, node="n3", role="follower", term=2, leader="n1", until_ns=6 * S)]
    assert circumstances(EXAMPLE, replace(record, sightings=old))[-2] == unknown
    assert circumstances(EXAMPLE, replace(record, sightings=()))[-2] == unknown
    late = [Sighting(time_ns=16 * S, node="n3", role="follower", term=2, leader="n1", until_ns=20 * S)]
    assert circumstances(EXAMPLE, replace(record, sightings=late))[-2] == unknown
    past = Positions(time_ns=[S], applied={"n1": [5], "n3": [4]})
    assert not any("behind" in line for line in circumstances(EXAMPLE, replace(record, positions=past)))
