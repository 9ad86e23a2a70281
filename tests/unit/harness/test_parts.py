"""Each part of a verdict claims no more than was recorded."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from harness import parts
from harness.faults import FaultRecord, PlannedFault, Proof
from harness.op import FINAL_PHASE, Operation, OpType
from harness.recovery import Recovery, Replicas
from harness.verdict import Verdict, worst

if TYPE_CHECKING:
    from pathlib import Path


def operation(**changes: Any) -> Operation:
    """An ok read from 1 ns to 2 ns, with changes."""
    values: dict[str, Any] = {
        "process": 0,
        "f": "read",
        "value": None,
        "result": 1,
        "type": OpType.OK,
        "start_ns": 1,
        "end_ns": 2,
        "invoke_index": 0,
        "complete_index": 1,
    }
    return Operation(**(values | changes))


def fault(
    kind: str, *, effective: bool | None, start_ns: int = 10, end_ns: int = 20, error: str | None = None
) -> FaultRecord:
    """A fault that was planned, with its proof."""
    return FaultRecord(
        planned=PlannedFault(id=0, kind=kind, target="one", start_s=0.0, end_s=1.0),
        targets=["n1"],
        start_ns=start_ns,
        end_ns=end_ns,
        proof=None if effective is None else Proof(effective=effective, reason="12 packets were dropped"),
        error=error,
    )


def test_a_plan_without_faults_is_nothing_to_prove() -> None:
    """A run that asked for no faults is not blamed for having none."""
    assert parts.faults_effective([]).verdict is Verdict.VALID


@pytest.mark.parametrize("effective", [False, None])
def test_a_kind_that_never_took_effect_makes_the_run_unknown(effective: bool | None) -> None:
    """One kind without any effective fault is enough, however well the others worked."""
    part = parts.faults_effective(
        [fault("kill", effective=True), fault("pause", effective=effective, error="no such pid")]
    )

    assert part.verdict is Verdict.UNKNOWN
    assert "pause" in part.reason
    assert "no such pid" in part.reason
    assert part.details == {"kill": {"planned": 1, "effective": 1}, "pause": {"planned": 1, "effective": 0}}


def test_one_effective_fault_of_each_kind_is_enough() -> None:
    """A second fault of a kind that missed does not make the run unknown; it is in the details."""
    part = parts.faults_effective([fault("kill", effective=True), fault("kill", effective=False)])

    assert part.verdict is Verdict.VALID
    assert part.details == {"kill": {"planned": 2, "effective": 1}}


@pytest.mark.parametrize(
    ("operations", "word"),
    [
        ([], "No operation succeeded"),
        ([operation(type=OpType.INFO, start_ns=12)], "No operation succeeded"),
        ([operation(start_ns=5), operation(start_ns=25)], "while a fault was on"),
        ([operation(start_ns=5), operation(start_ns=15)], "after the last fault"),
    ],
)
def test_a_run_without_answers_where_they_matter_is_unknown(operations: list[Operation], word: str) -> None:
    """No ok at all, none during the faults, or none after them: nothing was tested."""
    part = parts.progress(operations, [fault("kill", effective=True)], None)

    assert part.verdict is Verdict.UNKNOWN
    assert word in part.reason


def test_answers_during_and_after_faults_are_progress() -> None:
    """An ok counts for a fault if it was invoked while that was on."""
    part = parts.progress([operation(start_ns=15), operation(start_ns=20)], [fault("kill", effective=True)], None)

    assert part.verdict is Verdict.VALID
    assert part.details == {"ok": 2, "ok_during_faults": 1, "ok_after_faults": 1}


@pytest.mark.parametrize(("restarted", "verdict"), [(True, Verdict.UNKNOWN), (False, Verdict.VALID)])
def test_final_reads_after_a_restart_are_no_progress(restarted: bool, verdict: Verdict) -> None:
    """What answers only because every node was started anew does not show that the system came through its faults."""
    operations = [operation(start_ns=15), operation(start_ns=25, phase=FINAL_PHASE)]
    recovery = Recovery(seconds=31.0, restarted=restarted, first_error=None, error=None)
    assert parts.progress(operations, [fault("kill", effective=True)], recovery).verdict is verdict


def test_recovery_only_by_restart_is_a_finding() -> None:
    """A system that healing alone did not bring back is not called recovered."""
    alone = Recovery(seconds=1.0, restarted=False, first_error=None, error=None)
    restarted = Recovery(seconds=40.0, restarted=True, first_error="n2 has no leader", error=None)
    never = Recovery(seconds=80.0, restarted=True, first_error="n2 has no leader", error="n2 has no leader")

    assert parts.recovered(alone).verdict is Verdict.VALID
    assert parts.recovered(restarted).verdict is Verdict.INVALID
    assert parts.recovered(never).verdict is Verdict.INVALID
    assert parts.recovered(None).verdict is Verdict.UNKNOWN


def test_replicas_are_compared_only_at_one_index() -> None:
    """Different states at one index are invalid; different indexes are unknown."""
    equal = Replicas(supported=True, settled=True, applied={"n1": 7, "n2": 7}, keys=3)
    behind = Replicas(supported=True, settled=False, applied={"n1": 7, "n2": None}, keys=3)
    differ = Replicas(
        supported=True,
        settled=True,
        applied={"n1": 7, "n2": 7},
        keys=1,
        differing=[{"key": "k", "values": {"n1": 1, "n2": None}}],
    )

    assert parts.replicas_equal(equal).verdict is Verdict.VALID
    assert parts.replicas_equal(behind).verdict is Verdict.UNKNOWN
    assert "n2 no answer" in parts.replicas_equal(behind).reason
    assert parts.replicas_equal(differ).verdict is Verdict.INVALID


def test_an_untyped_exception_makes_the_errors_unknown() -> None:
    """An error that the client does not type could hide anything."""
    typed = operation(type=OpType.FAIL, error="not-leader: n2 leads")
    untyped = operation(type=OpType.INFO, error="exception: KeyError: 'x'")

    assert parts.client_errors([typed]).verdict is Verdict.VALID
    assert parts.client_errors([typed]).details["codes"] == {"not-leader": 1}
    assert parts.client_errors([typed, untyped]).verdict is Verdict.UNKNOWN


def test_a_fatal_line_is_found_with_its_place(tmp_path: Path) -> None:
    """The reason names node, file, line number and text."""
    log = tmp_path / "node.log"
    log.write_bytes(b"fine\n\xff\xfe not text\nBOOM: torn entry\n")

    part = parts.log_patterns({"n3": [log]}, ["BOOM", "panic"])

    assert part.verdict is Verdict.INVALID
    assert "node.log:3 of n3: BOOM: torn entry" in part.reason
    assert parts.log_patterns({"n3": [log]}, ["panic"]).verdict is Verdict.VALID
    assert parts.log_patterns({}, ["panic"]).verdict is Verdict.UNKNOWN


def test_a_run_that_broke_off_is_unknown() -> None:
    """Neither an interruption nor an error leaves a run valid."""
    assert parts.completed(interrupted=False, error=None, seconds=60, planned_s=60).verdict is Verdict.VALID
    assert parts.completed(interrupted=True, error=None, seconds=7, planned_s=60).verdict is Verdict.UNKNOWN
    assert parts.completed(interrupted=False, error="disk full", seconds=7, planned_s=60).verdict is Verdict.UNKNOWN


def test_invalid_beats_unknown_beats_valid() -> None:
    """The worst part decides, and no part at all is unknown."""
    assert worst([Verdict.VALID, Verdict.UNKNOWN, Verdict.INVALID]) is Verdict.INVALID
    assert worst([Verdict.VALID, Verdict.UNKNOWN]) is Verdict.UNKNOWN
    assert worst([]) is Verdict.UNKNOWN
