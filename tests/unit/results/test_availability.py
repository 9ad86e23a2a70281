"""Availability counts each operation at its scheduled time, and only observed time."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.faults import FaultRecord, PlannedFault
from harness.op import Operation, OpType
from harness.targets import AllNodes
from harness.units import NS_PER_S as S
from results.measure.availability import FaultAvailability, around, overall
from results.measure.op_outcomes import OUTCOMES, Codes, outcome

CODES = Codes(answers={"mismatch"}, refusals={"not-leader"})


def operation(at_s: float, kind: OpType = OpType.OK, **changes: Any) -> Operation:
    """Returns a read scheduled at `at_s`."""
    fields: dict[str, Any] = {
        "process": 0, "f": "read", "value": None, "result": None, "type": kind, "start_ns": round(at_s * S),
        "end_ns": round(at_s * S) + 1_000_000, "invoke_index": 0, "complete_index": 1, "node": "n1",
    }  # fmt: skip
    return Operation(**{**fields, **changes})


def fault(start_s: float, end_s: float, number: int = 0) -> FaultRecord:
    """Returns a fault that lasts from `start_s` to `end_s`."""
    planned = PlannedFault(id=number, kind="kill", target=AllNodes(), start_s=start_s, end_s=end_s)
    return FaultRecord(
        planned=planned, targets=("n1",), start_ns=round(start_s * S), end_ns=round(end_s * S), proof=None
    )


def one(operations: list[Operation], *faults: FaultRecord) -> FaultAvailability:
    """Returns the availability around the first fault."""
    own = around(faults, operations, CODES)[0]
    assert own is not None
    return own


def test_first_and_sustained_ok_after_an_outage() -> None:
    """No answer for 3 s, then a single one, then none again, then continuous answers."""
    bad = [operation(10 + i / 10, OpType.FAIL, error="no-leader") for i in range(60)]
    bad[30] = operation(13)
    good = [operation(16 + i / 10) for i in range(100)]
    during = one([*bad, *good], fault(10, 20)).during
    assert during.first_ok_s == pytest.approx(3)
    assert during.sustained_ok_s == pytest.approx(6)
    assert during.longest_gap_s == pytest.approx(3)
    assert (during.operations, during.answered) == (100, 41)
    assert during.errors == {"no-leader": 59}


def test_sustained_needs_two_seconds_that_were_observed() -> None:
    """A window that ends before two seconds of answers does not show sustained availability."""
    operations = [operation(11 + i / 10) for i in range(9)]
    during = one([*operations, operation(12)], fault(10, 12)).during
    assert during.first_ok_s == pytest.approx(1)
    assert during.sustained_ok_s is None


def test_what_was_never_answered_has_no_time() -> None:
    """None, not zero, and the gap is the whole window."""
    during = one([operation(11, OpType.INFO, error="timeout: 2 s"), operation(13)], fault(10, 12)).during
    assert (during.first_ok_s, during.sustained_ok_s, during.longest_gap_s) == (None, None, 2.0)
    assert during.errors == {"timeout": 1}


def test_a_refusal_by_a_working_system_is_an_answer() -> None:
    """A compare-and-set that did not match is available. One that found no leader is not."""
    operations = [operation(11, OpType.FAIL, error="mismatch: 3"), operation(11.5, OpType.FAIL, error="no-leader")]
    assert one(operations, fault(10, 12)).during.answered == 1


def test_an_operation_belongs_to_when_it_was_wanted() -> None:
    """An operation scheduled in the fault and sent after it counts for the fault."""
    late = operation(13, scheduled_ns=round(11 * S))
    availability = one([late, operation(14)], fault(10, 12))
    assert availability.during.operations == 1
    assert availability.after is not None
    assert availability.after.operations == 1


def test_after_ends_where_the_next_fault_begins() -> None:
    """The window names the faults that overlap it."""
    operations = [operation(i) for i in range(40)]
    faults = [fault(10, 12), fault(20, 22, 1), fault(11, 15, 2)]
    first = one(operations, *faults)
    assert first.after is not None
    assert (first.after.start_s, first.after.end_s) == (12.0, 20.0)
    assert list(first.overlaps) == [2]


def test_what_outlasts_the_workload_is_not_measured() -> None:
    """A gap and a rate end with the last operation, and a fault that begins after it has no availability."""
    operations = [operation(i / 10) for i in range(111)]
    during = one(operations, fault(10, 30)).during
    assert during.longest_gap_s == pytest.approx(0.1)
    assert during.start_s == 10
    assert during.end_s == pytest.approx(11)
    assert during.rate == pytest.approx(11)
    silent = [operation(i / 10, OpType.OK if i < 105 else OpType.INFO) for i in range(111)]
    assert one(silent, fault(10, 30)).during.longest_gap_s == pytest.approx(0.6)
    assert around([fault(12, 30)], operations, CODES) == [None]


def test_reads_after_recovery_do_not_count() -> None:
    """The final phase runs on a healed system, so it does not count for availability."""
    availability = one([operation(11), operation(30, phase="final")], fault(10, 12))
    assert availability.after is None


def test_a_fault_that_never_began_has_no_availability() -> None:
    """The place of such a fault has None, so the others keep their places."""
    assert around([fault(5, 5)], [operation(5)], CODES) == [None]


def test_each_node_is_measured_by_its_own_clients() -> None:
    """Clients of the faulty node see the outage, the others do not."""
    operations = [operation(10 + i / 10) for i in range(20)]
    operations += [operation(10 + i / 10, OpType.INFO, node="n2", error="timeout") for i in range(20)]
    availability = one(operations, fault(10, 12))
    assert availability.nodes["n1"].during.answered == 20
    assert availability.nodes["n2"].during.answered == 0
    assert availability.during.answered == 20


@given(
    st.lists(
        st.tuples(
            st.integers(0, 400), st.sampled_from([OpType.OK, OpType.FAIL, OpType.INFO]), st.sampled_from(["n1", "n2"])
        )
    ),
    st.integers(0, 300),
    st.integers(1, 200),
)
def test_windows_agree_with_counting_by_hand(asked: list[tuple[int, OpType, str]], start: int, length: int) -> None:
    """Counts add up over nodes. First ok, sustained ok and gaps equal those of a naive search."""
    asked = [*asked, (600, OpType.OK, "n1")]  # the workload outlasts the fault
    operations = [operation(at / 10, kind, node=node) for at, kind, node in asked]
    availability = one(operations, fault(start / 10, (start + length) / 10)).during
    inside = sorted((at, kind) for at, kind, _ in asked if start <= at < start + length)
    good = [at for at, kind in inside if kind is OpType.OK]
    assert (availability.operations, availability.answered) == (len(inside), len(good))
    assert availability.first_ok_s == (pytest.approx((good[0] - start) / 10) if good else None)
    sustained = None
    for at in sorted(set(good)):
        ahead = [kind for when, kind, _ in asked if at <= when <= at + 20]  # up to the end of the window, inclusive
        # The order of operations at one instant is unknown; the module starts at the first ok.
        if at + 20 <= start + length and ahead.count(OpType.OK) >= 0.95 * len(ahead):
            sustained = (at - start) / 10
            break
    if len({at for at, _, _ in asked}) == len(asked):
        assert availability.sustained_ok_s == (None if sustained is None else pytest.approx(sustained))
    edges = [start, *good, start + length]
    assert availability.longest_gap_s == pytest.approx(max(b - a for a, b in pairwise(edges)) / 10)


def test_a_refusal_that_names_the_leader_is_counted_apart() -> None:
    """A refusal is neither an answer nor an outage. Shares, gaps and times omit it; it has its own count."""
    operations = [operation(10 + i / 10, OpType.FAIL, error="not-leader: n3 leads") for i in range(20)]
    operations += [operation(10.05 + i / 10) for i in range(10)]
    during = one(operations, fault(10, 12)).during
    assert (during.operations, during.answered, during.refused) == (10, 10, 20)
    assert during.errors == {"not-leader": 20}


def test_nothing_but_refusals_is_no_availability() -> None:
    """If every node refuses, there is no answer: no share, no first ok, and the gap is the whole window."""
    operations = [operation(10 + i / 10, OpType.FAIL, error="not-leader: n3 leads") for i in range(21)]
    during = one(operations, fault(10, 12)).during
    assert (during.operations, during.answered, during.refused) == (0, 0, 20)
    assert (during.first_ok_s, during.longest_gap_s) == (None, 2.0)


def test_clients_that_follow_the_leader_measure_the_system() -> None:
    """A client bound to a cut-off node measures that node. A client that moves measures the system."""
    stuck = [operation(10 + i / 10, OpType.INFO, node="n1", error="timeout") for i in range(20)]
    moving = [operation(10 + i / 10, node="n1", via="n3") for i in range(20)]
    availability = one([*stuck, *moving], fault(10, 12))
    assert (availability.during.operations, availability.during.answered) == (20, 20)
    assert (availability.nodes["n1"].during.operations, availability.nodes["n1"].during.answered) == (20, 0)


def test_a_healthy_cluster_is_available() -> None:
    """Clients at followers are refused, and clients that follow the leader get answers: 100 % over the run."""
    refusals = [operation(i / 10, OpType.FAIL, node="n1", error="not-leader: n3 leads") for i in range(100)]
    first = operation(0.01, OpType.FAIL, via="n1", error="not-leader: n3 leads")
    served = [operation(0.02 + i / 10, via="n3") for i in range(100)]
    whole = overall([*refusals, first, *served, operation(20, phase="final")], CODES)
    assert whole is not None
    assert (whole.share, whole.measured_by) == (1, "clients that follow the leader")
    assert (whole.operations, whole.answered, whole.refused) == (100, 100, 1)
    assert whole.longest_gap_s < 0.2
    assert overall([], CODES) is None


def test_each_function_is_measured_alone() -> None:
    """Reads are answered all the time, and no write for 5.5 s: the gap of all functions together hides that of writes."""
    reads = [operation(i / 10) for i in range(200)]
    bad = [operation(10 + i / 10, OpType.INFO, f="write", error="timeout") for i in range(55)]
    writes = [operation(i / 10, f="write") for i in range(200) if not 100 <= i < 155]
    operations = [*reads, *bad, *writes]
    whole = overall(operations, CODES)
    assert whole is not None
    by_f = whole.by_f or {}
    assert whole.longest_gap_s < 0.2
    assert {f: window.longest_gap_s for f, window in by_f.items()} == {
        "read": pytest.approx(0.1),
        "write": pytest.approx(5.6),
    }
    assert (by_f["write"].operations, by_f["write"].answered) == (200, 145)
    around_fault = one(operations, fault(10, 14))
    during, after = around_fault.by_f["write"].during, around_fault.by_f["write"].after
    assert after is not None
    assert (during.answered, during.longest_gap_s) == (0, 4.0)
    assert after.first_ok_s == pytest.approx(1.5)
    assert around_fault.by_f["read"].during.answered == 40


def test_the_clients_that_measure_the_system_measure_each_function() -> None:
    """A write through a client that stays at a cut-off node does not count against writes."""
    stuck = [operation(10 + i / 10, OpType.INFO, f="write", error="timeout") for i in range(20)]
    moving = [operation(10 + i / 10, f="write", via="n3") for i in range(20)]
    assert one([*stuck, *moving], fault(10, 12)).by_f["write"].during.answered == 20


@given(kind=st.sampled_from([OpType.OK, OpType.FAIL, OpType.INFO]), error=st.none() | st.sampled_from(
    ["not-leader", "not-leader: n3 leads", " not-leader : n3", "no-leader", "mismatch"]))  # fmt: skip
def test_only_a_fail_with_a_code_of_refusals_is_refused(kind: OpType, error: str | None) -> None:
    """Every other operation has its type as its outcome."""
    kind_of_outcome = outcome(kind, error, CODES)
    assert kind_of_outcome in OUTCOMES
    assert (kind_of_outcome == "refused") == (
        kind is OpType.FAIL and error is not None and error.strip().startswith("not-")
    )
    assert kind_of_outcome in {"refused", kind}


def test_the_rate_is_a_share_of_the_rate_before() -> None:
    """Ten answers a second before the fault, one during it: a tenth. The time before it starts where earlier faults ended."""
    operations = [operation(i / 10) for i in range(100)] + [operation(10 + i) for i in range(6)]
    availability = one(operations, fault(10, 15))
    assert availability.rate_before == pytest.approx(10)
    assert availability.rate_share == pytest.approx(0.1)
    after_another = one(operations, fault(10, 15), fault(1, 8, 1))
    assert after_another.rate_before == pytest.approx(10)


def test_a_rate_before_needs_a_time_without_faults() -> None:
    """A fault that begins during another one, or with the run, has no comparison."""
    operations = [operation(i / 10) for i in range(200)]
    assert one(operations, fault(10, 15), fault(5, 12, 1)).rate_before is None
    assert one(operations, fault(0, 5)).rate_share is None
    assert one([operation(11)], fault(10, 15)).rate_share is None
