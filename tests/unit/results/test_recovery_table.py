"""The table of recoveries after faults: each fault is a measurement, and no missing recovery looks like a short one."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import pytest

from harness.units import NS_PER_S
from results.record.forms import MeasuredFault
from tools.recovery import Loss, longest_s, picture, sustained_s, table, together


def window(sustained: float | None) -> dict[str, Any]:
    """The availability in one stretch of time."""
    return {
        "start_s": 0.0, "end_s": 1.0, "operations": 9, "answered": 5, "refused": 0, "first_ok_s": 0.0,
        "sustained_ok_s": sustained, "longest_gap_s": 0.5, "errors": {},
    }  # fmt: skip


def fault(
    start_s: float = 10.0,
    end_s: float = 20.0,
    *,
    during: float | None = None,
    after: float | None = None,
    reads: float = 0.0,
    **planned: Any,
) -> MeasuredFault:
    """A fault with the times at which its changes and its reads were sustained."""
    around = {
        "append": {"during": window(during), "after": None if after is None else window(after)},
        "read": {"during": window(reads), "after": None},
    }
    data = {
        "targets": ["n4"], "start_ns": round((start_s + 0.1) * NS_PER_S), "end_ns": round((end_s + 0.6) * NS_PER_S),
        "proof": {"effective": True, "reason": "gone", "measured": {}}, "leadership": None, "error": None, "details": {},
        "availability": {
            "during": window(0.0), "after": None, "rate_before": None, "rate_share": None, "overlaps": [], "nodes": {},
            "by_f": around,
        },
        "planned": {
            "id": 0, "kind": "kill", "target": {"type": "named", "nodes": ["n4"]}, "start_s": start_s, "end_s": end_s, **planned
        },
    }  # fmt: skip
    return msgspec.convert(data, MeasuredFault)


@pytest.mark.parametrize(
    ("during", "after", "expected"),
    [(4.2, 0.3, 4.2), (None, 1.5, 12.0), (None, None, None)],
)
def test_changes_are_sustained_during_the_fault_or_after_it(
    during: float | None, after: float | None, expected: float | None
) -> None:
    """After the fault, the time counts from its start. Reads do not count."""
    assert sustained_s([fault(during=during, after=after, reads=0.0)]) == pytest.approx(expected)


def test_faults_with_the_same_times_are_one() -> None:
    """The later recovery counts, and one without a recovery makes both have none."""
    first, second, later = fault(during=3.0), fault(during=5.0), fault(40.0, 50.0, during=1.0)
    assert together([later, first, second]) == [[first, second], [later]]
    assert sustained_s([first, second]) == 5.0
    assert sustained_s([first, fault()]) is None


def loss(gap_s: float, sustained: float | None) -> Loss:
    """A fault whose longest time without a change is known."""
    gaps = np.array([[-2.0, 0.0], [0.0, gap_s], [gap_s, gap_s + 0.1]])
    return Loss(system="s", kind="kill:broker", changes=gaps, reads=gaps / 10, sustained_s=sustained, effective=True)


def test_the_table_has_median_percentile_and_maximum() -> None:
    """A fault after which changes were never sustained comes last, and not first."""
    losses = [loss(float(number), float(number)) for number in range(3, 12)] + [loss(30.0, None)]
    assert longest_s(losses[-1].changes) == 30.0
    [row] = table(losses).splitlines()[2:]
    cells = "10 | 7.0 s / 11.0 s / 30.0 s | 7.0 s / 11.0 s / never | 0.7 s / 1.1 s / 3.0 s"
    assert row == f"| `s` | `kill:broker` | {cells} |"
    [row] = table([loss(4.0, None)]).splitlines()[2:]
    assert row == "| `s` | `kill:broker` | 1 | 4.0 s | never | 0.4 s |"


def test_the_picture_has_a_row_for_each_fault() -> None:
    """Faults of one system and kind stand below each other."""
    figure = picture([loss(4.0, None), loss(5.0, 5.0)])
    [axes] = figure.axes
    assert [text.get_text() for text in axes.get_yticklabels()] == ["s"]
    assert len(axes.collections) == 2 * 3
