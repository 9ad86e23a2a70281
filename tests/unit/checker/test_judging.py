"""A judge's findings in the objects become one part of a verdict."""

from __future__ import annotations

import pytest

from checker.formats.columns import Columns, of_operations
from checker.judging import UNPROMISED, Anomaly, Judgement, operation_at, part_of
from checker.judging.rules import Rule, joined
from harness.faults import FaultRecord, PlannedFault, Proof
from harness.op import Operation, OpType, Value
from harness.targets import AllNodes
from harness.units import NS_PER_S as S
from harness.verdict import Verdict


def operation(
    index: int, f: str, value: Value, result: Value, *, key: str | None, kind: OpType = OpType.OK
) -> Operation:
    """Returns an operation with the events 2 * place and the next, in second `index`."""
    done = kind is not OpType.INFO
    return Operation(
        process=index, f=f, value=value, result=result, type=kind, start_ns=index * S,
        end_ns=index * S + S // 2 if done else None, invoke_index=2 * index,
        complete_index=2 * index + 1 if done else None, key=key,
    )  # fmt: skip


HISTORY = [
    operation(0, "add", 1, 1, key="a"),
    operation(1, "add", [3, 4], [3, 4], key=None),
    operation(2, "add", "x", None, key="a", kind=OpType.INFO),
    operation(3, "read", None, [1, "x"], key="a"),
    operation(4, "add", None, None, key="b", kind=OpType.FAIL),
]


class Lost:
    """Reports that each object of some keys has lost its first operation."""

    name = "lost-first"

    def __init__(self, *keys: str | None) -> None:
        self.keys = keys

    def judge(self, history: Columns) -> Judgement:
        """See `Judge`."""
        key = history.keys[history.key[0]]
        if key not in self.keys:
            return Judgement(verdict=Verdict.VALID, reason="Fine.", counts={"ok": len(history)})
        anomaly = Anomaly(kind="lost", subject=1, explanation="It is lost.", rows=(0, len(history) - 1), decisive=0)
        return Judgement(verdict=Verdict.INVALID, reason="No.", counts={"lost": 1}, anomalies=[anomaly])


@pytest.mark.parametrize("row", range(len(HISTORY)))
def test_a_row_of_columns_is_the_operation_that_it_was_made_of(row: int) -> None:
    """Columns have every value of an operation that a judge may show."""
    assert operation_at(of_operations(HISTORY), row) == HISTORY[row]


def test_rows_of_an_anomaly_belong_to_its_object() -> None:
    """Row 0 of key `b` is the fifth operation of the history."""
    part = part_of(Lost("b"), of_operations(HISTORY))
    assert part.verdict is Verdict.INVALID
    assert part.details["counterexample"]["op"]["invoke_index"] == 8
    assert part.details["invalid_keys"] == ["b"]
    assert part.details["counts"] == {"ok": 4, "lost": 1}
    assert part.reason == "Key b: It is lost. 1 of 3 keys is invalid. In all: 4 ok, 1 lost."


def test_an_anomaly_during_a_fault_is_shown_first() -> None:
    """A violation before any fault does not show a fault's effect."""
    planned = PlannedFault(id=7, kind="kill", target=AllNodes(), start_s=4, end_s=5)
    proof = Proof(effective=True, reason="seen")
    fault = FaultRecord(planned=planned, targets=("n1",), start_ns=4 * S, end_ns=5 * S, proof=proof)
    part = part_of(Lost("a", "b"), of_operations(HISTORY), faults=[fault])
    assert part.details["counterexample"]["key"] == "b"
    assert part.details["counterexample"]["faults"] == [7]
    assert part.details["violations"] == {"total": 2, "during_faults": 1, "after_faults": 0, "before_faults": 1}


def test_nothing_tested_is_unknown() -> None:
    """A history without operations is never valid."""
    assert part_of(Lost(), of_operations([])).verdict is Verdict.UNKNOWN


LOST = Anomaly(kind="lost", subject=1, explanation="It is lost.", rows=(0,))
BACK = Anomaly(kind="back", subject=2, explanation="It went back.", rows=(1,))


@pytest.mark.parametrize(
    ("inner", "broken", "verdict", "reason", "kinds"),
    [
        (Verdict.VALID, 0, Verdict.VALID, "So. More.", []),
        (Verdict.UNKNOWN, 0, Verdict.UNKNOWN, "So. More.", []),
        (Verdict.VALID, 1, Verdict.INVALID, "Back.", ["back"]),
        (Verdict.UNKNOWN, 1, Verdict.INVALID, "Back.", ["back"]),
        (Verdict.INVALID, 0, Verdict.INVALID, "So. More.", ["lost"]),
        (Verdict.INVALID, 1, Verdict.INVALID, "Back. So.", ["back", "lost"]),
    ],
)
def test_further_rules_are_joined_with_a_judgement(
    inner: Verdict, broken: int, verdict: Verdict, reason: str, kinds: list[str]
) -> None:
    """A broken rule makes an object invalid. Both reasons are told if both are wrong, the anomaly of the rule first."""
    lost = [LOST] if inner is Verdict.INVALID else []
    judgement = Judgement(verdict=inner, reason="So.", counts={"ok": 3}, anomalies=lost, cause=UNPROMISED)
    whole = joined(
        [Rule(kind="back", anomalies=lambda: [BACK])], {"back": broken}, judgement, broken="Back.", more="More."
    )
    assert (whole.verdict, whole.reason, [anomaly.kind for anomaly in whole.anomalies]) == (verdict, reason, kinds)
    assert (whole.counts, whole.cause) == ({"ok": 3, "back": broken}, UNPROMISED)
