"""Plots of marks over time, from parts of a verdict: validated, drawn with the faults, and put into the report."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree as ET

import numpy as np
import pytest

from checker.judging.marks import MAX_POINTS, Marks, plot
from harness.verdict import Part, Verdict
from results.measure.series import Shade
from results.page.marks import pictures
from results.page.plots import inlined, marks_svg
from results.page.report import plots_of, render
from results.store.errors import BadRecord
from results.stored.document import build

if TYPE_CHECKING:
    from results.record.record import RunRecord

S = 1_000_000_000
HOSTILE = "</text></svg><script>alert(1)</script>\"'&\\1 $x$"


def made(*, there: int = 5, lost: int = 2) -> dict[str, Any]:
    """Returns the data of a plot."""
    return {
        **plot(
            "Elements over time",
            "element",
            [
                Marks(name="there", tone="good", time_ns=np.arange(there) * S, height=np.arange(there)),
                Marks(
                    name="stale",
                    tone="bad",
                    time_ns=np.array([2 * S]),
                    height=np.array([3]),
                    until_ns=np.array([4 * S]),
                ),
                Marks(name="lost", tone="bad", time_ns=np.arange(lost) * S, height=np.arange(lost)),
                Marks(name="none", tone="odd", time_ns=np.zeros(0, np.int64), height=np.zeros(0, np.int64)),
            ],
        ),
        "key": None,
    }


def part(data: Any) -> Part:
    """Returns a part that has a plot."""
    return Part(name="set", verdict=Verdict.INVALID, reason="2 elements are lost.", details={"plot": data})


def test_a_plot_has_every_sort_that_there_is() -> None:
    """Points and stretches are read back unchanged. A kind without any is omitted."""
    (picture,) = pictures([Part(name="other", verdict=Verdict.VALID, reason=""), part(made())])
    assert [(sort.name, sort.tone, sort.total) for sort in picture.sorts] == [
        ("there", "good", 5),
        ("stale", "bad", 1),
        ("lost", "bad", 2),
    ]
    stale = picture.sorts[1]
    assert (stale.time_s.tolist(), stale.height.tolist(), stale.until_s.tolist()) == ([2.0], [3.0], [4.0])
    assert picture.sorts[0].until_s.tolist() == picture.sorts[0].time_s.tolist()


def test_few_marks_are_all_drawn_beside_many() -> None:
    """The number of points is bounded. Rare kinds keep all of theirs, and the legend has the number omitted."""
    data = made(there=100_000, lost=300)
    assert {sort["name"]: (sort["total"], len(sort["points"])) for sort in data["marks"]} == {
        "there": (100_000, MAX_POINTS - 301),
        "stale": (1, 1),
        "lost": (300, 300),
    }
    assert data["marks"][0]["points"][0] == [0.0, 0]
    assert data["marks"][0]["points"][-1] == [99_999.0, 99_999]
    (picture,) = pictures([part(data)])
    svg = marks_svg(picture, [])
    assert "there 100,000, 1,699 drawn" in svg
    assert "lost 300<" in svg
    assert len(svg) < 500_000


def test_a_plot_is_drawn_with_the_faults_and_in_the_colours_of_its_page() -> None:
    """Equal data give equal bytes, faults are named, every colour is a variable, every id has the plot's prefix."""
    (picture,) = pictures([part(made())])
    shades = [Shade(kind="kill", start_s=1, end_s=2)]
    svg = marks_svg(picture, shades)
    assert svg == marks_svg(picture, shades)
    ET.fromstring(svg)  # noqa: S314 - our own drawing
    assert "kill" in svg
    element = inlined(svg, prefix="marks", title="a title")
    assert not re.search(r"#[0-9a-f]{6}\b", element)
    defined = set(re.findall(r'\bid="([^"]+)"', element))
    assert all(name_of_mark.startswith("marks-") for name_of_mark in defined)
    assert set(re.findall(r'(?:url\(|href=")#([^)"]+)', element)) <= defined


def test_the_report_shows_the_plot_of_a_part_first(stale_record: RunRecord) -> None:
    """The plot comes before latency and rate, with its title and its legend. Without latency it is alone."""
    record = replace(stale_record, parts=[*stale_record.parts, part({**made(), "key": "s3"})])
    drawn = plots_of(record)
    assert list(drawn) == ["marks", "latency-points", "latency-quantiles", "rate"]
    assert drawn["marks"][0] == "Elements over time of key s3"
    assert list(plots_of(replace(record, operations=[]))) == ["marks"]
    page = render(record, build(record), drawn=drawn, logs=[])
    assert page.index("Elements over time of key s3") < page.index("Latency of every operation")


def test_foreign_names_stay_text(stale_record: RunRecord) -> None:
    """A title, an axis, a legend or a kind may be any text."""
    data = made()
    data["marks"][0]["name"] = data["title"] = data["y"] = data["key"] = HOSTILE
    record = replace(stale_record, parts=[part(data)])
    drawn = plots_of(record)
    ET.fromstring(drawn["marks"][1])  # noqa: S314 - our own drawing
    assert "<script>alert" not in render(record, build(record), drawn=drawn, logs=[])


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ([], r"parts\.set\.details\.plot: expected an object"),
        ({"title": "t", "y": "y"}, r"the member parts\.set\.details\.plot\.marks is missing"),
        ({**made(), "title": 5}, "title: expected a text"),
        ({**made(), "key": 5}, "key: expected a text"),
        ({**made(), "marks": [made()["marks"][0]] * 17}, r"marks: expected a list of at most 16 members"),
        ({**made(), "marks": [{**made()["marks"][0], "tone": "red"}]}, "expected one of good, odd, bad, quiet"),
        (
            {**made(), "marks": [{**made()["marks"][0], "points": [[1]]}]},
            r"points\[0\]: expected a list of at least 2 members, found \[1\]",
        ),
        (
            {**made(), "marks": [{**made()["marks"][0], "points": [[1, float("nan")]]}]},
            r"points\[0\]\[1\]: expected a number of at least",
        ),
        ({**made(), "marks": [{**made()["marks"][0], "points": [[1e10, 1]]}]}, "expected a number of seconds"),
        ({**made(), "marks": [{**made()["marks"][0], "points": [[1e300, 1]]}]}, r"points\[0\]\[0\]: expected a number"),
        ({**made(), "marks": [{**made()["marks"][0], "points": [[1, 1]] * 2001}]}, "expected at most 2000 points"),
    ],
)
def test_what_is_no_plot_is_refused(wrong: Any, message: str) -> None:
    """The details of a part may be anything. The error names the problem."""
    with pytest.raises(BadRecord, match=message):
        pictures([part(wrong)])
