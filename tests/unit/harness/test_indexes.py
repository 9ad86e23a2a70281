"""Indexes that go back while a process runs, and those that may."""

from __future__ import annotations

from harness.faults import FaultRecord, PlannedFault
from harness.indexes import Indexes, indexes_rise
from harness.service import NodeStatus
from harness.units import NS_PER_S
from harness.verdict import Verdict

PROMISE = "They stay."


def polled(*reports: tuple[int | None, int | None] | None) -> Indexes:
    """Returns the indexes of n1 in successive polls, one a second: committed and applied; None if it did not answer."""
    indexes = Indexes()
    for second, report in enumerate(reports):
        status = report and NodeStatus(node="n1", role="follower", committed_index=report[0], applied_index=report[1])
        indexes.note(status, "n1", second * NS_PER_S)
    return indexes


def fault(node: str, start_s: float, end_s: float) -> FaultRecord:
    """Returns the record of a kill."""
    planned = PlannedFault(id=0, kind="kill", target=[node], start_s=start_s, end_s=end_s)
    start_ns, end_ns = int(start_s * NS_PER_S), int(end_s * NS_PER_S)
    return FaultRecord(planned=planned, targets=[node], start_ns=start_ns, end_ns=end_ns, proof=None)


def test_indexes_that_rise_or_stay_are_valid() -> None:
    """Both indexes count. A report without an index is no report."""
    part = indexes_rise(polled((1, 0), (1, 1), None, (7, 7), (None, None)), PROMISE, [], None)
    assert part.verdict is Verdict.VALID
    assert part.reason == "No index went back while its process ran; 3 reports had one."
    assert indexes_rise(polled(None, (None, None)), PROMISE, [], None).verdict is Verdict.UNKNOWN


def test_an_index_that_goes_back_is_invalid() -> None:
    """The sentence has the node, both indexes and both times; the details have the others."""
    part = indexes_rise(polled((120, 90), (91, 90), (91, 89)), PROMISE, [fault("n2", 0.0, 9.0)], None)
    assert part.verdict is Verdict.INVALID
    assert part.reason == (
        "The committed index of n1 went back from 120 at 0.000 s to 91 at 1.000 s, and no fault was on the node. There are 2 "
        "such cases. They stay."
    )
    assert part.details["retreats"] == [
        "The committed index of n1 went back from 120 at 0.000 s to 91 at 1.000 s",
        "The applied index of n1 went back from 90 at 1.000 s to 89 at 2.000 s",
    ]


def test_a_process_that_may_have_started_again_is_not_held_to_it() -> None:
    """It did not answer in between, a fault was on its node, or Labrys restarted all nodes."""
    for indexes, faults, restarted_ns in (
        (polled((9, 9), None, (3, 3)), [], None),
        (polled((9, 9), (3, 3)), [fault("n1", 0.4, 0.6)], None),
        (polled((9, 9), (3, 3)), [], NS_PER_S // 2),
    ):
        assert indexes_rise(indexes, PROMISE, faults, restarted_ns).verdict is Verdict.VALID
    late = indexes_rise(polled((9, 9), (3, 3)), PROMISE, [fault("n1", 1.5, 2.0)], 2 * NS_PER_S)
    assert late.verdict is Verdict.INVALID
