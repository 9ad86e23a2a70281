"""The part `damaged-files`: what a system does with damaged files, beside what it promises."""

from __future__ import annotations

import pytest

from harness import reached
from harness.damaged_files import damaged_files, damages, excused, refusal
from harness.ends import Ended
from harness.faults import FaultRecord, PlannedFault, Proof
from harness.promise import Handling, OnDamage
from harness.recovery import Recovery
from harness.targets import AllNodes, Named
from harness.verdict import Verdict

REFUSES = OnDamage(handling=Handling.REFUSES, sentence="It refuses.", source="its manual")
REPAIRS = OnDamage(handling=Handling.REPAIRS, sentence="It repairs.", source="its manual")
KINDS = {"file-copy"}


def record(*nodes: str, everywhere: bool = False, kind: str = "file-copy", effective: bool = True) -> FaultRecord:
    """Returns a fault from second 1 to second 2."""
    target = AllNodes() if everywhere else Named(nodes)
    planned = PlannedFault(id=0, kind=kind, target=target, start_s=1.0, end_s=2.0, options={})
    proof = Proof(effective=effective, reason="seen.", measured={})
    return FaultRecord(planned=planned, targets=nodes, start_ns=10**9, end_ns=2 * 10**9, proof=proof)


def recovery(error: str | None = None, **out: str) -> Recovery:
    """Returns the recovery of three nodes, without those that stay out."""
    return Recovery(
        seconds=1.0, restarted=error is not None, first_error=error, error=error, quorum=2, nodes=3, out=out
    )


def test_only_proven_damage_counts() -> None:
    """Other kinds, and faults without an effect, leave the part out."""
    hit = damages([record("n1", kind="kill"), record("n2", effective=False)], KINDS)
    assert damaged_files("toy", REFUSES, hit, recovery()) is None


@pytest.mark.parametrize(
    ("promise", "out", "verdict"),
    [
        (None, {}, Verdict.UNKNOWN),
        (REFUSES, {"n1": "does not answer"}, Verdict.VALID),
        (REPAIRS, {"n1": "does not answer"}, Verdict.INVALID),
        (REPAIRS, {"n2": "does not answer"}, Verdict.VALID),
        (REPAIRS, {}, Verdict.VALID),
    ],
)
def test_the_promise_decides(promise: OnDamage | None, out: dict[str, str], verdict: Verdict) -> None:
    """A damaged node may stay out if the system refuses, and not if it repairs. Without a promise, nothing is decided."""
    part = damaged_files("toy", promise, damages([record("n1")], KINDS), recovery(**out))
    assert part is not None
    assert (part.verdict, part.extra) == (verdict, True)
    assert ("stays out: it does not answer" in part.reason) == ("n1" in out)


def test_a_negative_control_is_named() -> None:
    """Damage everywhere leaves no whole copy, so a node that stays out breaks no promise to repair."""
    hit = damages([record("n1", "n2", "n3", everywhere=True)], KINDS)
    part = damaged_files("toy", REPAIRS, hit, recovery(n1="is gone"))
    assert part is not None
    assert part.verdict is Verdict.VALID
    assert "is a negative control: it leaves no whole copy" in part.reason


@pytest.mark.parametrize(
    ("promise", "nodes", "excuses"),
    [
        (REFUSES, ("n1", "n2"), True),
        (REFUSES, ("n1",), False),
        (REPAIRS, ("n1", "n2"), False),
        (None, ("n1", "n2"), False),
    ],
)
def test_a_system_that_refuses_need_not_recover(
    promise: OnDamage | None, nodes: tuple[str, ...], excuses: bool
) -> None:
    """This holds if fewer nodes than its quorum have whole files, and only for who promises to refuse."""
    stuck = recovery("nobody leads")
    refuses = refusal(promise, damages([record(*nodes)], KINDS), stuck)
    assert bool(refuses) == excuses
    assert reached.recovered(stuck, refuses=refuses).verdict is (Verdict.VALID if excuses else Verdict.INVALID)
    assert reached.recovered(recovery(), refuses=refuses).reason.startswith("The system worked again")


def test_an_end_after_the_damage_is_a_refusal() -> None:
    """Processes of other nodes, of earlier times, or of a system without a promise are not excused."""
    hit = damages([record("n1")], KINDS)
    ends = [
        Ended(node=node, role="node", time_ns=at, status=1)
        for node, at in (("n1", 3 * 10**9), ("n1", 0), ("n2", 3 * 10**9))
    ]
    assert excused(ends, REFUSES, hit) == ends[:1]
    assert excused(ends, None, hit) == []
