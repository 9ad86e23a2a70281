"""Pictures of many keys and many runs have enough space, and are deterministic."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

import pytest

from results.page.overviews import heat, matrix, trend
from results.page.plots import svg
from results.page.rows import Cell, Strip, Trend, TrendRun

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def drawn_trend(runs: int, *marked: int) -> Figure:
    """Draws the outcomes of some runs and two figures of each, with marks on those whose outcome became worse."""
    outcomes = ["unexpected", "undecided", None, "known-failure", *["as-expected"] * runs][:runs]
    shown = [
        TrendRun(
            outcome=outcome,
            label="2031-01-02 0.4.0",
            link=None if index % 2 else f"{index}/report.html",
            marked=index in marked,
        )
        for index, outcome in enumerate(outcomes)
    ]
    figures = [
        Trend(title="answered (%)", values=[float(run) for run in range(runs)], regressions=(0,)),
        Trend(title="p99 (ms)", values=[None, *[3.5] * (runs - 1)], regressions=()),
    ]
    return trend(shown, figures)


def drawn_heat() -> Figure:
    """Draws two keys; one is invalid, and the second has failures at first."""
    return heat(
        [
            Strip(name="k0", verdict="valid", cells=[(0, 5, 5), (1, 9, 9)]),
            Strip(name="<k1>", verdict="invalid", cells=[(0, 5, 0)]),
        ],
        0.5,
    )


def drawn_matrix() -> Figure:
    """Draws one fault on one workload."""
    return matrix([Cell(row="kill", column="register", outcomes={"as-expected": 3}, availability=0.4)])


@pytest.mark.parametrize(
    "draw",
    [
        lambda: drawn_trend(1),
        lambda: drawn_trend(1, 0),
        lambda: drawn_trend(40),
        lambda: drawn_trend(40, 0, 7),
        drawn_heat,
        drawn_matrix,
    ],
)
def test_a_picture_has_room_and_is_the_same_each_time(draw: object) -> None:
    """Matplotlib warns if it finds no layout. A legend in a low strip and a line without points once had this problem."""
    assert callable(draw)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        first = svg(draw())

    assert first == svg(draw())
    assert "<k1>" not in first


def test_runs_lead_to_their_reports() -> None:
    """The bar of a run and its points are links. A run without a report has none."""
    drawn = svg(drawn_trend(4))
    assert drawn.count('<a xlink:href="0/report.html"') == 2  # its bar, and the point of its only figure
    assert drawn.count('<a xlink:href="2/report.html"') == 3
    assert "1/report.html" not in drawn
