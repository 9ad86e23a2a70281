"""The page of an analysis: its colour is that of outcomes, and each run leads to its report."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from harness.reached import recovered
from harness.recovery import Recovery
from harness.verdict import Verdict
from results.page.drawing import Drawn
from results.page.plots import svg
from results.pipeline.measure.trends import trends
from results.pipeline.read.documents import parsed
from results.pipeline.write.gathered import Gathered
from results.pipeline.write.page import PAGE, render
from results.pipeline.write.pictures import SHOWN_LINES, lines_of, of_faults, of_lines
from results.pipeline.write.summary import Summary
from results.stored.document import build
from tests.unit.pipeline.test_trends import of_case
from tests.unit.results.synthetic import record

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from results.page.drawing import Picture

LINK = 'x <a xlink:href="../store/s/1/report.html" target="_blank"> y'


def draw(pictures: Sequence[Picture]) -> list[Drawn]:
    """Draws nothing but a link."""
    return [Drawn(svg=LINK, element=f"<svg>{picture.name}</svg>") for picture in pictures]


def page(out: Path, rows: Sequence[dict[str, Any]], **outcomes: int) -> dict[str, bytes]:
    """Returns the files of an analysis of some runs."""
    summary = Summary(
        out=f"file:{out}", runs=len(rows), read=0, operations=10, counts={"valid": 1, "invalid": 1},
        outcomes={name.replace("_", "-"): count for name, count in outcomes.items()}, quarantined=0, refuted=[],
        undecided=[], orders={}, misordered=[], reasons=[], tables={},
    )  # fmt: skip
    return render(summary, rows, lambda names: Gathered(runs={name: {} for name in names}, kinds=[]), draw)


@pytest.mark.parametrize(
    ("outcomes", "colour", "title"),
    [
        ({"as_expected": 1, "known_failure": 1}, "valid", "All 2 runs came out as expected"),
        ({"as_expected": 1, "undecided": 1}, "unknown", "1 of 2 runs is undecided"),
        ({"as_expected": 1}, "unknown", "1 of 2 runs is undecided"),
        ({"undecided": 1, "unexpected": 1}, "invalid", "1 of 2 runs came out unexpectedly"),
        ({}, "unknown", "2 of 2 runs are undecided"),
    ],
)
def test_the_colour_of_the_page_is_that_of_outcomes(
    tmp_path: Path, outcomes: dict[str, int], colour: str, title: str
) -> None:
    """A negative control that is invalid does not make it red, though one key is invalid."""
    rows = trends([of_case("1"), of_case("2", "control", severity=Verdict.INVALID.severity, expects="invalid")])
    shown = page(tmp_path, rows, **outcomes)[PAGE].decode()
    assert f'<header class="verdict {colour}">' in shown
    assert title in shown


@pytest.mark.parametrize(
    ("keys", "said", "shown"),
    [
        ("valid", {"said_verdict": "invalid", "said_failures": ["recovered=invalid"]}, ["✗ invalid", "its keys are valid"]),
        ("valid", {"said_verdict": "unknown", "said_failures": ["lost=unknown"]}, ["? unknown", "its keys are valid"]),
        ("unknown", {"said_verdict": "invalid", "said_failures": ["lost=invalid"]}, ["✗ invalid", "its keys are unknown"]),
        ("invalid", {}, ["✗ invalid", "its results.json says valid"]),
        ("valid", {}, ["✓ valid"]),
        (None, {"said_verdict": "invalid"}, ["✗ invalid"]),
        ("valid", {"said_verdict": "invalid", "expects": "invalid"}, ["✗ invalid", "as expected", "its keys are valid"]),
        ("valid", {"expects": "invalid"}, ["✓ valid", "expected invalid"]),
    ],
)  # fmt: skip
def test_the_verdict_of_a_run_is_that_of_all_its_parts(
    tmp_path: Path, keys: str | None, said: dict[str, Any], shown: list[str]
) -> None:
    """Valid keys in a run that is invalid or unknown do not make it valid: in both tables, with what differs below."""
    severity = None if keys is None else Verdict(keys).severity
    text = page(tmp_path, trends([of_case("1", severity=severity, **said)]), unexpected=1)[PAGE].decode()
    cells = re.findall(r'<td data-name="(?:Latest|Verdict)"><span class="mark \w+">([^<]*)</span>(.*?)</td>', text)
    assert [[verdict, *re.findall(r'<span class="quiet">([^<]*)</span>', notes)] for verdict, notes in cells] == [
        shown
    ] * 2


@pytest.mark.parametrize(
    ("of_faults", "recovery", "shown"),
    [
        (False, {}, ["—", "not measured"]),
        (True, {}, ["0.0 s"]),
        (False, {"error": "no leader"}, ["—", "not recovered"]),
        (False, {"restarted": True}, ["0.0 s", "after a restart"]),
    ],
)
def test_a_run_without_a_fault_measures_no_recovery(
    tmp_path: Path, of_faults: bool, recovery: dict[str, Any], shown: list[str]
) -> None:
    """There was nothing to recover from, so the time is none and not zero; a system that died by itself is told."""
    part = recovered(
        Recovery(
            **{
                "seconds": 0.0,
                "restarted": False,
                "first_error": None,
                "error": None,
                "quorum": 2,
                "nodes": 3,
                **recovery,
            }
        )
    )
    made = record(seed=1, operations=20)
    made = replace(made, parts=[part], faults=made.faults if of_faults else [])
    said = parsed("1", "file:/store/t/1/results.json", json.dumps(build(made)).encode())
    assert said["problem"] is None
    names = ("said_recovery_s", "said_restarted", "said_recovery_error")
    rows = trends([of_case("1", measured_s=None, healed=0, **{name: said[name] for name in names})])
    text = page(tmp_path, rows, as_expected=1)[PAGE].decode()
    cells = re.findall(r'<td class="num" data-name="Recovery">(.*?)</td>', text)
    assert [[word for word in re.split("<[^>]*>", cell) if word] for cell in cells] == [shown] * 2


def test_undecided_runs_are_counted_beside_unexpected_ones(tmp_path: Path) -> None:
    """The head and the matrix of faults count the same outcomes as the table of runs."""
    rows = trends(
        [
            of_case("1", "a", workload="register"),
            of_case("2", "b", workload="register", severity=Verdict.INVALID.severity),
            *(of_case(run, run, workload="register", said_verdict="unknown") for run in "34"),
            of_case("5", "c", workload="register", severity=None, said_verdict=None),
        ]
    )
    shown = page(tmp_path, rows, as_expected=1, unexpected=1, undecided=2)[PAGE].decode()
    assert "1 of 5 runs came out unexpectedly" in shown
    assert "3 of 5 runs are undecided" in shown
    kinds = [{"run": run, "kind": "kill", "asked": 1, "answered": 1} for run in "12345"]
    (picture,) = of_faults(rows, kinds)
    drawn = svg(picture.figure())
    assert ">1 of 5 runs unexpected<" in drawn
    assert all(f">{text}<" in drawn for text in ("2 undecided", "1 not judged", "1 as expected"))


def test_each_workload_has_room_in_the_matrix_of_faults() -> None:
    """Four workloads stand side by side; the next ones are in a picture of their own."""
    rows = trends([of_case(f"{number}", workload=f"w{number}") for number in range(7)])
    pictures = of_faults(rows, [])
    assert [picture.name for picture in pictures] == ["faults", "faults-2"]
    drawn = "".join(svg(picture.figure()) for picture in pictures)
    assert all(f">w{number}<" in drawn for number in range(7))


def test_a_run_leads_to_its_report_where_it_has_one(tmp_path: Path) -> None:
    """Relative to the page, and to the pictures in their folder; names are text, and a report that is gone is no link."""
    report = tmp_path / "store" / "s" / "1 <b>" / "report.html"
    report.parent.mkdir(parents=True)
    report.write_text("")
    rows = trends(
        [
            of_case("1 <b>", report=f"file:{report}"),
            of_case("2", report=f"file:{tmp_path}/gone.html"),
            of_case("3", "<script>", expects="invalid", report="s3a://bucket/report.html"),
        ]
    )
    files = page(tmp_path / "out", rows, unexpected=1, as_expected=2)
    shown = files[PAGE].decode()
    assert set(re.findall(r'href="(?!#)([^"]*)"', shown)) == {"../store/s/1%20%3Cb%3E/report.html"}
    assert "<script>" not in shown
    assert "<b>1 <b>" not in shown
    assert "expected invalid" in shown
    assert files["trend-1.svg"] == LINK.replace('href="', 'href="../').encode()


def test_only_what_its_report_does_not_show_is_drawn(tmp_path: Path) -> None:
    """A run as expected has its plots in its report. A bad run, and one without a report, is drawn on the page."""
    for name in "123":
        report = tmp_path / "store" / name / "report.html"
        report.parent.mkdir(parents=True)
        report.write_text("")
    rows = trends(
        [
            *(of_case(name, name, report=f"file:{tmp_path}/store/{name}/report.html") for name in "12"),
            of_case("3", "3", severity=Verdict.INVALID.severity, report=f"file:{tmp_path}/store/3/report.html"),
            of_case("4", "4"),
        ]
    )
    asked: list[Sequence[str]] = []

    def gather(names: Sequence[str]) -> Gathered:
        asked.append(sorted(names))
        return Gathered(runs={}, kinds=[])

    summary = Summary(
        out=f"file:{tmp_path}/out", runs=4, read=4, operations=4, counts={"valid": 3, "invalid": 1}, quarantined=0,
        outcomes={"as-expected": 3, "unexpected": 1}, refuted=[], undecided=[], orders={}, misordered=[], reasons=[], tables={},
    )  # fmt: skip
    files = render(summary, rows, gather, draw)
    assert asked == [["3", "4"]]
    shown = files[PAGE].decode()
    assert "2 runs of the table above are not drawn here: their reports have their plots." in shown
    drawn = shown[shown.index('id="pictures"') :]
    assert sorted(re.findall(r"<summary><b>(\d)</b>", drawn)) == ["3", "4"]
    assert not [name for name in files if name.endswith(".png")]


def test_lines_with_a_bad_latest_run_come_first() -> None:
    """Then those that became worse; a line of one run has no picture."""
    rows = [of_case(f"{number:02}", f"line {number % 12:02}") for number in range(24)]
    rows += [of_case("30", "line 07", severity=Verdict.INVALID.severity), of_case("31", "alone")]
    lines = lines_of(trends(rows))
    assert lines[0].title == "s: line 07 on s"
    assert lines[0].latest["outcome"] == "unexpected"
    assert len(lines) == 13
    assert len(of_lines(lines, {})) == SHOWN_LINES


def test_a_line_has_its_rate_and_since_when_it_has_changed(tmp_path: Path) -> None:
    """The runs of a line are a sequence of trials, night by night; the clearest change is shown with its night."""
    bad: dict[str, Any] = {"said_verdict": "invalid", "said_failures": ["recovered=invalid"]}
    rows = [
        of_case(
            f"2026-11-{night:02d}T2{run}:00:00+00:00",
            **(bad if (night, run) == (2, 0) or (night > 8 and run < 4) else {}),
        )
        for night in range(1, 11)
        for run in range(4)
    ]
    shown = page(tmp_path, trends(rows), unexpected=9)[PAGE].decode()
    assert "not as expected: 9 of 40 runs, 22.5 % (12.3 % to 37.5 %)" in shown
    assert "from 1 of 32 to 8 of 8, p &lt; 0.0001, since the night of 2026-11-09" in shown
